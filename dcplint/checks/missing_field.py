"""Places from which a contract field reaches its readers as None."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from dcplint.checks import field_evidence as evidence
from dcplint.checks.base import Context
from dcplint.contracts.model import ContractField
from dcplint.facts.expressions import dotted_name
from dcplint.facts.model import Position
from dcplint.facts.positions import position
from dcplint.findings.model import Evidence, Location, Role
from dcplint.flow.fields import Read, gaps
from dcplint.flow.functions import Function
from dcplint.flow.trace import Outcome, State, Step
from dcplint.program.symbols import ClassSymbol, Module
from dcplint.source.location import Tree
from dcplint.source.tree import walk


@dataclass(frozen=True, slots=True)
class Missing:
    """One such place. rebuilt_from: the record of the same kind it takes its other fields from.

    readers: the functions that read the field, for a message. filled: it is filled in on some ways.
    way: the steps from the place to a reader.
    """

    field: ContractField
    record: str
    origin: Step
    location: Location
    readers: tuple[str, ...]
    rebuilt_from: str
    evidence: tuple[Evidence, ...]
    filled: bool
    way: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Join:
    """Where the ways from several such places meet, and nothing that is filled in comes along."""

    step: Step
    location: Location
    missing: tuple[Missing, ...]


def missing_fields(context: Context) -> Iterator[Missing]:
    """Every origin of a None that a builder or impl reads under DCP, once."""
    for field in context.fields.fields:
        yield from _missing_of(context, field)[0]


def joins(context: Context) -> Iterator[Join]:
    """The origins whose records are not rebuilt from others; those that meet unfilled, together."""
    for field in context.fields.fields:
        found, filled = _missing_of(context, field)
        built = [missing for missing in found if not missing.rebuilt_from]
        met: dict[object, dict[Missing, Step]] = {}
        for missing in built:
            for step in missing.way:
                if _place(step) in filled:
                    break
                if step.module.tree is Tree.PROJECT:
                    met.setdefault(_place(step), {}).setdefault(missing, step)
        groups: dict[Step, list[Missing]] = {}
        for missing in built:
            shared = [among for among in met.values() if missing in among and len(among) > 1]
            among = max(shared, key=len, default={missing: missing.origin})
            groups.setdefault(next(iter(among.values())), []).append(missing)
        for step, members in groups.items():
            members.sort(key=lambda missing: (missing.location.path, missing.origin.position))
            met_at = step if len(members) > 1 else members[0].origin
            yield Join(met_at, evidence.at(context, met_at), tuple(members))


def _place(step: Step) -> tuple[Module, Position]:
    return step.module, step.position


def _missing_of(
    context: Context, field: ContractField
) -> tuple[list[Missing], frozenset[tuple[Module, Position]]]:
    """The origins of a None, and the places that the field comes past filled in."""
    flow = context.fields
    found: dict[object, list[tuple[Read, Outcome]]] = {}
    filled: set[tuple[Module, Position]] = set()
    for read in flow.exposed(field):
        outcomes = flow.outcomes(read.function, read.statement, read.path)
        filled.update(_place(s) for o in outcomes if o.state is State.SET for s in o.steps)
        for outcome in gaps(outcomes):
            origin = _origin(context, outcome)
            if origin is not None and flow.can_get(read, outcome):
                found.setdefault(_place(origin), []).append((read, outcome))
    return [_missing(context, field, uses) for uses in found.values()], frozenset(filled)


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
        tuple(s for s in reversed(outcome.steps) if _place(s) != _place(origin)),
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
