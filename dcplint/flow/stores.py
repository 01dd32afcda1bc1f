"""In-place stores into the tensors of a record that a function was given, under whatever name.

What a helper stores into what it is handed counts as its caller's, wherever the helper stands and
by whatever name it is called.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from dcplint.contracts.model import ContractField
from dcplint.flow.aliases import Aliases, enclosing
from dcplint.flow.conditions import Path, names, substituted
from dcplint.flow.fields import FieldFlow
from dcplint.flow.functions import Function, argument
from dcplint.flow.graph import Node
from dcplint.flow.scenario import Scenario
from dcplint.flow.types import classes_of
from dcplint.flow.values import unpacked
from dcplint.program.program import Program
from dcplint.program.symbols import ClassSymbol

_NO_STORES = frozenset({"requires_grad_", "share_memory_"})
_READERS = frozenset({"builder", "impl"})
_NUMBER = re.compile(r"(?:Optional\[)?(?:int|float|bool|str)\]?(?: *\| *None)?")
_SCALAR = frozenset({"upper-bound", "queries"})  # what one number may stand for
_LEVELS = 4  # helpers of helpers that store


@dataclass(frozen=True, eq=False)
class Store:
    """A store into a tensor that belongs to a record the function was given.

    by: the helper's function and statement, where that is what stores. copied: whether the record
    is a copy of the one that the function was given, with the same tensors.
    """

    function: Function
    statement: ast.stmt
    target: ast.expr
    record: str
    attribute: str
    by: tuple[Function, ast.stmt] | None = None
    copied: bool = False


def is_looked_at(program: Program, owner: ClassSymbol | None) -> bool:
    """Whether the methods of a class are given records that others share."""
    return owner is not None and bool(program.roles(owner) & _READERS)


def shared_stores(flow: FieldFlow, function: Function, field: ContractField) -> Iterator[Store]:
    """In-place stores of `function` into tensors of a record that it was given as an argument."""
    search = _Search(flow, field)
    records = frozenset(
        name
        for name in function.parameters
        if flow.is_record_expression(function, ast.Name(name), field)
    )
    for statement, target, path, by, copied in search.stores(function, records, _LEVELS):
        if len(path) != 2:
            continue
        record, attribute = map(str, path)
        stores = by[1] if by is not None else statement
        own = (ast.Name, ast.Attribute) if copied else ast.Name
        named = isinstance(stores, ast.AugAssign) and isinstance(stores.target, own)
        if named and not _is_tensor(flow, function, record, attribute):
            continue  # `n = record.count; n += 1` gives `n` another number
        yield Store(function, statement, target, record, attribute, by, copied)


def _is_tensor(flow: FieldFlow, function: Function, record: str, attribute: str) -> bool:
    """Whether a field holds a tensor: by its annotation, else by the contract's lengths."""
    annotations = [
        fact.annotation
        for symbol in classes_of(flow.universe, function, ast.Name(record))
        for entry in flow.program.mro(symbol).classes
        for fact in entry.facts.attributes
        if fact.name == attribute and fact.annotation
    ]
    if annotations:
        return not any(map(_NUMBER.fullmatch, annotations))
    return any(
        length.name == attribute and length.unit not in _SCALAR
        for length in flow.program.contract.lengths
    )


def stored_by(function: Function, node: ast.stmt) -> Iterator[ast.expr]:
    """What a statement stores into in place: `x[…] = v`, `x -= v`, `x.add_(v)`, `f(…, out=x)`."""
    if isinstance(node, ast.AugAssign):
        yield _whole(node.target)
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            for inner, _ in unpacked(target, ()):
                if isinstance(inner, ast.Subscript):
                    yield inner.value
    for call in function.calls.get(node, ()):
        callee = call.func
        if isinstance(callee, ast.Attribute) and callee.attr.endswith("_"):
            if not callee.attr.startswith("_") and callee.attr not in _NO_STORES:
                yield _whole(callee.value)
        yield from (_whole(k.value) for k in call.keywords if k.arg == "out")


def _handed(call: ast.Call) -> Iterator[ast.expr]:
    """The arguments of a call."""
    yield from call.args
    yield from (keyword.value for keyword in call.keywords)


def _whole(value: ast.expr) -> ast.expr:
    return value.value if isinstance(value, ast.Subscript) else value


