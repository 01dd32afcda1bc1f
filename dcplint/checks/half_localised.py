"""Lengths and places that are made local on one way only: what DCP308 tells of."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from dcplint.checks.base import Context
from dcplint.checks.length_evidence import is_ratio
from dcplint.facts.expressions import dotted_name
from dcplint.flow.definitions import definitions
from dcplint.flow.functions import Function, callee_name
from dcplint.source.location import Tree
from dcplint.source.tree import walk
from dcplint.units.lattice import LENGTHS, Space, Value
from dcplint.units.operations import KEEPING, operands


@dataclass(frozen=True, slots=True)
class Half:
    """A call that makes `whole` local only where a test holds that says nothing of DCP.

    value: what lengths count elsewhere; None of places.
    """

    function: Function
    call: ast.Call
    test: ast.expr
    whole: ast.expr
    value: Value | None = None


def half_localised(context: Context) -> Iterator[Half]:
    """`x = localise(x) if ratio > 1 else x`."""
    for place in context.localisations:
        function, statement = place.site.function, place.site.statement
        if function.module.tree is not Tree.PROJECT or not place.is_share:
            continue
        if not context.fields.tracer.can_run(function, statement):
            continue
        for test, at, other in _other_ways(context, function, statement, place.site.call):
            if not _is_unrelated(context, function, statement, test):
                continue
            value = context.units.value(function, at, other)
            if isinstance(value, Value) and value.unit.counts in LENGTHS:
                if value.unit.space is Space.GLOBAL and not _is_kept_apart(function, at, test):
                    yield Half(function, place.site.call, test, other, value)


def half_owned(context: Context, divides: re.Pattern[str]) -> Iterator[Half]:
    """`x = of_this_rank(x) if ratio > 1 else x`, of a function that computes with the rank.

    divides: what the text of such a function matches.
    """
    helpers = {(f.module, f.qualname) for f in context.ranks.functions(divides)}
    for function in context.fields.universe.mentioning("ratio") if helpers else ():
        if function.module.tree is not Tree.PROJECT:
            continue
        for statement, calls in function.calls.items():
            for call in calls if isinstance(statement, ast.Assign) else ():
                for test, at, other in _other_ways(context, function, statement, call):
                    if not any(ast.dump(other) == ast.dump(given) for given in call.args):
                        continue
                    callees = context.fields.universe.callees(function, call, statement)
                    if not callees or any((f.module, f.qualname) not in helpers for f in callees):
                        continue
                    if _is_kept_apart(function, at, test):
                        continue
                    if not _is_unrelated(context, function, statement, test):
                        continue
                    if context.fields.tracer.can_run(function, statement):
                        yield Half(function, call, test, other)


def _other_ways(
    context: Context, function: Function, statement: ast.stmt, call: ast.Call
) -> Iterator[tuple[ast.expr, ast.stmt, ast.expr]]:
    """(test, statement, value): what stands for local lengths where a test comes out otherwise."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return

    def is_local(node: ast.expr) -> bool:
        return _whole(context, function, node) is call

    value, target = statement.value, statement.targets[0]
    if isinstance(value, ast.IfExp):
        if is_local(value.body):
            yield value.test, statement, value.orelse
        elif is_local(value.orelse):
            yield value.test, statement, value.body
    home = function.homes[statement]
    branch = home.parent
    if is_local(value) and isinstance(target, ast.Name) and isinstance(branch, ast.If):
        if isinstance(home.block[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break)):
            return
        beside = branch.orelse if home.block is branch.body else branch.body
        if not beside:
            yield branch.test, statement, ast.Name(target.id, ast.Load())
        elif len(beside) == 1 and isinstance(other := beside[0], ast.Assign):
            if [dotted_name(t) for t in other.targets] == [target.id]:
                yield branch.test, other, other.value


