"""How functions rebuild, change and share the records that carry contract fields."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from dcplint.contracts.model import ContractField
from dcplint.facts.expressions import dotted_name
from dcplint.flow.conditions import Conditions, Path
from dcplint.flow.fields import FieldFlow
from dcplint.flow.functions import Function, callee_name, expressions, written_keywords
from dcplint.flow.graph import Node, Role
from dcplint.flow.scenario import Scenario
from dcplint.flow.trace import State
from dcplint.flow.walk import bindings, definitions_at
from dcplint.source.tree import walk

_ALIASING = frozenset({"view", "reshape", "narrow", "squeeze", "unsqueeze", "detach", "numpy"})
_ALIASES = 4  # names of names
_STATES = 400  # places and conditions that are looked at for one variable


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


@dataclass(frozen=True, eq=False)
class Store:
    """A store into a tensor that belongs to a record the function was given."""

    function: Function
    statement: ast.stmt
    target: ast.expr
    record: str
    attribute: str


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
                yield from (change for change in changes if _is_filled(flow, change))


def _is_filled(flow: FieldFlow, change: Change) -> bool:
    """Whether the record is known to hold a local quantity, which can go stale."""
    path = (*change.record.split("."), change.field.name)
    outcomes = flow.outcomes(change.function, change.statement, path)
    return any(outcome.state is State.SET for outcome in outcomes)


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
    for expression in expressions(statement):
        for call in walk(expression):
            if not isinstance(call, ast.Call):
                continue
            given = {k.arg: k.value for k in written_keywords(call) if k.arg is not None}
            if field.localises not in given:
                continue
            carrier = _carrier(flow, field, function, call, given.get(field.name))
            if carrier is None:
                continue
            record, kept, local_slices = carrier
            pair = f"{record}.{field.localises}"
            found = [_carried(function, v, pair) for v in _values(function, given[field.localises])]
            changed = any(c is None for c in found) or _is_stored_into(
                function, given[field.localises]
            )
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
        helper = _lambda(function, value.func.id)
        if helper is not None and _carried(function, value.args[0], dotted) == "":
            parameter = helper.args.args[0].arg
            return _carried(function, helper.body, parameter)
    return "" if dotted_name(value) == dotted else None


def _lambda(function: Function, name: str) -> ast.Lambda | None:
    for node in function.homes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
            if any(dotted_name(t) == name for t in node.targets) and node.value.args.args:
                return node.value
    return None


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
        dotted_name(base) == name for node in function.homes for base in _stored(node)
    )


# Records changed in place


def _changed(
    flow: FieldFlow, field: ContractField, function: Function, statement: ast.stmt
) -> Iterator[Change]:
    """`record.seq_lens = new`, `record.seq_lens -= n`, and no new local quantity after it."""
    targets: list[ast.expr] = list(_stored(statement))
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


# Stores into what others share


def shared_stores(flow: FieldFlow, function: Function, field: ContractField) -> Iterator[Store]:
    """In-place stores of `function` into tensors of a record that it was given as an argument."""
    records = [
        name
        for name in function.parameters
        if flow.is_record_expression(function, ast.Name(name), field)
    ]
    aliases = _Aliases(function, flow.tracer.scenario, records)
    for statement in function.homes if records else ():
        for base in _stored(statement):
            for node in function.graph.at(statement):
                tensor = aliases.stored(statement, node, base)
                owner, _, attribute = (tensor or "").partition(".")
                if attribute and "." not in attribute:
                    yield Store(function, statement, base, owner, attribute)


_Alias = tuple["str | None", frozenset[ast.stmt]]
"""A tensor of a record (None where it is something else), and the tests under which it is that."""


@dataclass
class _Aliases:
    """Finds the tensors of a function's records behind variables and views, with DCP on."""

    function: Function
    scenario: Scenario
    records: list[str]

    def stored(self, statement: ast.stmt, node: Node, base: ast.expr) -> str | None:
        """The tensor of a record (`record.name`) that a store goes into, on some way at least.

        A store under a test of its own may be one that only copies come to; that is not known.
        """
        found = set(self._of(node, base, Conditions(), frozenset(), _ALIASES))
        tensors = {tensor for tensor, _ in found}
        if None in tensors:
            own = self._tests(statement)
            tensors = {tensor for tensor, under in found if tensor and own <= under}
        return tensors.pop() if len(tensors) == 1 else None

    def _of(
        self,
        node: Node,
        value: ast.expr,
        conditions: Conditions,
        under: frozenset[ast.stmt],
        depth: int,
        element: Path = (),
    ) -> Iterator[_Alias]:
        """What `value` is before `node`, or is a view of."""
        if isinstance(value, ast.IfExp):
            for side, holds in ((value.body, True), (value.orelse, False)):
                known = self._given(conditions, value.test, holds)
                if known is not None and not _is_none(side):
                    yield from self._of(node, side, known, under, depth, element)
            return
        if isinstance(value, (ast.Tuple, ast.List)) and element:
            index, starred = element[0], any(isinstance(e, ast.Starred) for e in value.elts)
            if isinstance(index, int) and not starred and -len(value.elts) <= index:
                if index < len(value.elts):
                    part = value.elts[index]
                    yield from self._of(node, part, conditions, under, depth, element[1:])
                    return
        dotted = _viewed(value) if not element else None
        root, _, rest = (dotted or "").partition(".")
        if dotted is None or depth == 0:
            yield None, under
        elif rest:
            yield dotted if root in self.records else None, under
        else:
            yield from self._variable(node, root, conditions, under, depth)

    def _variable(
        self,
        node: Node,
        name: str,
        conditions: Conditions,
        under: frozenset[ast.stmt],
        depth: int,
    ) -> Iterator[_Alias]:
        """What a variable is, by each way that its last assignment comes to `node`."""
        seen: set[tuple[Node, Conditions]] = set()
        queue = [(node, conditions)]
        while queue:
            here, held = queue.pop()
            for edge in here.before:
                known = held if edge.test is None else self._given(held, edge.test, edge.holds)
                if known is None or (edge.source, known) in seen:
                    continue
                seen.add((edge.source, known))
                if len(seen) > _STATES:
                    yield None, under
                    return
                source = edge.source
                before = _before(source, known)
                given = list(definitions_at(source, name))
                for value, at, element in given:
                    if value is None:
                        yield None, under
                    elif not _is_none(value) and before is not None:
                        tests = under | self._tests(source.statement)
                        yield from self._of(at, value, before, tests, depth - 1, element)
                if not given and source.role is Role.ENTRY:
                    yield None, under
                elif not given and before is not None:
                    queue.append((source, before))

    def _given(self, conditions: Conditions, test: ast.expr, holds: bool) -> Conditions | None:
        """The conditions with one more; None where that cannot be, with DCP on."""
        truth = self.scenario.truth(self.function, test, conditions.known)
        if truth is not None:
            return conditions if truth is holds else None
        return conditions.given(test, holds)

    def _tests(self, statement: object) -> frozenset[ast.stmt]:
        """The statements around one that decide whether it runs, but for what DCP decides."""
        found: set[ast.stmt] = set()
        node = statement if isinstance(statement, ast.stmt) else None
        while node is not None:
            node = self.function.homes[node].parent
            if isinstance(node, ast.If):
                if self.scenario.truth(self.function, node.test) is None:
                    found.add(node)
        return frozenset(found)


