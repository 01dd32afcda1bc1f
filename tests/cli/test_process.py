"""The whole command, over real files."""

import json
import os
from pathlib import Path

import pytest

from tests.cli.shell import ROOT, dcplint

BAD = b"x = 1  # dcplint: ignore\n"
NAMES = [
    "plain.py",
    "a b.py",
    "50%.py",
    "a:b,c.py",
    "two\nlines.py",
    "näme 名.py",
    os.fsdecode(b"raw\xff.py"),
    "\x1b[31m.py",
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "dcplint.toml").touch()
    (tmp_path / "bad.py").write_bytes(BAD)
    return tmp_path


def test_a_closed_pipe_is_no_error(project: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as out:
        result = dcplint("check", cwd=project, stdout=out)
        assert (result.returncode, result.stderr) == (1, b"")
        result = dcplint("check", "--exit-zero", cwd=project, stdout=out)
        assert (result.returncode, result.stderr) == (0, b"")


@pytest.mark.parametrize("style", ["text", "concise", "json", "github"])
def test_odd_names(style: str, project: Path) -> None:
    (project / "bad.py").unlink()
    for name in NAMES:
        (project / name).write_bytes(BAD)
    result = dcplint("check", "--output-format", style, cwd=project)
    assert (result.returncode, result.stderr) == (1, b"")
    text = result.stdout.decode()
    assert text.count("must name the rules") == len(NAMES)
    if style == "json":
        assert {finding["path"] for finding in json.loads(text)["findings"]} == set(NAMES)
    elif style != "github":
        assert "\x1b" not in text
        assert "raw\\udcff.py:1:8" in text and "two\\nlines.py:1:8" in text


def test_odd_names_as_arguments(project: Path) -> None:
    for name in NAMES:
        (project / name).write_bytes(BAD)
    names = [os.fsencode(name) for name in NAMES]
    result = dcplint("check", "--output-format", "json", *names, cwd=project)
    paths = {finding["path"] for finding in json.loads(result.stdout)["findings"]}
    assert (result.returncode, paths) == (1, set(NAMES))


def test_an_encoding_that_cannot_say_it(project: Path) -> None:
    (project / "bad.py").rename(project / "näme.py")
    env = {"PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    result = dcplint("check", "--output-format", "concise", cwd=project, env=env)
    assert result.stdout.startswith(b"n\\xe4me.py:1:8: DCP004 ")


def test_two_runs_print_the_same(project: Path) -> None:
    (project / "more.py").write_bytes(BAD * 50)
    runs = {
        dcplint("check", cwd=project, env={"PYTHONHASHSEED": seed}).stdout for seed in ("1", "2")
    }
    assert len(runs) == 1


def test_the_environment_is_scrubbed(tmp_path: Path) -> None:
    hostile = {"CI": "1", "GITHUB_ACTIONS": "true", "NO_COLOR": "1", "COLUMNS": "13", "TERM": "x"}
    probe = (
        "import os, sys, pytest\n"
        "sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', sys.argv[1]]))"
    )
    target = f"{Path(__file__)}::test_nothing_steers_the_tests"
    result = dcplint(target, cwd=ROOT, env=hostile, code=probe)
    assert result.returncode == 0, result.stdout.decode()


def test_nothing_steers_the_tests() -> None:
    assert not {"CI", "NO_COLOR", "COLUMNS", "TERM"} & os.environ.keys()
    assert not any(name.startswith("GITHUB_") for name in os.environ)
