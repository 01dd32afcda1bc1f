"""The byte prefilter: it may say too much, never too little."""

from itertools import pairwise

import pytest

from dcplint.source.scan import Pairs, Scanner, closure

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
    "class A[T] \\\n    (B[T]): pass": {"A": {"B", "T"}},
    "    class A(B): pass": {"A": {"B"}},
    "class A: pass": {},
    "class \\\nA(B): pass": {"A": {"B"}},
    "class \\\r\nA \\\r\n    (B): pass": {"A": {"B"}},
    "class Ü(Bé): pass": {"Ü": {"Bé"}},
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
    data = f"import x\n{text}\n".encode()
    found = (*SCANNER.scan(data).renamed, *SCANNER.aliases(data))
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


def test_imported_names() -> None:
    found = SCANNER.scan(
        b"import a.b as c, d.e\nfrom f.g import (\n    h as i,\n)\nfrom j import *\n"
    )
    assert found.imported == {b"b", b"c", b"d", b"e", b"h", b"i"}
    assert found.has_star and not SCANNER.scan(b"import a\n").has_star


def test_words() -> None:
    assert SCANNER.scan(b"x.supports_b = 'mark:'").words == {b"supports_b", b"mark:"}
    assert SCANNER.scan(b"support flags").words == {b"flag"}
    assert SCANNER.scan(b"").words == frozenset()


def closed(files: dict[str, str], root: bytes) -> tuple[frozenset[bytes], list[str]]:
    """The closure over some files, and those whose assignments were looked at."""
    scans = {path: SCANNER.scan(text.encode()) for path, text in files.items()}
    asked: list[str] = []

    def aliases(path: str) -> Pairs:
        asked.append(path)
        return SCANNER.aliases(files[path].encode())

    return closure(scans, (root,), aliases), asked


def test_the_closure_follows_headers_and_aliases_across_files() -> None:
    files = {
        "pkg/__init__.py": "from . import a\n",
        "pkg/a.py": "class A(Root): pass",
        "b.py": "from pkg.a import A as B\nC = B\n",
        "c.py": "import b\nif x:\n    D = b.C\n",
        "d.py": "import c as m\nclass E(m.D): pass\nclass Other(Else): pass",
        "e.py": "from d import *\nF = E\n",
        "f.py": "import pkg\nG = pkg.a.A\n",
        "g.py": "import numpy\nH = numpy.A\nclass I(Exception): pass\n",
    }
    reached, asked = closed(files, b"Root")
    assert {b"A", b"B", b"C", b"D", b"E", b"F", b"G"} <= reached
    assert not {b"Other", b"H", b"I"} & reached
    near = ["b.py", "c.py", "d.py", "e.py", "f.py", "pkg/__init__.py", "pkg/a.py"]
    assert sorted(asked) == near, "each once"


def test_a_closure_of_cycles_ends() -> None:
    names = [f"C{n}" for n in range(5_000)]
    chain = "".join(f"class {name}({base}): pass\n" for base, name in pairwise(names))
    reached, _ = closed({"a.py": f"{chain}C0 = {names[-1]}\n"}, b"C500")
    assert {name.encode() for name in names} <= reached


def test_words_that_share_a_stem_are_found_and_others_too() -> None:
    words = [
        f"{prefix}_abc_{prefix}".encode() for prefix in ("one", "two", "three", "four", "five")
    ]
    scanner = Scanner.of([*words, b"alone"], ())
    assert scanner.scan(b"x = two_abc_two\n").words == {b"two_abc_two"}
    assert scanner.scan(b"abc = alone\n").words == {b"alone"}
    assert scanner.scan(b"\n".join(words)).words == set(words)
