"""Where a record that a function makes goes to, followed forwards."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dcplint.flow.functions import Function, argument, callee_name
from dcplint.flow.universe import Universe
from dcplint.source.tree import walk

_CALLS = 6  # through which a record is followed


def is_left_unread(universe: Universe, function: Function, name: str, attribute: str) -> bool:
    """Whether nothing that a variable's record comes to reads an attribute of it, for sure.

    Not where the record is kept, returned, or handed to what cannot be followed.
    """
    return _is_unread(universe, function, name, attribute, _CALLS, set())


def _is_unread(
    universe: Universe,
    function: Function,
    name: str,
    attribute: str,
    calls: int,
    done: set[tuple[Function, str]],
) -> bool:
    if (function, name) in done:
        return True
    done.add((function, name))
    names = _aliases(function, name)
    for node, parent in _uses(function, names):
        if isinstance(parent, ast.Attribute):
            if parent.attr == attribute or not isinstance(parent.ctx, ast.Load):
                return False
        elif isinstance(parent, ast.Call) and callee_name(parent) == "getattr":
            asked = parent.args[1] if len(parent.args) > 1 else None
            if not isinstance(asked, ast.Constant) or asked.value == attribute:
                return False
        elif isinstance(parent, ast.Call):
            given = list(_given(universe, function, parent, node))
            if not given or not calls:
                return False
            for callee, parameter in given:
                if not _is_unread(universe, callee, parameter, attribute, calls - 1, done):
                    return False
        elif not isinstance(parent, (ast.Assign, ast.Compare)):
            return False
    return True


def _aliases(function: Function, name: str) -> frozenset[str]:
    """The variables of a function that are given the record as it is."""
    names = {name}
    for statement in function.homes:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Name):
            if statement.value.id in names:
                names |= {t.id for t in statement.targets if isinstance(t, ast.Name)}
    return frozenset(names)


def _uses(function: Function, names: frozenset[str]) -> Iterator[tuple[ast.expr, ast.AST | None]]:
    """What reads the variables, each with what it stands in: None for what keeps the record.

    A method that the record is asked for counts as that, since it has the record too.
    """
    parents: dict[int, ast.AST] = {}
    for node in walk(function.node):
        for child in ast.iter_child_nodes(node):
            inner = child.value if isinstance(child, ast.keyword) else child
            parents[id(inner)] = node
    for node in walk(function.node):
        if not isinstance(node, ast.Name) or node.id not in names:
            continue
        if not isinstance(node.ctx, ast.Load):
            continue
        parent = parents[id(node)]
        above = parents.get(id(parent))
        if isinstance(parent, ast.Attribute) and isinstance(above, ast.Call):
            yield node, None if above.func is parent else parent
        elif isinstance(parent, ast.Assign):
            kept = not all(isinstance(target, ast.Name) for target in parent.targets)
            yield node, None if kept else parent
        else:
            yield node, parent


def _given(
    universe: Universe, function: Function, call: ast.Call, node: ast.expr
) -> Iterator[tuple[Function, str]]:
    """(function, parameter) that a call hands the record to; nothing where one is not told."""
    found: list[tuple[Function, str]] = []
    for callee in universe.callees(function, call):
        named = [n for n in callee.parameters if argument(callee, call, n) is node]
        if not named:
            return
        found.append((callee, named[0]))
    yield from found
