"""`dcplint diff` over folders and over real git revisions."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from dcplint.data import data_dir
from tests.run.tree import ENGINE, SILENT, Command, write, write_engine

SCHEMA = json.loads((data_dir("rules") / "diff.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
STATED = SILENT.replace("    def __init__", "    supports_dcp = {}\n\n    def __init__")
ENGINES = ("--engine", "vllm==0.29.0")


@pytest.fixture
def diff(dcplint: Command) -> Callable[..., Any]:
    """Runs the command and returns its JSON, which is as the schema says."""

    def run(*args: str | Path) -> Any:
        dcplint("diff", *args, "--output-format", "json")
        document = json.loads(dcplint.out)
        VALIDATOR.validate(document)
        assert document["failed"] is (dcplint.status == 1)
        return document

    return run


def changes(document: Any, capability: str = "supports_dcp") -> dict[str, tuple[str, str]]:
    """(change, cause) by class."""
    return {
        c["class"]: (c["change"], c["cause"])
        for c in document["capabilities"]
        if c["capability"] == capability
    }


def test_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_a_default_that_is_turned_off(diff: Any, tmp_path: Path) -> None:
    old = write_engine(tmp_path / "old", "0.29.0", default=True)
    new = write_engine(tmp_path / "new", "0.30.0", default=False)
    found = diff(old, new)
    assert changes(found) == {
        "AttentionImplBase": ("base", "AttentionImplBase"),
        "SilentImpl": ("lost", "AttentionImplBase"),
        "BelowSilentImpl": ("lost", "AttentionImplBase"),
    }
    assert {f["code"] for f in found["findings"]["fixed"]} >= {"DCP101", "DCP102"}
    assert found["findings"]["new"] == []
    assert found["failed"]
    back = diff(new, old)
    assert changes(back)["SilentImpl"] == ("gained", "AttentionImplBase")
    assert {f["code"] for f in back["findings"]["new"]} >= {"DCP101", "DCP102"}


CASES = {
    # name: (before, after, change, cause)
    "declared": (SILENT, STATED.format(True), "declared", "SilentImpl"),
    "denied": (SILENT, STATED.format(False), "lost", "SilentImpl"),
    "granted": (STATED.format(False), STATED.format(True), "gained", "SilentImpl"),
    "no longer said": (STATED.format(True), SILENT, "undeclared", "SilentImpl"),
    "no longer denied": (STATED.format(False), SILENT, "gained", "SilentImpl"),
    "unknown": (STATED.format(True), STATED.format("on_this_card()"), "unclear", "SilentImpl"),
    "known": (STATED.format("on_this_card()"), STATED.format(True), "clear", "SilentImpl"),
}


@pytest.mark.parametrize(("before", "after", "change", "cause"), CASES.values(), ids=CASES)
def test_what_happens_to_a_promise(
    diff: Any, tmp_path: Path, before: str, after: str, change: str, cause: str
) -> None:
    old = write(tmp_path / "old", {"mine.py": before})
    new = write(tmp_path / "new", {"mine.py": after})
    found = diff(old, new, *ENGINES)
    assert changes(found)["SilentImpl"] == (change, cause)
    same = diff(old, old, *ENGINES)
    assert (same["capabilities"], same["findings"]["new"], same["failed"]) == ([], [], False)


def test_a_parent_speaks_for_its_heirs(diff: Any, tmp_path: Path) -> None:
    heir = "\n\nclass Heir(SilentImpl):\n    splits = 2\n"
    old = write(tmp_path / "old", {"mine.py": SILENT + heir})
    new = write(tmp_path / "new", {"mine.py": STATED.format(True) + heir})
    assert changes(diff(old, new, *ENGINES)) == {
        "SilentImpl": ("declared", "SilentImpl"),
        "Heir": ("inherited", "SilentImpl"),
    }


def test_new_removed_and_moved_classes(diff: Any, tmp_path: Path) -> None:
    other = STATED.format(False).replace("SilentImpl", "{}")
    old = write(tmp_path / "old", {"a.py": SILENT, "b.py": other.format("Gone")})
    new = write(tmp_path / "new", {"sub/a.py": SILENT, "b.py": other.format("Come")})
    found = diff(old, new, *ENGINES)
    assert changes(found) == {"Come": ("new", "Come"), "Gone": ("removed", "Gone")}
    (moved,) = found["findings"]["moved"]
    assert (moved["path"], moved["before"]["path"]) == ("sub/a.py", "a.py")
    assert not found["failed"]


def test_a_moved_class_keeps_its_past(diff: Any, tmp_path: Path) -> None:
    old = write(tmp_path / "old", {"a.py": STATED.format(True)})
    new = write(tmp_path / "new", {"b.py": STATED.format(False)})
    (change,) = (c for c in diff(old, new, *ENGINES)["capabilities"])
    assert (change["change"], change["moved_from"], change["module"]) == ("lost", "a", "b")


def test_an_edited_finding_is_no_new_one(diff: Any, tmp_path: Path) -> None:
    old = write(tmp_path / "old", {"a.py": SILENT})
    new = write(
        tmp_path / "new", {"a.py": "# more\n" + SILENT.replace("class Silent", "class  Silent")}
    )
    found = diff(old, new, *ENGINES)
    assert (found["findings"]["new"], found["findings"]["fixed"]) == ([], [])
    assert found["unchanged_findings"] == 1


def test_a_renamed_class_has_no_new_finding(diff: Any, tmp_path: Path) -> None:
    old = write(tmp_path / "old", {"a.py": SILENT})
    new = write(tmp_path / "new", {"a.py": SILENT.replace("Silent", "Quiet")})
    found = diff(old, new, *ENGINES)
    assert (found["findings"]["new"], found["findings"]["fixed"]) == ([], [])
    elsewhere = write(tmp_path / "elsewhere", {"b.py": SILENT.replace("Silent", "Quiet")})
    assert len(diff(old, elsewhere, *ENGINES)["findings"]["new"]) == 1


def test_graver_findings_fail(diff: Any, tmp_path: Path) -> None:
    promise = "    can_return_lse_for_decode = {}\n\n    def __init__"
    texts = [SILENT.replace("    def __init__", promise.format(value)) for value in (True, False)]
    old, new = (write(tmp_path / n, {"a.py": t}) for n, t in zip("ab", texts, strict=True))
    found = diff(old, new, *ENGINES)
    (graver,) = found["findings"]["graver"]
    assert (graver["severity"], graver["before"]["severity"]) == ("error", "warning")
    assert found["failed"]
    assert changes(found, "can_return_lse_for_decode")["SilentImpl"][0] == "lost"


BACKEND = """\
from vllm.v1.attention.backend import AttentionBackend

