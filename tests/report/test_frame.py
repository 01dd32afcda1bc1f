from hypothesis import given
from hypothesis import strategies as st

from dcplint.findings.model import Location
from dcplint.report.escape import cells_of, printable, width_of
from dcplint.report.frame import frame

LINES = st.text(st.sampled_from("ab (\t名é\u0301\x1b\u202e") | st.characters(), max_size=120)


def columns(text: str) -> str:
    """The text with one character a column: wide ones twice, combining ones not at all."""
    return "".join(char * width_of(char) for char in text)


@given(line=LINES, data=st.data(), room=st.integers(24, 100))
def test_the_mark_lies_under_the_span(line: str, data: st.DataObject, room: int) -> None:
    start = data.draw(st.integers(0, len(line)))
    end = data.draw(st.integers(start, len(line)))
    span = Location("a.py", 1, start + 1, 1, end + 1)
    (number, text), (_, marks) = frame([line], span, mark="^", room=room)
    assert number == 1
    assert width_of(text) <= room
    before, marked = len(marks) - len(marks.lstrip()), marks.count("^")
    under = columns(text)[before : before + marked]
    expected = columns("".join(cells_of(line)[start:end]))
    if len(expected) <= room - len("...") * 2:
        assert under == expected or (marked == 1 and not expected)
    else:
        assert expected.startswith(under)


def test_a_long_line_is_cut_around_the_span() -> None:
    line = "a" * 500_000 + "SPAN" + "b" * 500_000
    span = Location("a.py", 1, 500_001, 1, 500_005)
    (_, text), (_, marks) = frame([line], span, mark="^", room=30)
    assert text.startswith("...") and text.endswith("...")
    assert text[marks.index("^") :].startswith("SPAN") and marks.count("^") == 4


def test_several_lines_are_bracketed() -> None:
    rows = frame(["x = f(", "    a,", ")"], Location("a.py", 1, 5, 3, 2), mark="^", room=40)
    assert [(row.number, row.text) for row in rows] == [
        (1, "  x = f("),
        (None, " _____^"),
        (2, "| " + "    a,"),
        (3, "| )"),
        (None, "|_^"),
    ]


def test_a_span_of_whole_lines_needs_no_lead() -> None:
    rows = frame(["    f(", "    )"], Location("a.py", 1, 5, 2, 6), mark="-", room=40)
    assert [row.text for row in rows] == ["/     f(", "|     )", "|_____-"]


def test_long_spans_lose_their_middle() -> None:
    lines = [f"line {n}" for n in range(1, 21)]
    rows = list(frame(lines, Location("a.py", 1, 1, 20, 8), mark="^", room=40))
    assert [row.number for row in rows] == [1, 2, 3, None, 19, 20, None]


def test_a_span_of_six_lines_is_shown_whole() -> None:
    rows = list(frame(["line"] * 6, Location("a.py", 1, 1, 6, 5), mark="^", room=40))
    assert [row.number for row in rows] == [1, 2, 3, 4, 5, 6, None]


def test_lines_that_do_not_exist_have_no_frame() -> None:
    assert not list(frame([], Location("empty.py", 1), mark="^", room=40))
    assert not list(frame(["one"], Location("a.py", 7), mark="^", room=40))
    # A parse error at the end of a file points behind it.
    (_, text), (_, marks) = frame(["one"], Location("a.py", 1, 9), mark="^", room=40)
    assert (text, marks) == ("one", "   ^")


@given(st.text(st.characters(exclude_categories=()), max_size=20))
def test_nothing_unprintable_is_printed(text: str) -> None:
    shown = printable(text)
    assert not any(ord(char) < 32 or 0x7F <= ord(char) < 0xA0 for char in shown)
    assert not any(char in "\u200b\u202a\u202e\u2066\u2028\u2029\ufeff" for char in shown)
    shown.encode()


def test_width_is_in_terminal_columns() -> None:
    assert [width_of(text) for text in ("", "ab", "名b", "e\u0301", "ä")] == [0, 2, 3, 1, 1]


def test_plain_text_is_left_alone() -> None:
    assert printable("näme 名 C:\\x\u3000") == "näme 名 C:\\x\u3000"
    assert printable("\x1b\n\udc80") == "\\x1b\\n\\udc80"
