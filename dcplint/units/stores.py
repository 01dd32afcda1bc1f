"""What the statements of a function give its variables, in whatever way, order aside."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dcplint.flow.functions import Function
from dcplint.units.operations import stored_into


def stores(function: Function) -> Iterator[tuple[str, ast.AST]]:
    """What a function gives its variables, or stores into them, by dotted name."""
    for statement, nodes in function.own_nodes.items():
        if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and statement.value:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            yield from ((name, statement.value) for t in targets for name in _stored(t))
        elif isinstance(statement, (ast.For, ast.AsyncFor)):
            yield from ((name, statement.iter) for name in _stored(statement.target))
        for node in nodes:
            if isinstance(node, ast.NamedExpr):
                yield node.target.id, node.value
            elif isinstance(node, ast.Call) and isinstance(statement, ast.Expr):
                yield from ((name, node) for part in _filled(node) for name in _stored(part))


def _filled(call: ast.Call) -> Iterator[ast.expr]:
    """What a call that stands alone may write into: `x.copy_(v)`, `f(…, out=x)`, `fill(x, v)`."""
    if isinstance(call.func, ast.Attribute) and call.func.attr.endswith("_"):
        yield call.func.value
    else:
        yield from (k.value for k in call.keywords if k.arg == "out")
        yield from call.args[:1]


def _stored(target: ast.expr) -> Iterator[str]:
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    for part in parts:
        if part is not target:
            yield from _stored(part)
        elif name := stored_into(part.value if isinstance(part, ast.Starred) else part):
            yield name