from mine import SilentImpl


class SilentBackend(AttentionBackend):
    @staticmethod
    def get_impl_cls():
        return SilentImpl
"""
OWN = "\n    @classmethod\n    def supports_dcp(cls):\n        return False\n"


@pytest.mark.parametrize(
    ("release", "backend", "asked", "reason"),
    [
        ("0.30.0", BACKEND, ["selection: validate_configuration()"], None),
        ("0.30.0", BACKEND + OWN, [], "the backends that run it answer for themselves"),
        ("0.30.0", "", [], "no backend that is known runs it"),
        ("0.29.0", BACKEND, [], "no gate of vllm 0.29.0 reads it"),
    ],
)
def test_who_asks(
    diff: Any, tmp_path: Path, release: str, backend: str, asked: list[str], reason: str | None
) -> None:
    sides = [
        write(tmp_path / name, {"mine.py": text, "backend.py": backend})
        for name, text in (("old", STATED.format(False)), ("new", STATED.format(True)))
    ]
    (change,) = diff(*sides, "--engine", f"vllm=={release}")["capabilities"]
    assert (change["asked_by"], change["not_asked_because"]) == (asked, reason)


# Revisions


def git(directory: Path, *args: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    return subprocess.run(
        ["git", *identity, *args], cwd=directory, check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two commits: the class says nothing, then True. The work tree says False."""
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"):
        monkeypatch.delenv(name, raising=False)
    root = tmp_path / "repo sitory"
    write(
        root,
        {"plugins/my impl/名.py": SILENT, "plugins/x.py": "", "requirements.txt": "vllm==0.29.0"},
    )
    git(root, "init", "-q", "-b", "main")
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    write(root, {"plugins/my impl/名.py": STATED.format(True)})
    git(root, "commit", "-qam", "two")
    git(root, "branch", "other", "HEAD~1")
    write(root, {"plugins/my impl/名.py": STATED.format(False)})
    monkeypatch.chdir(root)
    return root


def test_two_revisions(diff: Any, repository: Path) -> None:
    before = git(repository, "status", "--porcelain"), sorted(repository.rglob("*"))
    found = diff("HEAD~1", "HEAD")
    assert changes(found) == {"SilentImpl": ("declared", "SilentImpl")}
    assert [side["name"] for side in (found["base"], found["head"])] == ["HEAD~1", "HEAD"]
    assert found["base"]["engines"][0]["release"] == "0.29.0"
    assert found["capabilities"][0]["path"] == "plugins/my impl/名.py"
    assert (git(repository, "status", "--porcelain"), sorted(repository.rglob("*"))) == before


