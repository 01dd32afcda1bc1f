"""Syntax newer than the running Python: LibCST reads it, and what is left is on the same lines."""

import ast
import subprocess
import sys

import pytest

from dcplint.source import concrete, parse
from dcplint.source.newer_syntax import lowered
from dcplint.source.parse import parse_function, parse_outline, parse_text
from dcplint.source.text import SourceText, UnreadableSource

# Each text ends in a class whose line tells whether lines were kept.
NEWER = {
    "class parameters": "class C[T: (int, str), *Ts, **P](B[T]):\n    flag = True\n",
    "class parameters over lines": "class C[\n    T,\n    # why\n    U = int,\n](\nB\n): pass\n",
    "function parameters": "def f[T](a: T) -> T: ...\nasync def g[\n    T\n](a): ...\n",
    "type alias": "type X = int\ntype Y[\n    T\n] = list[T]; z = 1\n",
    "except*": "try:\n    a = 1\n# why\nexcept* (A, B) as e:\n    b = 2\n\n# x\nexcept *C:\n    c\n"
    "else:\n    d = 4\nfinally:\n    e = 5\n",
    "quotes in an f-string": "x = f'{a['b']}' + f\"{\"c\"}\"\n",
    "lines in an f-string": "x = f'{a[\n1\n]}'\ny = f'''{\na['''b''']\n}'''\n",
    "backslash in an f-string": "x = f'{\"\\n\".join(a)}'\n",
    "comment in an f-string": "x = f'''{\na # why\n}'''\n",
    "f-string among strings": "x = ('a' f'{b['c']}'\n    'd')\n",
    "f-string in an f-string": "x = f'{f'{f'{1}'}'}'\n",
    "t-string": "x = t'{a}'\ny = t'''\n{b}\n'''\n",
    "starred index": "x = a[*b, 1]\ny: C[*Ts]\n",
    "starred parameter": "def f(*args: *Ts): ...\n",
    "except without brackets": "try:\n    a = 1\nexcept A, B:\n    b = 2\n",
    "except* without brackets": "try:\n    a = 1\nexcept* A, B:\n    b = 2\n",
    "in a method": "class D:\n    def f[T](self):\n        type X = T\n        return f'{'a'}'\n",
}


def statements(tree: ast.Module) -> list[tuple[str, int]]:
    return [(type(node).__name__, node.lineno) for node in tree.body]


@pytest.mark.parametrize("case", NEWER)
def test_lowered_text_is_what_any_python_reads(case: str) -> None:
    text = NEWER[case] + "class Last(Base):\n    flag = True\n"
    older = lowered(text)
    assert older is not None
    tree = ast.parse(older, feature_version=(3, 10))
    last = tree.body[-1]
    assert isinstance(last, ast.ClassDef) and last.lineno == text.count("\n") - 1
    try:
        real = ast.parse(text)
    except SyntaxError:
        return
    lines = [node.lineno for node in real.body]
    assert [node.lineno for node in tree.body] == lines


def test_what_a_replaced_string_says_is_not_known() -> None:
    for text in ("flag = f'{a['b']}'\n", "flag = 'x' f'{a}'\n", "flag = t'{a}'\n"):
        older = lowered(text)
        assert older is not None
        (assigned,) = ast.parse(older).body
        assert isinstance(assigned, ast.Assign) and isinstance(assigned.value, ast.Call)


def test_stars_are_taken_away() -> None:
    """No Python at hand may refuse them, so the text is what tells."""
    assert lowered("def f(*args: *Ts, a: b): ...\n") == "def f(*args: Ts, a: b): ...\n"
    assert lowered("x = a[*b, 1]\n") == "x = a[b, 1]\n"
    assert lowered("try:\n    a\nexcept* A:\n    b\n") == "try:\n    a\nexcept A:\n    b\n"


def test_ordinary_strings_stay() -> None:
    text = "x = 'a' 'b' '''c\nd'''\ny = b'e'\n"
    assert lowered(text) == text


def test_a_text_with_a_real_error_is_not_lowered() -> None:
    assert lowered("class A[T]:\n    x = = 1\n") is None


