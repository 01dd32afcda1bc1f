"""The facts of one module: what it binds and defines, where, under which conditions."""

import ast
import sys

import pytest

from dcplint.facts.exports import exports, is_open
from dcplint.facts.extract import Place, extract, local_bindings
from dcplint.facts.functions import returned
from dcplint.facts.model import COMPUTED, ModuleFacts, Setting, Source
from dcplint.facts.reads import reads_in
from dcplint.source.parse import parse_outline

PLACE = Place("pkg/sub/mod.py", "pkg.sub.mod", is_package=False)


def facts_of(text: str, place: Place = PLACE) -> ModuleFacts:
    return extract(ast.parse(text), place, {})


def bindings(text: str) -> list[tuple[str, str, str]]:
    return [(b.name, b.source.value, b.target) for b in facts_of(text).bindings]


BINDINGS = {
    "import a": [("a", "import", "a")],
    "import a.b": [("a", "import", "a"), ("a.b", "import", "a.b")],
    "import a.b as c": [("c", "import", "a.b")],
    "from a import b as c, d": [("c", "import", "a.b"), ("d", "import", "a.d")],
    "from . import b": [("b", "import", "pkg.sub.b")],
    "from .x import b": [("b", "import", "pkg.sub.x.b")],
    "from .. import b": [("b", "import", "pkg.b")],
    "from ...x import b": [("b", "import", "x.b")],
    "from ....x import b": [("b", "import", "?.x.b")],
    "from a import *": [("*", "import", "a")],
    "a = b = c": [("a", "assign", ""), ("b", "assign", "")],
    "a, (b, *c) = d": [("a", "assign", ""), ("b", "assign", ""), ("c", "assign", "")],
    "a: int": [],
    "a: int = 1": [("a", "assign", "")],
    "a += 1": [("a", "assign", "")],
    "a.b = c[d] = 1": [],
    "for a, b in c: pass": [("a", "assign", ""), ("b", "assign", "")],
    "with a as b, c as (d, e): f = 1": [
        ("b", "assign", ""),
        ("d", "assign", ""),
        ("e", "assign", ""),
        ("f", "assign", ""),
    ],
    "if (a := b) and not (c := d): pass": [("c", "assign", ""), ("a", "assign", "")],
    "match x:\n case {'k': a, **b}: pass\n case [c, *d] | (c, d): pass\n case K(e) as f: pass": [
        (name, "assign", "") for name in ("b", "a", "c", "d", "c", "d", "f", "e")
    ],
    "class A: b = 1": [("A", "class", "")],
    "async def f(a): b = 1": [("f", "function", "")],
    "[a for a in b]": [],
    "try:\n import a\nexcept E as e:\n b = 1\nelse:\n c = 1\nfinally:\n d = 1": [
        ("a", "import", "a"),
        ("b", "assign", ""),
        ("c", "assign", ""),
        ("d", "assign", ""),
    ],
}


@pytest.mark.parametrize("text", BINDINGS)
def test_bindings(text: str) -> None:
    assert sorted(bindings(text)) == sorted(BINDINGS[text])


@pytest.mark.parametrize(
    ("name", "is_package", "target"),
    [
        ("pkg.sub", True, "pkg.sub.b"),
        ("pkg", True, "pkg.b"),
        ("", True, "b"),
        ("mod", False, "b"),
    ],
)
def test_relative_imports_at_every_depth(name: str, is_package: bool, target: str) -> None:
    (binding,) = facts_of("from . import b", Place("x", name, is_package)).bindings
    assert binding.target == target


