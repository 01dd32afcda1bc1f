"""Every fix of every fixture: what it makes of the file, and that the finding is gone for good.

After a wanted change: `pytest tests/fixes --update-snapshots`, and read the diff as a maintainer
would read the patch.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from dcplint.contracts.spec import parse_engine
from dcplint.findings.model import Applicability
from dcplint.fixes.passes import Fixed, fix
from dcplint.run import run_checks
from dcplint.run_options import RunOptions
from tests.checks.fixture import EVERY_RULE, Fixture, fixtures

SNAPSHOTS = Path(__file__).parent / "snapshots"
# Rules that offer a fix, and how ready it is.
OFFERED = {
    "DCP101": Applicability.SAFE,
    "DCP201": Applicability.UNSAFE,
    "DCP204": Applicability.UNSAFE,
    "DCP206": Applicability.UNSAFE,
    "DCP404": Applicability.UNSAFE,
}
BAD = [fixture for fixture in fixtures() if fixture.is_bad]


def _name(fixture: Fixture) -> str:
    return f"{fixture.path.parent.name}-{fixture.path.stem}"


def _snapshot(fixture: Fixture) -> Path:
    return SNAPSHOTS / f"{_name(fixture)}.out.py"


def _options(directory: Path, fixture: Fixture) -> RunOptions:
    return RunOptions((directory,), EVERY_RULE, engine=parse_engine(fixture.engine), edits=True)


def fixed(fixture: Fixture, directory: Path, *, unsafe: bool) -> Fixed:
    """Write the fixture and fix it."""
    fixture.lint(directory)
    options = _options(directory, fixture)
    outcome = fix(
        lambda contents: run_checks(replace(options, replaced=contents)),
        lambda path: True,
        unsafe=unsafe,
    )
    outcome.write()
    assert outcome.problems == []
    return outcome


@pytest.mark.parametrize("fixture", BAD, ids=_name)
def test_fixes_are_the_snapshot(
    fixture: Fixture, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    before = fixture.lint(tmp_path)
    outcome = fixed(fixture, tmp_path, unsafe=True)
    after = (tmp_path / fixture.place).read_text(encoding="utf-8")
    snapshot = _snapshot(fixture)
    if request.config.getoption("--update-snapshots"):
        snapshot.parent.mkdir(exist_ok=True)
        snapshot.unlink(missing_ok=True)
        if outcome.after:
            snapshot.write_text(after, encoding="utf-8")
    assert (after if outcome.after else None) == (
        snapshot.read_text(encoding="utf-8") if snapshot.exists() else None
    )
    # What was fixed is gone, and nothing has come in its place; what rested on it may be gone too.
    gone = {f.fingerprint for batch in outcome.findings.values() for f in batch}
    report = run_checks(_options(tmp_path, fixture))
    left = {f.fingerprint for f in report.findings}
    assert left <= {f.fingerprint for f in before.findings} - gone


# Where nothing is fixed once, there is nothing to do twice.
@pytest.mark.parametrize("fixture", [f for f in BAD if _snapshot(f).exists()], ids=_name)
def test_fixing_twice_is_fixing_once(fixture: Fixture, tmp_path: Path) -> None:
    fixed(fixture, tmp_path, unsafe=True)
    options = _options(tmp_path, fixture)
    again = fix(lambda contents: run_checks(options), lambda path: True, unsafe=True)
    assert (again.after, again.findings) == ({}, {})


@pytest.mark.parametrize("fixture", fixtures(), ids=_name)
def test_only_what_is_safe_is_done_unasked(fixture: Fixture, tmp_path: Path) -> None:
    outcome = fixed(fixture, tmp_path, unsafe=False)
    done = [f for batch in outcome.findings.values() for f in batch]
    assert all(OFFERED[f.code] is Applicability.SAFE for f in done)
    assert fixture.is_bad or not outcome.after


def test_every_rule_that_offers_a_fix_has_one_to_show() -> None:
    shown = {path.name.partition("_")[0].upper() for path in SNAPSHOTS.iterdir()}
    assert shown >= OFFERED.keys()


def test_no_snapshot_is_left_over() -> None:
    assert {p.name.removesuffix(".out.py") for p in SNAPSHOTS.iterdir()} <= set(map(_name, BAD))
