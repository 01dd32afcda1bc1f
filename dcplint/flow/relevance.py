"""The variables of a function that can be what it returns."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dcplint.flow.functions import Function
from dcplint.source.tree import walk


def relevant(function: Function) -> frozenset[str]:
    """The variables that can be what the function returns, or a part of it."""
    names: set[str] = set()
    for node in function.homes:
        if isinstance(node, ast.Return) and node.value is not None:
            names |= set(_carried(node.value))
    before = -1
    while len(names) > before:
        before = len(names)
        for node in function.homes:
            if isinstance(node, ast.Assign) and any(
                isinstance(n, ast.Name) and n.id in names for t in node.targets for n in walk(t)
            ):
                names |= set(_carried(node.value))
    return frozenset(names)


def _carried(value: ast.expr) -> Iterator[str]:
    """Variables that an expression hands on as they are, or runs."""
    if isinstance(value, ast.Name):
        yield value.id
    elif isinstance(value, (ast.Tuple, ast.List)):
        for element in value.elts:
            yield from _carried(element)
    elif isinstance(value, ast.IfExp):
        yield from _carried(value.body)
        yield from _carried(value.orelse)
    elif isinstance(value, (ast.Subscript, ast.NamedExpr)):
        yield from _carried(value.value)
    elif isinstance(value, ast.Call):
        yield from _carried(value.func)
