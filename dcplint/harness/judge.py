"""From what a rank observed to measurements: slots, read set, empty rows, LSE, output.

An exact check has tolerance 0. Tolerances are absolute, on values of order one: outputs are scaled
by the largest value, and both by the size of the LSE once scores are so large that their own
rounding shows. They do not grow with the number of ranks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

from dcplint.harness.model import Measurement, Outcome, Signal

# A cache of a few bits loses more than a dtype does; what is not one's own shows all the same.
QUANTIZED = "quantized"
OUTPUT_TOLERANCE = {"float32": 1e-5, "float16": 5e-3, "bfloat16": 4e-2, QUANTIZED: 0.2}
LSE_TOLERANCE = {"float32": 1e-5, "float16": 1e-4, "bfloat16": 1e-4, QUANTIZED: 0.2}
# One rounding moves a value by up to half a unit in its last place: 2**-8 of it in bf16, where it
# lies just above a power of two (docs/decisions/2026-11-30-half-precision-lse.md).
_HALF_LSE = {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11}
_NEAR = 5.0
_LARGE = 16.0  # LSEs below this are of order one


def measure(
    signal: Signal, rank: int, measured: float, tolerance: float, detail: str = ""
) -> Measurement:
    """Compare; between one and five times a tolerance is neither pass nor fail. NaN fails."""
    if measured <= tolerance:
        outcome = Outcome.PASS
    elif tolerance > 0.0 and measured <= _NEAR * tolerance:
        outcome = Outcome.NEAR
    else:
        outcome = Outcome.FAIL
    return Measurement(signal, rank, measured, tolerance, outcome, detail)


def judge_reads(
    rank: int,
    read: list[torch.Tensor],
    owned: list[torch.Tensor],
    needed: list[torch.Tensor],
    per_slot: list[int],
) -> Iterator[Measurement]:
    """Compare what was read with what this rank holds. Masks are per element; counts are slots."""
    unowned = sum(
        math.ceil(int((r & ~o).sum()) / n) for r, o, n in zip(read, owned, per_slot, strict=True)
    )
    missed = sum(
        math.ceil(int((need & ~r).sum()) / n)
        for r, need, n in zip(read, needed, per_slot, strict=True)
    )
    yield measure(Signal.READ_UNOWNED, rank, unowned, 0, f"{unowned} slots read, not owned")
    yield measure(Signal.READ_MISSED, rank, missed, 0, f"{missed} slots owned, never read")


def judge_empty(
    rank: int, out: torch.Tensor, lse: torch.Tensor | None, empty: torch.Tensor
) -> Iterator[Measurement]:
    """Rows that see nothing on this rank: output exactly 0, LSE exactly -inf. empty: [T, H]."""
    if not bool(empty.any()):
        return
    wrong = int((out[empty] != 0).any(-1).sum())
    yield measure(Signal.EMPTY_OUTPUT, rank, wrong, 0, f"{wrong} empty rows with an output")
    if lse is not None:
        values = lse[empty]
        wrong = int((values != -torch.inf).sum())
        shown = "" if not wrong else f", such as {values[values != -torch.inf][0].item():.4g}"
        detail = f"{wrong} empty rows with an LSE other than -inf{shown}"
        yield measure(Signal.EMPTY_LSE, rank, wrong, 0, detail)


def judge_lse(
    rank: int,
    lse: torch.Tensor,
    expected: torch.Tensor,
    base: str,
    dtype: str,
) -> Iterator[Measurement]:
    """LSE against the oracle's on rows where both are finite; `expected` in natural log.

    base: what the backend declares. Where the values disagree, a least-squares line through them
    tells a wrong base (slope off by ln 2) from a wrong LSE.
    """
    rows = expected.isfinite()
    if not bool(rows.any()):
        return
    got = lse[rows].double().cpu()
    unit = 1.0 if base == "e" else math.log(2.0)
    right = expected[rows] / unit
    error = _largest((got - right).abs())
    size = float(right.abs().max())
    tolerance = LSE_TOLERANCE[dtype] * max(1.0, size / _LARGE)
    note = ""
    if lse.dtype in _HALF_LSE:
        rounding = max(tolerance, _HALF_LSE[lse.dtype] * size)
        if error <= rounding:  # what is more has another cause
            detail = f"{str(lse.dtype).removeprefix('torch.')} LSE off by {error:.2g}"
            yield measure(Signal.LSE_PRECISION, rank, error, tolerance, detail)
        tolerance = rounding
        note = f", kept in {str(lse.dtype).removeprefix('torch.')}"
    found = measure(Signal.LSE, rank, error, tolerance, f"LSE off by {error:.2g}{note}")
    if found.outcome is Outcome.FAIL:
        slope = _slope(right, got)
        other = 1.0 / math.log(2.0) if base == "e" else math.log(2.0)
        if slope is not None and abs(slope - other) < 0.01:
            named = "base 2" if base == "e" else "base e"
            detail = f"slope {slope:.4f} against the oracle: {named}, declared base {base}"
            yield measure(Signal.LSE_BASE, rank, error, tolerance, detail)
            return
    yield found


def judge_output(
    signal: Signal,
    rank: int,
    out: torch.Tensor,
    expected: torch.Tensor,
    lse: torch.Tensor,
    largest_value: float,
    dtype: str,
) -> Measurement:
    """Largest deviation of an output [T, H, Dv] from the oracle's, over largest |v|."""
    error = _largest((out.double().cpu() - expected).abs()) / max(largest_value, 1e-30)
    finite = lse[lse.isfinite()]
    size = float(finite.abs().max()) if finite.numel() else 0.0
    tolerance = OUTPUT_TOLERANCE[dtype] * max(1.0, size / _LARGE)
    return measure(signal, rank, error, tolerance, f"output off by {error:.2g} of max|v|")


def _largest(errors: torch.Tensor) -> float:
    """The maximum, infinite where any error is NaN."""
    return float(torch.nan_to_num(errors, nan=math.inf, posinf=math.inf).max())


def _slope(x: torch.Tensor, y: torch.Tensor) -> float | None:
    """Slope of the least-squares line of y on x, None where a line does not fit."""
    keep = y.isfinite()
    x, y = x[keep], y[keep]
    if x.numel() < 3 or float(x.std()) < 1e-6:
        return None
    dx, dy = x - x.mean(), y - y.mean()
    slope = float((dx * dy).sum() / (dx * dx).sum())
    residual = float((dy - slope * dx).abs().max())
    return slope if residual < 1e-2 * float(dy.abs().max()) + 1e-6 else None
