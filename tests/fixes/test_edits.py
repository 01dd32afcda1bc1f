"""What each kind of change makes of a text, and that nothing else moves."""

import ast
from collections.abc import Callable

import libcst as cst
import pytest

from dcplint.findings.changes import (
    Change,
    CloneValue,
    DropFallback,
    PassArgument,
    StateAttribute,
)
from dcplint.findings.model import Location, Tree
from dcplint.fixes import edits
from dcplint.fixes.edits import make_edit
from dcplint.fixes.files import EditableText
from dcplint.source.concrete import parse_concrete

SIBLINGS = ("supports_dcp", "can_return_lse_for_decode")


def made(text: str, change: Change) -> str | None:
    """The text after the change; None where it cannot be made."""
    edit = make_edit(change, text.split("\n"))
    return EditableText.of(text.encode()).edited([edit]).decode() if edit else None


def span(node: ast.AST) -> Location:
    line, column, end_line, end_column = (
        getattr(node, name) for name in ("lineno", "col_offset", "end_lineno", "end_col_offset")
    )
    return Location("f.py", line, column + 1, end_line, end_column + 1)


def around(text: str, kind: type[ast.AST] | tuple[type[ast.AST], ...]) -> tuple[ast.AST, Location]:
    """The last class or function of a text, and its lines."""
    node = [n for n in ast.walk(ast.parse(text)) if isinstance(n, kind)][-1]
    decorators = [d.lineno for d in getattr(node, "decorator_list", [])]
    first = min([node.lineno, *decorators])
    return node, Location("f.py", first, 1, node.end_lineno, 1)


def state(text: str, value: bool = False) -> str | None:
    node, scope = around(text, ast.ClassDef)
    name = f"class {node.name}"
    line, column = node.lineno, node.col_offset + 1
    at = Location("f.py", line, column, line, column + len(name))
    return made(text, StateAttribute(scope, at, "supports_dcp", value, SIBLINGS))


STATED = {
    "alone": ("class A(B): pass\n", "class A(B):\n    supports_dcp = False\n"),
    "no line end": ("class A(B): pass", "class A(B):\n    supports_dcp = False"),
    "one line": (
        "class A(B): x = 1; y = 2  # why\nz = 1\n",
        "class A(B):\n    supports_dcp = False\n    x = 1; y = 2  # why\nz = 1\n",
    ),
    "in place of pass": (
        "class A(B):\n    pass  # nothing\n",
        "class A(B):\n    supports_dcp = False  # nothing\n",
    ),
    "before a method": (
        "class A(B):\n    def f(self): ...\n",
        "class A(B):\n    supports_dcp = False\n\n    def f(self): ...\n",
    ),
    "behind a docstring": (
        'class A(B):\n    """Doc."""\n\n    def f(self): ...\n',
        'class A(B):\n    """Doc."""\n\n    supports_dcp = False\n\n    def f(self): ...\n',
    ),
    "close behind a docstring": (
        'class A(B):\n    """Doc."""\n    x = 1\n',
        'class A(B):\n    """Doc."""\n    supports_dcp = False\n    x = 1\n',
    ),
    "behind a docstring alone": (
        'class A(B):\n    """Doc."""\n',
        'class A(B):\n    """Doc."""\n\n    supports_dcp = False\n',
    ),
    "with the attributes": (
        "class A(B):\n\n    x = 1\n",
        "class A(B):\n    supports_dcp = False\n    x = 1\n",
    ),
    "before a comment": (
        "class A(B):\n    # of x\n    x = 1\n",
        "class A(B):\n    supports_dcp = False\n\n    # of x\n    x = 1\n",
    ),
    "beside its sibling, as that is annotated": (
        "class A(B):\n    x = 1\n    can_return_lse_for_decode: ClassVar[bool] = True\n    y = 2\n",
        "class A(B):\n    x = 1\n    can_return_lse_for_decode: ClassVar[bool] = True\n"
        "    supports_dcp: ClassVar[bool] = False\n    y = 2\n",
    ),
    "as the file has it": (
        "class O(B):\n    supports_dcp: bool = True\n\nclass A(B):\n    x = 1\n",
        "class O(B):\n    supports_dcp: bool = True\n\nclass A(B):\n"
        "    supports_dcp: bool = False\n    x = 1\n",
    ),
    "as the other flags": (
        "class A(B):\n    x = 1\n    is_sparse: bool = True\n",
        "class A(B):\n    supports_dcp: bool = False\n    x = 1\n    is_sparse: bool = True\n",
    ),
    "declared before": (
        "class A(B):\n    x = 1\n    supports_dcp: bool  # soon\n",
        "class A(B):\n    x = 1\n    supports_dcp: bool = False  # soon\n",
    ),
    "deep inside, with tabs": (
        "def g():\n\tif x:\n\t\t@d\n\t\tclass A(B):\n\t\t\tdef f(self):\n\t\t\t\treturn '''\n'''\n",
        "def g():\n\tif x:\n\t\t@d\n\t\tclass A(B):\n\t\t\tsupports_dcp = False\n\n"
        "\t\t\tdef f(self):\n\t\t\t\treturn '''\n'''\n",
    ),
    "newer syntax": (
        "class A[T](B[T]):\n    x = 1\n",
        "class A[T](B[T]):\n    supports_dcp = False\n    x = 1\n",
    ),
}


