"""The whole command, over real files."""

import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

from dcplint.report.formats import FORMATS
from tests.cli.shell import MAIN, ROOT, dcplint
from tests.report.test_github import parsed

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


@pytest.mark.parametrize("closed", [1, 2])
def test_a_stream_that_is_closed_is_no_error(closed: int, project: Path) -> None:
    command = [sys.executable, "-c", MAIN, "check", "--no-cache"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    shell = ["sh", "-c", f'exec "$0" "$@" {closed}>&-', *command]
    result = subprocess.run(shell, cwd=project, env=environment, capture_output=True, check=False)
    assert (result.returncode, result.stderr) == (1, b"")
    assert bool(result.stdout) is (closed == 2)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_disk_that_is_full_is_named(project: Path) -> None:
    """Also where the run is one that was kept."""
    said = b"error: the output cannot be written: No space left on device\n"
    options = ("--cache-dir", "kept")
    for arguments in (
        *[("check", *options)] * 2,
        *[("rule",), ("packs",), ("--help",), ("check", "--help"), ("--version",)],
    ):
        with Path("/dev/full").open("wb") as out:
            result = dcplint(*arguments, cwd=project, stdout=out)
        assert (result.returncode, result.stderr) == (2, said)


@pytest.mark.parametrize("command", [("check",), ("check", "--no-cache"), ("capabilities",)])
def test_a_working_directory_that_is_gone_is_named(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    code = f"import os; os.rmdir({str(gone)!r}); {MAIN}"
    result = dcplint(*command, cwd=gone, code=code)
    said = b"error: the working directory cannot be used: No such file or directory\n"
    assert (result.returncode, result.stderr) == (2, said)


@pytest.mark.parametrize("style", ["text", "concise"])
def test_a_reader_that_leaves_early_is_no_error(style: str, project: Path) -> None:
    (project / "bad.py").write_bytes(BAD * 10_000)
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, "check", "--output-format", style],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline()
    process.stdout.close()
    assert (process.stderr.read(), process.wait()) == (b"", 1)
    process.stderr.close()


def test_checking_leaves_the_tree_as_it_is(project: Path) -> None:
    """Whatever it writes, a tree that cannot be written to is checked like any other."""

    def state() -> dict[str, int]:
        return {str(path): path.stat().st_mtime_ns for path in project.rglob("*")}

    before = state()
    assert dcplint("check", cwd=project).returncode == 1
    assert state() == before


@pytest.mark.parametrize("style", sorted(FORMATS))
def test_odd_names(style: str, project: Path) -> None:
    (project / "bad.py").unlink()
    for name in NAMES:
        (project / name).write_bytes(BAD)
    result = dcplint("check", "--output-format", style, cwd=project)
    assert (result.returncode, result.stderr) == (1, b"")
    text = result.stdout.decode()
    assert text.count("must name the rules") == len(NAMES) * (2 if style == "junit" else 1)
    if style == "json":
        assert {finding["path"] for finding in json.loads(text)["findings"]} == set(NAMES)
    elif style == "gitlab":
        assert {issue["location"]["path"] for issue in json.loads(text)} == set(NAMES)
    elif style == "sarif":
        results = json.loads(text)["runs"][0]["results"]
        uris = [r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for r in results]
        assert {unquote(uri, errors="surrogateescape") for uri in uris} == set(NAMES)
    elif style == "github":
        files = {parsed(line)[1]["file"] for line in text.splitlines() if line.startswith("::")}
        assert files == {name.replace("\udcff", "\\udcff") for name in NAMES}
    elif style in ("junit", "markdown"):
        assert "\x1b" not in text and "raw\\udcff.py" in text and "two\\nlines.py" in text
    else:
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
