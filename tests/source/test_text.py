"""Encodings, line ends and columns, against Python's own reading of the same bytes."""

import codecs
import io
import tokenize
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dcplint.source.text import SourceText, UnreadableSource, decode, read_bytes

READABLE = {
    "plain": b"x = 1\n",
    "empty": b"",
    "utf-8": "x = 'é'\n".encode(),
    "bom": codecs.BOM_UTF8 + "x = 'é'\n".encode(),
    "bom and cookie": codecs.BOM_UTF8 + b"# coding: utf-8\nx = 1\n",
    "latin-1": "# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1"),
    "cookie in line 2": b"#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\nx = '\x80'\n",
    "cookie behind a long first line": b"#" + b"-" * 900 + b"\n# coding: latin-1\nx = '\xe9'\n",
    "cookie in line 3 is none": "a = 1\nb = 2\n# coding: latin-1\nx = 'é'\n".encode(),
    "not a comment is none": "coding = 'latin-1'\nx = 'é'\n".encode(),
    "utf-7": b"# coding: utf-7\nx = '+AOk-'\n",
    "form feed": b"x = 1\n\x0c\ny = 2\n",
    "dos": b"x = 1\r\ny = 2\r\n",
    "old mac": b"x = 1\ry = 2\r",
    "mixed": b"a\r\nb\rc\n",
    "no newline at the end": b"x = 1",
}


@pytest.mark.parametrize("case", READABLE)
def test_reads_what_python_reads(case: str) -> None:
    data = READABLE[case]
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    with io.TextIOWrapper(io.BytesIO(data), encoding) as stream:
        assert decode(data) == stream.read()


UNREADABLE = {
    "nul": (b"a\nb\0\n", "NUL", 2),
    "utf-16": ("x = 1\n".encode("utf-16"), "NUL", 1),
    "not utf-8": (b"a\n\nb\xff\n", "0xff", 3),
    "not what the cookie says": (b"# coding: ascii\n\nx = '\xe9'\n", "ascii", 3),
    "unknown cookie": (b"# coding: klingon\n", "klingon", 1),
    "bom against cookie": (codecs.BOM_UTF8 + b"# coding: latin-1\n", "encoding", 1),
    "not text": (b"# coding: rot13\n", "rot13", 1),
    "bytes to bytes": (b"# coding: base64\n", "base64", 1),
    "refuses everything": (b"# coding: undefined\n", "undefined", 1),
    "needs a mark": (b"# coding: utf-16\n", "utf-16", 1),
    "a codec of host names": (b"# coding: idna\n\xff.\xff\n", "idna", 2),
    "makes no text": (b"# coding: unicode_escape\nx = '\\ud800'\n", "unicode_escape", 1),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_what_cannot_be_read_is_one_sentence_with_its_line(case: str) -> None:
    data, word, line = UNREADABLE[case]
    with pytest.raises(UnreadableSource) as caught:
        decode(data)
    assert word in str(caught.value) and "\n" not in str(caught.value)
    assert caught.value.line == line


@given(st.binary(max_size=80), st.sampled_from([b"", b"# coding: utf-7\n", b"# coding: utf-16\n"]))
def test_any_bytes_are_text_or_one_sentence(data: bytes, head: bytes) -> None:
    try:
        text = decode(head + data)
    except UnreadableSource as error:
        assert str(error)
    else:
        assert "\r" not in text and text.encode() is not None


def test_lines_are_those_of_python() -> None:
    text = SourceText("a\x0cb\nc\x1cd\x85e\u2028f\n")
    assert text.lines == ["a\x0cb", "c\x1cd\x85e\u2028f", ""]
    for first in range(-1, 6):
        for last in range(-1, 6):
            asked = text.lines[first - 1 : last] if 0 < first <= last else []
            assert text.between(first, last) == "\n".join(asked)
    assert SourceText("").between(1, 1) == ""


@pytest.mark.parametrize(
    ("line", "offset", "column"), [(1, 0, 1), (1, 3, 4), (2, 0, 1), (2, 2, 2), (2, 5, 4), (9, 0, 1)]
)
def test_columns_are_counted_in_code_points(line: int, offset: int, column: int) -> None:
    assert SourceText("abcd\né😀x\n".replace("😀", "ß")).column(line, offset) == column


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    content = b"x" * 3_000_000
    (tmp_path / "a.py").write_bytes(content)
    assert read_bytes(tmp_path / "a.py") == content
    assert read_bytes(str(tmp_path / "a.py")) == content


def test_the_systems_reason(tmp_path: Path) -> None:
    with pytest.raises(UnreadableSource, match="cannot be read: No such file"):
        read_bytes(tmp_path / "nothing.py")
    with pytest.raises(UnreadableSource, match="cannot be read: "):
        read_bytes(tmp_path)
