import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dcplint.cli.watch import State, state_of, watch
from dcplint.errors import UserError
from tests.cli.shell import MAIN, ROOT
from tests.run.tree import SILENT, write


class Over(Exception):
    pass


def runs(*states: int) -> int:
    """How often the check runs, where these states are seen one after the other."""
    done: list[int] = []
    left: Iterator[int] = iter(states)

    def look() -> State:
        for state in left:
            return frozenset({("a.py", state, 0)})
        raise Over

    with pytest.raises(Over):
        watch(lambda: done.append(1), look, lambda seconds: None)
    return len(done)


def test_runs_again_once_a_change_has_come_to_rest() -> None:
    assert runs(1) == 1
    assert runs(1, 1, 1) == 1
    assert runs(1, 2) == 1  # not yet at rest
    assert runs(1, 2, 2, 2) == 2
    assert runs(1, 2, 3, 4, 4, 4, 4) == 2
    assert runs(1, 2, 1, 1, 1) == 1  # undone in time
    assert runs(1, 2, 2, 2, 3, 3, 3) == 3


def test_a_change_during_the_run_is_seen() -> None:
    assert runs(1, 2, 2, 2) == 2


def test_what_only_the_user_can_put_right_does_not_end_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    left = iter("abbb")

    def look() -> State:
        for state in left:
            return frozenset({(state, 0, 0)})
        raise Over

    def once() -> None:
        raise UserError("dcplint.toml, line 1: unknown key")

    with pytest.raises(Over):
        watch(once, look, lambda seconds: None)
    assert capsys.readouterr().err.count("error: dcplint.toml, line 1: unknown key\n") == 2


def test_a_change_that_keeps_size_and_time_is_one(tmp_path: Path) -> None:
    file = write(tmp_path, {"a.py": "x = 1\n"}) / "a.py"
    before, found = state_of((file,), ()), file.stat()
    file.write_text("x = 2\n")
    os.utime(file, ns=(found.st_atime_ns, found.st_mtime_ns))
    assert state_of((file,), ()) != before


def test_the_state_is_that_of_the_whole_project(tmp_path: Path) -> None:
    write(tmp_path, {"dcplint.toml": "", "src/a.py": "", "src/b.py": "", "x.txt": ""})
    asked, extra = (tmp_path / "src" / "a.py",), tmp_path / "pack.yaml"

    def names() -> set[str]:
        found = state_of(asked, (extra, None))
        return {os.path.relpath(path, tmp_path) for path, _, _ in found}

    assert names() == {"dcplint.toml", "src/a.py", "src/b.py"}
    write(tmp_path, {"src/pyproject.toml": ""})
    assert names() == {"dcplint.toml", "src/a.py", "src/b.py", "src/pyproject.toml"}
    write(tmp_path, {"pack.yaml": ""})
    assert "pack.yaml" in names()
    before = state_of(asked, ())
    assert state_of(asked, ()) == before
    write(tmp_path, {"src/b.py": "x = 1\n"})
    assert state_of(asked, ()) != before
    (tmp_path / "src" / "a.py").unlink()
    assert names() == {"dcplint.toml", "src/pyproject.toml", "pack.yaml"}


def test_watching_for_real(tmp_path: Path) -> None:
    write(tmp_path, {"dcplint.toml": 'engine = "vllm==0.29.0"', "a.py": "x = 1\n"})
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", MAIN, "check", "--watch", "--output-format", "concise"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # A shell starts what runs in its background deaf to Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None
    try:
        lines = iter(process.stdout.readline, "")
        assert next(lines).startswith("No findings in 1 file")
        assert next(lines).startswith("watching for changes")
        write(tmp_path, {"a.py": SILENT})
        assert next(lines).startswith("a.py:4:1: DCP101")
        assert next(lines).startswith("Found 1 error in 1 file")
        next(lines)
        write(tmp_path, {"a.py": "x = 1\n"})
        assert next(lines).startswith("No findings")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
