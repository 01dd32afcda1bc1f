"""The fast walk and copy against those of the standard library."""

from __future__ import annotations

import ast
import copy
from pathlib import Path

import pytest

import dcplint
from dcplint.source.tree import copied, walk

_ATOMS = (ast.expr_context, ast.operator, ast.boolop, ast.unaryop, ast.cmpop, ast.type_ignore)
_SOURCES = sorted(Path(dcplint.__file__).parent.rglob("*.py"))
_PATTERNS = """
match point:
    case {"x": 0, **rest} if rest: pass
    case Point(x=0, y=[first, *others]) | (None as nothing): pass
try:
    total = {**a, "b": not b}
except (OSError, ValueError) as error:
    del error
async def f(a, /, b: int = 1, *args, c=lambda: (yield), **kw) -> None:
    global g
    async with a as b, c: return [x async for x in y if not x < 1 <= 2]
"""


@pytest.fixture(params=[_PATTERNS, *_SOURCES[::7]], ids=str)
def tree(request: pytest.FixtureRequest) -> ast.Module:
    source = request.param
    return ast.parse(source if isinstance(source, str) else source.read_text(encoding="utf-8"))


def test_walk_meets_the_nodes_of_ast_walk_in_its_order(tree: ast.Module) -> None:
    expected = [node for node in ast.walk(tree) if not isinstance(node, _ATOMS)]
    assert list(map(id, walk(tree))) == list(map(id, expected))


def test_a_copy_is_equal_and_shares_no_node(tree: ast.Module) -> None:
    before = ast.dump(copy.deepcopy(tree), include_attributes=True)
    found = copied(tree)
    assert ast.dump(found, include_attributes=True) == before
    assert {id(node) for node in walk(found)}.isdisjoint(id(node) for node in walk(tree))


def test_changing_a_copy_leaves_the_tree(tree: ast.Module) -> None:
    class Renamed(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return ast.Constant(node.id)

    before = ast.dump(tree)
    Renamed().visit(copied(tree))
    assert ast.dump(tree) == before
