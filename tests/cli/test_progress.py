"""What a terminal is told while a run takes long."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from dcplint import progress
from dcplint.checks.base import all_rules
from tests.cli.shell import MAIN, ROOT

_SLOW = "import itertools, time; t = itertools.count(); time.monotonic = lambda: next(t) * 2.0; "
_PLUGIN = ROOT / "fixtures" / "plugin_project"
_WIPE = "\r\x1b[K"
_STEP = re.compile(r"dcplint: (?P<begun>\d+) of (?P<total>\d+): (?P<what>DCP.*)")


def _stderr(*args: str | Path, code: str, terminal: bool = True) -> str:
    """What `dcplint` says on stderr, where that is a terminal, or a pipe."""
    reading, writing = pty.openpty() if terminal else os.pipe()
    run = subprocess.Popen(
        [sys.executable, "-c", code, *args],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "60"},
        stdout=subprocess.DEVNULL,
        stderr=writing,
    )
    os.close(writing)
    said = b""
    with run, suppress(OSError):  # so ends a terminal that nobody writes to any more
        while some := os.read(reading, 4096):
            said += some
    os.close(reading)
    return said.decode()


@pytest.mark.parametrize(
    "command", [("check", "--no-cache", _PLUGIN), ("diff", _PLUGIN, _PLUGIN)], ids=["check", "diff"]
)
def test_a_slow_run_says_what_it_is_at_and_wipes_it(command: tuple[str | Path, ...]) -> None:
    said = _stderr(*command, "--engine", "vllm==0.30.0", code=_SLOW + MAIN)
    steps = [line for line in said.split(_WIPE) if line]
    counted = [found for step in steps if (found := _STEP.match(step))]
    assert any(step["what"].startswith("DCP101 implicit-capability") for step in counted)
    assert all(len(step[0]) < 60 for step in counted)
    on = sum(registered.rule.default for registered in all_rules())
    assert {int(step["total"]) for step in counted} == {on}
    assert max(int(step["begun"]) for step in counted) == on
    assert said.rindex(_WIPE) > said.rindex(": DCP")


def test_steps_are_counted_across_processes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_since", 0.0)
    steps = progress.Steps(4)
    first, second = steps.of(["a", "b"]), steps.of(["a", "b"])
    if (child := os.fork()) == 0:
        second("b", "elsewhere")
        os._exit(0)
    os.waitpid(child, 0)
    first("a", "here")
    assert "dcplint: 2 of 4: here" in capsys.readouterr().err


def test_a_quick_run_says_nothing_of_it() -> None:
    said = _stderr("check", "--no-cache", _PLUGIN, "--select", "DCP001", code=MAIN)
    assert _WIPE not in said


@pytest.mark.parametrize("options", [(), ("-q",)])
def test_neither_a_pipe_nor_who_wants_it_quiet_is_told(options: tuple[str, ...]) -> None:
    said = _stderr(
        "check", "--no-cache", _PLUGIN, *options, code=_SLOW + MAIN, terminal=bool(options)
    )
    assert _STEP.search(said) is None
    assert _WIPE not in said
