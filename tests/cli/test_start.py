"""Starting up, and ending badly."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from dcplint import __version__
from dcplint.cli import commands
from dcplint.cli.main import main
from dcplint.errors import UserError
from tests.cli.shell import MAIN, dcplint

MODULES = (
    "import atexit, json, sys; "
    "atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr)); "
)


@pytest.mark.parametrize("args", [["--version"], ["--help"], ["-h"], [], ["check", "--help"]])
def test_start_up_imports_no_parser(args: list[str], tmp_path: Path) -> None:
    result = dcplint(*args, cwd=tmp_path, code=MODULES + MAIN)
    loaded = set(json.loads(result.stderr.splitlines()[-1]))
    assert "dcplint.cli.main" in loaded
    assert not loaded & {"libcst", "yaml", "pathspec", "packaging.version", "torch"}


def test_version_imports_click_and_nothing_else(tmp_path: Path) -> None:
    result = dcplint("--version", cwd=tmp_path, code=MODULES + MAIN)
    click = dcplint(cwd=tmp_path, code=MODULES + "import click; click.echo('')")
    loaded = json.loads(result.stderr.splitlines()[-1])
    extra = set(loaded) - set(json.loads(click.stderr))
    assert {name for name in extra if name.split(".")[0] == "dcplint"} == {
        "dcplint",
        "dcplint.cli",
        "dcplint.cli.commands",
        "dcplint.cli.main",
        "dcplint.errors",
    }
    assert len(extra) < 30
    assert result.stdout.decode().split() == ["dcplint,", "version", __version__]


def test_the_package_runs_as_the_command(tmp_path: Path) -> None:
    code = "import runpy, sys; sys.argv[0] = 'm'; runpy.run_module('dcplint', run_name='__main__')"
    result = dcplint("chekc", cwd=tmp_path, code=code)
    assert result.returncode == 2 and b"Usage: dcplint" in result.stderr
    kept = dcplint("check", cwd=tmp_path, code=code)
    assert kept.returncode == 2 and b"no Python files found" in kept.stderr


def test_every_command_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    for name in commands.COMMANDS:
        with pytest.raises(SystemExit) as exit_:
            main([name, "--help"])
        assert exit_.value.code == 0
        assert f"Usage: dcplint {name}" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["--help"])
    out = capsys.readouterr().out
    assert all(f"  {name} " in out for name in commands.COMMANDS)


@pytest.mark.parametrize("args", [["chekc"], ["check", "--nope"], ["check", "--color", "x"]])
def test_usage_errors(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(args)
    assert exit_.value.code == 2
    assert "Error: " in capsys.readouterr().err


def run_fails_with(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_checks(_: object) -> None:
        raise error

    monkeypatch.setitem(sys.modules, "dcplint.run", SimpleNamespace(run_checks=run_checks))


@pytest.mark.parametrize(
    ("error", "message", "status"),
    [
        (UserError("no\x1b such path"), "error: no\\x1b such path\n", 2),
        (
            KeyError("x"),
            "error: dcplint failed (KeyError: 'x'); run again with -v to see where\n",
            2,
        ),
        (RecursionError("deep\nly"), "deep\\nly", 2),
        (KeyboardInterrupt(), "", 130),
    ],
)
def test_errors_are_one_sentence(
    error: BaseException,
    message: str,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    run_fails_with(error, monkeypatch)
    with pytest.raises(SystemExit) as exit_:
        main(["check", str(tmp_path)])
    assert exit_.value.code == status
    shown = capsys.readouterr()
    assert not shown.out
    assert message in shown.err and len(shown.err.splitlines()) <= 1


def test_verbose_shows_the_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run_fails_with(KeyError("x"), monkeypatch)
    with pytest.raises(SystemExit):
        main(["check", "-v", str(tmp_path)])
    assert "Traceback (most recent call last)" in capsys.readouterr().err
