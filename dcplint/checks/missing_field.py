"""Places from which a contract field reaches its readers as None."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from dcplint.checks import field_evidence as evidence
from dcplint.checks.base import Context
from dcplint.contracts.model import ContractField
from dcplint.facts.expressions import dotted_name
from dcplint.facts.positions import position
from dcplint.findings.model import Evidence, Location, Role
from dcplint.flow.fields import Read, gaps
from dcplint.flow.functions import Function
from dcplint.flow.trace import Outcome, Step
from dcplint.program.symbols import ClassSymbol
from dcplint.source.tree import walk


@dataclass(frozen=True, slots=True)
class Missing:
    """One such place. rebuilt_from: the record of the same kind it takes its other fields from.

    readers: the functions that read the field, for a message. filled: it is filled in on some ways.
    """

    field: ContractField
    record: str
    origin: Step
    location: Location
    readers: tuple[str, ...]
    rebuilt_from: str
    evidence: tuple[Evidence, ...]
    filled: bool


def missing_fields(context: Context) -> Iterator[Missing]:
    """Every origin of a None that a builder or impl reads under DCP, once."""
    flow = context.fields
    for field in flow.fields:
        found: dict[object, list[tuple[Read, Outcome]]] = {}
        for read in flow.exposed(field):
            for outcome in gaps(flow.outcomes(read.function, read.statement, read.path)):
                origin = _origin(context, outcome)
                if origin is not None and flow.can_get(read, outcome):
                    key = (origin.module, origin.position)
                    found.setdefault(key, []).append((read, outcome))
        for uses in found.values():
            yield _missing(context, field, uses)


def _origin(context: Context, outcome: Outcome) -> Step | None:
    """Where the None comes from: the record that is built with it, where it is written there."""
    if len(outcome.steps) < 2:
        return outcome.origin
    before, last = outcome.steps[-2:]
    if last.text == "None" and isinstance(before.record, ClassSymbol):
        spans = before.position[:2] <= last.position[:2] <= before.position[2:]
        classes = context.program.mro(before.record).classes
        records = {field.record for field in context.fields.fields}
        if spans and any(entry.dotted in records for entry in classes):
            return before
    return last


def _missing(context: Context, field: ContractField, uses: list[tuple[Read, Outcome]]) -> Missing:
    outcome = min((o for _, o in uses), key=lambda o: len(o.steps))
    origin = _origin(context, outcome)
    assert origin is not None
    readers = dict.fromkeys(read.function.qualname for read, _ in uses)
    steps = list(evidence.gap(context, outcome, field))
    filled = any(step.role is Role.GUARD for step in steps)
    for read, _ in uses:
        place = context.program.location(read.function.module, position(read.node))
        steps.append(Evidence(f"{read.function.qualname} reads it here", place, Role.CONSUMER))
    return Missing(
        field,
        field.record.rpartition(".")[2],
        origin,
        evidence.at(context, origin),
        tuple(readers),
        _source_record(context, field, origin),
        tuple(steps),
        filled,
    )


def _source_record(context: Context, field: ContractField, origin: Step) -> str:
    """The variable whose fields the record at `origin` is built from, if it is of the same kind."""
    flow = context.fields
    found = flow.call_at(origin)
    if found is None:
        return ""
    function, call = found
    made = _made_only_by(function, call)
    for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
        for value in (argument, *_assigned(function, argument)):
            for node in walk(value):
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                    if node.value.id not in made and flow.is_record_expression(
                        function, node.value, field
                    ):
                        return dotted_name(node.value) or ""
    return ""


def _made_only_by(function: Function, call: ast.Call) -> frozenset[str]:
    """The variables that hold nothing but what `call` makes: in a loop, that of the last round."""
    made: dict[str, list[ast.expr]] = {}
    for node in function.homes:
        if isinstance(node, ast.Assign):
            for target in filter(None, map(dotted_name, node.targets)):
                made.setdefault(target, []).append(node.value)
    return frozenset(
        name
        for name, values in made.items()
        if name not in function.parameters and all(value is call for value in values)
    )


def _assigned(function: Function, argument: ast.expr) -> Iterator[ast.expr]:
    """What the function assigns to the variable that an argument is."""
    for node in function.homes:
        if isinstance(node, ast.Assign) and isinstance(argument, ast.Name):
            if any(dotted_name(target) == argument.id for target in node.targets):
                yield node.value
