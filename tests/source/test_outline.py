"""An outline stands for the whole text: what it keeps is what parsing everything would show."""

import ast
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dcplint.source.outline import mask, outline
from dcplint.source.parse import parse_outline


def blanked(tree: ast.Module, ends: dict[int, int]) -> str:
    """A dump of `tree` with places, in which the functions in `ends` have no body."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.lineno in ends:
            node.body = []
        for end in ("end_lineno", "end_col_offset"):
            if hasattr(node, end):
                setattr(node, end, 0)
    return ast.dump(tree, include_attributes=True)


def assert_stands_for_the_whole(text: str, wanted: tuple[int, ...] = ()) -> dict[int, int]:
    parsed = parse_outline(text, wanted)
    whole = ast.parse(text)
    real = {
        node.lineno: node.end_lineno
        for node in ast.walk(whole)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }
    assert parsed.ends.items() <= real.items()
    assert blanked(parsed.tree, parsed.ends) == blanked(whole, parsed.ends)
    return parsed.ends


TRICKY = {
    "names that end in keywords": """
def f(make_def, metaclass):
    kept = make_def if metaclass else None
    return kept

x = make_def if metaclass else (lambda: 0)
def g():
    return 1
""",
    "code in strings": '''
def f():
    """
class Inner(Base):
    flag = True
def g(): pass
    """
    x = "class A: pass"
after = 1
''',
    "text left of the block": '''
class A:
    def f(self):
        x = """
text at the left
"""
        return x
    flag = True
''',
    "a function that ends in a string": '''
def f():
    """doc
at the left"""
def g():
    x = 1
    "end"

# comment
after = 1
''',
    "continued left of the block": """
class A:
    def f(self):
        a = 1 + \\
2
        b = c = \\
d = 3
    flag = True
""",
    "a last line continued left of the block": """
def g():
    b = c = \\
after = 1
last = 1
""",
    "def continued": """
class A:
    async \\
def f(self):
        pass
    flag = True
""",
    "brackets left of the block": """
def f():
    x = foo(
1,
2
)
    y = [
  1,
]
after = 1
""",
    "one line": """
def f(): return 1
def g(): x = (1,
    2)
class A:
    def h(self): "doc"
    flag = True
""",
    "signatures": """
def f(a: "int" = 1, b={1: lambda: 2}, *c: (lambda: {3: 4})) -> dict[str, "x:y"]:
    pass
def g(
    a=lambda x: x,  # a comment: with a colon
    b="def h():",
):
    pass
def h(a=(lambda: (yield))) -> lambda: 1: pass
after = 1
""",
    "decorators": """
@a.b(
    c,
    lambda: "x",
)
# comment
@d

def f():
    pass
class A:
    @property
    def g(self):
        return 1
    @g.setter
    def g(self, v):
        pass
""",
    "nested": """
def f():
    def g():
        class A: pass
        return A
    async def h():
        async with x: pass
    return g
class B:
    class C:
        def i(self):
            def j(): pass
        flag = 1
    flag = 2
""",
    "comments left of the block": """
class A:
    def f(self):
        x = 1
# left
    # middle
        return x
    # belongs to A
    flag = True
""",
    "tabs": "class A:\n\tdef f(self):\n\t\tif x:\n\t\t\ty\n\t\treturn 1\n\tflag = True\n",
    "mixed tabs": "class A:\n        def f(self):\n        \treturn 1\n        flag = True\n",
    "form feed": "x = 1\n\x0c\ndef f():\n    pass\n\x0c\nclass A:\n    flag = 1\n",
    "f-strings": """
def f():
    return f"{x!r:>{width}} {'a' if b else 'c'} {{" + f'''{
y}'''
after = f"{x}"
""",
    "raw strings and quotes": r'''
def f():
    a = r"\"" + '\\' + "'" + '"' + """ " "" \""" """ + rb'\''
    return a
