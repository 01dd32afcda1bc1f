"""Returns of one value where a tuple is due: a variable alone that elsewhere is part of a tuple."""

from __future__ import annotations

import ast
from dataclasses import replace

from dcplint.facts.expressions import dotted_name
from dcplint.flow.definitions import definitions
from dcplint.flow.functions import Function
from dcplint.flow.graph import Node
from dcplint.flow.trace import State
from dcplint.flow.way import Value, step_at
from dcplint.source.tree import walk


def result(function: Function, node: ast.Return, value: Value) -> Value:
    """What is returned; of one value with the place, a helper's where it is handed on as is."""
    elements = value.elements
    if value.state is State.NONE or (elements is not None and len(elements) != 1):
        return value
    if not (value.single or elements is not None or _is_paired(function, node)):
        return value
    if value.origin is not None and isinstance(node.value, ast.Call):
        return value
    step = step_at(function, node, f"{function.qualname} returns one value here")
    return replace(value, single=True, origin=step)


def _is_paired(function: Function, node: ast.Return) -> bool:
    """Whether a variable that is returned alone is, as it stands, part of a tuple elsewhere."""
    if not isinstance(node.value, ast.Name):
        return False
    name = node.value.id
    alone = _given(function, node, name)
    if _is_told_apart(function, node, name, alone):
        return False
    return bool(alone) and any(
        alone <= _given(function, other, name)
        for other in function.homes
        if isinstance(other, ast.Return)
        and isinstance(other.value, ast.Tuple)
        and any(isinstance(e, ast.Name) and e.id == name for e in other.value.elts)
    )


def _is_told_apart(function: Function, node: ast.Return, name: str, alone: frozenset[Node]) -> bool:
    """Whether a test around a return asks what the value is, or what the call that made it got."""
    told = {name}
    for place in alone:
        made = getattr(place.statement, "value", None)
        if isinstance(made, ast.Call):
            given = (*made.args, *(keyword.value for keyword in made.keywords))
            told |= {dotted for value in given if (dotted := dotted_name(value)) is not None}
    parent = function.homes[node].parent
    while parent is not None:
        if isinstance(parent, ast.If):
            asked = (dotted_name(n) for n in walk(parent.test) if isinstance(n, ast.expr))
            if told.intersection(d for d in asked if d is not None):
                return True
        parent = function.homes[parent].parent
    return False


def _given(function: Function, statement: ast.stmt, name: str) -> frozenset[Node]:
    """Where a variable gets the values that it can have before `statement`."""
    return frozenset(
        at
        for node in function.graph.at(statement)
        for _, at, _ in definitions(function, node, name)
    )
