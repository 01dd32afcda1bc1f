"""`--add-ignore`: comments that cover what was found, and change nothing else."""

from pathlib import Path

import pytest

from dcplint.errors import UserError
from dcplint.fixes.ignore import check_reason
from tests.run.tree import SILENT, Command, write

ENGINE = ("--engine", "vllm==0.29.0")
COMMENT = "# dcplint: ignore[DCP101] not used under DCP"
HEAD = SILENT.partition("class ")[0]


def suppressed(dcplint: Command, folder: Path, source: str | bytes, *args: str) -> bytes:
    """The file after `--add-ignore`; a run after it finds nothing and changes nothing."""
    write(folder, {"dcplint.toml": "", "a.py": source})
    file, options = folder / "a.py", (*ENGINE, "--add-ignore", "not used under DCP", *args)
    dcplint("check", file, *options, "--output-format", "concise")
    after = file.read_bytes()
    if not args:
        assert "ed 1 finding in 1 file.\n" in dcplint.err
        assert "DCP" not in dcplint.out and dcplint.status == 0
        assert "Nothing to suppress." in dcplint("check", file, *options).err
        assert file.read_bytes() == after
        assert dcplint.check(file, *ENGINE).lines == []
    return after


def test_a_line_above_the_class(dcplint: Command, tmp_path: Path) -> None:
    after = suppressed(dcplint, tmp_path, SILENT).decode()
    assert after == SILENT.replace("class Silent", f"{COMMENT}\nclass Silent")


CLASS = "class SilentImpl(AttentionImpl):\n    def __init__(self, *args): ...\n"
BODY = "\n    def forward(self, *args): ...\n"


@pytest.mark.parametrize(
    ("before", "statement"),
    [
        (f"{HEAD}@final\n@register(\n    'x')\n{CLASS}{BODY}", "@final"),
        (f"{HEAD}{CLASS}{BODY}".replace("(AttentionImpl)", "(\n  AttentionImpl,\n)"), "class "),
        (f"{HEAD}{CLASS}{BODY}".replace("Impl):", "Impl):  # noqa"), "class "),
        (f"{HEAD}# about it\n{CLASS}{BODY}", "class "),
        (f"{HEAD}# dcplint: ignore[DCP107] so\n{CLASS}{BODY}", "class "),
    ],
)
def test_whatever_stands_there_stays(
    dcplint: Command, tmp_path: Path, before: str, statement: str
) -> None:
    options = ("--ignore", "DCP002")
    write(tmp_path, {"dcplint.toml": 'ignore = ["DCP002"]', "a.py": before})
    dcplint("check", tmp_path, *ENGINE, *options, "--add-ignore", "not used under DCP")
    after = (tmp_path / "a.py").read_text()
    assert after == before.replace(f"\n{statement}", f"\n{COMMENT}\n{statement}", 1)
    assert dcplint.check(tmp_path, *ENGINE).lines == []


def test_indentation_and_line_ends_are_those_of_the_place(dcplint: Command, tmp_path: Path) -> None:
    inside = "".join(f"\t{line}" for line in f"{CLASS}{BODY}".splitlines(keepends=True))
    before = f"\ufeff{HEAD}if True:\n{inside}".replace("\n", "\r\n")
    after = suppressed(dcplint, tmp_path, before.encode()).decode()
    assert after == before.replace("\r\n\tclass", f"\r\n\t{COMMENT}\r\n\tclass")


def test_other_encodings(dcplint: Command, tmp_path: Path) -> None:
    before = f"# -*- coding: latin-1 -*-\n# \xe4\n{SILENT}".encode("latin-1")
    after = suppressed(dcplint, tmp_path, before)
    assert after == before.replace(b"class ", f"{COMMENT}\nclass ".encode())


def test_a_diff_changes_nothing(dcplint: Command, tmp_path: Path) -> None:
    assert suppressed(dcplint, tmp_path, SILENT, "--diff") == SILENT.encode()
    assert f"+{COMMENT}\n" in dcplint.out and dcplint.status == 1


def test_only_files_that_were_asked_about(dcplint: Command, tmp_path: Path) -> None:
    base = SILENT.replace("Silent", "Base").partition("    def forward")[0]
    heir = SILENT.replace("vllm.v1.attention.backend import AttentionImpl", ".a import BaseImpl")
    write(tmp_path, {"b.py": heir.replace("(AttentionImpl)", "(BaseImpl)")})
    write(tmp_path, {"dcplint.toml": "", "a.py": base, "__init__.py": ""})
    before = (tmp_path / "b.py").read_bytes()
    found = dcplint.check(tmp_path / "a.py", *ENGINE)
    assert [line.split(":")[0].rpartition("/")[2] for line in found.lines] == ["b.py"]
    dcplint("check", tmp_path / "a.py", *ENGINE, "--add-ignore", "not used under DCP")
    assert "Nothing to suppress." in dcplint.err and dcplint.status == 1
    assert (tmp_path / "b.py").read_bytes() == before


@pytest.mark.parametrize(
    "reason", ["", " - ", "two\nlines", "x # dcplint: ignore[DCP102] y", "\x1b"]
)
def test_what_is_no_reason(reason: str) -> None:
    with pytest.raises(UserError):
        check_reason(reason)


def test_reasons() -> None:
    check_reason("see #12: merged by the layer, \u540d")


def test_it_is_not_for_standard_input_nor_for_fixes(dcplint: Command, tmp_path: Path) -> None:
    for other in (["--fix"], ["--unsafe-fixes"]):
        assert dcplint("check", tmp_path, "--add-ignore", "why", *other).status == 2
    assert dcplint("check", tmp_path, "--add-ignore", " ").status == 2