def _before(node: Node, conditions: Conditions) -> Conditions | None:
    """What held before a node bound what it binds; None where that cannot have been."""
    known: Conditions | None = conditions
    for name, value in bindings(node):
        known = known.before_binding(name, value) if known is not None else None
    return known


def _viewed(value: ast.expr) -> str | None:
    """The dotted name that `value` is, or is a view of: what an index tensor picks is a copy."""
    while True:
        if isinstance(value, ast.Subscript):
            if not _is_basic(value.slice):
                return None
            value = value.value
        elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            if value.func.attr not in _ALIASING:
                return None
            value = value.func.value
        else:
            return dotted_name(value)


def _is_basic(index: ast.expr) -> bool:
    """Whether an index is made of slices and numbers."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return all(isinstance(part, (ast.Slice, ast.Constant, ast.UnaryOp)) for part in parts)


def _stored(node: ast.stmt) -> Iterator[ast.expr]:
    """What a statement stores into in place: `x[…] = v`, `x -= v`, `x.add_(v)`."""
    targets = node.targets if isinstance(node, ast.Assign) else []
    if isinstance(node, ast.AugAssign):
        yield node.target.value if isinstance(node.target, ast.Subscript) else node.target
    for target in targets:
        if isinstance(target, ast.Subscript):
            yield target.value
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        callee = node.value.func
        if isinstance(callee, ast.Attribute) and callee.attr.endswith("_"):
            if not callee.attr.startswith("_"):
                yield (
                    callee.value.value if isinstance(callee.value, ast.Subscript) else callee.value
                )


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