CONDITIONS = {
    "if a.b: x = 1": [("test", False, "a.b")],
    "if not a: x = 1": [("test", True, "a")],
    "if not not a: x = 1": [("test", False, "a")],
    "if a: pass\nelse: x = 1": [("test", True, "a")],
    "if a: pass\nelif b: x = 1": [("test", True, "a"), ("test", False, "b")],
    "if TYPE_CHECKING: x = 1": [("type-checking", False, "TYPE_CHECKING")],
    "if t.TYPE_CHECKING: pass\nelse: x = 1": [("type-checking", True, "t.TYPE_CHECKING")],
    "if True: x = 1": [],
    "if 0: y = 1\nelse: x = 1": [],
    "while a: x = 1": [("loop", False, "a")],
    "for a in b: x = 1": [("loop", False, "for a in b")],
    "for a in b: pass\nelse: x = 1": [],
    "with a: x = 1": [],
    "try: x = 1\nfinally: pass": [],
    "try: x = 1\nexcept ImportError: pass": [("guarded", False, "try")],
    "try: x = 1\nexcept KeyError: pass": [],
    "try: pass\nexcept (A, m.ImportError): x = 1": [("import-error", False, "(A, m.ImportError)")],
    "try: pass\nexcept: x = 1": [("import-error", False, "any exception")],
    "try: pass\nexcept KeyError: x = 1": [("handler", False, "KeyError")],
    "try: pass\nexcept ImportError: pass\nelse: x = 1": [],
    "match a:\n case 1: x = 1": [("test", False, "a matches 1")],
    "if " + "a + " * 60 + "a: x = 1": [("test", False, ("a + " * 60)[:79] + "…")],
}


@pytest.mark.parametrize("text", CONDITIONS)
def test_conditions(text: str) -> None:
    (binding,) = (b for b in facts_of(text).bindings if b.name == "x")
    assert [(c.kind, c.negated, c.text) for c in binding.conditions] == CONDITIONS[text]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="except* came with 3.11")
def test_conditions_of_exception_groups() -> None:
    text = "try: x = 1\nexcept* ImportError: y = 1\n"
    assert [b.conditions[0].kind for b in facts_of(text).bindings] == ["guarded", "import-error"]


def test_code_that_never_runs_has_no_facts() -> None:
    assert facts_of("if False:\n x = 1\nif 1: pass\nelse: y = 1\n").bindings == ()


SOURCE = """\
import a


@a.d(
    1,
)
class Outer(a.B, metaclass=M):
    x: int = 1
    y: int
    if a:
        z = 1

    class Inner(x): ...

    @property
    def p(self):
        '''é'''; return 1

    async def m(self, *args, k=1, **kw):
        self.q = 1

        class Local(k): ...


def f(b):
    c = b

    class InF(c):
        def g(self):
            class Deep(b): ...
"""


def test_classes_wherever_they_stand() -> None:
    found = {c.qualname: c for c in facts_of(SOURCE).classes}
    assert list(found) == [
        "Outer",
        "Outer.Inner",
        "Outer.m.<locals>.Local",
        "f.<locals>.InF",
        "f.<locals>.InF.g.<locals>.Deep",
    ]
    outer = found["Outer"]
    assert (outer.position, outer.lines) == ((7, 0, 7, 11), (4, 22))
    assert [b.text for b in outer.bases] == ["a.B"] and outer.base_positions == ((7, 12, 7, 15),)
    assert [(k, v.text) for k, v in outer.keywords] == [("metaclass", "M")]
    assert [(d.kind, d.text) for d in outer.decorators] == [("call", "a.d")]
    assert [m.qualname for m in outer.methods] == ["Outer.p", "Outer.m"]
    assert outer.methods[1].parameters == ("self", "args", "k", "kw")
    assert outer.methods[0].lines == (15, 17)


def test_what_the_parts_of_a_class_can_see() -> None:
    found = {c.qualname: c for c in facts_of(SOURCE).classes}

    def names(*scopes: object) -> list[str]:
        return [b.name for scope in scopes for b in scope]

    assert names(found["Outer"].body) == ["x", "z", "Inner", "p", "m"]
    assert names(found["Outer.Inner"].outer) == names(found["Outer"].body)
    assert names(found["Outer"].outer, *found["Outer"].scopes) == []
    assert names(*found["Outer.m.<locals>.Local"].scopes) == ["self", "args", "k", "kw", "Local"]
    assert names(*found["f.<locals>.InF.g.<locals>.Deep"].scopes) == [
        "b",
        "c",
        "InF",
        "self",
        "Deep",
    ]


def test_attributes() -> None:
    outer = facts_of(SOURCE).classes[0]
    assert [(a.name, a.setting, a.scope, a.position[0]) for a in outer.attributes] == [
        ("x", Setting.CLASS_BODY, "", 8),
        ("y", Setting.ANNOTATION, "", 9),
        ("z", Setting.CLASS_BODY, "", 11),
        ("Inner", Setting.CLASS_BODY, "", 13),
        ("p", Setting.PROPERTY, "p", 16),
        ("m", Setting.METHOD, "m", 19),
        ("q", Setting.INSTANCE, "m", 20),
    ]
    assert outer.attributes[0].annotation == "int"
    assert outer.attributes[2].conditions[0].text == "a"


