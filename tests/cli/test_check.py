"""`dcplint check` around a run that is made up."""

import io
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.version import Version

from dcplint.cli.main import main
from dcplint.contracts.spec import EngineSpec
from dcplint.findings.model import Severity
from dcplint.report.model import Report
from dcplint.run_options import RunOptions, Stdin
from tests.report.sample import EMPTY, IMPLICIT, REPORT


@dataclass
class Shell:
    """Runs `main` in this process with `report` as the outcome of the run."""

    capsys: pytest.CaptureFixture[str]
    report: Report = REPORT
    asked: list[RunOptions] = field(default_factory=list)

    def __call__(self, *args: str | Path) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as exit_:
            main(["check", *map(str, args)])
        shown = self.capsys.readouterr()
        assert isinstance(exit_.value.code, int)
        return exit_.value.code, shown.out, shown.err

    def run_checks(self, options: RunOptions) -> Report:
        self.asked.append(options)
        return self.report


@pytest.fixture
def check(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Iterator[Shell]:
    shell = Shell(capsys)
    fake = SimpleNamespace(run_checks=shell.run_checks)
    monkeypatch.setitem(sys.modules, "dcplint.run", fake)
    monkeypatch.chdir(tmp_path)
    yield shell


def test_exit_status(check: Shell) -> None:
    note = replace(IMPLICIT, severity=Severity.NOTE)
    for report, status in [
        (EMPTY, 0),
        (replace(EMPTY, findings=(note,)), 0),
        (replace(EMPTY, findings=(IMPLICIT,)), 1),
        (replace(EMPTY, errors=("DCP101 failed",)), 2),
        (replace(REPORT, errors=("DCP101 failed",)), 2),
    ]:
        check.report = report
        assert check()[0] == status
    check.report = REPORT
    assert check("--exit-zero")[0] == 0
    check.report = replace(REPORT, errors=("DCP101 failed",))
    assert check("--exit-zero")[0] == 2


def test_defaults(check: Shell) -> None:
    check()
    (options,) = check.asked
    assert options.paths == (Path(),)
    assert options == replace(RunOptions((Path(),), options.policy), jobs=2)
    assert "DCP101" in options.policy.codes and "DCP003" not in options.policy.codes


def test_every_option_arrives(check: Shell, tmp_path: Path) -> None:
    (tmp_path / "dcplint.toml").write_text(
        'exclude = ["x/"]\nengine = "vllm==0.30.0"\nengine-path = "e"\npacks = ["p.yaml"]\n'
    )
    check("a", "b", "--min-severity", "error", "--ignore", "DCP101, DCP002", "--ignore", "DCP004")
    check("--engine", "vllm==0.29.0", "--engine-path", "f", "--pack", "q.yaml", "--pack", "r.yaml")
    check("--engine", "auto", "--select", "DCP003,implicit-capability", "--extend-select", "DCP001")
    first, second, third = check.asked
    assert first.paths == (Path("a"), Path("b"))
    assert first.exclude == ("x/",)
    assert first.policy.min_severity is Severity.ERROR
    assert not first.policy.codes & {"DCP101", "DCP002", "DCP004"}
    assert first.config_path == tmp_path / "dcplint.toml"
    assert first.engine == EngineSpec("vllm", Version("0.30.0"))
    assert (first.engine_path, first.packs) == (tmp_path / "e", (tmp_path / "p.yaml",))
    assert second.engine == EngineSpec("vllm", Version("0.29.0"))
    assert second.engine_path == Path("f")
    assert second.packs == (tmp_path / "p.yaml", Path("q.yaml"), Path("r.yaml"))
    assert third.engine is None
    assert third.policy.codes == {"DCP003", "DCP101", "DCP001"}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--select", "DCP110"], "error: no rule is called 'DCP110'; did you mean 'DCP310'"),
        (["--select", ""], "error: --select is given no rule; `dcplint rule` lists them"),
        (["--extend-select", ","], "error: --extend-select is given no rule"),
        (["--ignore", "", "--ignore", " "], "error: --ignore is given no rule"),
        (["--engine", "vllm"], "error: 'vllm' is no engine release"),
        (["--statistics", "--output-format", "json"], "error: --statistics is text"),
        (["-", "--watch"], "--watch is for files"),
        (["--watch", "--select", "DCP110"], "error: no rule is called 'DCP110'"),
        (["--watch", "--engine", "vllm"], "error: 'vllm' is no engine release"),
        (["-"], "--stdin-filename says what it is"),
        (["-", "a.py", "--stdin-filename", "b.py"], "`-` is the only path"),
        (["a.py", "--stdin-filename", "b.py"], "--stdin-filename goes with `-`"),
    ],
)
def test_mistakes(check: Shell, args: list[str], message: str) -> None:
    status, out, err = check(*args)
    assert (status, out) == (2, "")
    assert message in err and len(err.splitlines()) == 1
    assert not check.asked


def test_what_is_excluded_can_be_named_and_left_out_all_the_same(
    check: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dcplint.toml").write_text(
        'exclude = ["/third_party/", "*_pb2.py", "!keep_pb2.py"]'
    )
    (tmp_path / "src").mkdir()
    (tmp_path / "third_party").mkdir()
    given = ["third_party/a.py", "src/third_party/b.py", "src/c_pb2.py", "src/keep_pb2.py"]
    check(*given)
    check("--force-exclude", *given)
    monkeypatch.chdir(tmp_path / "src")
    check("--force-exclude", "c_pb2.py", "d.py", "../third_party")
    assert [[str(path) for path in options.paths] for options in check.asked] == [
        given,
        ["src/third_party/b.py", "src/keep_pb2.py"],
        ["d.py"],
    ]
    assert check("--force-exclude", "c_pb2.py") == (0, "", "")
    assert len(check.asked) == 3


