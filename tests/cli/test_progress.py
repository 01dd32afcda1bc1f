"""What a terminal is told while a run takes long."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.shell import MAIN, ROOT

_SLOW = "import itertools, time; t = itertools.count(); time.monotonic = lambda: next(t) * 2.0; "
_PLUGIN = ROOT / "fixtures" / "plugin_project"
_WIPE = "\r\x1b[K"


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
    assert any(step.startswith("dcplint: DCP101 implicit-capability") for step in steps)
    assert all(len(step) < 60 for step in steps if step.startswith("dcplint: DCP"))
    assert said.rindex(_WIPE) > said.rindex("dcplint: DCP")


def test_a_quick_run_says_nothing_of_it() -> None:
    said = _stderr("check", "--no-cache", _PLUGIN, "--select", "DCP001", code=MAIN)
    assert _WIPE not in said


@pytest.mark.parametrize("options", [(), ("-q",)])
def test_neither_a_pipe_nor_who_wants_it_quiet_is_told(options: tuple[str, ...]) -> None:
    said = _stderr(
        "check", "--no-cache", _PLUGIN, *options, code=_SLOW + MAIN, terminal=bool(options)
    )
    assert "dcplint: DCP" not in said
    assert _WIPE not in said
