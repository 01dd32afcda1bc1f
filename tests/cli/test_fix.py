"""`dcplint check --fix` and `--diff` on files."""

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from dcplint.cli.main import main
from tests.cli.test_process import NAMES as ODD_NAMES
from tests.run.tree import SILENT, Command, write

AGAINST = ("--engine", "vllm==0.29.0")
FIXED = SILENT.replace("    def __init__", "    supports_dcp = False\n\n    def __init__")


@pytest.fixture
def dcplint(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write(tmp_path, {"pyproject.toml": "[tool.dcplint]\n", "src/mine.py": SILENT})
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_fix(dcplint: Command, project: Path) -> None:
    dcplint("check", "--fix", *AGAINST)
    assert (project / "src/mine.py").read_text() == FIXED
    assert dcplint.status == 0
    assert "Fixed 1 finding in 1 file." in dcplint.err
    assert dcplint.out.startswith("No findings")
    assert "Nothing to fix." in dcplint("check", "--fix", *AGAINST).err


def test_diff_writes_nothing_and_can_be_applied(dcplint: Command, project: Path) -> None:
    dcplint("check", "--diff", *AGAINST)
    assert (dcplint.status, dcplint.err) == (1, "Would fix 1 finding in 1 file.\n")
    assert (project / "src/mine.py").read_text() == SILENT
    if shutil.which("git"):
        subprocess.run(["git", "apply"], input=dcplint.out, text=True, cwd=project, check=True)
        assert (project / "src/mine.py").read_text() == FIXED
        dcplint("check", "--diff", *AGAINST)
        assert (dcplint.status, dcplint.out) == (0, "")


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_diffs_keep_the_line_ends(end: str, project: Path, dcplint: Command) -> None:
    if not shutil.which("git"):
        pytest.skip("needs git")
    (project / "src/mine.py").write_bytes(SILENT.replace("\n", end).encode())
    diff = dcplint("check", "--diff", *AGAINST).out.encode()
    subprocess.run(["git", "apply"], input=diff, cwd=project, check=True)
    assert (project / "src/mine.py").read_bytes() == FIXED.replace("\n", end).encode()


def test_diffs_of_files_with_odd_names_can_be_applied(
    project: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Names that are no text, too; what is found in them is found at all."""
    (project / "src/mine.py").unlink()
    write(project, dict.fromkeys(ODD_NAMES, SILENT))
    for apply in (["git", "apply"], ["patch", "-p1"]):
        if not shutil.which(apply[0]):
            continue
        with pytest.raises(SystemExit) as exit_:
            main(["check", "--diff", *AGAINST])
        assert exit_.value.code == 1
        diff = capfdbinary.readouterr().out
        assert b"\x1b" not in diff
        subprocess.run(apply, input=diff, cwd=project, check=True, capture_output=True)
        assert {(project / name).read_text() for name in ODD_NAMES} == {FIXED}
        write(project, dict.fromkeys(ODD_NAMES, SILENT))


def test_only_files_that_were_named_are_changed(dcplint: Command, project: Path) -> None:
    heir = "from src.mine import SilentImpl\n\n\nclass Heir(SilentImpl):\n    splits = 2\n"
    write(project, {"src/__init__.py": "", "heir.py": heir})
    dcplint("check", "--fix", "heir.py", *AGAINST)
    assert (project / "src/mine.py").read_text() == SILENT
    assert (project / "heir.py").read_text() == heir
    assert dcplint.status == 1
    dcplint("check", "--fix", "src", *AGAINST)
    assert dcplint("check", *AGAINST).status == 0
    assert (project / "heir.py").read_text() == heir


def test_json_shows_the_edit(dcplint: Command, project: Path) -> None:
    document = dcplint.json("check", *AGAINST)
    (finding,) = document["findings"]
    assert finding["fix"] == {
        "description": "state `supports_dcp = False` in SilentImpl",
        "applicability": "safe",
        "edits": [
            {
                "path": "src/mine.py",
                "line": 5,
                "column": 1,
                "end_line": 5,
                "end_column": 1,
                "replacement": "    supports_dcp = False\n\n",
            }
        ],
    }


def test_suppressed_and_accepted_findings_are_not_fixed(dcplint: Command, project: Path) -> None:
    comment = "# dcplint: ignore[DCP101] never selected under DCP\n"
    text = SILENT.replace("class Silent", f"{comment}class Silent")
    write(project, {"src/mine.py": text})
    dcplint("check", "--fix", *AGAINST)
    assert (project / "src/mine.py").read_text() == text
    write(project, {"src/mine.py": SILENT})
    dcplint("check", "--fix", "--ignore", "DCP101", *AGAINST)
    assert (project / "src/mine.py").read_text() == SILENT


def test_two_roots_at_once(dcplint: Command, project: Path) -> None:
    write(project, {"other/pyproject.toml": "[tool.dcplint]\n", "other/b.py": SILENT})
    dcplint("check", "--fix", "src", "other", *AGAINST)
    assert (project / "src/mine.py").read_text() == FIXED
    assert (project / "other/b.py").read_text() == FIXED


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--unsafe-fixes",), "--unsafe-fixes goes with --fix or --diff"),
        (
            ("--fix", "-", "--stdin-filename", "src/mine.py"),
            "--fix, --diff and --add-ignore are for files",
        ),
    ],
)
def test_what_does_not_go_together(
    dcplint: Command, project: Path, args: tuple[str, ...], message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"")))
    dcplint("check", *args)
    assert dcplint.status == 2
    assert message in dcplint.err


def test_a_plain_check_does_without_libcst(project: Path) -> None:
    program = (
        "import sys; from dcplint.cli.main import main\n"
        "try: main(['check', '--engine', 'vllm==0.29.0'])\n"
        "finally: assert 'libcst' not in sys.modules"
    )
    root = Path(__file__).parents[2]
    environ = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=project, env=environ, capture_output=True, check=False
    )
    assert done.returncode == 1, done.stderr.decode()
    assert b"DCP101" in done.stdout
