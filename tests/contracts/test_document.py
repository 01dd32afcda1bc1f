# ruff: noqa: E501  a case of a table is one line

import os
from pathlib import Path

import pytest

from dcplint.contracts.document import PackError, read_document
from dcplint.errors import UserError


def refused(tmp_path: Path, content: str | bytes) -> str:
    path = tmp_path / "p.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(PackError) as caught:
        read_document(path, "p.yaml")
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "p.yaml:1: the pack is empty; start with 'engine: <name>'"),
        ("# only a comment\n", "p.yaml:1: the pack is empty; start with 'engine: <name>'"),
        ("- a\n", "p.yaml:1: a pack must be a mapping that starts with 'engine: <name>', got a list"),
        ("\ntoy\n", "p.yaml:2: a pack must be a mapping that starts with 'engine: <name>', got 'toy'"),
        ("a: 1\nb: 2\na: 3\n", "p.yaml:3: key 'a' is already on line 1; remove one of them"),
        ("x:\n  a: 1\n  a: 2\n", "p.yaml:3: key 'a' is already on line 2; remove one of them"),
        ("a: &x 1\nb: *x\n", "p.yaml:1: anchor '&x' is not allowed; write the value out"),
        ("a: 1\nb: *x\n", "p.yaml:2: alias '*x' is not allowed; write the value out"),
        ("a: !!python/object:os.system x\n", "p.yaml:1: tag 'tag:yaml.org,2002:python/object:os.system' is not allowed; write a plain value"),
        ("a: 1\n---\nb: 2\n", "p.yaml:2: a pack is one YAML document; remove the second '---'"),
        ("? [a]\n: 1\n", "p.yaml:1: a key must be text, got a list; write 'key: value'"),
        (b"a: 1\nb: \xff\n", "p.yaml:2: byte 0xff is not UTF-8; save the pack as UTF-8"),
    ],
)  # fmt: skip
def test_refuses(tmp_path: Path, content: str | bytes, message: str) -> None:
    assert refused(tmp_path, content) == message


def test_refuses_a_bomb_without_expanding_it(tmp_path: Path) -> None:
    levels = [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 30)]
    assert "anchor" in refused(tmp_path, "\n".join(["a0: &a0 [lol]", *levels]))


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_refuses_deep_nesting(tmp_path: Path, opening: str) -> None:
    assert refused(tmp_path, "k:\n  " + opening * 50_000).startswith("p.yaml:2: ")


def test_refuses_what_is_valid_and_too_deep(tmp_path: Path) -> None:
    message = "p.yaml:1: nested deeper than 16 levels; no pack needs that"
    assert refused(tmp_path, "a: " + "[" * 16 + "]" * 16) == message
    path = tmp_path / "p.yaml"
    path.write_text("a: " + "[" * 15 + "]" * 15)
    assert read_document(path, "p.yaml").entries["a"].kind == "list"


def test_says_where_the_syntax_is_wrong(tmp_path: Path) -> None:
    message = refused(tmp_path, "a: 1\nb: [1, 2\nc: 3\n")
    assert message.startswith("p.yaml:3: this is not valid YAML (")
    assert message.endswith("fix the syntax there")


def test_says_where_a_control_character_is(tmp_path: Path) -> None:
    message = refused(tmp_path, "a: é\nb: x\0y\n")
    assert message.startswith("p.yaml:2: this is not valid YAML (")


def test_missing_and_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^gone.yaml: no such pack file; check the path$"):
        read_document(tmp_path / "gone.yaml", "gone.yaml")
    with pytest.raises(PackError, match=r"^d: the pack cannot be read \(is a directory\)"):
        read_document(tmp_path, "d")


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root reads everything")
def test_file_without_permission(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("engine: x")
    path.chmod(0)
    with pytest.raises(PackError, match="permission denied"):
        read_document(path, "p.yaml")


def test_accepts_a_byte_order_mark_and_crlf(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_bytes("﻿engine: toy\r\nknown:\r\n  - 1.0.0\r\n".encode())
    root = read_document(path, "p.yaml")
    assert root.entries["engine"].raw == "toy"
    assert root.entries["known"].items[0].line == 3


def test_values_remember_their_line_and_keys_theirs(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("a:\n  - x\n  - b:\n      c: d\n")
    root = read_document(path, "p.yaml")
    inner = root.entries["a"].items[1]
    assert (root.key_lines["a"], root.entries["a"].line) == (1, 2)
    assert (inner.line, inner.key_lines["b"], inner.entries["b"].key_lines["c"]) == (3, 3, 4)
