"""Evidence that the data-contract rules share: producers, gaps and the way from one to a reader."""

from __future__ import annotations

from collections.abc import Iterator

from dcplint.checks.base import Context
from dcplint.contracts.model import ContractField
from dcplint.facts.positions import position
from dcplint.findings.model import Evidence, Location, Role
from dcplint.flow.fallbacks import Fallback
from dcplint.flow.trace import Outcome, Step

_NAMED = 4  # functions in a message; the evidence has them all


def at(context: Context, step: Step) -> Location:
    """Where a step stands."""
    return context.program.location(step.module, step.position)


def producer(
    context: Context, step: Step, field: ContractField, always: bool = False
) -> Iterator[Evidence]:
    """One place that fills the field in, with its guard.

    always: that it is filled in wherever the consumer runs has been shown.
    """
    guard = context.fields.guard(step)
    parts = []
    if guard.implied:
        parts.append(f"under `{guard.implied}`, which holds whenever DCP is on")
    if guard.others:
        escape = " (the other way brings no None here)" if always else ""
        parts.append(f"under `{guard.others}`{escape}")
    where = " and ".join(parts) or "on every path"
    message = f"{step.symbol} fills in {field.name} {where}: {step.text}"
    yield Evidence(message, at(context, step), Role.PRODUCER)
    for callee, node, test in context.fields.none_only_under(step):
        place = context.program.location(callee.module, position(node))
        yield Evidence(f"  {callee.qualname} gives None only under `{test}`", place, Role.GUARD)


def gap(context: Context, outcome: Outcome, field: ContractField) -> Iterator[Evidence]:
    """One way on which the field stays None, origin first."""
    origin = outcome.origin
    if origin is None:
        return
    by = "" if origin.text == "None" else f": {origin.text}"
    yield Evidence(
        f"{origin.symbol} leaves {field.name} None{by}",
        at(context, origin),
        Role.PRODUCER,
    )
    for step in reversed(outcome.steps[:-1]):
        yield from filled(context, step, field)
        yield Evidence(f"  and from there {step.text}", at(context, step))


def filled(context: Context, step: Step, field: ContractField) -> Iterator[Evidence]:
    """Where the function of a step fills the field in before it, and under which tests only."""
    for function, statement in context.fields.fills_before(step, field.name):
        guard = context.fields.guard_at(function, statement)
        tests = " and ".join(filter(None, (guard.implied, guard.others)))
        if guard.others:
            place = context.program.location(function.module, position(statement))
            message = f"  {function.qualname} fills it in only under `{tests}`"
            yield Evidence(message, place, Role.GUARD)


def names(outcomes: tuple[Outcome, ...]) -> str:
    """The functions that leave a field None, for a message: the first few."""
    found = list(
        dict.fromkeys(
            f"{o.origin.symbol} ({o.origin.module.facts.path}:{o.origin.position[0]})"
            for o in outcomes
            if o.origin is not None
        )
    )
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return ", ".join(found[:_NAMED]) + more


def is_producer(context: Context, fallback: Fallback) -> bool:
    """Whether the branch is itself the one that owes the field: it stands in a drafter."""
    owner = fallback.function.owner
    return owner is not None and "drafter" in context.program.roles(owner)
