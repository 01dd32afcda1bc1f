"""The byte prefilter: it may say too much, never too little."""

from itertools import pairwise

import pytest

from dcplint.source.scan import Scan, Scanner, closure

SCANNER = Scanner.of((b"flag", b"supports_a", b"supports_b", b"mark:"), (b"get_impl_cls",))


def headers(text: str) -> dict[str, set[str]]:
    found = SCANNER.scan(text.encode()).headers
    return {name.decode(): {base.decode() for base in bases} for name, bases in found}


HEADERS = {
    "class A(B): pass": {"A": {"B"}},
    "class A(a.b.C, D[E], metaclass=M): pass": {"A": {"a", "b", "C", "D", "E", "metaclass", "M"}},
    "class  A (B) : pass": {"A": {"B"}},
    "class A(\n    B,\n    C,\n):\n    pass": {"A": {"B", "C"}},
    "class A(  # not :)\n    B):\n    pass": {"A": {"not", "B"}},
    "class A(f(')'), B): pass": {"A": {"f", "B"}},
    "class A[T: (int, str)](B[T]): pass": {"A": {"B", "T"}},
    "    class A(B): pass": {"A": {"B"}},
    "class A: pass": {},
    "class \\\nA(B): pass": {"A": {"B"}},
    "class Ü(Bé): pass": {"Ü": {"Bé"}},
    "class A(B): pass\r\nclass C(D): pass\r": {"A": {"B"}, "C": {"D"}},
}


@pytest.mark.parametrize("text", HEADERS)
def test_headers(text: str) -> None:
    found = headers(text)
    assert found.keys() == HEADERS[text].keys()
    for name, bases in HEADERS[text].items():
        assert bases <= found[name]


def test_a_header_that_never_ends_is_cut() -> None:
    found = headers("class A(B, " + "x, " * 100_000)
    assert "B" in found["A"] and len(found["A"]) < 10


def aliases(text: str) -> set[tuple[str, str]]:
    found = SCANNER.scan(f"import x\n{text}\n".encode()).aliases
    return {(name.decode(), source.decode()) for name, sources in found for source in sources}


ALIASES = [
    "from a import B as A",
    "import a.B as A",
    "    from a import B as A",
    "from a import (\n    X,\n    B as A,\n)",
    "from a import (  # why (not)\n    X,  # :)\n    B as A,\n)",
    "from a import B \\\n    as A",
    "from a import X, B\tas\tA",
    "A = B",
    "A = a.B",
    "A: type = a.B",
    "A=B",
    "A = Z = B",
    "Z = A = B",
    "A, Z = B, C",
    "A = B if x() else C",
    "A = (\n    B\n    if x()\n    else C\n)",
    "A = \\\n    B",
    "A = B[\n    C\n]",
    'A = getattr(x, "B")',
    "A = typing.cast(type, B)",
    "A = B.get_impl_cls()",
    "if x:\n    A = B",
    "if x:\n    pass\nelse:\n    A = B",
    "try:\n    A = B\nexcept E:\n    A = C",
    "try:\n    pass\nexcept E:\n\n    # why\n    A = B\n",
    "class P(A): pass\ndef f():\n    A = B\n    class Q(A): pass",
    "class N:\n    A = B\n    class Q(A): pass",
]


@pytest.mark.parametrize("text", ALIASES)
def test_aliases(text: str) -> None:
    assert ("A", "B") in aliases(text)


@pytest.mark.parametrize(
    "text",
    ["A = 'B'", "A = {B: 1}", "A = B(1)", "A == B", "A = " + "x + " * 200 + "B", "f(A = B)"],
)
def test_what_can_be_no_class_is_no_alias(text: str) -> None:
    assert ("A", "B") not in aliases(text)


def test_old_mac_line_ends() -> None:
    assert ("A", "B") in aliases("x = 1\rA = B\r")


def test_words() -> None:
    assert SCANNER.scan(b"x.supports_b = 'mark:'").words == {b"supports_b", b"mark:"}
    assert SCANNER.scan(b"support flags").words == {b"flag"}
    assert SCANNER.scan(b"").words == frozenset()


def test_the_closure_follows_headers_and_aliases_across_files() -> None:
    scans = [
        SCANNER.scan(text.encode())
        for text in (
            "class A(Root): pass",
            "from a import A as B\nC = B\n",
            "\nif x:\n    D = mod.C\n",
            "class E(m.D): pass\nclass Other(Else): pass",
        )
    ]
    reached = closure(scans, (b"Root",))
    assert {b"A", b"B", b"C", b"D", b"E"} <= reached
    assert b"Other" not in reached


def test_a_closure_of_cycles_ends() -> None:
    names = [f"C{n}".encode() for n in range(20_000)]
    chain = Scan(
        tuple((name, frozenset((base,))) for base, name in pairwise(names)),
        ((names[0], frozenset((names[-1],))),),
        frozenset(),
    )
    assert closure([chain], (names[500],)) == frozenset(names)
