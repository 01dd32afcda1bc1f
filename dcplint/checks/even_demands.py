"""Where code takes it that an amount is a multiple of another: it asserts that, or else raises."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from dcplint.facts.expressions import dotted_name
from dcplint.flow.definitions import definitions
from dcplint.flow.functions import Function, argument, callee_name
from dcplint.flow.universe import Universe
from dcplint.source.tree import walk
from dcplint.units.operations import loaded, operands

_REMAINDERS = frozenset({"remainder", "fmod", "mod"})
_BROAD = frozenset({"Exception", "BaseException"})
_LEVELS = 2  # helpers of helpers that assert it


@dataclass(frozen=True, slots=True)
class Demand:
    """Where `statement` runs, `amount` must be a multiple of `size`.

    remainder: the expression that must be 0. by: the function that asserts it, and where.
    """

    statement: ast.stmt
    amount: ast.expr
    size: ast.expr
    remainder: ast.expr
    by: tuple[Function, ast.stmt]


def demands(universe: Universe, function: Function, levels: int = _LEVELS) -> Iterator[Demand]:
    """What a function demands, itself and by the functions that it calls."""
    yield from _own_demands(function)
    for statement, calls in function.calls.items() if levels else ():
        for call in calls:
            given = len(call.args) + len(call.keywords)
            callees = universe.callees(function, call, statement) if given > 1 else ()
            if len(callees) == 1:
                for demand in demands(universe, callees[0], levels - 1):
                    yield from _passed_on(callees[0], statement, call, demand)


def is_asked_for(function: Function, amounts: Sequence[ast.expr]) -> bool:
    """Whether another remainder of one of the `amounts` is there for something else.

    To round, or to go another way.
    """
    said = set(map(ast.dump, amounts))
    for loop in function.homes:
        if isinstance(loop, ast.For) and isinstance(loop.iter, (ast.Tuple, ast.List)):
            if said.intersection(map(ast.dump, loop.iter.elts)):
                said.add(ast.dump(loaded(loop.target)))  # one of several that are tried
    known = {id(amount) for amount in amounts}
    known |= {id(demand.amount) for demand in _own_demands(function)}
    for nodes in function.own_nodes.values():
        for node in nodes:
            parts = (_divided(node) or _divided(node, 1)) if isinstance(node, ast.expr) else None
            if parts is not None and id(parts[0]) not in known and ast.dump(parts[0]) in said:
                return True
    return False


def _passed_on(
    callee: Function, statement: ast.stmt, call: ast.Call, demand: Demand
) -> Iterator[Demand]:
    """What a call demands of its arguments, where the callee demands it on every way."""
    if callee.homes[demand.statement].block is not callee.node.body:
        return
    if is_asked_for(callee, [demand.amount]):
        return
    amount, size = (
        argument(callee, call, node.id)
        if isinstance(node, ast.Name) and not callee.rebinds(node.id)
        else None
        for node in (demand.amount, demand.size)
    )
    if amount is not None and size is not None:
        yield replace(demand, statement=statement, amount=amount, size=size)


def _own_demands(function: Function) -> Iterator[Demand]:
    for statement in function.homes:
        for node in _zeros(statement) if not _is_caught(function, statement) else ():
            remainder, element = _given(function, statement, node)
            parts = _divided(remainder, element)
            if parts is not None:
                yield Demand(statement, *parts, remainder, (function, statement))


def _is_caught(function: Function, statement: ast.stmt) -> bool:
    """Whether what a statement raises is caught on the spot, to go on another way."""
    raised = {"AssertionError"} if isinstance(statement, ast.Assert) else _raised(statement)
    node: ast.stmt | None = statement
    while node is not None:
        home = function.homes[node]
        if isinstance(home.parent, ast.Try) and home.block is home.parent.body:
            for handler in home.parent.handlers:
                if _catches(handler.type, raised):
                    return not any(isinstance(inner, ast.Raise) for inner in walk(handler))
        elif isinstance(home.parent, ast.With):
            for item in home.parent.items:
                call = item.context_expr
                if isinstance(call, ast.Call) and callee_name(call) == "suppress":
                    if any(_catches(given, raised) for given in call.args):
                        return True
        node = home.parent
    return False


def _raised(statement: ast.stmt) -> set[str]:
    """The names of what the `raise` statements in a statement raise."""
    found: set[str] = set()
    for node in walk(statement):
        if isinstance(node, ast.Raise) and node.exc is not None:
            made = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            found.add((dotted_name(made) or "").rpartition(".")[2])
    return found


def _catches(kind: ast.expr | None, raised: set[str]) -> bool:
    named = {kind} if kind is not None and not isinstance(kind, ast.Tuple) else set()
    each = kind.elts if isinstance(kind, ast.Tuple) else named
    names = {(dotted_name(one) or "").rpartition(".")[2] for one in each}
    return kind is None or bool(names & (raised | _BROAD))


def _given(function: Function, statement: ast.stmt, node: ast.expr) -> tuple[ast.expr, int]:
    """What a variable that nothing else asks for is given, and which element of it (0: all)."""
    if isinstance(node, ast.Name) and len(function.mentions[node.id]) == 2:
        found = [
            d for at in function.graph.at(statement) for d in definitions(function, at, node.id)
        ]
        if len(found) == 1 and found[0][0] is not None:
            return found[0][0], int(found[0][2] == (1,))
    return node, 0


def _zeros(statement: ast.stmt) -> Iterator[ast.expr]:
    """What must be 0 for control to go on from a statement."""
    if isinstance(statement, ast.Assert):
        yield from _zero_where(statement.test, True)
    elif isinstance(statement, ast.If):
        for block, holds in ((statement.body, False), (statement.orelse, True)):
            if block and isinstance(block[-1], ast.Raise):
                yield from _zero_where(statement.test, holds)


def _zero_where(test: ast.expr, holds: bool) -> Iterator[ast.expr]:
    """What is 0 where a test holds, or where it does not."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And if holds else ast.Or):
        for part in test.values:
            yield from _zero_where(part, holds)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _zero_where(test.operand, not holds)
    elif isinstance(test, ast.Compare) and len(test.ops) == 1:
        rest = _left_over(test.left, test.comparators[0])
        if rest is not None and isinstance(test.ops[0], ast.Eq if holds else ast.NotEq):
            yield rest
        sides = [side for side in (test.left, *test.comparators) if not _is_zero(side)]
        if len(sides) == 1 and isinstance(test.ops[0], ast.Eq if holds else (ast.NotEq, ast.Gt)):
            yield sides[0]
    elif not holds:
        yield test


