"""Every runnable fixture: the bad one confirmed by what its rule predicts, the good one refuted.

The finding is forced: the harness is asked about the rule whatever the linter says.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dcplint.data import data_dir
from dcplint.harness.job import Job
from dcplint.harness.model import Execution, Signal, Verdict
from dcplint.harness.pool import Pool
from dcplint.harness.predict import PREDICTIONS
from dcplint.harness.verify import Verifier

FIXTURES = sorted(data_dir("fixtures").glob("runnable/dcp*/*.py"))
# The signal that gives each bad fixture away.
SIGNALS = {
    "DCP101": Signal.READ_UNOWNED,
    "DCP103": Signal.LSE,
    "DCP205": Signal.READ_UNOWNED,
    "DCP206": Signal.FIELD,
    "DCP301": Signal.READ_MISSED,
    "DCP302": Signal.READ_UNOWNED,
    "DCP303": Signal.READ_UNOWNED,
    "DCP304": Signal.READ_UNOWNED,
    "DCP305": Signal.READ_UNOWNED,
    "DCP307": Signal.HANG,
    "DCP308": Signal.SLOTS,
    "DCP401": Signal.LSE_MISSING,
    "DCP402": Signal.LSE_BASE,
    "DCP403": Signal.LSE_PRECISION,
    "DCP404": Signal.LSE,
    "DCP405": Signal.ERROR,
    "DCP407": Signal.LSE_MISSING,
}
# Enough of each kind for every run; CI takes all of them.
QUICK = {"DCP307"}


@pytest.fixture(scope="module")
def verifier(shared_pool: Pool) -> Verifier:
    return Verifier(shared_pool, Job("", "", world_size=4))


def _code(path: Path) -> str:
    return path.parent.name.partition("_")[0].upper()


def _cases() -> Iterator[object]:
    for path in FIXTURES:
        code = _code(path)
        if code in PREDICTIONS:
            marks = () if code in QUICK and path.name.startswith("bad") else (pytest.mark.slow,)
            yield pytest.param(path, marks=marks, id=f"{code}-{path.stem}")


@pytest.mark.parametrize("path", list(_cases()))
def test_verdict(verifier: Verifier, path: Path) -> None:
    code = _code(path)
    (target,) = verifier.backends(path)
    said = verifier.verify(target, PREDICTIONS[code])
    assert said.execution is Execution.INTERPRETED
    assert said.control == "passed"
    if path.name.startswith("good_"):
        assert (said.verdict, said.reason[:9]) == (Verdict.REFUTED, "right in ")
        return
    assert said.verdict is Verdict.CONFIRMED, said.reason
    assert said.signal is SIGNALS[code], said.reason


def test_every_rule_with_a_prediction_has_both_kinds() -> None:
    found = {(_code(p), p.name.partition("_")[0]) for p in FIXTURES}
    missing = {"DCP102", "DCP105", "DCP203", "DCP204", "DCP406"}
    for code in set(PREDICTIONS) - missing:
        assert {(code, "bad"), (code, "good")} <= found