def test_where_libcst_itself_fails_the_text_is_not_lowered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Panic(BaseException):
        pass

    def panics(text: str) -> None:
        raise Panic

    monkeypatch.setattr("libcst.parse_module", panics)
    assert lowered("x = 1") is None


@pytest.mark.parametrize("case", NEWER)
def test_outlines_and_functions_of_newer_texts(case: str) -> None:
    last_class = "class Last(Base):\n    def f(self):\n        return 1\n"
    text = f"def before():\n    secret = 1\n{NEWER[case]}{last_class}"
    parsed = parse_outline(text, ())
    last = parsed.tree.body[-1]
    assert isinstance(last, ast.ClassDef) and last.lineno == text.count("\n") - 2
    assert parsed.ends[1] == 2
    first, end = last.lineno + 1, last.lineno + 2
    assert parse_function(SourceText(text).between(first, end), first, end).lineno == first


def test_a_syntax_error_has_its_place() -> None:
    with pytest.raises(UnreadableSource, match="syntax error") as caught:
        parse_outline("x = 1\nclass A(:\n    pass\n", ())
    assert (caught.value.line, caught.value.column) == (2, 9)


DEEP = {
    "brackets": "x = " + "(" * 12_000 + ")" * 12_000,
    "open brackets": "x = " + "[" * 12_000,
    "not": "x = " + "not " * 12_000 + "1",
    "minus": "x = " + "-" * 12_000 + "1",
    "attributes": "x = a" + ".b" * 12_000,
    "calls": "x = a" + "()" * 12_000,
    "sum": "x = " + "1 + " * 12_000 + "1",
    "sum over lines": "x = (" + "1 +\n" * 12_000 + "1)",
    "conditionals": "x = " + "1 if 1 else " * 12_000 + "1",
    "lambdas": "x = " + "lambda: " * 12_000 + "1",
    "powers": "x = " + "1 ** " * 12_000 + "1",
    "elifs": "if a: pass\n" + "elif a: pass\n" * 12_000,
    "strings": "x = (" + "'a'\n" * 12_000 + ")",
    "indentation": "".join(" " * n + "if a:\n" for n in range(500)) + " " * 500 + "pass",
}
PROGRAM = """
import sys
from dcplint.source.parse import parse_outline
from dcplint.source.text import SourceText, UnreadableSource
from tests.source.test_newer_syntax import DEEP
for case in DEEP:
    for error in ("", "try:\\n    pass\\nexcept* A:\\n    pass\\n", "x = = 1\\n"):
        try:
            parse_outline(error + DEEP[case] + "\\n", ())
        except UnreadableSource as unreadable:
            assert str(unreadable)
        print(case)
"""


def test_nothing_nested_ends_the_process() -> None:
    """In a process of its own, which a native stack overflow would end."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout.split("\n") == [*(case for case in DEEP for _ in range(3)), ""]


def test_a_huge_broken_text_is_not_worked_on(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 1_000_000 < concrete._LARGEST < 5_000_000
    monkeypatch.setattr(concrete, "_LARGEST", 20_000)
    text = "try:\n    pass\nexcept* A:\n    pass\n" + "x = 1\n" * 4_000 + "y = = 2\n"
    called: list[str] = []
    monkeypatch.setattr("libcst.parse_module", lambda text: called.append(text))
    with pytest.raises(UnreadableSource, match="syntax error"):
        parse_text(text)
    assert not called


def test_a_function_that_is_not_there() -> None:
    with pytest.raises(UnreadableSource, match="no function"):
        parse_function("x = 1", 1, 1)


def test_warnings_of_checked_code_stay_its_own(recwarn: pytest.WarningsRecorder) -> None:
    parse.parse_text("x = '\\d'\ny = 1 is 1\n")
    assert not recwarn.list


def test_a_function_keeps_its_places() -> None:
    node = parse_function("    @d\n    def f(self):\n        return '''\nx'''", 2, 5)
    assert (node.lineno, node.col_offset, node.end_lineno) == (3, 4, 5)
    assert node.decorator_list[0].lineno == 2
