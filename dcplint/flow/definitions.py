"""What the nodes of a function's control flow give its variables, and what reaches a node."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dcplint.facts.expressions import dotted_name
from dcplint.flow.conditions import Path
from dcplint.flow.functions import Function
from dcplint.flow.graph import Node, Role
from dcplint.flow.values import unpacked
from dcplint.source.tree import walk

Definition = tuple["ast.expr | None", Node, Path]
"""What a variable is given (None where that is no expression), where, and which element of it."""


def bindings(node: Node) -> tuple[tuple[str, ast.expr | None], ...]:
    """The names that running a node binds, dotted ones too, and the values, where expressions."""
    if node.bindings is None:
        node.bindings = tuple(_bindings(node))
    return node.bindings


def _bindings(node: Node) -> Iterator[tuple[str, ast.expr | None]]:
    statement = node.statement
    if isinstance(statement, (ast.For, ast.AsyncFor)):
        if node.role is Role.BIND:
            yield from _dotted(statement.target, None)
    elif isinstance(statement, (ast.ExceptHandler, ast.match_case)):
        yield from ((name, None) for name in captured(statement))
    elif isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from _dotted(target, statement.value)
    elif isinstance(statement, ast.AugAssign):
        yield from _dotted(statement.target, None)
    elif isinstance(statement, ast.AnnAssign):
        if statement.value is not None:
            yield from _dotted(statement.target, statement.value)
    elif isinstance(statement, (ast.With, ast.AsyncWith)):
        for item in statement.items:
            if item.optional_vars is not None:
                yield from _dotted(item.optional_vars, None)
    elif isinstance(statement, ast.Delete):
        for target in statement.targets:
            yield from _dotted(target, None)
    elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield statement.name, None
        return
    for inner in node.walruses:
        yield from _dotted(inner.target, inner.value)


def definitions(function: Function, node: Node, name: str) -> Iterator[Definition]:
    """The definitions of variable `name` that can be in force before `node`."""
    seen: set[tuple[Node, bool]] = set()
    queue = list(node.before)
    while queue:
        edge = queue.pop()
        source = edge.source
        if (source, edge.raised) in seen:
            continue
        seen.add((source, edge.raised))
        found = list(definitions_at(source, name)) if not edge.raised else []
        if not found and source.role is not Role.ENTRY:
            queue += source.before
        elif found:
            yield from found
        elif name not in function.local_names or name in function.parameters:
            yield None, source, ()


def definitions_at(node: Node, name: str) -> Iterator[Definition]:
    """What running a node gives a variable."""
    statement = node.statement
    walruses = [w for w in node.walruses if w.target.id == name and node.role is Role.PLAIN]
    yield from ((w.value, node, ()) for w in walruses)
    if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
        targets = [statement.target] if isinstance(statement, ast.AnnAssign) else statement.targets
        for target in targets:
            for inner, element in unpacked(target, ()):
                if isinstance(inner, ast.Name) and inner.id == name:
                    yield statement.value, node, element
    elif isinstance(statement, (ast.For, ast.AsyncFor)) and node.role is Role.BIND:
        for inner, element in unpacked(statement.target, ("*",)):
            if isinstance(inner, ast.Name) and inner.id == name:
                yield statement.iter, node, element
    elif not walruses and node.role is Role.PLAIN:
        if any(bound == name for bound, _ in bindings(node)):
            yield None, node, ()


def _dotted(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[str, ast.expr | None]]:
    for inner, element in unpacked(target, ()):
        dotted = dotted_name(inner)
        if dotted is None:
            continue
        given = value if not element else None
        if element and isinstance(value, (ast.Tuple, ast.List)):
            index = element[0] if len(element) == 1 else None
            if isinstance(index, int) and 0 <= index < len(value.elts):
                given = value.elts[index]
        yield dotted, given


def captured(clause: ast.AST) -> frozenset[str]:
    """The names that an `except` clause or a case binds."""
    if isinstance(clause, ast.ExceptHandler):
        return frozenset({clause.name} if clause.name else ())
    assert isinstance(clause, ast.match_case)
    nodes = list(walk(clause.pattern))
    found = {getattr(n, "name", None) for n in nodes} | {getattr(n, "rest", None) for n in nodes}
    return frozenset(name for name in found if isinstance(name, str))
