"""What a tree is judged as: releases inside other repositories, side by side, newer syntax."""

import subprocess
from pathlib import Path

from tests.run.tree import SILENT, Command, write, write_engine

FALLS_THROUGH = [
    ("DCP101", "BelowSilentImpl"),
    ("DCP101", "SilentImpl"),
    ("DCP102", "AttentionImplBase"),
]


def repository(directory: Path, **files: str) -> Path:
    write(directory, {"README.md": "", **files})
    subprocess.run(["git", "init", "-q", directory], check=True)
    return directory


def test_a_release_inside_a_repository_is_itself(dcplint: Command, tmp_path: Path) -> None:
    outer = repository(tmp_path / "outer")
    write(outer, {"tool.py": "from vllm.v1.attention.backend import AttentionImpl\n"})
    release = write_engine(outer / "third_party" / "vllm-0.30.0", "0.30.0", default=True)
    assert dcplint.check(release).verdicts == FALLS_THROUGH
    assert dcplint.lines[0].startswith("vllm/v1/attention/backend.py:")


def test_a_release_in_an_ignored_folder_is_itself(dcplint: Command, tmp_path: Path) -> None:
    outer = repository(tmp_path / "outer", **{".gitignore": "scratch/\n"})
    release = write_engine(outer / "scratch" / "release", "0.30.0", default=True)
    assert dcplint.check(release).verdicts == FALLS_THROUGH
    (package,) = release.glob("*.dist-info")
    (package / "METADATA").unlink()
    package.rmdir()
    assert dcplint.check(release, "--engine", "vllm==0.30.0").verdicts == FALLS_THROUGH


def test_an_ignored_folder_is_left_out_unless_it_is_named(dcplint: Command, tmp_path: Path) -> None:
    outer = repository(tmp_path / "outer", **{".gitignore": "scratch/\n"})
    write(outer, {"scratch/a.py": SILENT, "b.py": "x = 1\n"})
    engine = ("--engine", "vllm==0.29.0")
    assert dcplint.check(outer, *engine).verdicts == []
    assert dcplint.check(outer / "scratch", *engine).verdicts == [("DCP101", "SilentImpl")]
    assert dcplint.check(outer / "scratch" / "a.py", *engine).verdicts == [("DCP101", "SilentImpl")]


def test_two_releases_side_by_side_do_not_mix(dcplint: Command, tmp_path: Path) -> None:
    write_engine(tmp_path / "old", "0.29.0", default=True)
    write_engine(tmp_path / "new", "0.30.0", default=False)
    together = dcplint.check(tmp_path).lines
    assert together == dcplint.check(tmp_path / "old", tmp_path / "new").lines
    assert all(line.startswith("old/vllm/") for line in together)
    alone = dcplint.check(tmp_path / "old").lines
    assert [line.removeprefix("old/") for line in together] == alone
    assert dcplint.check(tmp_path / "new").lines == []
    shown = dcplint("check", tmp_path).out
    assert "vllm 0.29.0" in shown and "vllm 0.30.0" in shown


NEWER = """\
from vllm.v1.attention.backend import AttentionImpl

type Pair[T] = tuple[T, T]


class NewImpl[T](AttentionImpl):
    def __init__(self, *args):
        try:
            self.name = f"{args[0]["name"]}"
        except* ValueError:
            pass

    def forward[U](self, *args: U) -> Pair[U]: ...
"""


def test_newer_syntax_is_not_broken(dcplint: Command, tmp_path: Path) -> None:
    """Python 3.12's type parameters and f-strings, on whatever Python runs this."""
    write(tmp_path, {"new.py": NEWER, "good.py": SILENT})
    dcplint.check(tmp_path, "--engine", "vllm==0.29.0")
    assert dcplint.verdicts == [("DCP101", "NewImpl"), ("DCP101", "SilentImpl")]
    assert dcplint.lines[1].startswith("new.py:6:1:")


def test_two_classes_of_one_name_are_two_findings(dcplint: Command, tmp_path: Path) -> None:
    write(tmp_path, {"amd/impl.py": SILENT, "nvidia/impl.py": SILENT})
    dcplint.check(tmp_path, "--engine", "vllm==0.29.0")
    assert [line.partition(":")[0] for line in dcplint.lines] == ["amd/impl.py", "nvidia/impl.py"]


def test_a_finding_belongs_to_the_file_of_its_evidence(dcplint: Command, tmp_path: Path) -> None:
    """A hook on one changed file hears of what the change does elsewhere."""
    release = write_engine(tmp_path, "0.30.0", default=True)
    base = release / "vllm" / "v1" / "attention" / "backend.py"
    silent = release / "vllm" / "v1" / "attention" / "backends" / "silent.py"
    stated = release / "vllm" / "v1" / "attention" / "backends" / "stated.py"
    assert dcplint.check(base).verdicts == FALLS_THROUGH
    assert ("DCP101", "SilentImpl") in dcplint.check(silent).verdicts
    assert dcplint.check(stated).verdicts == []


def test_a_base_that_no_longer_says_it_answers_for_its_heirs(
    dcplint: Command, tmp_path: Path
) -> None:
    """The class in between is no origin of the value, but a change of it is what the heirs lost."""
    (tmp_path / ".git").mkdir()
    heir = "from plugin.base import SilentImpl\n\n\nclass HeirImpl(SilentImpl): ...\n"
    write(tmp_path, {"plugin/__init__.py": "", "plugin/base.py": SILENT, "plugin/heir.py": heir})
    found = dcplint.check(tmp_path / "plugin" / "base.py", "--engine", "vllm==0.29.0").verdicts
    assert ("DCP101", "HeirImpl") in found


def test_the_same_tree_gives_the_same_output(dcplint: Command, tmp_path: Path) -> None:
    write_engine(tmp_path, "0.30.0", default=True)
    first = dcplint("check", tmp_path).out
    assert first == dcplint("check", tmp_path).out and "DCP101" in first
