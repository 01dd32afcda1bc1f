"""How functions rebuild and change the records that carry contract fields."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from dcplint.contracts.model import ContractField
from dcplint.facts.expressions import dotted_name
from dcplint.flow.fields import FieldFlow
from dcplint.flow.functions import Function, callee_name, given_once, written_keywords
from dcplint.flow.handing import is_left_unread
from dcplint.flow.stores import stored_by
from dcplint.flow.trace import State
from dcplint.source.tree import walk


@dataclass(frozen=True, eq=False)
class Change:
    """The global quantity of a record is changed or replaced, while the local one is kept.

    what: the new value, as written. kept: how the local one is carried along.
    """

    field: ContractField
    function: Function
    statement: ast.stmt
    node: ast.expr
    record: str
    what: str
    kept: str


_HANDS = 2  # through which a record is handed on


def stale_pairs(flow: FieldFlow, field: ContractField) -> Iterator[Change]:
    """Every place after which a record's local quantity no longer belongs to its global one."""
    if field.localises is None:
        return
    for function in flow.universe.mentioning(field.localises, _touching(field)):
        for statement in function.homes:
            changes = [
                *_rebuilt(flow, field, function, statement),
                *_changed(flow, field, function, statement),
            ]
            if changes and flow.tracer.can_run(function, statement):
                for change in changes:
                    if _is_filled(flow, change) and not (
                        _is_made_anew(flow, change) or _is_left_unread(flow, change)
                    ):
                        yield change


def _is_filled(flow: FieldFlow, change: Change) -> bool:
    """Whether the record is known to hold a local quantity, which can go stale."""
    path = (*change.record.split("."), change.field.name)
    outcomes = flow.outcomes(change.function, change.statement, path)
    return any(outcome.state is State.SET for outcome in outcomes)


def _is_made_anew(flow: FieldFlow, change: Change) -> bool:
    """Whether the class that changes the pair hands records to what sets the local quantity.

    On which ways it does is not followed: a helper object may be there under DCP alone.
    """
    owner = change.function.owner
    if owner is None:
        return False
    order = flow.program.mro(owner).classes
    setting = [
        function
        for function in flow.universe.mentioning(f".{change.field.name} =")
        if function.owner not in order and _sets_given(function, change.field.name)
    ]
    for _ in range(_HANDS):
        sites = [site for function in setting for site in flow.universe.callers(function)]
        if any(site.function.owner in order for site in sites):
            return True
        setting = list(dict.fromkeys(site.function for site in sites))
    return False


def _is_left_unread(flow: FieldFlow, change: Change) -> bool:
    """Whether the record is rebuilt for readers that do not look at its local quantity."""
    made = change.statement
    if not isinstance(made, ast.Assign) or made.value is not change.node:
        return False
    return all(
        isinstance(target, ast.Name)
        and is_left_unread(flow.universe, change.function, target.id, change.field.name)
        for target in made.targets
    )


def _sets_given(function: Function, name: str) -> bool:
    """Whether a function stores into the attribute `name` of what it is given."""
    targets = (
        target
        for statement in function.homes
        if isinstance(statement, ast.Assign)
        for target in statement.targets
    )
    return any(
        isinstance(target, ast.Attribute)
        and target.attr == name
        and isinstance(target.value, ast.Name)
        and target.value.id in function.parameters
        for target in targets
    )


def carried(function: Function, call: ast.Call, name: str, record: str) -> str | None:
    """The slices by which `call` passes `record.name` on under its own name.

    Empty where it is passed as it is; None where it is changed, or not passed at all.
    """
    given = {k.arg: k.value for k in call.keywords}
    if name not in given or _is_stored_into(function, given[name]):
        return None
    found = {_carried(function, v, f"{record}.{name}") for v in _values(function, given[name])}
    return found.pop() if len(found) == 1 else None


def _touching(field: ContractField) -> re.Pattern[str]:
    """What the text of a function that rebuilds or changes the pair must hold."""
    name = field.localises
    return re.compile(
        rf"\b{name}\s*=(?!=)"  # a keyword, or an assignment to an attribute
        rf"|\.{name}(?:\[[^\]]*\])?\s*(?:[-+*/|&]=|\.\w+_\()"  # an in-place change
        rf"|\.{name}\s*\[[^\]]*\]\s*="
    )


# Records rebuilt with one half of the pair new