def test_facts_of_an_outline_are_those_of_the_whole() -> None:
    """But for what stands in blanked functions."""
    offset = SOURCE.index("self.q")
    parsed = parse_outline(SOURCE, (offset,))
    outlined = extract(parsed.tree, PLACE, parsed.ends)
    whole = facts_of(SOURCE)
    assert outlined.bindings == whole.bindings
    assert [c.qualname for c in outlined.classes] == [c.qualname for c in whole.classes]
    for ours, theirs in zip(outlined.classes, whole.classes, strict=True):
        assert (ours.position, ours.lines, ours.bases) == (
            theirs.position,
            theirs.lines,
            theirs.bases,
        )
        assert [m.lines for m in ours.methods] == [m.lines for m in theirs.methods]


def externals(text: str) -> list[tuple[str, str, str]]:
    return [(e.owner, e.fact.name, e.fact.scope) for e in facts_of(text).externals]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A.x = 1", [("A", "x", "")]),
        ("m.A.x: int = 1", [("m.A", "x", "")]),
        ("A.x += 1", [("A", "x", "")]),
        ("A.x, B.y = 1, 2", [("A", "x", ""), ("B", "y", "")]),
        ("setattr(A, 'x', 1)", [("A", "x", "")]),
        ("setattr(A, n, 1)", [("A", COMPUTED, "")]),
        ("A.__dict__['x'] = 1", [("A", "x", "")]),
        ("def f():\n  A.x = 1", [("A", "x", "f")]),
        ("class K:\n  A.x = 1\n  def m(self):\n    B.y = 1", [("A", "x", ""), ("B", "y", "K.m")]),
        ("f().x = 1", []),
        ("A[0].x = 1", []),
    ],
)
def test_what_is_set_from_outside(text: str, found: list[tuple[str, str, str]]) -> None:
    assert externals(text) == found


def test_a_class_set_from_inside_a_function_is_seen_from_there() -> None:
    (external,) = facts_of("def f(a):\n  from m import A as B\n  B.x = 1\n").externals
    assert [b.name for scope in external.scopes for b in scope] == ["a", "B"]


def test_local_bindings() -> None:
    node = ast.parse("def f(a, *b):\n  import c\n  global d\n  d = e = 1\n  def g(): h = 1\n").body[
        0
    ]
    assert isinstance(node, ast.FunctionDef)
    found = local_bindings(node, PLACE)
    assert [(b.name, b.source) for b in found] == [
        ("a", Source.PARAMETER),
        ("b", Source.PARAMETER),
        ("c", Source.IMPORT),
        ("e", Source.ASSIGN),
        ("g", Source.FUNCTION),
    ]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("x = 1", None),
        ("__all__ = ['a', 'b']", ("a", "b")),
        ("__all__: list = ('a',)", ("a",)),
        ("__all__ = ['a']\n__all__ += ['b']", ("a", "b")),
        ("__all__ = []\n__all__.append('a')\n__all__.extend(['b'])", ("a", "b")),
        ("__all__ = ['a']\n__all__ = ['b']", ("b",)),
        ("__all__ = ['a'] + b.__all__", None),
        ("__all__ = ['a']\n__all__ += b.__all__", None),
        ("__all__ += ['a']", None),
        ("__all__ = [1]", None),
        ("if x:\n  __all__ = ['a']", ("a",)),
    ],
)
def test_exports(text: str, names: tuple[str, ...] | None) -> None:
    assert exports(ast.parse(text)) == names


@pytest.mark.parametrize(
    ("text", "is_so"),
    [
        ("globals().update(x=1)", True),
        ("globals()['x'] = 1", True),
        ("f(globals())", True),
        ("exec('x = 1')", True),
        ("sys.modules[__name__] = X()", True),
        ("setattr(sys.modules[__name__], 'x', 1)", True),
        ("if a:\n  vars().update(b)", True),
        ("x = sys.modules['y']", False),
        ("def f():\n  globals()['x'] = 1", False),
        ("x = f()", False),
    ],
)
def test_modules_that_may_bind_more_than_they_show(text: str, is_so: bool) -> None:
    assert is_open(ast.parse(text)) is is_so


