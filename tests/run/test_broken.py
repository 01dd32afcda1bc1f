"""Broken inputs: one clear sentence each, the documented status, the rest of the run intact."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.run.tree import SILENT, Command, write

ENGINE = ("--engine", "vllm==0.29.0")
INTACT = [("DCP101", "SilentImpl")]

HEAD = "from vllm.v1.attention.backend import AttentionImpl\n\n\n"
BODY = "    def __init__(self, *args): ...\n\n    def forward(self, *args): ...\n"

UNREADABLE: dict[str, tuple[bytes, str]] = {
    "syntax error": (
        f"{HEAD}class MyImpl(AttentionImpl)\n{BODY}".encode(),
        "broken.py:4:28: DCP001 broken.py has a syntax error: expected ':'",
    ),
    "NUL byte": (
        f"{HEAD}class MyImpl(AttentionImpl):\n{BODY}\0".encode(),
        "broken.py:8:1: DCP001 broken.py contains a NUL byte: not Python source",
    ),
    "undecodable": (
        f"{HEAD}# caf\xe9\nclass MyImpl(AttentionImpl):\n{BODY}".encode("latin-1"),
        "broken.py:4:1: DCP001 broken.py is not utf-8 text (byte 0xe9); "
        "declare its encoding in line 1 or convert it",
    ),
    "unknown encoding": (
        f"# coding: klingon\n{HEAD}class MyImpl(AttentionImpl):\n{BODY}".encode(),
        "broken.py:1:1: DCP001 broken.py names an unusable encoding: unknown encoding: klingon",
    ),
    "nested too deeply": (
        f"{HEAD}class MyImpl(AttentionImpl):\n    x = {'(' * 5000}0{')' * 5000}\n{BODY}".encode(),
        "DCP001 broken.py has a syntax error: too many nested parentheses",
    ),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_unreadable_file(dcplint: Command, case: str, tmp_path: Path) -> None:
    content, sentence = UNREADABLE[case]
    write(tmp_path, {"broken.py": content, "good.py": SILENT})
    dcplint.check(tmp_path, *ENGINE)
    broken, *rest = dcplint.lines
    assert broken.endswith(sentence)
    assert dcplint.verdicts == INTACT and len(rest) == 1
    assert (dcplint.status, dcplint.err) == (1, "")


def test_other_encodings_are_no_fault(dcplint: Command, tmp_path: Path) -> None:
    text = f"# coding: latin-1\n{HEAD}# caf\xe9\nclass MyImpl(AttentionImpl):\n{BODY}"
    write(
        tmp_path,
        {
            "latin.py": text.encode("latin-1"),
            "bom.py": b"\xef\xbb\xbf" + SILENT.replace("SilentImpl", "BomImpl").encode(),
            "dos.py": SILENT.replace("SilentImpl", "DosImpl").replace("\n", "\r\n").encode(),
        },
    )
    assert dcplint.check(tmp_path, *ENGINE).verdicts == [
        ("DCP101", "BomImpl"),
        ("DCP101", "DosImpl"),
        ("DCP101", "MyImpl"),
    ]
    assert "latin.py:6:1:" in dcplint.out and "dos.py:4:1:" in dcplint.out


def test_an_import_behind_a_byte_order_mark_is_one(dcplint: Command, tmp_path: Path) -> None:
    """Where nothing else says that the tree has to do with an engine."""
    write(tmp_path, {"dcplint.toml": "", "a.py": b"\xef\xbb\xbf" + SILENT.encode()})
    found = dcplint.check(tmp_path, "--engine", "vllm==0.29.0")
    assert found.verdicts == [("DCP101", "SilentImpl")]


def test_twenty_megabytes(dcplint: Command, tmp_path: Path) -> None:
    row = f'    "{"x" * 70}",\n'
    rows = 20 * 2**20 // len(row)
    table = f"TABLE = [\n{row * rows}]\n\n\n"
    write(
        tmp_path,
        {"big.py": f"{HEAD}{table}class BigImpl(AttentionImpl):\n{BODY}", "good.py": SILENT},
    )
    dcplint.check(tmp_path, *ENGINE)
    assert dcplint.verdicts == [("DCP101", "BigImpl"), *INTACT]
    assert dcplint.lines[0].startswith(f"big.py:{rows + 8}:1:")


UNKNOWABLE = {
    "cyclic inheritance": {
        "a.py": f"{HEAD}class A(B, AttentionImpl):\n{BODY}\n\nclass B(A):\n{BODY}"
    },
    "its own base": {"a.py": f"{HEAD}class A(A, AttentionImpl):\n{BODY}"},
    "a name defined by itself": {
        "a.py": f"{HEAD}Base = Base\n\n\nclass A(Base, AttentionImpl):\n{BODY}"
    },
    "a cycle of files": {
        "a.py": f"from b import B\n{HEAD}class A(B, AttentionImpl):\n{BODY}",
        "b.py": f"from a import A\n\n\nclass B(A):\n{BODY}",
    },
    "a cyclic import": {
        "a.py": f"from b import Base\n{HEAD}class A(Base, AttentionImpl):\n{BODY}",
        "b.py": "from a import Base\n",
    },
}


@pytest.mark.parametrize("case", UNKNOWABLE)
def test_what_cannot_be_resolved_is_unknown(dcplint: Command, case: str, tmp_path: Path) -> None:
    write(tmp_path, {**UNKNOWABLE[case], "good.py": SILENT})
    dcplint.check(tmp_path, *ENGINE)
    assert (dcplint.verdicts, dcplint.status, dcplint.err) == (INTACT, 1, "")
    shown = dcplint.json("capabilities", tmp_path, *ENGINE)
    rows = {row["class"]: row for matrix in shown["matrices"] for row in matrix["classes"]}
    said = rows["A"]["capabilities"]["supports_dcp"]
    assert said["origin"] == "unknown" and said["reason"], said


def test_a_cyclic_import_of_names_that_exist_is_no_obstacle(
    dcplint: Command, tmp_path: Path
) -> None:
    write(
        tmp_path,
        {
            "a.py": f"import b\n{HEAD}class Base(AttentionImpl):\n{BODY}",
            "b.py": f"import a\n\n\nclass Heir(a.Base):\n{BODY}",
        },
    )
    assert dcplint.check(tmp_path, *ENGINE).verdicts == [("DCP101", "Base"), ("DCP101", "Heir")]


def _refusing(real: Any) -> Any:
    def scandir(path: Any) -> Iterator[os.DirEntry[str]]:
        if Path(path).name == "locked":
            raise PermissionError(13, "Permission denied", str(path))
        found: Iterator[os.DirEntry[str]] = real(path)
        return found

    return scandir


def test_a_directory_that_cannot_be_read(
    dcplint: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"locked/a.py": SILENT, "good.py": SILENT})
    # Permissions do not bind root, as whom containers run tests.
    monkeypatch.setattr(os, "scandir", _refusing(os.scandir))
    dcplint.check(tmp_path, *ENGINE)
    assert "locked:1:1: DCP001 locked cannot be read: Permission denied" in dcplint.lines
    assert (dcplint.verdicts, dcplint.status) == (INTACT, 1)


@pytest.mark.skipif(
    sys.platform == "win32" or getattr(os, "geteuid", lambda: 0)() == 0,
    reason="permissions do not bind root",
)
def test_a_directory_without_permission(dcplint: Command, tmp_path: Path) -> None:
    write(tmp_path, {"locked/a.py": SILENT, "good.py": SILENT})
    (tmp_path / "locked").chmod(0)
    try:
        dcplint.check(tmp_path, *ENGINE)
    finally:
        (tmp_path / "locked").chmod(0o755)
    assert "locked:1:1: DCP001 locked cannot be read: Permission denied" in dcplint.lines


def test_nothing_to_read(dcplint: Command, tmp_path: Path) -> None:
    dcplint.check(tmp_path)
    assert (dcplint.status, dcplint.out) == (2, "")
    assert dcplint.err == f"error: no Python files found in {tmp_path}\n"


def test_a_path_that_does_not_exist(dcplint: Command, tmp_path: Path) -> None:
    write(tmp_path, {"good.py": SILENT})
    dcplint.check(tmp_path / "good.py", tmp_path / "godo.py")
    assert (dcplint.status, dcplint.out) == (2, "")
    assert dcplint.err == f"error: {tmp_path / 'godo.py'}: no such file or directory\n"


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ('selct = ["DCP1"]\n', "selct"),
        ('select = ["DCP1O1"]\n', "no rule is called 'DCP1O1'; did you mean 'DCP101'?"),
        ("select = 7\n", "select"),
        ("select = [\n", "dcplint.toml"),
    ],
)
def test_a_mistake_in_the_configuration(
    dcplint: Command, config: str, sentence: str, tmp_path: Path
) -> None:
    write(tmp_path, {"good.py": SILENT, "dcplint.toml": config})
    dcplint.check(tmp_path)
    assert (dcplint.status, dcplint.out) == (2, "")
    assert dcplint.err.startswith(f"error: {tmp_path / 'dcplint.toml'}")
    assert sentence in dcplint.err and dcplint.err.count("\n") == 1


@pytest.mark.parametrize(
    ("pack", "sentence"),
    [
        ("engine: vllm\npackage: vllm\ndistribution: vllm\nknown: 0.29.0\n", "known"),
        ("engine: [vllm\n", "mine.yaml"),
        ("engine: mine\npackage: mine\ndistribution: mine\nknwon: [1.0]\n", "knwon"),
    ],
)
def test_a_mistake_in_a_pack(dcplint: Command, pack: str, sentence: str, tmp_path: Path) -> None:
    write(tmp_path, {"good.py": SILENT, "mine.yaml": pack})
    dcplint.check(tmp_path, "--pack", tmp_path / "mine.yaml")
    assert (dcplint.status, dcplint.out) == (2, "")
    assert "mine.yaml:" in dcplint.err and sentence in dcplint.err
    assert dcplint.err.count("\n") == 1


def test_a_pack_that_is_not_there(dcplint: Command, tmp_path: Path) -> None:
    write(tmp_path, {"good.py": SILENT})
    dcplint.check(tmp_path, "--pack", tmp_path / "mine.yaml")
    assert (dcplint.status, dcplint.out) == (2, "")
    assert "mine.yaml" in dcplint.err and dcplint.err.count("\n") == 1


def test_a_file_that_cannot_be_read_was_looked_at(dcplint: Command, tmp_path: Path) -> None:
    write(tmp_path, {"broken.py": UNREADABLE["undecodable"][0], "good.py": SILENT})
    assert "Found 2 errors in 2 files" in dcplint("check", tmp_path, *ENGINE).out