def _left_over(one: ast.expr, other: ast.expr) -> ast.expr | None:
    """Of `n // k * k == n` the remainder, which must be 0."""
    for rounded, whole in ((one, other), (other, one)):
        if not isinstance(rounded, ast.BinOp) or not isinstance(rounded.op, ast.Mult):
            continue
        for quotient, size in ((rounded.left, rounded.right), (rounded.right, rounded.left)):
            if isinstance(quotient, ast.BinOp) and isinstance(quotient.op, ast.FloorDiv):
                said = [ast.dump(node) for node in (quotient.left, quotient.right)]
                if said == [ast.dump(whole), ast.dump(size)]:
                    return ast.copy_location(ast.BinOp(whole, ast.Mod(), size), rounded)
    return None


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0


def _divided(node: ast.expr, element: int = 0) -> tuple[ast.expr, ast.expr] | None:
    """Of which amount and size `node` is the remainder, or (1) its second element is."""
    if isinstance(node, ast.Subscript) and not element:
        index = node.slice.value if isinstance(node.slice, ast.Constant) else None
        return _divided(node.value, 1) if index == 1 else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and not element:
        return node.left, node.right
    if isinstance(node, ast.Call):
        given = operands(node)
        names = {"divmod"} if element else _REMAINDERS
        if len(given) == 2 and callee_name(node) in names:
            return given[0], given[1]
    return None
