"""No fault survives, none is caught by another signal than named, nothing right is confirmed."""

from __future__ import annotations

from pathlib import Path

import pytest

from dcplint.harness.verify import Verifier
from tests.harness.mutants import MUTANTS, VARIANTS, Mutant, Variant
from tests.harness.mutation import PAGE, judge, materialise

# A kernel's, a builder's and a merge's fault, for every run; CI takes all of them.
QUICK = (
    "kernel stores log2 instead of ln",
    "ceil(L / N), interleave ignored",
    "merged in base 2, LSE in base e",
)


def test_there_are_enough() -> None:
    names = [s.name for s in (*MUTANTS, *VARIANTS)]
    assert len(set(names)) == len(names)
    assert len(MUTANTS) >= 30
    assert len(VARIANTS) >= 10


@pytest.mark.parametrize("subject", [*MUTANTS, *VARIANTS], ids=lambda s: s.name)
def test_every_edit_fits_the_source(subject: Mutant | Variant, tmp_path: Path) -> None:
    materialise(subject.edits, tmp_path / "it")
    for path in (tmp_path / "it").rglob("*.py"):
        compile(path.read_text(), str(path), "exec")


def test_the_page_is_complete_and_clean() -> None:
    text = PAGE.read_text()
    assert [s.name for s in (*MUTANTS, *VARIANTS) if f"| {s.name} |" not in text] == []
    assert "**" not in text


# A kernel's, a merge's, a builder's and MLA's; `python -m tests.harness.mutation` runs them all.
RIGHT = (
    "other block sizes",
    "weights in float64",
    "slots token by token",
    "MLA: the formula instead of the runner's lengths",
)


def test_the_chosen_ones_exist() -> None:
    assert {*QUICK} <= {m.name for m in MUTANTS}
    assert {*RIGHT} <= {v.name for v in VARIANTS}


@pytest.mark.parametrize(
    "mutant",
    [
        pytest.param(m, id=m.name, marks=() if m.name in QUICK else pytest.mark.slow)
        for m in MUTANTS
    ],
)
def test_no_fault_survives(verifier: Verifier, mutant: Mutant) -> None:
    result = judge(verifier, mutant)
    assert result.as_predicted, (result.confirmation.reason, result.fault)


@pytest.mark.slow
@pytest.mark.parametrize("variant", [v for v in VARIANTS if v.name in RIGHT], ids=lambda v: v.name)
def test_what_is_right_is_refuted(verifier: Verifier, variant: Variant) -> None:
    result = judge(verifier, variant)
    assert result.as_predicted, result.confirmation.reason
