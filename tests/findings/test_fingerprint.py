import pytest

from dcplint.findings.fingerprint import with_fingerprints
from dcplint.findings.model import Location
from tests.findings.rules import IMPLICIT, LENGTH

SOURCE = "class A(B):\n    x = f(a, 'b')\n"


def prints(*spans: tuple[str, str], path: str = "a.py", symbol: str = "A") -> list[str]:
    """Fingerprints of findings on the span of `text` in `source`."""
    sources: dict[str, list[str]] = {}
    found = []
    for number, (source, text) in enumerate(spans):
        name = path.replace("*", str(number))
        lines = sources[name] = source.split("\n")
        start = source.index(text)
        line, column = source[:start].count("\n"), start - (source[:start].rfind("\n") + 1)
        end = text.count("\n")
        last = len(text) - text.rfind("\n") - 1 if end else column + len(text)
        place = Location(name, line + 1, column + 1, line + 1 + end, last + 1)
        assert lines[line][column:].startswith(text.split("\n")[0])
        found.append(IMPLICIT.finding("m", place, symbol=symbol))
    return [f.fingerprint for f in with_fingerprints(found, lambda place: sources[place.path])]


(BASE,) = prints((SOURCE, "f(a, 'b')"))


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("\n\n# moved\n" + SOURCE, "f(a, 'b')"),
        ('class A(B):\n  x = f(a, "b")\n', 'f(a, "b")'),
        ("class A(B):\n  x = f(\n    a,\n    'b',\n  )\n", "f(\n    a,\n    'b',\n  )"),
        ("class A(B):\n    yy = f(a, 'b') + 1\n", "f(a, 'b')"),
        ("class A(B):\n  x = f(a, \\\n    'b')\n", "f(a, \\\n    'b')"),
    ],
)
def test_survives_moves_and_layout(source: str, text: str) -> None:
    assert prints((source, text)) == [BASE]


def test_survives_renames_where_there_is_a_symbol() -> None:
    span = (SOURCE, "f(a, 'b')")
    assert prints(span, path="elsewhere/b.py") == [BASE]
    assert prints(span, symbol="") != prints(span, path="b.py", symbol="")


def test_differs_by_code_symbol_and_text() -> None:
    span = (SOURCE, "f(a, 'b')")
    place = Location("a.py", 2, 9, 2, 18)
    other = LENGTH.finding("m", place, symbol="A")
    (length,) = with_fingerprints([other], lambda place: SOURCE.split("\n"))
    assert len({BASE, length.fingerprint, *prints(span, symbol="C"), *prints((SOURCE, "f"))}) == 4


def test_message_and_severity_are_not_part_of_it() -> None:
    finding = IMPLICIT.finding("other words", Location("a.py", 2, 9, 2, 18), symbol="A")
    (other,) = with_fingerprints([finding], lambda place: SOURCE.split("\n"))
    assert other.fingerprint == BASE


def test_equal_findings_are_a_multiset() -> None:
    span = (SOURCE, "f(a, 'b')")
    three = prints(span, span, span, path="*.py")
    assert len(set(three)) == 3
    assert set(prints(span, span, path="*.py")) == set(three[:2])


def test_empty_span_stands_for_its_line() -> None:
    finding = IMPLICIT.finding("m", Location("a.py", 2), symbol="A")
    lines = SOURCE.split("\n")
    (one,) = with_fingerprints([finding], lambda place: lines)
    (same,) = with_fingerprints([finding], lambda place: [lines[0], lines[1].strip()])
    (other,) = with_fingerprints([finding], lambda place: [lines[0], "y = 2"])
    assert one.fingerprint == same.fingerprint != other.fingerprint


def test_places_that_do_not_exist_have_one_too() -> None:
    odd = [IMPLICIT.finding("m", Location("nä\udc80.py", 9, 1, 9, end)) for end in (1, 5)]
    found = with_fingerprints(odd, lambda place: [])
    assert [len(finding.fingerprint) for finding in found] == [16, 16]
