"""Each fixture gets exactly the findings that it says it gets."""

from pathlib import Path

import pytest

from tests.checks.fixture import Fixture, fixtures, found


def _name(fixture: Fixture) -> str:
    return f"{fixture.path.parent.name}/{fixture.path.stem}"


@pytest.mark.parametrize("fixture", fixtures(), ids=_name)
def test_findings_are_the_expected_ones(fixture: Fixture, tmp_path: Path) -> None:
    report = fixture.lint(tmp_path)
    assert report.errors == ()
    assert found(report) == fixture.expected


@pytest.mark.parametrize("fixture", fixtures(), ids=_name)
def test_the_name_says_what_is_expected(fixture: Fixture) -> None:
    codes = {expected.code for expected in fixture.expected}
    assert fixture.path.name.startswith(("bad_", "good_"))
    assert (fixture.rule in codes) is fixture.is_bad


def test_look_alikes_outnumber_the_faults() -> None:
    bad = sum(fixture.is_bad for fixture in fixtures())
    assert len(fixtures()) - bad > bad
