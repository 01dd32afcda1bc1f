"""Variables that DCP alone decides are never given a value, and what reads them all the same.

Only a reading is told of that is sure to happen where the guard is passed over: between the two
there is no test that DCP leaves open, no way out, no loop.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from dcplint.flow.definitions import bindings
from dcplint.flow.functions import Function
from dcplint.flow.graph import Node
from dcplint.flow.scenario import Scenario
from dcplint.source.tree import children, walk

_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_MAYBE = (
    ast.IfExp,
    ast.BoolOp,
    ast.Lambda,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)


@dataclass(frozen=True, slots=True)
class Unbound:
    """A reading of a variable that only `guard` would have given a value.

    sharded: whether it has none with DCP on; else it has none with DCP off.
    """

    function: Function
    use: ast.Name
    binding: ast.stmt
    guard: ast.If
    sharded: bool


def unbound(function: Function, on: Scenario, off: Scenario) -> Iterator[Unbound]:
    """The first such reading of each variable of `function`."""
    if not any(isinstance(node, ast.If) for node in function.homes):
        return
    given = _given(function)
    for scenario in (on, off):
        for name, statements in given.items():
            found = _missed(function, scenario, name, statements)
            if found is not None:
                yield found


def _given(function: Function) -> dict[str, list[ast.stmt]]:
    """The statements that give each variable a value; parameters have one from the start."""
    found: dict[str, list[ast.stmt]] = {}
    for node in function.graph.nodes:
        for name, _ in bindings(node):
            if isinstance(node.statement, ast.stmt):
                found.setdefault(name, []).append(node.statement)
    own = function.local_names - set(function.parameters) - function.nonlocals
    return {name: statements for name, statements in found.items() if name in own}


def _missed(
    function: Function, scenario: Scenario, name: str, given: list[ast.stmt]
) -> Unbound | None:
    guards = [
        (statement, guard)
        for statement in given
        for guard in _passed_over(function, scenario, statement)
    ]
    for statement in function.mentions.get(name, ()) if guards else ():
        use = _surely_read(statement, name)
        if use is None or _is_given_before(function, scenario, statement, name):
            continue
        for binding, guard in guards:
            if _is_sure(function, scenario, guard, statement):
                return Unbound(function, use, binding, guard, scenario.on)
    return None


def _passed_over(function: Function, scenario: Scenario, statement: ast.stmt) -> Iterator[ast.If]:
    """The tests around a statement that come out against it."""
    node: ast.stmt | None = statement
    while node is not None:
        home = function.homes[node]
        if isinstance(home.parent, ast.If):
            truth = scenario.truth(function, home.parent.test)
            if truth is not None and (home.block is home.parent.body) is not truth:
                yield home.parent
        node = home.parent


def _surely_read(statement: ast.stmt, name: str) -> ast.Name | None:
    """Where a statement reads a variable whenever it runs."""
    queue = [child for child in children(statement) if isinstance(child, ast.expr)]
    while queue:
        node = queue.pop(0)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            return node
        if not isinstance(node, _MAYBE):
            for child in children(node):
                if isinstance(child, ast.keyword):
                    queue.append(child.value)
                elif isinstance(child, ast.expr):
                    queue.append(child)
    return None


def _is_given_before(
    function: Function, scenario: Scenario, statement: ast.stmt, name: str
) -> bool:
    """Whether the variable can have a value, or `statement` cannot run."""
    reachable = scenario.reachable(function)
    starts = [node for node in function.graph.at(statement) if node in reachable]
    seen: set[Node] = set()
    queue = list(starts)
    while queue:
        for edge in queue.pop().before:
            source = edge.source
            if source in seen or source not in reachable:
                continue
            if edge.test is not None and (scenario.truth(function, edge.test) is (not edge.holds)):
                continue
            if any(bound == name for bound, _ in bindings(source)):
                return True
            seen.add(source)
            queue.append(source)
    return not starts


def _is_sure(function: Function, scenario: Scenario, guard: ast.If, statement: ast.stmt) -> bool:
    """Whether `statement` is sure to run once `guard` has been passed over."""
    start = function.homes[guard]
    node: ast.stmt | None = statement
    while node is not None:
        home = function.homes[node]
        is_same = home.block is start.block
        between = home.block[start.index if is_same else 0 : home.index]
        if any(_can_leave(function, scenario, earlier) for earlier in between):
            return False
        if is_same:
            return start.index < home.index
        if isinstance(home.parent, ast.If):
            if scenario.truth(function, home.parent.test) is None:
                return False
        elif not isinstance(home.parent, (ast.With, ast.AsyncWith)):
            return False
        node = home.parent
    return False


def _can_leave(function: Function, scenario: Scenario, node: ast.stmt) -> bool:
    if isinstance(node, ast.If):
        truth = scenario.truth(function, node.test)
        sides = [node.body] if truth is not False else []
        sides += [node.orelse] if truth is not True else []
        return any(_can_leave(function, scenario, inner) for side in sides for inner in side)
    return any(isinstance(inner, _LEAVES) for inner in walk(node))