def test_standard_input(check: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    source = b"# -*- coding: latin-1 -*-\nx = '\xe4'\n"
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(source)))
    check("-", "--stdin-filename", "sub/a.py")
    (options,) = check.asked
    assert options.paths == (Path("sub/a.py"),)
    assert options.stdin == Stdin(Path("sub/a.py"), source)


def test_formats(check: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def style(*args: str) -> str:
        out = check(*args)[1]
        if out.startswith("{"):
            return "json"
        if out.startswith("::"):
            return "github"
        return "text" if out.startswith("error[") else "concise"

    assert style() == "text"
    assert style("--output-format", "json") == "json"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert style() == "github"
    assert style("--output-format", "concise") == "concise"
    assert style("--statistics") == "concise"
    check("--output-file", "out.txt")
    assert (tmp_path / "out.txt").read_text().startswith("error[")
    (tmp_path / "dcplint.toml").write_text('output-format = "json"')
    assert style() == "json"
    assert style("--output-format", "text") == "text"


def test_the_summary_of_the_job(
    check: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(file))
    check("--output-format", "concise")
    assert not file.exists()
    file.write_text("# Before\n")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    check()
    text = file.read_text()
    assert text.startswith("# Before\n**Found 3 errors")
    assert text.count("<details>") == 2
    check.report = replace(REPORT, findings=REPORT.findings * 4_000)
    check()
    assert 2**20 - 2_000 < file.stat().st_size <= 2**20
    assert file.read_text().endswith("the log has all of it.\n")
    check()
    assert file.stat().st_size <= 2**20
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "no" / "such"))
    status, out, err = check()
    assert (status, out) == (2, "") and "no/such: cannot be written" in err


def test_output_file(check: Shell, tmp_path: Path) -> None:
    status, out, _ = check("--output-format", "json", "--output-file", "r.json")
    assert (status, out) == (1, "")
    assert json.loads((tmp_path / "r.json").read_text())["summary"]["findings"] == 5
    status, out, err = check("--output-file", "no/such/r.json")
    assert (status, out) == (2, "")
    assert err.endswith("error: no/such/r.json: cannot be written: No such file or directory\n")


def test_notices_and_errors_go_to_stderr(check: Shell) -> None:
    check.report = replace(REPORT, errors=("DCP101 failed\x1b",))
    notice, error = "note: vllm 0.34.0 is newer than the pack\n", "error: DCP101 failed\\x1b\n"
    _, out, err = check()
    assert err == error + notice
    assert "newer" not in out
    assert check("-q")[2] == error


def test_quiet_leaves_the_findings(check: Shell) -> None:
    assert "Found 3 errors" in check("--output-format", "concise")[1]
    out = check("--output-format", "concise", "-q")[1]
    assert len(out.splitlines()) == 5 and "Found" not in out


def test_verbose_says_what_was_used(check: Shell, tmp_path: Path) -> None:
    assert "configuration: none\ntime: 1.23 s\n" in check("-v")[2]
    (tmp_path / "dcplint.toml").touch()
    assert f"configuration: {tmp_path / 'dcplint.toml'}\n" in check("-v")[2]


def test_statistics(check: Shell) -> None:
    out = check("--statistics")[1]
    assert out.splitlines()[1].split() == ["1", "DCP101", "implicit-capability", "warning"]
    assert out.splitlines()[-1].startswith("Found 3 errors")
    assert "Found" not in check("--statistics", "-q")[1]


def test_color(check: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def colored(*args: str) -> bool:
        return "\x1b[" in check(*args)[1]

    assert not colored()
    assert colored("--color", "always")
    terminal = SimpleNamespace(stdout=Terminal(), stderr=sys.stderr)
    monkeypatch.setattr("dcplint.cli.output.sys", terminal)
    monkeypatch.setattr("dcplint.cli.streams.sys", terminal)
    colored_terminal = Terminal.shown
    assert check()[0] == 1 and "\x1b[31m" in colored_terminal()
    for name, value in [("NO_COLOR", "1"), ("TERM", "dumb")]:
        monkeypatch.setenv(name, value)
        assert check()[0] == 1 and "\x1b[" not in colored_terminal()
        assert check("--color", "always")[0] == 1 and "\x1b[31m" in colored_terminal()
        monkeypatch.delenv(name)
    assert check("--color", "never")[0] == 1 and "\x1b[" not in colored_terminal()
    check("--output-file", "out.txt")
    assert "\x1b[" not in Path("out.txt").read_text()


class Terminal(io.StringIO):
    """A standard output that is a terminal; `shown` takes what was written last."""

    _text = ""

    def isatty(self) -> bool:
        return True

    def flush(self) -> None:
        Terminal._text = self.getvalue()
        self.seek(0)
        self.truncate()

    @staticmethod
    def shown() -> str:
        return Terminal._text


@pytest.mark.parametrize(("columns", "longest"), [("40", 40), ("100", 100), ("500", 120)])
def test_width(check: Shell, monkeypatch: pytest.MonkeyPatch, columns: str, longest: int) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    words = replace(IMPLICIT, message="word " * 100, evidence=())
    check.report = replace(REPORT, findings=(words,))
    lines = [line for line in check()[1].splitlines() if line.startswith("  word")]
    assert longest - 5 <= max(map(len, lines)) <= longest
