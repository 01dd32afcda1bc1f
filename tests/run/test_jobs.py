"""However many processes work, what is said is the same."""

from pathlib import Path

import pytest

from dcplint import processes, run
from dcplint.checks import dcp101_implicit_capability as rule
from dcplint.checks.base import all_rules
from tests.run.tree import Command, write_engine


@pytest.fixture(autouse=True)
def _worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_WORTH", 0)
    if processes.usable() > 1:
        monkeypatch.setattr(processes, "usable", lambda: 4)


def test_output_does_not_depend_on_jobs(dcplint: Command, tmp_path: Path) -> None:
    write_engine(tmp_path, "0.30.0", default=True)
    shown = {dcplint.check(tmp_path, "-j", str(jobs)).out for jobs in (1, 2, 3, 4)}
    assert len(shown) == 1
    assert "DCP101" in shown.pop()


def test_broken_files_are_told_of_by_whichever_process_parses_them(
    dcplint: Command, tmp_path: Path
) -> None:
    write_engine(tmp_path, "0.30.0", default=True)
    for number in range(40):
        source = "class Broken:\n    supports_dcp = = True\n" if number % 3 else _DEEP
        (tmp_path / f"broken_{number}.py").write_text(source)
    shown = {dcplint.check(tmp_path, "-j", str(jobs)).out for jobs in (1, 2, 3, 4)}
    assert len(shown) == 1
    assert shown.pop().count(": DCP001 ") == 40


_DEEP = f"supports_dcp = 1\ndef deep():\n    return {'(' * 190}supports_dcp{' + 1)' * 190}\n"


def test_a_rule_that_fails_elsewhere_is_told_of(
    dcplint: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(_: object) -> None:
        raise ZeroDivisionError("of all things")

    write_engine(tmp_path, "0.30.0", default=True)
    monkeypatch.setattr(rule, "check", check)
    all_rules.cache_clear()
    try:
        dcplint.check(tmp_path, "-j", "4")
    finally:
        all_rules.cache_clear()
    assert "DCP101 failed on" in dcplint.err and "of all things" in dcplint.err
    assert dcplint.status == 2
    assert {code for code, _ in dcplint.verdicts} == {"DCP102"}