after = 1
''',
    "strings after functions": """
def f():
    pass
"at the left"
class A:
    def g(self):
        pass
    'the attribute'
    flag = True
""",
    "no newline at the end": "class A:\n    def f(self):\n        return 1",
    "empty": "",
    "a comment alone": "# def f():\n",
    "under conditions": """
if x:
    def f():
        pass
else:
    def f():
        return 1
    y = 2
try:
    def g():
        pass
except E:
    pass
""",
    "soft keywords and names like keywords": """
def_ = 1
define = 2
match = class_ = 3
def match(case):
    match case:
        case {"x": 1}:
            return 2
after = 1
""",
    "semicolons and blank lines": "def f():\n\n\n    x = 1; y = 2\n\n\n\nz = 3; w = 4\n",
    "a name with marks": "class Ü:\n    def é(self):\n        return 'ö'\n    ß = True\n",
}


@pytest.mark.parametrize("case", TRICKY)
def test_tricky_texts(case: str) -> None:
    assert_stands_for_the_whole(TRICKY[case])


@pytest.mark.parametrize(
    "text",
    [
        'def f():\n    return f"{x["a"]}"\nafter = 1\n',
        "def f[T: (int, str)](a: T) -> T:\n    pass\nclass A[T]:\n    flag = 1\n",
        'def f():\n    return f"{"\\n".join(x)} {\ny  # "\n}"\nafter = 1\n',
        "try:\n    def f():\n        pass\nexcept* E:\n    pass\n",
    ],
)
def test_tricky_texts_of_newer_grammars(text: str) -> None:
    try:
        ast.parse(text)
    except SyntaxError:
        pytest.skip("newer than the running Python")
    assert_stands_for_the_whole(text)


def test_bodies_are_blanked() -> None:
    text = (
        "import a\ndef f():\n    secret = 1\n\n\nclass B:\n    def g(self):\n        secret = 2\n"
    )
    outlined = outline(text, ())
    assert "secret" not in outlined.text
    assert outlined.text.count("\n") == text.count("\n")
    assert outlined.ends == {2: 3, 7: 8}


def test_what_is_asked_about_is_kept() -> None:
    text = "def f():\n    wanted = 1\ndef g():\n    other = 2\ndef h():\n    class A: pass\n"
    outlined = outline(text, (text.index("wanted"),))
    assert "wanted" in outlined.text and "class A" in outlined.text
    assert "other" not in outlined.text
    assert outlined.ends == {3: 4}


def test_inside_what_is_kept_the_rest_is_blanked() -> None:
    text = "def f():\n    wanted = 1\n    def g():\n        other = 2\n    return g\n"
    outlined = outline(text, (text.index("wanted"),))
    assert "wanted" in outlined.text and "return g" in outlined.text
    assert "other" not in outlined.text


def test_a_word_in_a_comment_or_string_is_no_class() -> None:
    text = 'def f():\n    # class of its own\n    """\nclass A:\n"""\n    secret = 1\n'
    assert "secret" not in outline(text, ()).text


def test_where_the_outline_is_no_python_the_whole_is_parsed() -> None:
    # What continues inside brackets at the left looks like the end of the function.
    text = "def f():\n    x = [\n1,\n2]\nclass A:\n    flag = True\n"
    parsed = parse_outline(text, ())
    assert [type(n).__name__ for n in parsed.tree.body] == ["FunctionDef", "ClassDef"]


def test_the_mask_keeps_lines_and_offsets() -> None:
    text = "a = 'x' # c\nb = '''1\n2'''\nc = \"\\\"\"\n"
    masked = mask(text)
    assert len(masked) == len(text)
    assert [len(line) for line in masked.split("\n")] == [len(line) for line in text.split("\n")]
    assert re.sub(r"[\s\x01\x02]", "", masked) == "a=b=c="


_names = st.sampled_from(["A", "b", "forward", "_x"])
_strings = st.sampled_from(
    ['"s"', "'''\ndef x():\nclass Y:\n'''", '"""a"""', 'f"{a}"', r'r"\""', '"# no"', "'\\\n'"]
)
_values = st.one_of(
    _strings,
    st.sampled_from(["1", "None", "(\n1,\n)", "lambda x: {1: 2}", "a[\n1\n]", "1 + \\\n2"]),
)


def _indented(lines: list[str], by: str) -> list[str]:
    """Lines one block deeper; what stands inside brackets and strings may stay where it is."""
    return [by + line for line in lines]


@st.composite
def _blocks(draw: st.DrawFn, depth: int = 0) -> list[str]:
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        kinds = ["assign", "import", "string", "pass"]
        kinds += ["class", "def", "async def", "if", "try", "one-line"] if depth < 4 else []
        kind = draw(st.sampled_from(kinds))
        if draw(st.booleans()) and draw(st.booleans()):
            lines.append(draw(st.sampled_from(["# def c():", "", "#class D:"])))
        if kind == "assign":
            lines.append(f"{draw(_names)} = {draw(_values)}")
        elif kind == "import":
            lines.append(draw(st.sampled_from(["import a.b", "from . import (\nc,\nd)"])))
        elif kind == "string":
            lines.append(draw(_strings))
        elif kind == "pass":
            lines.append("pass")
        elif kind == "one-line":
            lines.append(f"def {draw(_names)}(): return {draw(_values)}")
        elif kind == "if":
            inner = draw(_blocks(depth + 1))
            lines += ["if a:", *_indented(inner, "  "), "else:", *_indented(inner, "    ")]
        elif kind == "try":
            inner = draw(_blocks(depth + 1))
            lines += ["try:", *_indented(inner, " "), "except E:", *_indented(inner, "\t")]
        else:
            if draw(st.booleans()):
                lines.append(draw(st.sampled_from(["@d", "@d(\n1,\n)", '@d("def x():")'])))
            head = (
                "(B, k=1)"
                if kind == "class"
                else draw(
                    st.sampled_from(
                        ["()", "(a, b={1: 2})", "(\n    a,\n) -> 'x:'", "(a=lambda: 1)"]
                    )
                )
            )
            inner = draw(_blocks(depth + 1))
            lines += [f"{kind} {draw(_names)}{head}:", *_indented(inner, draw(_INDENTS))]
    return lines


_INDENTS = st.sampled_from(["    ", "  ", "\t"])


@settings(max_examples=120, deadline=None)
@given(_blocks(), st.data())
def test_generated_texts(lines: list[str], data: st.DataObject) -> None:
    text = "\n".join(lines) + "\n"
    try:
        ast.parse(text)
    except SyntaxError:
        return  # indentation of the generated pieces did not fit
    wanted = data.draw(st.lists(st.integers(0, len(text)), max_size=2))
    assert_stands_for_the_whole(text, tuple(wanted))