@pytest.mark.parametrize(("before", "after"), STATED.values(), ids=STATED)
def test_an_attribute_is_stated(before: str, after: str) -> None:
    if "[T]" in before:
        change = StateAttribute(
            Location("f.py", 1, 1, 2, 1), Location("f.py", 1, 1, 1, 8), "supports_dcp", False
        )
        assert made(before, change) == after
    else:
        assert state(before) == after


def test_a_stated_attribute_is_left_alone() -> None:
    assert state("class A(B):\n    supports_dcp = True\n") is None


def test_another_class_in_its_place_is_left_alone() -> None:
    change = StateAttribute(
        Location("f.py", 1, 1, 2, 1), Location("f.py", 1, 1, 1, 8), "supports_dcp", False
    )
    assert made("class Other(B):\n    x = 1\n", change) is None
    assert made("x = 1\n", change) is None


def test_nothing_is_changed_outside_the_project() -> None:
    place = Location("f.py", 1, 1, 1, 8, Tree.ENGINE)
    assert made("class A(B): pass\n", StateAttribute(place, place, "x", True)) is None


def expression(
    text: str, kinds: type[ast.AST], make: Callable[[Location, Location], Change], pick: str = ""
) -> str | None:
    function, scope = around(text, (ast.FunctionDef, ast.AsyncFunctionDef))
    nodes = [n for n in ast.walk(function) if isinstance(n, kinds) and pick in ast.unparse(n)]
    return made(text, make(scope, span(nodes[0])))


PASSED = {
    "k()": "k(s=self.s)",
    "k(a)": "k(a, s=self.s)",
    "k(a, b=1)": "k(a, b=1, s=self.s)",
    "k(a, s=None)": "k(a, s=self.s)",
    "k(\n        a,\n        b=1,\n    )": "k(\n        a,\n        b=1,\n        s=self.s,\n    )",
    "k(\n        a, b=1\n    )": "k(\n        a, b=1, s=self.s\n    )",
    "k(\n        a,  # first\n        b=1,  # last\n    )": (
        "k(\n        a,  # first\n        b=1, s=self.s,  # last\n    )"
    ),
}


@pytest.mark.parametrize(("before", "after"), PASSED.items())
def test_an_argument_is_passed(before: str, after: str) -> None:
    text = "def f(self):\n    return {}\n"
    found = expression(
        text.format(before), ast.Call, lambda scope, at: PassArgument(scope, at, "s", "self.s")
    )
    assert found == text.format(after)


CLONED = ["m.lens", "m.lens[:n]", "lens", "m.lens.view(-1)"]


@pytest.mark.parametrize("value", CLONED)
def test_a_value_is_cloned(value: str) -> None:
    text = f"def f(m):\n    名 = 'é'; x = {value}  # ours\n"
    change = CloneValue(Location("f.py", 1, 1, 2, 1), Location("f.py", 2, 18, 2, 18 + len(value)))
    assert made(text, change) == text.replace(value, f"{value}.clone()")