def _whole(context: Context, function: Function, node: ast.expr) -> ast.expr:
    """What `node` is made of by what changes no space: moves, slices, division by a ratio."""
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and callee_name(node) in KEEPING and operands(node):
            node = operands(node)[0]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv):
            if not is_ratio(context, function, node.right):
                return node
            node = node.left
        else:
            return node


def _is_unrelated(
    context: Context, function: Function, statement: ast.stmt, test: ast.expr
) -> bool:
    """Whether a test is known to be about a ratio or a length, which DCP does not decide.

    Where DCP has been refused by what it reads, it may be decided all the same.
    """
    if _is_refused_before(context, function, statement, test):
        return False
    if isinstance(test, ast.BoolOp):
        return all(_is_unrelated(context, function, statement, part) for part in test.values)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    sides = (test.left, test.comparators[0])
    known = [
        isinstance(side, ast.Constant)
        or is_ratio(context, function, side)
        or isinstance(context.units.value(function, statement, side), Value)
        for side in sides
    ]
    return all(known) and not all(isinstance(side, ast.Constant) for side in sides)


def _is_refused_before(
    context: Context, function: Function, statement: ast.stmt, test: ast.expr
) -> bool:
    """Whether an earlier test of DCP's size, and of what `test` reads, raises."""
    read = {dotted_name(part) for part in _parts_read(test)}
    scenario = context.fields.tracer.scenario
    for around in _blocks_around(function, statement):
        for earlier in around:
            refuses = isinstance(earlier, ast.If) and isinstance(earlier.body[-1], ast.Raise)
            if not isinstance(earlier, ast.Assert) and not refuses:
                continue
            assert isinstance(earlier, (ast.If, ast.Assert))
            parts = _parts_read(earlier.test)
            if read.intersection(map(dotted_name, parts)):
                if any(scenario.is_size(function, part) for part in parts):
                    return True
    return False


def _parts_read(test: ast.expr) -> list[ast.expr]:
    """The variables and attributes that a test reads, not the objects that carry them."""
    found = [node for node in walk(test) if isinstance(node, (ast.Name, ast.Attribute))]
    owners = {id(node.value) for node in found if isinstance(node, ast.Attribute)}
    return [node for node in found if id(node) not in owners and dotted_name(node)]


def _blocks_around(function: Function, statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """What stands before a statement, in its block and in those around it."""
    node: ast.stmt | None = statement
    while node is not None:
        home = function.homes[node]
        yield home.block[: home.index]
        node = home.parent


def _is_kept_apart(function: Function, statement: ast.stmt, test: ast.expr) -> bool:
    """Whether the same test stands elsewhere too, and keeps the two ways apart.

    Not where a variable that holds the one or the other is read outside of it.
    """
    said = ast.dump(test)
    tests = [
        node.test
        for nodes in function.own_nodes.values()
        for node in nodes
        if isinstance(node, ast.IfExp)
    ]
    tests += [node.test for node in function.homes if isinstance(node, (ast.If, ast.While))]
    if sum(ast.dump(other) == said for other in tests) < 2:
        return False
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    return not any(_is_read_outside(function, statement, name, said) for name in names)


def _is_read_outside(function: Function, statement: ast.stmt, name: str, test: str) -> bool:
    """Whether what `statement` gives a variable is read where a test, by dump, does not stand."""
    for reader in function.mentions.get(name, ()):
        if not any(
            isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)
            for n in function.own_nodes[reader]
        ):
            continue
        given = (d for at in function.graph.at(reader) for d in definitions(function, at, name))
        if any(at.statement is statement for _, at, _ in given):
            if not any(ast.dump(other) == test for other in _tests_around(function, reader)):
                return True
    return False


def _tests_around(function: Function, statement: ast.stmt) -> Iterator[ast.expr]:
    current: ast.stmt | None = statement
    while current is not None:
        if isinstance(current, (ast.If, ast.While)):
            yield current.test
        yield from (n.test for n in function.own_nodes[current] if isinstance(n, ast.IfExp))
        current = function.homes[current].parent
