"""Every runnable fixture: the bad one confirmed by what its rule predicts, the good one refuted.

Runnable is what is written against the harness contract. The finding is forced: the harness is
asked about the rule whatever the linter says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from dcplint.data import data_dir
from dcplint.harness.job import Job
from dcplint.harness.model import Confirmation, Execution, Signal, Verdict
from dcplint.harness.pool import Pool
from dcplint.harness.predict import FALLBACKS, PREDICTIONS
from dcplint.harness.verify import Verifier
from tests.checks.fixture import Fixture

FIXTURES = sorted(
    path
    for path in data_dir("fixtures").rglob("dcp*_*/*.py")
    if path.read_text().startswith("# engine: dcplint==")
)
# The signal that gives each bad fixture away.
SIGNALS = {
    "DCP101": Signal.READ_UNOWNED,
    "DCP103": Signal.LSE,
    "DCP104": Signal.REFUSED,
    "DCP105": Signal.REFUSED_LATE,
    "DCP201": Signal.BRANCH,
    "DCP202": Signal.BRANCH,
    "DCP203": Signal.FIELD_MISSING,
    "DCP204": Signal.FIELD_MISSING,
    "DCP205": Signal.READ_MISSED,
    "DCP206": Signal.FIELD,
    "DCP207": Signal.FIELD_MISSING,
    "DCP208": Signal.ERROR,
    "DCP301": Signal.READ_MISSED,
    "DCP302": Signal.READ_UNOWNED,
    "DCP303": Signal.READ_MISSED,
    "DCP304": Signal.READ_UNOWNED,
    "DCP305": Signal.READ_UNOWNED,
    "DCP307": Signal.HANG,
    "DCP308": Signal.SLOTS,
    "DCP401": Signal.LSE_MISSING,
    "DCP402": Signal.LSE_BASE,
    "DCP403": Signal.LSE_PRECISION,
    "DCP404": Signal.OUTPUT_MERGED,
    "DCP405": Signal.ERROR,
    "DCP406": Signal.OUTPUT_MERGED,
    "DCP407": Signal.LSE_MISSING,
    "DCP408": Signal.SHAPE,
}
# The base itself is in the contract; what it does to an heir shows in DCP101's fixture.
WITHOUT_A_FIXTURE = {"DCP102"}
# Enough of each kind for every run; CI takes all of them.
QUICK = {"DCP105", "DCP202", "DCP307"}


def _code(path: Path) -> str:
    return path.parent.name.partition("_")[0].upper()


def _is_bad(path: Path) -> bool:
    return path.name.startswith("bad_")


def _cases() -> Iterator[object]:
    for path in FIXTURES:
        quick = _code(path) in QUICK and _is_bad(path)
        marks = () if quick else (pytest.mark.slow,)
        yield pytest.param(path, marks=marks, id=f"{_code(path)}-{path.stem}")


def _said(verifier: Verifier, path: Path) -> Confirmation:
    code = _code(path)
    ((target,), _) = verifier.backends(path)
    if code in PREDICTIONS:
        prediction = PREDICTIONS[code].about("the sinks")
        assert prediction is not None
        return verifier.verify(target, prediction)
    line, column = _condition(path)
    return verifier.verify_fallback(target, path, line, column, FALLBACKS[code])


def _condition(path: Path) -> tuple[int, int]:
    """Where the field is tested, if it is."""
    for number, text in enumerate(path.read_text().splitlines(), 1):
        found = re.search(r"\bif (\w+ is (not )?None)", text)
        if found is not None:
            return number, found.start(1) + 1
    return 0, 0


@pytest.mark.parametrize("path", list(_cases()))
def test_verdict(verifier: Verifier, path: Path) -> None:
    code = _code(path)
    said = _said(verifier, path)
    if code in FALLBACKS:
        assert said.execution is Execution.BUILDER_ONLY
    else:
        assert said.control == "passed"
        # Refused, or failed in the builder: no kernel was launched.
        early = said.signal in (Signal.REFUSED, Signal.REFUSED_LATE) or (
            code == "DCP208" and _is_bad(path)
        )
        assert said.execution is (Execution.NATIVE_CPU if early else Execution.INTERPRETED)
    if _is_bad(path):
        assert said.verdict is Verdict.CONFIRMED, said.reason
        assert said.signal is SIGNALS[code], said.reason
    else:
        assert said.verdict is Verdict.REFUTED, said.reason


def test_every_rule_with_a_runtime_meaning_has_both_kinds() -> None:
    found = {(_code(p), _is_bad(p)) for p in FIXTURES}
    wanted = {*PREDICTIONS, *FALLBACKS} - WITHOUT_A_FIXTURE
    assert {(code, kind) for code in wanted for kind in (True, False)} <= found
    assert wanted == set(SIGNALS)


HANGING = [path for path in FIXTURES if _code(path) == "DCP307"]


@pytest.mark.parametrize("path", HANGING, ids=lambda path: path.stem)
def test_two_ranks_hang_where_the_linter_says_so(
    shared_pool: Pool, path: Path, tmp_path: Path
) -> None:
    """Two processes over gloo, and the linter on the same file."""
    said = _said(Verifier(shared_pool, Job("", "", world_size=2)), path)
    codes = [finding.code for finding in Fixture(path).lint(tmp_path).findings]
    if path.name.startswith("bad_"):
        assert (said.verdict, said.signal, codes) == (Verdict.CONFIRMED, Signal.HANG, ["DCP307"])
    else:
        assert (said.verdict, codes) == (Verdict.REFUTED, [])