RETURNED = {
    "return 1": ("literal", 1),
    "if a: return 1\n return 1": ("literal", 1),
    "if a: return 1\n else: return 1": ("literal", 1),
    "if a: return 1": ("choice", None),
    "return 1 if a else 2": ("choice", None),
    "pass": ("other", None),
    "return": ("literal", None),
    "raise E": ("other", None),
    "try: return 1\n except E: raise": ("literal", 1),
    "try: return 1\n except E: pass": ("choice", None),
    "try: pass\n finally: return 1": ("literal", 1),
    "with a: return 1": ("literal", 1),
    "while True:\n  if a: return 1": ("literal", 1),
    "while True:\n  if a: break\n  return 1": ("choice", None),
    "match a:\n  case 1: return 1\n  case _: return 1": ("literal", 1),
    "match a:\n  case 1: return 1": ("choice", None),
    "def g(): return 2\n return 1": ("literal", 1),
    "yield 1\n return 1": ("other", None),
    "x = yield 1\n return 1": ("other", None),
}


@pytest.mark.parametrize("body", RETURNED)
def test_what_a_function_returns(body: str) -> None:
    lines = body.split("\n")
    text = "def f():\n " + "\n".join(lines)
    node = ast.parse(text).body[0]
    assert isinstance(node, ast.FunctionDef)
    found = returned(node)
    assert (found.kind, found.value) == RETURNED[body]


def reads(text: str) -> list[tuple[str, str, str, bool, str]]:
    tree = ast.parse(text)
    lines = [number for number, line in enumerate(text.split("\n"), 1) if "flag" in line]
    found = reads_in(tree, frozenset({"flag", "flags"}), lines)
    return [(r.name, r.receiver, r.accessor, r.called, r.scope) for r in found]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("x.flag", [("flag", "x", "", False, "")]),
        ("a.b().flag()", [("flag", "a.b()", "b", True, "")]),
        ("getattr(x, 'flag', None)", [("flag", "x", "", False, "")]),
        ("hasattr(x.y, 'flag')", [("flag", "x.y", "", False, "")]),
        ("x.flag = 1", []),
        ("del x.flag", []),
        ("x.other", []),
        ("'x.flag'", []),
        ("self.flag = other.flag", []),
        ("self.flag = other.flags", [("flags", "other", "", False, "")]),
        ("class A:\n  def f(self):\n    return self.flag", [("flag", "self", "", False, "A.f")]),
        ("@d(x.flag)\ndef f(): pass", [("flag", "x", "", False, "f")]),
        ("y = [\n  1,\n  x.flag,\n]", [("flag", "x", "", False, "")]),
        ("f(a.flag, b.flag)", [("flag", n, "", False, "") for n in "ab"]),
        ("f'''{\nx.flag}'''", [("flag", "x", "", False, "")]),
        ("match x.flag:\n  case y.flags: pass", [("flag", "x", "", False, ""),
         ("flags", "y", "", False, "")]),
    ],
)  # fmt: skip
def test_reads(text: str, found: list[tuple[str, str, str, bool, str]]) -> None:
    assert reads(text) == found


DEEP = [
    "x = " + "not " * 500 + "a",
    "x = " + "1 if a else " * 300 + "2",
    "x = " + "a" + ".b" * 500,
    "x = " + " + ".join("a" * 600),
    "if a: pass\n" + "elif a: x = 1\n" * 600,
    "x = " + "f(" * 90 + ")" * 90,
    "(" * 90 + "x" + ",)" * 90 + " = y",
    "for a in b:\n" + "".join(" " * n + "if a:\n" for n in range(1, 90)) + " " * 90 + "x = 1",
]


@pytest.mark.parametrize("number", range(len(DEEP)))
def test_deep_code_is_read_without_recursion(number: int) -> None:
    try:
        tree = ast.parse(DEEP[number])
    except (RecursionError, MemoryError):
        pytest.skip("too deep for the running Python itself")
    limit = sys.getrecursionlimit()
    facts = extract(tree, PLACE, {}, frozenset({"b"}), [1])
    assert any(b.name == "x" for b in facts.bindings)
    assert sys.getrecursionlimit() == limit
