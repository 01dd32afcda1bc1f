"""What the rules on lengths share: where a value got its unit, and whether DCP gets there."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dcplint.checks.base import Context
from dcplint.facts.positions import position
from dcplint.findings.model import Evidence, Location, Role
from dcplint.flow.functions import Function, callee_name
from dcplint.program.symbols import ClassSymbol
from dcplint.source.location import Tree
from dcplint.units.blocks import Known
from dcplint.units.lattice import Value
from dcplint.units.roles import Role as Part
from dcplint.units.roles import role
from dcplint.units.sinks import Sink

_SERVING = frozenset({"impl", "builder"})
_CALLERS = 2  # callers of callers
_STEPS = 4  # names in terms of names


def trail(context: Context, value: Value | Known) -> tuple[Evidence, ...]:
    """The places that a value passed through, origin first."""
    return tuple(
        Evidence(
            f"{mark.function.qualname}: {mark.text}",
            context.program.location(mark.function.module, position(mark.node)),
            Role.ORIGIN if index == 0 else Role.CONTEXT,
        )
        for index, mark in enumerate(value.trail)
    )


def wanted(sink: Sink) -> Evidence:
    """What the pack says of the place where a length is due."""
    place = Location(sink.source.pack, sink.source.line, tree=Tree.PACK)
    return Evidence(f"{sink.taker} wants the {sink.unit} ({sink.source.text})", place)


def runs_under_dcp(context: Context, function: Function, statement: ast.stmt) -> bool:
    """Whether a statement surely belongs to a backend that gates let through, and can run there."""
    return serves_under_dcp(context, function) and context.fields.tracer.can_run(
        function, statement
    )


def serves_under_dcp(context: Context, function: Function) -> bool:
    """Whether a function surely belongs to a backend that gates let through, and can run there."""
    owners = dict.fromkeys(_owners(context, function, _CALLERS))
    return any(context.serves_dcp(owner) for owner in owners) and (
        context.fields.tracer.is_live(function)
    )


def may_serve(context: Context, owner: ClassSymbol | None) -> bool:
    """Whether methods of `owner`, or functions of no class, can belong to such a backend."""
    return owner is None or (
        bool(context.program.roles(owner) & _SERVING) and context.serves_dcp(owner)
    )


def _owners(context: Context, function: Function, depth: int) -> Iterator[ClassSymbol]:
    """The impls and builders whose method a function is, or that call it; as they call the methods
    of the records that they build."""
    if function.owner is not None:
        roles = context.program.roles(function.owner)
        if roles & _SERVING:
            yield function.owner
        if "metadata" not in roles:
            return
    if depth:
        for site in context.fields.universe.callers(function):
            yield from _owners(context, site.function, depth - 1)


def is_ratio(context: Context, function: Function, node: ast.expr, steps: int = _STEPS) -> bool:
    """Whether `node` is the ratio of a compressed cache, by its name or by what it was given."""
    if isinstance(node, ast.Call) and callee_name(node) == "getattr" and len(node.args) > 1:
        name = node.args[1]
        node = ast.Name(str(name.value)) if isinstance(name, ast.Constant) else node
    if role(node) is Part.RATIO:
        return True
    values = context.fields.tracer.scenario.meanings(function, node) if steps else []
    return bool(values) and all(is_ratio(context, *value, steps - 1) for value in values)
