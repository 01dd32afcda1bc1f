"""`dcplint baseline` and `--baseline` over a real tree, through what people do to files."""

import json
from pathlib import Path

import pytest

from tests.run.tree import SILENT, Command, write

ENGINE = ("--engine", "vllm==0.29.0")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write(tmp_path, {"pyproject.toml": '[tool.dcplint]\nbaseline = "accepted.jsonl"\n'})
    write(tmp_path, {"src/one.py": SILENT, "src/two.py": SILENT.replace("Silent", "Quiet")})
    monkeypatch.chdir(tmp_path)
    return tmp_path


def accept(dcplint: Command, *args: str | Path) -> Command:
    return dcplint("baseline", *args, *ENGINE)


def paths(file: Path) -> list[str]:
    return [json.loads(line)["path"] for line in file.read_text().splitlines()[1:]]


def test_from_nothing_to_new_findings_only(dcplint: Command, project: Path) -> None:
    missing = dcplint.check(*ENGINE)
    assert missing.status == 2
    assert "accepted.jsonl: cannot be read" in missing.err and "writes it" in missing.err
    assert accept(dcplint).status == 0
    assert dcplint.err == f"{project / 'accepted.jsonl'}: 2 new, 0 known before\n"
    assert paths(project / "accepted.jsonl") == ["src/one.py", "src/two.py"]
    assert dcplint.check(*ENGINE).lines == [] and dcplint.status == 0
    write(project, {"src/three.py": SILENT.replace("Silent", "New")})
    assert dcplint.check(*ENGINE).verdicts == [("DCP101", "NewImpl")]
    assert dcplint.status == 1
    assert "1 error (2 in the baseline)" in dcplint("check", *ENGINE).out


def test_moved_renamed_and_reformatted_files_stay_accepted(dcplint: Command, project: Path) -> None:
    accept(dcplint)
    (project / "src" / "one.py").rename(project / "src" / "renamed.py")
    two = SILENT.replace("Silent", "Quiet").replace("(AttentionImpl)", "(  AttentionImpl, )")
    write(project, {"src/two.py": "# moved\n\n\n" + two})
    assert dcplint.check(*ENGINE).lines == []
    accept(dcplint)
    assert paths(project / "accepted.jsonl") == ["src/renamed.py", "src/two.py"]


def test_stale_entries_are_notes_until_the_file_is_written_anew(
    dcplint: Command, project: Path
) -> None:
    accept(dcplint)
    write(project, {"src/one.py": "x = 1\n"})
    assert [line.split(": ")[1][:6] for line in dcplint.check(*ENGINE).lines] == ["DCP005"]
    assert dcplint.status == 0
    assert dcplint.lines[0].startswith("accepted.jsonl:2:1: ")
    assert dcplint.check("src/two.py", *ENGINE).lines == []
    accept(dcplint)
    assert paths(project / "accepted.jsonl") == ["src/two.py"]
    assert "0 new, 1 known before, 1 dropped\n" in dcplint.err
    assert "is gone: DCP101 in SilentImpl of src/one.py\n" in dcplint.err
    accept(dcplint)
    assert "dropped" not in dcplint.err


def test_a_part_of_the_project_leaves_the_rest_of_the_file(dcplint: Command, project: Path) -> None:
    accept(dcplint, "src/one.py")
    assert paths(project / "accepted.jsonl") == ["src/one.py"]
    accept(dcplint, "src/two.py")
    assert "1 new, 1 known before" in dcplint.err
    assert paths(project / "accepted.jsonl") == ["src/one.py", "src/two.py"]


def test_what_is_wrong_with_comments_is_not_accepted(dcplint: Command, project: Path) -> None:
    write(project, {"src/odd.py": "x = 1  # dcplint: ignore[DCP101] nothing here needs it\n"})
    accept(dcplint)
    assert paths(project / "accepted.jsonl") == ["src/one.py", "src/two.py"]
    assert [line.split(": ")[1][:6] for line in dcplint.check(*ENGINE).lines] == ["DCP002"]


def test_another_file(dcplint: Command, project: Path) -> None:
    accept(dcplint, "--baseline", "other.jsonl")
    assert '`baseline = "other.jsonl"` in the configuration has it used' in dcplint.err
    assert dcplint.check(*ENGINE, "--baseline", "other.jsonl").lines == []


def test_a_class_that_was_made_to_be_derived_from(dcplint: Command, project: Path) -> None:
    """A suppression on a base covers what derives from it, in whatever file, if it says so."""
    base = "class Base(AttentionImpl):  # dcplint: {}[DCP101] why\n    num_splits = 4\n"
    heir = SILENT.replace("vllm.v1.attention.backend import AttentionImpl", ".base import Base")
    heir = heir.replace("(AttentionImpl)", "(Base)")
    head = SILENT.partition("\n\n\n")[0]

    def found(kind: str) -> list[str]:
        text = f"{head}\n\n\n{base.format(kind)}"
        write(project, {"accepted.jsonl": "", "src/base.py": text, "src/heir.py": heir})
        return sorted(
            line.split(": ")[1][:6] for line in dcplint.check("src/heir.py", *ENGINE).lines
        )

    assert found("ignore") == ["DCP101"]
    assert found("ignore-subclasses") == []
    both = dcplint.check("src", *ENGINE).lines
    assert not any("base.py" in line or "heir.py" in line for line in both)
    write(project, {"src/heir.py": "x = 1\n"})
    (unused,) = (line for line in dcplint.check("src", *ENGINE).lines if "base.py" in line)
    assert "DCP002" in unused
