"""The fixes that the data-contract rules offer. All want a look: they are marked unsafe."""

from __future__ import annotations

import ast

from dcplint.checks.base import Context
from dcplint.checks.missing_field import Missing
from dcplint.facts.expressions import dotted_name
from dcplint.facts.positions import first_line, position
from dcplint.findings.changes import CloneValue, DropFallback, PassArgument
from dcplint.findings.model import Applicability, Fix, Location
from dcplint.flow.fallbacks import Fallback
from dcplint.flow.functions import Function
from dcplint.flow.records import carried
from dcplint.flow.stores import Store


def drop(context: Context, fallback: Fallback) -> Fix:
    """Delete a fallback; where the field is None after all, its use fails at once."""
    path = ".".join(map(str, fallback.path))
    change = DropFallback(*_places(context, fallback.function, fallback.test), path)
    return Fix(f"delete the fallback and rely on `{path}`", Applicability.UNSAFE, change)


def carry(context: Context, missing: Missing) -> Fix | None:
    """Take the field along as the quantity that it localises is; None where that is changed."""
    found, field = context.fields.call_at(missing.origin), missing.field
    if found is None or field.localises is None:
        return None
    function, call = found
    slices = carried(function, call, field.localises, missing.rebuilt_from)
    if slices is None:
        return None
    value = f"{missing.rebuilt_from}.{field.name}"
    if slices:
        value = f"None if {value} is None else {value}{slices}"
    change = PassArgument(*_places(context, function, call), field.name, value)
    return Fix(f"carry `{field.name}` along", Applicability.UNSAFE, change)


def clone(context: Context, store: Store) -> Fix | None:
    """Clone what a variable takes from the record; None where no variable does."""
    name = dotted_name(store.target)
    values = [
        node.value
        for node in store.function.homes
        if isinstance(node, ast.Assign) and name in map(dotted_name, node.targets)
    ]
    if len(values) != 1:
        return None
    change = CloneValue(*_places(context, store.function, values[0]))
    what = f"`{store.record}.{store.attribute}`"
    return Fix(f"clone {what} before storing into it", Applicability.UNSAFE, change)


def _places(context: Context, function: Function, node: ast.AST) -> tuple[Location, Location]:
    """The lines of the function, and the node."""
    program, module = context.program, function.module
    last = function.node.end_lineno or function.node.lineno
    scope = program.location(module, (first_line(function.node), 0, last, 0))
    return scope, program.location(module, position(node))
