"""Which files a walk finds, against git itself where git has an opinion."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dcplint.source import discovery
from dcplint.source.discovery import discover, is_ignored


def write(root: Path, *files: str, **contents: str) -> Path:
    for name in files:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(contents.get(name, ""))
    return root


def ignore(root: Path, text: str) -> None:
    root.mkdir(parents=True, exist_ok=True)
    (root / ".gitignore").write_text(text)


def repository(root: Path) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "init", "-q", root], check=True)
    return root


def by_git(root: Path) -> list[str]:
    """What git would track, Python files only."""
    command = ["git", "-C", root, "ls-files", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return sorted(name for name in listed.split("\0") if name.endswith(".py"))


def test_python_files_in_a_stable_order(tmp_path: Path) -> None:
    write(tmp_path, "b.py", "a/z.py", "a.py", "a/y.txt", "c.ipynb", "d.pyi", "e.PY")
    assert discover(tmp_path).files == ["a.py", "a/z.py", "b.py"]


def test_hidden_and_cached_directories_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, ".tox/a.py", "__pycache__/b.py", "node_modules/c.py", "x/.y/d.py", "e.py")
    assert discover(tmp_path).files == ["e.py"]


def test_virtual_environments_are_left_out_by_what_they_hold(tmp_path: Path) -> None:
    write(tmp_path, "env/pyvenv.cfg", "env/lib/a.py", "venv/a.py")
    assert discover(tmp_path).files == ["venv/a.py"]
    assert discover(tmp_path / "env").files == ["lib/a.py"], "asked for by name"


def test_distributions_inside_are_reported_not_walked(tmp_path: Path) -> None:
    write(tmp_path, "a.py", "third/x-1.0.dist-info/METADATA", "third/x/b.py", "third/deep/c.py")
    found = discover(tmp_path)
    assert (found.files, found.nested) == (["a.py"], [tmp_path / "third"])
    assert discover(tmp_path / "third").files == ["deep/c.py", "x/b.py"]


IGNORES = {
    "a name anywhere": {"": "build\n"},
    "anchored by a slash in front": {"": "/build\n/a.py\n"},
    "anchored by a slash within": {"": "pkg/build\n"},
    "directories only": {"": "build/\na.py/\n"},
    "negated": {"": "*.py\n!a.py\n"},
    "negated inside an ignored directory stays ignored": {"": "build/\n!build/a.py\n"},
    "the nested file decides": {"": "a.py\n", "pkg": "!a.py\nb.py\n"},
    "nested anchoring is relative to its own directory": {"pkg": "/build\n"},
    "double star": {"": "**/build/**\n"},
    "comments, blanks, escapes": {"": "# a.py\n\n\\#b.py\na.py \n"},
    "classes and question marks": {"": "[ab].py\nbuil?\n"},
    "nothing": {},
    "a star is not an empty name": {"": "pkg\n!pkg/*\n"},
    "everything but directories and one file": {"": "*\n!*/\n!b.py\n"},
    "an ignore file in an ignored directory has no say": {"": "build/\n", "build": "!*\n"},
}
TREE = ("a.py", "b.py", "build/a.py", "pkg/a.py", "pkg/b.py", "pkg/build/a.py", "pkg/x/a.py")


@pytest.mark.parametrize("case", IGNORES)
def test_ignore_files_read_as_git_reads_them(case: str, tmp_path: Path) -> None:
    write(repository(tmp_path), *TREE)
    for directory, text in IGNORES[case].items():
        ignore(tmp_path / directory, text)
    assert discover(tmp_path).files == by_git(tmp_path)


_PARTS = ["a.py", "build", "*.py", "b*", "x", "pkg", "[ab].py", "*", "?.py", "[!b].py", "[z-a]*"]
_PARTS += ["[[:alpha:]].py", "\\a.py", "b**d", "[]x].py", "[a", "pkg/**/a.py", "pkg/*/a.py"]
_patterns = st.lists(
    st.builds(
        "{}{}{}{}".format,
        st.sampled_from(["", "!"]),
        st.sampled_from(["", "/", "**/", "pkg/"]),
        st.sampled_from(_PARTS),
        st.sampled_from(["", "/", "/**"]),
    ),
    max_size=4,
)


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(outer=_patterns, inner=_patterns)
def test_generated_ignore_files_read_as_git_reads_them(
    outer: list[str], inner: list[str], tmp_path: Path
) -> None:
    if not (tmp_path / ".git").exists():
        write(repository(tmp_path), *TREE)
    ignore(tmp_path, "\n".join(outer))
    ignore(tmp_path / "pkg", "\n".join(inner))
    assert discover(tmp_path).files == by_git(tmp_path)


def test_ignore_files_above_a_subdirectory_count(tmp_path: Path) -> None:
    write(repository(tmp_path), *TREE)
    ignore(tmp_path, "/pkg/b.py\nx/\n")
    ignore(tmp_path / "pkg", "/build\n")
    assert discover(tmp_path / "pkg").files == ["a.py"]
    (tmp_path / ".git" / "info").mkdir(exist_ok=True)
    (tmp_path / ".git" / "info" / "exclude").write_text("pkg/a.py\n")
    assert discover(tmp_path / "pkg").files == []


def test_ignore_files_outside_the_checkout_do_not_count(tmp_path: Path) -> None:
    ignore(tmp_path, "a.py\n")
    write(repository(tmp_path / "inner"), "a.py")
    assert discover(tmp_path / "inner").files == ["a.py"]
    write(tmp_path / "plain", "a.py")
    assert discover(tmp_path / "plain").files == ["a.py"], "no checkout at all"


def test_the_checkouts_own_exclude_file(tmp_path: Path) -> None:
    write(repository(tmp_path), *TREE)
    (tmp_path / ".git" / "info" / "exclude").write_text("build\n/a.py\n")
    assert discover(tmp_path).files == by_git(tmp_path)
    assert "build/a.py" not in discover(tmp_path).files


def test_a_linked_worktree_shares_the_exclude_file(tmp_path: Path) -> None:
    main = repository(tmp_path / "main")
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.invalid"]
    commit = ["git", "-C", main, *identity, "commit", "-q", "--allow-empty", "-m", "x"]
    subprocess.run(commit, check=True)
    linked = tmp_path / "linked"
    subprocess.run(["git", "-C", main, "worktree", "add", "-q", linked], check=True)
    (main / ".git" / "info" / "exclude").write_text("a.py\n")
    write(linked, "a.py", "b.py")
    assert discover(linked).files == by_git(linked) == ["b.py"]


def test_a_directory_that_is_ignored_is_walked_when_asked_for(tmp_path: Path) -> None:
    ignore(repository(tmp_path), "out/\n*.tmp.py\n")
    write(tmp_path, "out/a.py", "out/b.tmp.py", "out/deep/c.py")
    assert discover(tmp_path / "out").files == ["a.py", "b.tmp.py", "deep/c.py"]
    assert discover(tmp_path / "out" / "deep").files == ["c.py"]


def test_exclusions_win_over_every_ignore_file(tmp_path: Path) -> None:
    write(repository(tmp_path), *TREE)
    ignore(tmp_path / "pkg", "!a.py\n")
    assert discover(tmp_path, exclude=("pkg/a.py", "build/")).files == [
        "a.py",
        "b.py",
        "pkg/b.py",
        "pkg/x/a.py",
    ]
    ignore(tmp_path, "*.py\n")
    assert discover(tmp_path, exclude=("!b.py",)).files == [
        "b.py",
        "pkg/a.py",
        "pkg/b.py",
        "pkg/build/a.py",
        "pkg/x/a.py",
    ]


def test_only_some_top_level_entries(tmp_path: Path) -> None:
    write(tmp_path, "a/x.py", "b/x.py", "a.py", "b/a/y.py")
    assert discover(tmp_path, only=("b",)).files == ["b/a/y.py", "b/x.py"]


def test_symlinks(tmp_path: Path) -> None:
    write(tmp_path / "root", "real/a.py")
    write(tmp_path / "other", "b.py", "c.py")
    root = tmp_path / "root"
    (root / "loop").symlink_to(root, target_is_directory=True)
    (root / "elsewhere").symlink_to(tmp_path / "other", target_is_directory=True)
    (root / "again.py").symlink_to(root / "real" / "a.py")
    (root / "outside.py").symlink_to(tmp_path / "other" / "b.py")
    (root / "broken.py").symlink_to(root / "nothing.py")
    (root / "self.py").symlink_to(root / "self.py")
    assert discover(root).files == ["outside.py", "real/a.py"]


def test_what_is_no_file_is_left_out(tmp_path: Path) -> None:
    write(tmp_path, "a.py")
    (tmp_path / "directory.py").mkdir()
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.py")
    assert discover(tmp_path).files == ["a.py"]


def test_a_tree_deeper_than_the_stack(tmp_path: Path) -> None:
    depth = sys.getrecursionlimit() + 100
    here = Path.cwd()
    os.chdir(tmp_path)
    try:
        for _ in range(depth):  # one path of that length could not be made at once
            Path("d").mkdir()
            os.chdir("d")
        Path("a.py").write_text("")
        found = discover(tmp_path).files
        Path("a.py").unlink()
        for _ in range(depth):  # nor removed by what pytest uses, which recurses
            os.chdir("..")
            Path("d").rmdir()
    finally:
        os.chdir(here)
    assert found == ["d/" * depth + "a.py"]


def test_a_directory_that_cannot_be_read_does_not_end_the_walk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "a/x.py", "b/x.py")
    real = os.scandir

    def scandir(path: str) -> object:
        if path.rstrip("/").endswith("/a"):
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(discovery.os, "scandir", scandir)
    found = discover(tmp_path)
    assert (found.files, found.unreadable) == (["b/x.py"], [("a", "Permission denied")])


def test_hostile_names(tmp_path: Path) -> None:
    names = ["new\nline.py", "sp ace.py", "-x.py", "ünï.py", "[a].py", "!a.py", "#a.py"]
    write(tmp_path, *names)
    assert discover(tmp_path).files == sorted(names)
    assert discover(tmp_path, exclude=("\\!a.py", "\\#a.py")).files == sorted(names[:-2])


@pytest.mark.parametrize(
    ("target", "ignored"),
    [("pkg", False), ("out", True), ("out/deep", True), (".hidden", True), ("env/lib", True),
     ("pkg/gen", True), ("node_modules", True)],
)  # fmt: skip
def test_whether_a_walk_would_leave_a_directory_out(
    target: str, ignored: bool, tmp_path: Path
) -> None:
    write(repository(tmp_path), "env/pyvenv.cfg", f"{target}/a.py")
    ignore(tmp_path, "out/\n")
    ignore(tmp_path / "pkg", "gen/\n")
    assert is_ignored(tmp_path, tmp_path / target) is ignored
