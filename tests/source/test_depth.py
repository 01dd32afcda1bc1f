"""How deep a tree is, looked at no further than need be."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dcplint.source.tree import is_deeper


def depth(node: ast.AST) -> int:
    inner = [c for c in ast.iter_child_nodes(node) if not isinstance(c, _ATOMS)]
    return 1 + max(map(depth, inner), default=0)


_ATOMS = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
CODE = [
    "x",
    "x = -- -x",
    "def f(a=1, *, b: int = {**c}):\n    with a as b, c:\n        return [d for e in f if g]",
    "f(a,\n  g(b,\n    h(c.d.e[1:2], lambda: 0)))",
    "if a: pass\nelif b: pass\nelif c:\n    x = (y\n         + z)",
    "try:\n    pass\nexcept (A,\n        B.c):\n    x = f'{a.b!r:>{c}}'",
    "match a:\n    case [B(c=1), *_] if d: pass",
]


@pytest.mark.parametrize("text", CODE)
@given(limit=st.integers(1, 20))
def test_depth(text: str, limit: int) -> None:
    tree = ast.parse(text)
    assert is_deeper(tree, limit) is (depth(tree) > limit)