# (before, after)
DROPPED = {
    "alone": (
        "    # in case\n    if p is None:\n        p = g()\n    return p\n",
        "    # in case\n    assert p is not None\n    return p\n",
    ),
    "the last of its block": (
        "    if x:\n        if p is None: p = g()\n    return p\n",
        "    if x:\n        assert p is not None\n    return p\n",
    ),
    "with another test": (
        "    if a > 1 and p is None:\n        p = g()\n    return p\n",
        "    if a > 1:\n        assert p is not None\n    return p\n",
    ),
    "before another test": (
        "    if p is None and a:  # why\n        p = g()\n    return p\n",
        "    if a:  # why\n        assert p is not None\n    return p\n",
    ),
    "with two other tests": (
        "    if a and p is None and b:\n        p = g()\n    return p\n",
        "    if a and b:\n        assert p is not None\n    return p\n",
    ),
    "over several lines": (
        "    if (\n        a\n        and p is None\n    ):\n        p = g()\n    return p\n",
        "    if (\n        a\n    ):\n        assert p is not None\n    return p\n",
    ),
    "with an else": (
        "    if p is None:\n        q = g()\n    else:\n        # ours\n        q = p\n"
        "    return q\n",
        "    assert p is not None\n    # ours\n    q = p\n    return q\n",
    ),
    "in the else": (
        "    if p is not None:\n        q = '''\nx'''\n    else:\n        q = g()\n    return q\n",
        "    assert p is not None\n    q = '''\nx'''\n    return q\n",
    ),
    "an expression": ("    return p if p is not None else g()\n", "    return p\n"),
    "an expression turned round": (
        "    q = (\n        g()\n        if p is None\n        else p\n    )\n",
        "    q = p\n",
    ),
    "an expression with a comment": (
        "    q = (  # why\n        p if p is not None else g()\n    )\n",
        "    q = (  # why\n        p\n    )\n",
    ),
    "an expression among others": (
        "    q = 2 * (p if p is not None else g())\n",
        "    q = 2 * p\n",
    ),
    "an expression for itself": (
        "    p = (  # why\n        p if p is not None else g()\n    )\n    return p\n",
        "    assert p is not None\n    return p\n",
    ),
    "or for itself": ("    p = p or g()  # why\n", "    assert p is not None  # why\n"),
    "or for another": ("    q = p or g()\n", "    q = p\n"),
    "or": ("    return p or g()\n", "    return p\n"),
    "or over several lines": ("    return (p\n        or g())\n", "    return p\n"),
    "elif": ("    if a:\n        b()\n    elif p is None:\n        p = g()\n", None),
    "another path": ("    if q is None:\n        p = g()\n", None),
    "more than values": ("    if p is None:\n        for x in y:\n            p = g()\n", None),
    "or else or else": ("    return p or g() or h()\n", None),
    "either test": ("    if a or p is None:\n        p = g()\n", None),
    "early return": ("    if p is not None:\n        return p\n    return g()\n", None),
}


@pytest.mark.parametrize(("before", "after"), DROPPED.values(), ids=DROPPED)
def test_a_fallback_is_dropped(before: str, after: str | None) -> None:
    text = "def f(p):\n" + before
    tests = [
        node.values[0] if isinstance(node, ast.BoolOp) else node.test
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (ast.If, ast.IfExp))
        or (isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or))
    ]
    _, scope = around(text, ast.FunctionDef)
    wanted = [t for t in tests if "None" in ast.unparse(t)] or tests
    found = made(text, DropFallback(scope, span(wanted[0]), "p"))
    assert found == (None if after is None else "def f(p):\n" + after)


@pytest.mark.parametrize("opening", ["", "if x:\n    "])
def test_only_the_scope_is_parsed_however_far_down_it_stands(
    opening: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[str] = []

    def parse(text: str) -> cst.Module | None:
        parsed.append(text)
        return parse_concrete(text)

    monkeypatch.setattr(edits, "parse_concrete", parse)
    text, above = f"{opening}class A(B): pass\n", "x = 1\n" * 1_000
    after = state(text)
    assert after is not None and state(above + text) == above + after
    assert parsed[0] == parsed[1]
