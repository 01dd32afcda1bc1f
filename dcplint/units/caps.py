"""What is worked out for one rank's length without the rank, and is wrong on some: by enumeration.

A bound is wrong where a rank holds more, an exact length where one holds another number.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from dcplint.flow.dataclasses import constructor_argument
from dcplint.flow.functions import CallSite, Function, argument
from dcplint.flow.graph import Node
from dcplint.flow.types import classes_of
from dcplint.source.tree import walk
from dcplint.units.evaluate import NotArithmetic, arithmetic
from dcplint.units.flow import UnitFlow
from dcplint.units.interleave import Interleaving
from dcplint.units.lattice import LENGTHS, Space, Value
from dcplint.units.operations import unpadded, unread
from dcplint.units.proof import VALUES, Point, points
from dcplint.units.roles import Role, role
from dcplint.units.sinks import Sink, argument_sinks, field_sinks

_STEPS = 3  # variables and attributes in terms of others


@dataclass(frozen=True, slots=True)
class Misfit:
    """An expression, what it is given to, and the smallest case in which a rank needs another."""

    sink: Sink
    function: Function
    node: ast.expr
    point: Point
    value: int

    def __str__(self) -> str:
        p = self.point
        case = f"L={p.length}, N={p.size}, r={p.rank}, I={p.interleave}"
        least = "at least " if self.sink.unit.bound else ""
        return f"{case}: {self.value}, should be {least}{p.local}"


def misfits(units: UnitFlow, interleaving: Interleaving | None) -> Iterator[Misfit]:
    """What is given for the local length, or a bound of it, and is none somewhere; each once.

    interleaving: None where no other interleave size than 1 is known to the engine.
    """
    told: set[ast.expr] = set()
    for sink in chain(argument_sinks(units), field_sinks(units)):
        if sink.unit.space is not Space.LOCAL or sink.unit.counts not in LENGTHS:
            continue
        if not sink.unit.bound and units.value(sink.function, sink.statement, sink.node):
            continue  # known for what it is
        for at in sink.function.graph.at(sink.statement):
            for function, place, node in _origins(units, sink.function, at, sink.node, _STEPS):
                if node in told:
                    continue
                bound = bool(sink.unit.bound)
                found = _wrong(units, function, place, node, interleaving, bound)
                if found is not None:
                    told.add(node)
                    yield Misfit(sink, function, node, *found)


def _origins(
    units: UnitFlow, function: Function, at: Node, node: ast.expr, steps: int
) -> Iterator[tuple[Function, Node, ast.expr]]:
    """The arithmetic that a bound may come from: its own, or what it was given."""
    inner = unread(unpadded(node))
    if inner is not node:
        yield from _origins(units, function, at, inner, steps)
    elif not isinstance(node, (ast.Name, ast.Attribute)):
        yield function, at, node
    elif steps and isinstance(node, ast.Name):
        for place, value in units.given(function, at, node.id):
            yield from _origins(units, function, place, value, steps - 1)
        callers = units.universe.callers(function) if node.id in function.parameters else ()
        for site in callers:
            yield from _passed(units, site, argument(function, site.call, node.id), steps - 1)
    elif steps and isinstance(node, ast.Attribute):
        for owner in classes_of(units.universe, function, node.value):
            for site in units.scenario.lookup.constructions(owner):
                given = constructor_argument(units.universe, site.call, owner, node.attr)
                yield from _passed(units, site, given, steps - 1)


def _passed(
    units: UnitFlow, site: CallSite, node: ast.expr | None, steps: int
) -> Iterator[tuple[Function, Node, ast.expr]]:
    if node is not None:
        for place in site.nodes:
            yield from _origins(units, site.function, place, node, steps)


def _wrong(
    units: UnitFlow,
    function: Function,
    at: Node,
    node: ast.expr,
    interleaving: Interleaving | None,
    bound: bool,
) -> tuple[Point, int] | None:
    """The smallest case in which `node` is wrong, and what it then is; None where not known."""
    meaning = units.meaning(function, at, node)
    parts: dict[int, Role] = {}
    for inner in walk(meaning):
        part = _part(units, function, at, inner) if isinstance(inner, ast.expr) else None
        if part is not None:
            parts[id(inner)] = part
    if not {Role.LENGTH, Role.SIZE} <= {*parts.values()}:
        return None
    takes_interleave = Role.INTERLEAVE in parts.values()
    chunks = takes_interleave or (interleaving is not None and interleaving.is_open(function))
    places = {node: VALUES[part] for node, part in parts.items()}
    value_at = arithmetic(meaning, lambda inner: places.get(id(inner)))
    for point in points() if chunks else points((1,)):
        try:
            value = value_at(point)
        except NotArithmetic:
            return None
        if value < point.local if bound else value != point.local:
            return point, value
    return None


def _part(units: UnitFlow, function: Function, at: Node, node: ast.expr) -> Role | None:
    """The part that a name plays: a global length, exact or bounded, the size or the chunk."""
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return None
    if role(node) is Role.INTERLEAVE:
        return Role.INTERLEAVE
    if role(node) is Role.SIZE or units.scenario.is_size(function, node):
        return Role.SIZE
    value = units.before_node(function, at, node)
    if isinstance(value, Value) and value.unit.space is Space.GLOBAL:
        return Role.LENGTH if value.unit.counts in LENGTHS else None
    return None
