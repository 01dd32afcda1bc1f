"""Local lengths treated as if they were whole: divided, taken of a piece, localised again."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from dcplint.checks.base import Context
from dcplint.checks.length_evidence import is_ratio
from dcplint.facts.expressions import shorten
from dcplint.flow.functions import Function, callee_name
from dcplint.flow.graph import Node
from dcplint.flow.origins import Frame
from dcplint.source.location import Tree
from dcplint.units.lattice import LENGTHS, Counts, Space, Value
from dcplint.units.localising import Localisation
from dcplint.units.operations import KEEPING, loaded, operands
from dcplint.units.proof import divided_late, piece_example, twice_example

_WHOLE = re.compile(r"interleave\w*\)?\s*%")  # whether a chunk is a multiple of a ratio is asked
_DIVIDED = re.compile(r"//|(?:floor_divide|div|divide)_?\(")
_SMALLEST = frozenset({"min", "minimum"})
_STEPS = 4  # variables in terms of variables
_FLOORS = frozenset({"floor_divide", "div", "divide"})


@dataclass(frozen=True, slots=True)
class Change:
    """A node of a function that makes another number of a local length, and what to say of it."""

    function: Function
    node: ast.AST
    message: str


def changes(context: Context) -> Iterator[Change]:
    """The places where a local length is changed into what is no local length."""
    yield from _divided(context)
    yield from _pieces(context)
    yield from _again(context)


def asks_for_whole_entries(context: Context, function: Function) -> bool:
    """Whether the function, or another method of its class, tests that chunks are whole entries."""
    text = context.fields.universe.written(function)
    owner = function.owner
    if owner is not None:
        source = context.program.modules.source
        text += "\n".join(source(owner.module, method) for method in owner.facts.methods)
    return _WHOLE.search(text.lower().replace("repeat_interleave", "")) is not None


# Divided


def _divided(context: Context) -> Iterator[Change]:
    """`localise(L) // k`: what a rank holds of a cache that keeps one entry for k tokens."""
    for function in context.spread.functions(_DIVIDED):
        if asks_for_whole_entries(context, function):
            continue
        for statement in function.homes:
            found = next(_divisions(context, function, statement), None)
            if found is not None and _can_divide(context, function, statement):
                length, ratio = found
                yield Change(
                    function,
                    statement,
                    f"`{function.qualname}` divides the local length `{shorten(length)}` by "
                    f"`{shorten(ratio)}`, which a chunk need not be a multiple of: "
                    f"local(L) // k is not local(L // k) ({divided_late()})",
                )


def _divisions(
    context: Context, function: Function, statement: ast.stmt
) -> Iterator[tuple[ast.expr, ast.expr]]:
    """(length, ratio) of the divisions of exact local lengths that a statement does."""
    for length, ratio in _quotients(function, statement):
        if context.spread.may_be_local(function, length) and is_ratio(context, function, ratio):
            value = context.units.value(function, statement, length)
            if isinstance(value, Value) and value.unit.bound is False:
                if value.unit.space is Space.LOCAL and value.unit.counts in LENGTHS:
                    yield length, ratio


def _quotients(function: Function, statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    """(dividend, divisor) of the divisions that round down."""
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.FloorDiv):
        yield loaded(statement.target), statement.value
    for node in function.own_nodes[statement]:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv):
            yield node.left, node.right
        elif isinstance(node, ast.Call) and callee_name(node).rstrip("_") in _FLOORS:
            given = operands(node)
            if len(given) == 2:
                yield given[0], given[1]


def _can_divide(context: Context, function: Function, statement: ast.stmt) -> bool:
    """Whether a statement runs under DCP, with a ratio that its class does not refuse then."""
    if not context.fields.tracer.can_run(function, statement):
        return False
    owner = function.owner
    return owner is None or any(
        context.outputs.refused.allows(owner, Frame(function), place)
        for place in function.graph.at(statement)
    )


# Taken of a piece of a sequence, as if each were its beginning


def _pieces(context: Context) -> Iterator[Change]:
    """`localise(min(s + c, L) - s)`: a rank holds local(e) - local(s) of the tokens from s to e."""
    for place in _localised_here(context):
        function, length = place.site.function, place.length
        if any(_is_piece(context, function, at, length) for at in place.site.nodes):
            yield Change(
                function,
                place.site.call,
                f"`{function.qualname}` localises the length of a piece that does not begin "
                f"the sequence, `{shorten(length)}`: local(e - s) is not "
                f"local(e) - local(s) ({piece_example()})",
            )


def _localised_here(context: Context) -> Iterator[Localisation]:
    """Where the checked tree localises lengths, with DCP on."""
    for place in context.localisations:
        function = place.site.function
        if function.module.tree is Tree.PROJECT:
            if context.fields.tracer.can_run(function, place.site.statement):
                yield place


def _is_piece(context: Context, function: Function, at: Node, node: ast.expr) -> bool:
    """Whether `node` is `min(s + c, L) - s`, whatever the parts are called."""
    at, node = held(context, function, at, node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        end, start = node.left, node.right
    elif isinstance(node, ast.Call) and callee_name(node) in ("sub", "subtract"):
        if len(operands(node)) != 2:
            return False
        end, start = operands(node)
    else:
        return False
    _, bounded = held(context, function, at, end)
    if not isinstance(bounded, ast.Call) or callee_name(bounded) not in _SMALLEST:
        return False
    sought = ast.dump(start)
    reaching = [
        isinstance(part, ast.BinOp)
        and isinstance(part.op, ast.Add)
        and sought in (ast.dump(part.left), ast.dump(part.right))
        for part in operands(bounded)
    ]
    return len(reaching) == 2 and sum(reaching) == 1


def held(
    context: Context, function: Function, at: Node, node: ast.expr, steps: int = _STEPS
) -> tuple[Node, ast.expr]:
    """What a variable holds, without what changes no number, and where it was given that."""
    if isinstance(node, ast.Call) and callee_name(node).rstrip("_") in KEEPING and operands(node):
        return held(context, function, at, operands(node)[0], steps)
    if isinstance(node, ast.Subscript):
        return held(context, function, at, node.value, steps)
    if isinstance(node, ast.Name) and steps:
        values = list(context.units.given(function, at, node.id))
        if len(values) == 1:
            return held(context, function, *values[0], steps - 1)
    return at, node


# Localised again


def _again(context: Context) -> Iterator[Change]:
    """`localise(localise(L))`: a share of the share."""
    for place in _localised_here(context):
        if place.is_around:
            continue  # told where it is given them
        function, length = place.site.function, place.length
        value = context.units.value(function, place.site.statement, length)
        if not isinstance(value, Value) or value.unit.counts is Counts.PAGES:
            continue
        if value.unit.space is Space.LOCAL:
            yield Change(
                function,
                place.site.call,
                f"`{function.qualname}` localises `{shorten(length)}`, which is local already: "
                f"local(local(L)) is not local(L) ({twice_example()})",
            )
