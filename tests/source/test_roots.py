"""Which tree a path is judged in."""

import subprocess
from pathlib import Path

import pytest

from dcplint.errors import UserError
from dcplint.source.roots import Root, find_roots, nested_root, root_of_file


def make(root: Path, *files: str) -> Path:
    for name in files:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    return root


def repository(root: Path, *files: str) -> Path:
    make(root, *files)
    subprocess.run(["git", "init", "-q", root], check=True)
    return root


def root_of(path: Path) -> Path:
    (root,) = find_roots((path,))
    return root.directory


def test_without_project_the_directory_itself(tmp_path: Path) -> None:
    make(tmp_path, "a/b.py")
    assert find_roots((tmp_path,)) == (Root(tmp_path, (tmp_path,)),)
    assert root_of(tmp_path / "a" / "b.py") == tmp_path / "a"


def test_a_file_of_no_project_is_judged_with_the_modules_and_packages_beside_it(
    tmp_path: Path,
) -> None:
    make(tmp_path, "a.py", "b.py", "package/__init__.py", "downloads/other/c.py", "notes.txt")
    only = ("a.py", "b.py", "package")
    assert find_roots((tmp_path / "a.py",)) == (Root(tmp_path, (tmp_path / "a.py",), only),)
    new = tmp_path / "new.py"
    assert root_of_file(new) == Root(tmp_path, (new,), (*only[:2], "new.py", "package"))
    both = (tmp_path / "a.py", tmp_path)
    assert find_roots(both) == (Root(tmp_path, both),)
    repository(tmp_path)
    assert find_roots((tmp_path / "a.py",)) == (Root(tmp_path, (tmp_path / "a.py",)),)


def test_a_file_that_is_not_there_belongs_where_it_would_lie(tmp_path: Path) -> None:
    repository(tmp_path, "a/b.py")
    assert root_of_file(tmp_path / "a" / "c.py") == Root(tmp_path, (tmp_path / "a" / "c.py",))
    with pytest.raises(UserError, match="nowhere: no such file"):
        root_of_file(tmp_path / "nowhere" / "c.py")


def test_the_checkout(tmp_path: Path) -> None:
    repository(tmp_path, "a/b/c.py")
    assert root_of(tmp_path / "a" / "b" / "c.py") == tmp_path


@pytest.mark.parametrize("name", ["dcplint.toml", "pyproject.toml"])
def test_a_configuration_is_nearer_than_the_checkout(name: str, tmp_path: Path) -> None:
    repository(tmp_path, "sub/a/b.py")
    (tmp_path / "sub" / name).write_text('[tool.dcplint]\nselect = ["DCP1"]\n')
    assert root_of(tmp_path / "sub" / "a") == tmp_path / "sub"
    (tmp_path / "sub" / name).write_text("[tool.other]\n")
    expected = tmp_path / "sub" if name == "dcplint.toml" else tmp_path
    assert root_of(tmp_path / "sub" / "a") == expected


def test_a_release_inside_a_checkout_is_its_own_root(tmp_path: Path) -> None:
    repository(tmp_path, "x/rel/p-1.dist-info/METADATA", "x/rel/p/q/a.py", "x/b.py")
    release = tmp_path / "x" / "rel"
    assert root_of(release / "p" / "q" / "a.py") == release
    assert root_of(tmp_path / "x" / "b.py") == tmp_path
    assert nested_root(release) == Root(release, (release,))


def test_a_configured_project_inside_an_unpacked_release(tmp_path: Path) -> None:
    make(tmp_path, "p-1.dist-info/METADATA", "p/tools/dcplint.toml", "p/tools/a.py")
    assert root_of(tmp_path / "p" / "tools" / "a.py") == tmp_path / "p" / "tools"


def test_of_several_distributions_only_what_was_asked_for(tmp_path: Path) -> None:
    make(
        tmp_path, "p-1.dist-info/M", "q-1.dist-info/M", "p/a.py", "p/b/c.py", "q/a.py", "single.py"
    )
    (root,) = find_roots((tmp_path / "p" / "b", tmp_path / "single.py"))
    assert root == Root(
        tmp_path, (tmp_path / "p" / "b", tmp_path / "single.py"), ("p", "single.py")
    )
    assert find_roots((tmp_path,)) == (Root(tmp_path, (tmp_path,)),)


@pytest.mark.parametrize("folder", ["out", ".cache/x", "env/lib"])
def test_what_the_root_would_leave_out_is_its_own_root(folder: str, tmp_path: Path) -> None:
    repository(tmp_path, f"{folder}/a.py", "env/pyvenv.cfg")
    (tmp_path / ".gitignore").write_text("out/\n")
    assert root_of(tmp_path / folder) == tmp_path / folder
    assert root_of(tmp_path / folder / "a.py") == tmp_path / folder


def test_an_ignored_file_is_judged_in_its_project(tmp_path: Path) -> None:
    repository(tmp_path, "pkg/a.py")
    (tmp_path / ".gitignore").write_text("a.py\n")
    assert root_of(tmp_path / "pkg" / "a.py") == tmp_path


def test_paths_of_one_root_are_together_and_roots_in_order(tmp_path: Path) -> None:
    one = repository(tmp_path / "one", "a.py", "b.py")
    two = repository(tmp_path / "two", "c.py")
    assert find_roots((two, one / "b.py", one / "a.py")) == (
        Root(two, (two,)),
        Root(one, (one / "b.py", one / "a.py")),
    )


def test_symlinks_are_judged_where_they_lead(tmp_path: Path) -> None:
    real = repository(tmp_path / "real", "a.py")
    (tmp_path / "link").symlink_to(real, target_is_directory=True)
    assert root_of(tmp_path / "link" / "a.py") == real


@pytest.mark.parametrize("name", ["nothing", "a\0b", "x" * 300, "loop"])
def test_a_path_that_leads_nowhere_is_one_sentence(name: str, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(UserError, match=r": [a-z][^\n]+$"):
        find_roots((tmp_path / name,))


def test_a_path_that_cannot_be_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stat(self: Path, **_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "stat", stat)
    with pytest.raises(UserError, match="permission denied"):
        find_roots((tmp_path,))