_Found = tuple[ast.stmt, ast.expr, Path, "tuple[Function, ast.stmt] | None", bool]


@dataclass
class _Search:
    """Finds the stores of a function into what some of its parameters hold."""

    flow: FieldFlow
    contract_field: ContractField
    _found: dict[tuple[Function, frozenset[str], int], tuple[_Found, ...]] = field(
        default_factory=dict
    )

    def stores(self, function: Function, given: frozenset[str], levels: int) -> tuple[_Found, ...]:
        """The stores, with the path from the parameter on, and the helper that makes it."""
        key = (function, given, levels)
        if key not in self._found:
            self._found[key] = tuple(self._find(function, given, levels)) if given else ()
        return self._found[key]

    def _find(self, function: Function, given: frozenset[str], levels: int) -> Iterator[_Found]:
        aliases = Aliases(function, self.flow.tracer.scenario, given)
        for statement in function.homes:
            for target in stored_by(function, statement):
                for path, copied in aliases.stored(statement, target):
                    yield statement, target, path, None, copied
            for call in function.calls.get(statement, ()) if levels else ():
                handed = [value for value in _handed(call) if aliases.may_be_given(value)]
                if handed:
                    yield from self._by_helper(aliases, statement, call, handed, levels)

    def _by_helper(
        self,
        aliases: Aliases,
        statement: ast.stmt,
        call: ast.Call,
        handed: list[ast.expr],
        levels: int,
    ) -> Iterator[_Found]:
        """The stores that a called function makes into what it is handed."""
        function = aliases.function
        callees = self.flow.universe.callees(function, call, statement)
        if len(callees) != 1:
            return
        made = _Made(self.flow.tracer.scenario, function, call, callees[0])
        for name in callees[0].parameters:
            value = argument(callees[0], call, name)
            if value is None or not any(value is other for other in handed):
                continue
            found = self.stores(callees[0], frozenset({name}), levels - 1)
            stores = [store for store in found if made.runs(store[0])]
            for path, copied in aliases.stored(statement, value) if stores else ():
                if len(path) == 1 and self._is_told(callees[0], name):
                    continue
                for inner, _, rest, by, again in stores:
                    if (
                        copied
                        and len(path) == 1
                        and not self._is_shared(aliases, statement, value, rest)
                    ):
                        continue
                    by = by or (callees[0], inner)
                    yield statement, value, (*path, *rest[1:]), by, copied or again

    def _is_shared(
        self, aliases: Aliases, statement: ast.stmt, value: ast.expr, path: Path
    ) -> bool:
        """Whether what a copied record is stored into at `path` has not been exchanged in it."""
        part = ast.Attribute(value, str(path[1]), ast.Load()) if len(path) > 1 else value
        return bool(aliases.stored(statement, part))

    def _is_told(self, function: Function, name: str) -> bool:
        """Whether what a function stores into the record that it is given is told of itself."""
        return is_looked_at(self.flow.program, function.owner) and self.flow.is_record_expression(
            function, ast.Name(name), self.contract_field
        )


@dataclass(frozen=True)
class _Made:
    """A call, made by `caller`, that runs `callee`."""

    scenario: Scenario
    caller: Function
    call: ast.Call
    callee: Function

    def runs(self, statement: ast.stmt) -> bool:
        """Whether the call runs `statement` as far as its arguments decide that."""
        reached = self._reached
        if not any(node in reached for node in self.callee.graph.at(statement)):
            return False
        given = set(self.callee.parameters[1 if self.callee.is_method else 0 :])
        tests = [around.test for around, _ in enclosing(self.callee, statement)]
        return all(self._truth(test) is not None for test in tests if names(test) & given)

    @cached_property
    def _reached(self) -> set[Node]:
        return self.callee.graph.reachable(
            lambda edge: edge.test is None or self._truth(edge.test) is not (not edge.holds)
        )

    def _truth(self, test: ast.expr) -> bool | None:
        """The value of a test in the called function, with this call's arguments put in."""
        known = self.scenario.truth(self.callee, test)
        read = names(test)
        if known is not None or not read <= set(self.callee.parameters):
            return known
        given = {name: argument(self.callee, self.call, name) for name in read}
        values = {name: value for name, value in given.items() if value is not None}
        if len(values) < len(read) or any(map(self.callee.rebinds, read)):
            return None
        return self.scenario.truth(self.caller, substituted(test, values))
