"""Tests by which code is ready for less than it may have asked for."""

from __future__ import annotations

import ast

from dcplint.facts.expressions import dotted_name
from dcplint.flow.conditions import null_test
from dcplint.program.guards import compare

_PAIR = 2


def hoped(test: ast.expr) -> tuple[str, bool] | None:
    """The variable that a test is about, and how it comes out where all that may be is there.

    `x is None`, `x`, `len(x) == 2`.
    """
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = hoped(test.operand)
        return None if inner is None else (inner[0], not inner[1])
    tested = null_test(test)
    if tested is not None:
        return (str(tested[0][0]), not tested[1]) if len(tested[0]) == 1 else None
    if isinstance(test, ast.Name):
        return test.id, True
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        about, count = _counted(test.left), test.comparators[0]
        if about is not None and isinstance(count, ast.Constant) and type(count.value) is int:
            outcome = compare(_PAIR, test.ops[0], count.value)
            return None if outcome is None else (about, outcome)
    return None


def _counted(node: ast.expr) -> str | None:
    """The variable whose length is asked for."""
    if not isinstance(node, ast.Call) or dotted_name(node.func) != "len" or not node.args:
        return None
    return node.args[0].id if isinstance(node.args[0], ast.Name) else None
