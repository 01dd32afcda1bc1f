"""Tolerances, and what tells one kind of wrong LSE from another."""

from __future__ import annotations

import math

import pytest
import torch

from dcplint.harness import judge
from dcplint.harness.model import Measurement, Outcome, Signal

INF = math.inf


def _lse(got: torch.Tensor, expected: torch.Tensor, base: str = "e") -> list[Measurement]:
    return list(judge.judge_lse(0, got, expected, base, "float32"))


def _outcomes(found: list[Measurement]) -> dict[Signal, Outcome]:
    return {m.signal: m.outcome for m in found}


@pytest.mark.parametrize(
    ("measured", "tolerance", "outcome"),
    [
        (0.0, 0.0, Outcome.PASS),
        (1.0, 0.0, Outcome.FAIL),
        (1e-5, 1e-5, Outcome.PASS),
        (1.1e-5, 1e-5, Outcome.NEAR),
        (5e-5, 1e-5, Outcome.NEAR),
        (5.1e-5, 1e-5, Outcome.FAIL),
        (math.nan, 1e-5, Outcome.FAIL),
        (INF, 1e-5, Outcome.FAIL),
    ],
)
def test_outcomes(measured: float, tolerance: float, outcome: Outcome) -> None:
    assert judge.measure(Signal.LSE, 0, measured, tolerance).outcome is outcome


@pytest.fixture
def natural() -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    lse = torch.randn(6, 4, generator=generator, dtype=torch.float64) * 2 + 3
    lse[0, 0] = -INF
    return lse


def test_a_right_lse_passes(natural: torch.Tensor) -> None:
    assert _outcomes(_lse(natural.float(), natural)) == {Signal.LSE: Outcome.PASS}
    two = (natural / math.log(2)).float()
    assert _outcomes(_lse(two, natural, "2")) == {Signal.LSE: Outcome.PASS}


def test_a_wrong_base_is_told_by_its_slope(natural: torch.Tensor) -> None:
    (found,) = _lse((natural / math.log(2)).float(), natural)
    assert (found.signal, found.outcome) == (Signal.LSE_BASE, Outcome.FAIL)
    assert "slope 1.4427" in found.detail
    (found,) = _lse(natural.float(), natural, "2")
    assert (found.signal, found.outcome) == (Signal.LSE_BASE, Outcome.FAIL)


def test_other_errors_are_no_base(natural: torch.Tensor) -> None:
    generator = torch.Generator().manual_seed(1)
    noise = torch.randn(natural.shape, generator=generator)
    for wrong in (natural + 1.0, natural * 3.0, natural + noise):
        (found,) = _lse(wrong.float(), natural)
        assert (found.signal, found.outcome) == (Signal.LSE, Outcome.FAIL)


def test_nan_among_finite_rows_fails(natural: torch.Tensor) -> None:
    wrong = natural.float().clone()
    wrong[3, 1] = math.nan
    (found,) = _lse(wrong, natural)
    assert (found.signal, found.measured) == (Signal.LSE, INF)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_a_cost_not_a_fault(natural: torch.Tensor, dtype: torch.dtype) -> None:
    found = _outcomes(_lse(natural.to(dtype), natural))
    assert found == {Signal.LSE_PRECISION: Outcome.FAIL, Signal.LSE: Outcome.PASS}
    # What rounding does not come to is no cost of it.
    wrong = _outcomes(_lse((natural + 0.5).to(dtype), natural))
    assert wrong == {Signal.LSE: Outcome.FAIL}


@pytest.mark.parametrize("marker", [math.nan, INF, 0.0, -1e30])
def test_empty_rows_are_exact(marker: float) -> None:
    empty = torch.tensor([[True, False], [False, True]])
    out = torch.where(empty[..., None], 0.0, 1.0).expand(2, 2, 8).clone()
    lse = torch.where(empty, -INF, 1.0)
    right = _outcomes(list(judge.judge_empty(0, out, lse, empty)))
    assert right == {Signal.EMPTY_OUTPUT: Outcome.PASS, Signal.EMPTY_LSE: Outcome.PASS}
    lse[0, 0] = marker
    out[1, 1, 3] = math.nan
    wrong = _outcomes(list(judge.judge_empty(0, out, lse, empty)))
    assert wrong == {Signal.EMPTY_OUTPUT: Outcome.FAIL, Signal.EMPTY_LSE: Outcome.FAIL}
    assert list(judge.judge_empty(0, out, lse, torch.zeros_like(empty))) == []


def test_reads_are_counted_in_slots() -> None:
    owned = torch.tensor([True] * 8 + [False] * 8)
    read = torch.tensor([True] * 4 + [False] * 4 + [True] * 4 + [False] * 4)
    unowned, missed = judge.judge_reads(0, [read], [owned], [owned], [4])
    assert (unowned.signal, unowned.measured) == (Signal.READ_UNOWNED, 1)
    assert (missed.signal, missed.measured) == (Signal.READ_MISSED, 1)
    assert [m.measured for m in judge.judge_reads(0, [owned], [owned], [owned], [4])] == [0, 0]


def test_output_tolerance_is_of_the_values_scale() -> None:
    expected = torch.ones(2, 2, 4, dtype=torch.float64)
    lse = torch.ones(2, 2, dtype=torch.float64)

    def judged(error: float, largest: float, size: float = 1.0) -> Outcome:
        return judge.judge_output(
            Signal.OUTPUT_LOCAL, 0, expected + error, expected, lse * size, largest, "float32"
        ).outcome

    assert judged(9e-6, 1.0) is Outcome.PASS
    assert judged(9e-5, 1.0) is Outcome.FAIL
    assert judged(9e-5, 10.0) is Outcome.PASS
    assert judged(9e-5, 1.0, size=1600.0) is Outcome.PASS
    assert judged(math.nan, 1.0) is Outcome.FAIL