def test_a_revision_and_the_work_tree(diff: Any, repository: Path) -> None:
    assert changes(diff("HEAD")) == {"SilentImpl": ("lost", "SilentImpl")}
    assert changes(diff("HEAD~1")) == {"SilentImpl": ("lost", "SilentImpl")}
    assert diff("HEAD")["head"]["name"] == "the work tree"


def test_where_two_branches_parted(diff: Any, repository: Path) -> None:
    assert changes(diff("other...main", "main")) == {"SilentImpl": ("declared", "SilentImpl")}


def test_in_a_subfolder(
    diff: Any, dcplint: Command, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository / "plugins" / "my impl")
    assert changes(diff("HEAD~1", "HEAD")) == {"SilentImpl": ("declared", "SilentImpl")}
    write(repository, {"later/a.py": SILENT})
    monkeypatch.chdir(repository / "later")
    assert changes(diff("HEAD", *ENGINES)) == {"SilentImpl": ("new", "SilentImpl")}


def test_the_first_python_file(diff: Any, dcplint: Command, tmp_path: Path) -> None:
    """A change may bring it, and another take it away; on neither side it is a slip."""
    old, new = write(tmp_path / "old", {"README.md": ""}), write(tmp_path / "new", {"a.py": SILENT})
    assert changes(diff(old, new, *ENGINES)) == {"SilentImpl": ("new", "SilentImpl")}
    assert changes(diff(new, old, *ENGINES)) == {"SilentImpl": ("removed", "SilentImpl")}
    dcplint("diff", old, old, *ENGINES)
    assert (dcplint.status, dcplint.err) == (2, "error: no Python files found on either side\n")


def test_submodules(
    diff: Any, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each side has the commit that it names, and nothing changes where it is the same one."""
    git(repository, "checkout", "-q", ".")
    outer = write(tmp_path / "outer", {"mine.py": "", "requirements.txt": "vllm==0.29.0"})
    git(outer, "init", "-q", "-b", "main")
    allowed = ("-c", "protocol.file.allow=always")
    git(outer, *allowed, "submodule", "--quiet", "add", str(repository), "sub module")
    git(outer, "add", ".")
    git(outer, "commit", "-qm", "one")
    monkeypatch.chdir(outer)
    assert diff("HEAD")["capabilities"] == []
    git(outer / "sub module", "checkout", "-q", "HEAD~1")
    assert changes(diff("HEAD")) == {"SilentImpl": ("undeclared", "SilentImpl")}


def test_what_is_neither(dcplint: Command, repository: Path) -> None:
    for name in ("nowhere", "--upload-pack=x", "main...nowhere"):
        dcplint("diff", "--", name)
        assert dcplint.status == 2
        assert (
            dcplint.err
            == f"error: {name}: neither a folder nor a revision of a git checkout here\n"
        )


def test_text_and_markdown(dcplint: Command, repository: Path) -> None:
    dcplint("diff", "HEAD~1", "--color", "never")
    assert dcplint.status == 1
    assert "lost (1): True by AttentionImplBase's default → False, said by itself" in dcplint.out
    assert "plugins/my impl/名.py:4" in dcplint.out
    assert "fixed findings (1)" in dcplint.out
    assert dcplint("diff", "HEAD~1", "--exit-zero").status == 0
    dcplint("diff", "HEAD~1", "--output-format", "markdown", "--output-file", "out.md")
    shown = Path("out.md").read_text()
    assert shown.startswith("<!-- dcplint diff -->\n### dcplint: HEAD\\~1 (vllm 0.29.0) → the work")
    assert "| **lost** | `SilentImpl`<br>plugins/my impl/名.py:4 |" in shown


def test_markdown_fits_into_a_comment(dcplint: Command, tmp_path: Path) -> None:
    many = "".join(
        SILENT.partition("\n\n\n")[2].replace("SilentImpl", f"Impl{n}") + "\n\n" for n in range(400)
    )
    head = SILENT.partition("\n\n\n")[0] + "\n\n\n"
    old = write(tmp_path / "old", {"a.py": ""})
    new = write(tmp_path / "new", {"a.py": head + many})
    dcplint("diff", old, new, *ENGINES, "--output-format", "markdown")
    assert len(dcplint.out) < 65_536
    assert "does not fit into a comment" in dcplint.out


def test_the_engine_itself_in_git(diff: Any, repository: Path) -> None:
    for default in ("True", "False"):
        files: dict[str, str | bytes] = {
            name: text.replace("{default}", default) for name, text in ENGINE.items()
        }
        write(repository, files)
        git(repository, "add", ".")
        git(repository, "commit", "-qm", default)
    found = changes(diff("HEAD~1", "HEAD"))
    assert found["AttentionImplBase"] == ("base", "AttentionImplBase")
    assert found["BelowSilentImpl"] == ("lost", "AttentionImplBase")