def _rebuilt(
    flow: FieldFlow, field: ContractField, function: Function, statement: ast.stmt
) -> Iterator[Change]:
    assert field.localises is not None
    for call in function.calls.get(statement, ()):
        given = {k.arg: k.value for k in written_keywords(call) if k.arg is not None}
        if field.localises not in given:
            continue
        carrier = _carrier(flow, field, function, call, given.get(field.name))
        if carrier is None:
            continue
        record, kept, local_slices = carrier
        pair = f"{record}.{field.localises}"
        found = [_carried(function, v, pair) for v in _values(function, given[field.localises])]
        changed = any(c is None for c in found) or _is_stored_into(function, given[field.localises])
        if changed or any(slices != local_slices for slices in found):
            what = ast.unparse(given[field.localises])
            yield Change(field, function, statement, call, record, what, kept)


def _carrier(
    flow: FieldFlow,
    field: ContractField,
    function: Function,
    call: ast.Call,
    passed: ast.expr | None,
) -> tuple[str, str, str] | None:
    """(record, how, slices) where the new record's local quantity is an old record's."""
    if passed is not None:
        for value in _values(function, passed):
            for node in walk(value):
                if isinstance(node, ast.Attribute) and node.attr == field.name:
                    record = dotted_name(node.value)
                    if record is None or not flow.is_record_expression(function, node.value, field):
                        continue
                    slices = _carried(function, value, f"{record}.{field.name}")
                    if slices is not None:
                        return record, f"{field.name}={ast.unparse(passed)}", slices
        return None
    if callee_name(call) != "replace":
        return None
    source = call.func.value if isinstance(call.func, ast.Attribute) else None
    if source is None or dotted_name(source) == "dataclasses":
        source = call.args[0] if call.args else None
    record = dotted_name(source) if source is not None else None
    if source is None or record is None or not flow.is_record_expression(function, source, field):
        return None
    return record, f"replace() keeps {field.name}", ""


def _carried(function: Function, value: ast.expr, dotted: str) -> str | None:
    """The slices by which `value` takes `dotted` along unchanged; None where it does not."""
    if isinstance(value, ast.Subscript):
        inner = _carried(function, value.value, dotted)
        return None if inner is None else f"{inner}[{ast.unparse(value.slice)}]"
    if isinstance(value, ast.IfExp):
        options = [v for v in (value.body, value.orelse) if not _is_none(v)]
        found = {_carried(function, option, dotted) for option in options}
        return found.pop() if len(found) == 1 else None
    if isinstance(value, ast.Call) and len(value.args) == 1 and isinstance(value.func, ast.Name):
        helper = given_once(function, value.func.id)
        if isinstance(helper, ast.Lambda) and len(helper.args.args) == 1:
            if _carried(function, value.args[0], dotted) == "":
                return _carried(function, helper.body, helper.args.args[0].arg)
    return "" if dotted_name(value) == dotted else None


def _values(function: Function, value: ast.expr) -> list[ast.expr]:
    """The expression, or what the variable that it is has been assigned in the function."""
    if isinstance(value, ast.Name) and value.id not in function.parameters:
        found = [
            node.value
            for node in function.homes
            if isinstance(node, ast.Assign)
            and any(dotted_name(target) == value.id for target in node.targets)
        ]
        if found:
            return found
    return [value]


def _is_stored_into(function: Function, value: ast.expr) -> bool:
    name = dotted_name(value)
    return name is not None and any(
        dotted_name(base) == name for node in function.homes for base in stored_by(function, node)
    )


# Records changed in place


def _changed(
    flow: FieldFlow, field: ContractField, function: Function, statement: ast.stmt
) -> Iterator[Change]:
    """`record.seq_lens = new`, `record.seq_lens -= n`, and no new local quantity after it."""
    targets: list[ast.expr] = list(stored_by(function, statement))
    if isinstance(statement, ast.Assign):
        targets += [t for t in statement.targets if isinstance(t, ast.Attribute)]
    for target in targets:
        if not isinstance(target, ast.Attribute) or target.attr != field.localises:
            continue
        record = dotted_name(target.value)
        if record is None or not flow.is_record_expression(function, target.value, field):
            continue
        if _is_set_after(function, statement, record, field.name):
            continue
        what = ast.unparse(statement)
        yield Change(
            field, function, statement, target, record, what, f"{record}.{field.name} stays"
        )


def _is_set_after(function: Function, statement: ast.stmt, record: str, name: str) -> bool:
    """Whether the function gives the record a new local quantity after `statement`."""
    line = statement.lineno
    for node in function.homes:
        if node.lineno < line:
            continue
        if isinstance(node, ast.Assign):
            if any(dotted_name(t) == f"{record}.{name}" for t in node.targets):
                return True
            if any(dotted_name(t) == record for t in node.targets):
                for call in walk(node.value):
                    if isinstance(call, ast.keyword) and call.arg == name:
                        return True
    return False


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
