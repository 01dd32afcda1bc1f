"""Files keep their bytes: encodings, marks, line ends, tabs."""

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dcplint.findings.model import Edit, Location
from dcplint.fixes.files import CannotEdit, EditableText, overlap

INSERT = Edit(Location("f.py", 3, 1, 3, 1), "    x = 1\n\n")
TEXT = "# 名\nclass A:\n    pass\n"

WRITTEN = {
    "utf-8": TEXT.encode(),
    "no line end": TEXT.rstrip("\n").encode(),
    "carriage returns and line feeds": TEXT.replace("\n", "\r\n").encode(),
    "carriage returns": TEXT.replace("\n", "\r").encode(),
    "byte order mark": codecs.BOM_UTF8 + TEXT.encode(),
    "byte order mark and both": codecs.BOM_UTF8 + TEXT.replace("\n", "\r\n").encode(),
    "latin-1": b"# coding: latin-1\nclass A:\n    pass  # \xe9\n",
    "shift_jis": "# -*- coding: shift_jis -*-\nclass A:\n    pass  # 名\n".encode("shift_jis"),
}


@pytest.mark.parametrize("data", WRITTEN.values(), ids=WRITTEN)
def test_everything_else_stays(data: bytes) -> None:
    text = EditableText.of(data)
    new = text.edited([INSERT])
    added = text.newline.join(("    x = 1", "", "")).encode()
    assert new.count(added) == 1
    assert new.replace(added, b"") == data
    assert text.edited([]) == data


def test_the_line_end_is_that_of_the_place() -> None:
    data = b"a = 1\nclass A:\r\n    b = 1\r\nc = 1\n"
    assert EditableText.of(data).edited([INSERT]).count(b"    x = 1\r\n\r\n") == 1
    last = Edit(Location("f.py", 4, 1, 4, 1), "d = 1\n")
    assert b"\nd = 1\nc" in EditableText.of(data).edited([last])


def test_columns_are_code_points() -> None:
    data = "x = '名前', y\n".encode()
    edit = Edit(Location("f.py", 1, 11, 1, 12), "z")
    assert EditableText.of(data).edited([edit]) == "x = '名前', z\n".encode()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"# coding: nonsense\n", "cannot be decoded"),
        (b"x = '\xff'\n", "cannot be decoded"),
        (b"# coding: utf-7\nx = '+AGE-'\n", "would not survive"),
    ],
)
def test_what_cannot_be_written_again_is_left_alone(data: bytes, reason: str) -> None:
    with pytest.raises(CannotEdit, match=reason):
        EditableText.of(data)


@pytest.mark.parametrize("replacement", ["if:\n", "名\n"])
def test_what_would_break_is_left_alone(replacement: str) -> None:
    text = EditableText.of(b"# coding: latin-1\nx = 1\n")
    with pytest.raises(CannotEdit, match="would be broken"):
        text.edited([Edit(Location("f.py", 2, 1, 2, 1), replacement)])


def edit(start: int, end: int) -> Edit:
    return Edit(Location("f.py", 1, start, 1, end), "")


@pytest.mark.parametrize(
    ("one", "other", "touch"),
    [
        (edit(1, 3), edit(3, 4), True),
        (edit(1, 3), edit(4, 5), False),
        (edit(2, 2), edit(2, 2), True),
        (edit(1, 9), edit(3, 4), True),
    ],
)
def test_overlap(one: Edit, other: Edit, touch: bool) -> None:
    assert overlap(one, other) is overlap(other, one) is touch


@given(st.lists(st.sampled_from(["x = 1", "", "# é", "\ty = 2", "'''", "\x0c"]), max_size=6),
       st.sampled_from(["\n", "\r\n", "\r"]), st.booleans())  # fmt: skip
def test_lines_make_up_the_text(lines: list[str], end: str, ends: bool) -> None:
    text = EditableText.of((end.join(lines) + (end if ends else "")).encode())
    assert "".join(text.lines()) == text.text
