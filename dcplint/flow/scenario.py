"""Tests under the assumption that DCP is on (or off), wherever the guard is kept.

`program.guards` knows the engine's own words for the DCP world size. Code also keeps the size, or
the answer, in a local, an attribute set by the constructor, a property or a helper; those are
followed here: whatever the thing may have been given must agree. Unknown stays unknown.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from dcplint.facts.expressions import dotted_name, number
from dcplint.flow.conditions import Known, dumped
from dcplint.flow.dataclasses import field_default
from dcplint.flow.definitions import bindings
from dcplint.flow.functions import Function, argument, default
from dcplint.flow.graph import Edge, Node
from dcplint.flow.lookup import Lookup
from dcplint.flow.types import attribute_settings, classes_of
from dcplint.flow.universe import Universe
from dcplint.program.guards import Guards, mirrored
from dcplint.program.symbols import ClassSymbol

_DEPTH = 8
_HELPERS = 2  # functions that a function calls, and that those call
_LINKS = 40  # names in terms of names, for one that holds a size, a rank or a group
_ALONE: frozenset[int | None] = frozenset({1})
_NO_RANK: frozenset[int | None] = frozenset({0, -1, None})

Meaning = tuple[Function, ast.expr]
"""An expression that a name may stand for, and the function it is evaluated in."""


@dataclass
class Scenario:
    """Evaluates tests when DCP is on, or when it is off."""

    universe: Universe
    on: bool = True
    lookup: Lookup = field(init=False)
    _active: set[tuple[Function, str]] = field(default_factory=set)
    _truths: dict[tuple[Function, str], bool | None] = field(default_factory=dict)
    _kinds: dict[tuple[Function, str], bool] = field(default_factory=dict)
    _depth: int = 0
    _names: dict[tuple[Function, str], list[Meaning]] = field(default_factory=dict)
    _attributes: dict[tuple[ClassSymbol, str], list[Meaning]] = field(default_factory=dict)
    _reachable: dict[Function, set[Node]] = field(default_factory=dict)
    _bound: dict[Function, Mapping[str, list[ast.expr | None]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.lookup = Lookup(self.universe)
        contract = self.universe.program.contract
        self._guards = Guards(contract.vocabulary, on=self.on)
        self._groups = frozenset(contract.vocabulary.groups)
        self._group_ranks = contract.vocabulary.group_ranks
        self._group_sizes = contract.vocabulary.group_sizes
        self._derived = frozenset(derived.name for derived in contract.derived)

    def can_run(self, function: Function, statement: ast.stmt) -> bool:
        """Whether `statement` of `function` can run, as far as the function itself tells."""
        reachable = self.reachable(function)
        return any(node in reachable for node in function.graph.at(statement))

    def reachable(self, function: Function) -> set[Node]:
        """The nodes of `function` that control can reach."""
        if function not in self._reachable:
            self._reachable[function] = set(function.graph.nodes)  # while its tests are evaluated
            self._reachable[function] = function.graph.reachable(self._taker(function))
        return self._reachable[function]

    def returns(self, function: Function, steps: int = _HELPERS) -> bool:
        """Whether `function` can come to its end: neither it nor what it calls always raises."""
        raising: set[Node] = set()
        if steps:
            for statement in function.homes:
                call = statement.value if isinstance(statement, ast.Expr) else None
                callees = (
                    self.universe.callees(function, call) if isinstance(call, ast.Call) else ()
                )
                if callees and not any(self.returns(callee, steps - 1) for callee in callees):
                    raising.update(function.graph.at(statement))
        takes = self._taker(function)
        reachable = function.graph.reachable(
            lambda edge: edge.source not in raising and takes(edge)
        )
        return function.graph.end in reachable

    def _taker(self, function: Function) -> Callable[[Edge], bool]:
        def takes(edge: Edge) -> bool:
            return edge.test is None or self.truth(function, edge.test) is not (not edge.holds)

        return takes

    def truth(self, function: Function, test: ast.expr, known: Known | None = None) -> bool | None:
        """The value of `test` in `function`; `known` holds tests decided by the path, by dump."""
        if known:
            decided = known.get(dumped(test))
            if decided is not None:
                return decided
        if isinstance(test, ast.Constant):
            return bool(test.value)
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self.truth(function, test.operand, known)
            return None if inner is None else not inner
        if isinstance(test, ast.BoolOp):
            return _combined(test, [self.truth(function, value, known) for value in test.values])
        if isinstance(test, ast.IfExp):
            chosen = self.truth(function, test.test, known)
            sides = (
                [test.body, test.orelse]
                if chosen is None
                else [test.body if chosen else test.orelse]
            )
            return _agreed(self.truth(function, side, known) for side in sides)
        if isinstance(test, ast.Compare) and len(test.ops) > 1:
            lefts = [test.left, *test.comparators]
            parts = zip(lefts, test.ops, test.comparators, strict=False)
            each = [ast.Compare(left, [op], [right]) for left, op, right in parts]
            return self.truth(function, ast.BoolOp(ast.And(), [*each]), known)
        return self._followed(function, test)

    def _followed(self, function: Function, test: ast.expr) -> bool | None:
        key = (function, dumped(test))
        if key not in self._truths:
            if key in self._active or len(self._active) > _DEPTH:
                return None
            self._active.add(key)
            try:
                self._truths[key] = self._evaluate(function, test)
            finally:
                self._active.discard(key)
        return self._truths[key]

    def _evaluate(self, function: Function, test: ast.expr) -> bool | None:
        if isinstance(test, ast.Attribute) and test.attr in self._derived:
            return self.on  # code asks only where its class keeps the promise
        if self._guards.is_switch(test):
            return self.on
        if isinstance(test, ast.NamedExpr):
            return self.truth(function, test.value)
        if (
            isinstance(test, ast.Call)
            and isinstance(test.func, ast.Name)
            and test.func.id == "bool"
        ):
            return self.truth(function, test.args[0]) if len(test.args) == 1 else None
        if _tested_for_tuple(test) is not None:
            return self._is_asked_for_more(function, test) or None
        if isinstance(test, ast.Compare):
            return self._compared(function, test)
        if self.is_size(function, test):
            return True
        return _agreed(self.truth(where, value) for where, value in self.meanings(function, test))

    def _is_asked_for_more(self, function: Function, test: ast.expr) -> bool:
        """Whether what is tested for a tuple comes from calls that are told to return the LSE too.

        `res = run(q, return_lse=self.need_to_return_lse_for_decode)`: with DCP on, it is a tuple.
        """
        tested = _tested_for_tuple(test)
        if not self.on or tested is None:
            return False
        calls = self.meanings(function, tested)
        return bool(calls) and all(
            isinstance(call, ast.Call)
            and any(self._is_derived(where, k.value) for k in call.keywords)
            for where, call in calls
        )

    def _is_derived(self, function: Function, node: ast.expr) -> bool:
        """Whether `node` is what the engine derives from the promise, or was set to it."""
        if isinstance(node, ast.Attribute) and node.attr in self._derived:
            return True
        return self._is_always(function, node, self._is_derived)

    def is_group(self, function: Function, node: ast.expr) -> bool:
        """Whether `node` is the DCP process group, by its getter or by what it was set to."""
        if self._guards.is_group(node):
            return True
        if isinstance(node, ast.Call) and self.universe.called(function, node) in self._groups:
            return True
        return self._is_always(function, node, self.is_group)

    def is_exclusive(self, function: Function, test: ast.expr) -> bool:
        """Whether `test` holds with DCP on, and never without."""
        if isinstance(test, ast.BoolOp):
            some = any if isinstance(test.op, ast.And) else all
            return some(self.is_exclusive(function, value) for value in test.values)
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            said = self._in_own_words(function, test)
            return said is not None and self._guards.is_exclusive(said, True)
        if self._guards.is_switch(test):
            return True
        key = (function, f"exclusive {dumped(test)}")
        if key in self._active or len(self._active) > _DEPTH:
            return False
        self._active.add(key)
        try:
            found = self.meanings(function, test)
            return bool(found) and all(self.is_exclusive(where, value) for where, value in found)
        finally:
            self._active.discard(key)

    def _compared(self, function: Function, test: ast.Compare) -> bool | None:
        said = self._in_own_words(function, test)
        return self._guards.truth(said) if said is not None else None

    def _in_own_words(self, function: Function, test: ast.Compare) -> ast.Compare | None:
        """A comparison with a number, the DCP size and rank called by their names."""
        left, operator, right = test.left, test.ops[0], test.comparators[0]
        if self._guards.is_switch(left):
            return test
        vocabulary = self.universe.program.contract.vocabulary
        size = ast.Name(next(iter(vocabulary.sizes), ""))
        rank = ast.Name(next(iter(vocabulary.ranks), ""))
        if number(left) is not None:
            left, operator, right = right, mirrored(operator), left
        limit = number(right)
        if limit is None:
            if not isinstance(operator, (ast.Lt, ast.GtE)) or not self.is_size(function, right):
                return None
            return ast.Compare(rank, [operator], [size]) if self.is_rank(function, left) else None
        if self.is_size(function, left):
            return ast.Compare(size, [operator], [right])
        if limit < 1 and self.is_rank(function, left):
            return ast.Compare(rank, [operator], [right])
        return ast.Compare(left, [operator], [right])

    def is_size(self, function: Function, node: ast.expr) -> bool:
        """Whether `node` is the DCP world size, by its name or by what it was set to."""
        if self._guards.is_size(node) or self._is_of_group(function, node, self._group_sizes):
            return True
        return self._is_always(function, node, self.is_size, _ALONE)

    def is_rank(self, function: Function, node: ast.expr) -> bool:
        """Whether `node` is this rank's place in the DCP group, by its name or what it was set to.

        Where there may be no group, it is set to 0 or to what stands for no rank.
        """
        if self._guards.is_rank(node) or self._is_of_group(function, node, self._group_ranks):
            return True
        return self._is_always(function, node, self.is_rank, _NO_RANK)

    def _is_of_group(self, function: Function, node: ast.expr, names: tuple[str, ...]) -> bool:
        """Whether `node` is one of these attributes of the DCP process group."""
        return (
            isinstance(node, ast.Attribute)
            and node.attr in names
            and self.is_group(function, node.value)
        )

    def _is_always(
        self,
        function: Function,
        node: ast.expr,
        asked: Callable[[Function, ast.expr], bool],
        alone: frozenset[int | None] = frozenset(),
    ) -> bool:
        """Whether all that `node` may stand for is what is `asked` for.

        alone: what may stand in for it where there is but one rank.
        """
        if isinstance(node, ast.NamedExpr):
            return asked(function, node.value)
        key = (function, f"{asked.__name__} {dumped(node)}")
        if key not in self._kinds:
            if self._depth > _LINKS:
                return False
            self._kinds[key] = False  # what is defined in terms of itself is nothing
            self._depth += 1
            values = [
                value for value in self._values(function, node) if not _is_one_of(value[1], alone)
            ]
            self._kinds[key] = bool(values) and all(asked(*value) for value in values)
            self._depth -= 1
        return self._kinds[key]

    def _values(self, function: Function, node: ast.expr) -> list[Meaning]:
        """The sides of a conditional expression that can be taken, or what a name stands for."""
        if not isinstance(node, ast.IfExp):
            return self.meanings(function, node)
        truth = self.truth(function, node.test)
        sides = [node.body, node.orelse] if truth is None else []
        return [(function, side) for side in sides or [node.body if truth else node.orelse]]

    def is_group_size(self, node: ast.expr) -> bool:
        """Whether `node` asks the DCP process group for its size, then and there."""
        return (
            isinstance(node, ast.Attribute)
            and node.attr in self._group_sizes
            and self._guards.is_group(node.value)
        )

    # What a name may stand for; nothing where that is not known

    def meanings(self, function: Function, node: ast.expr) -> list[Meaning]:
        """The expressions that `node` may stand for; none where that is not known."""
        if isinstance(node, ast.Name):
            return self._of_name(function, node.id)
        if isinstance(node, ast.Attribute):
            owners = classes_of(self.universe, function, node.value)
            values = [self._of_attribute(owner, node.attr) for owner in owners]
            return [v for found in values for v in found] if all(values) else []
        if isinstance(node, ast.Call):
            callees = self.universe.callees(function, node)
            values = [self._returned(callee) for callee in callees]
            return [v for found in values for v in found] if all(values) else []
        return []

    def _of_name(self, function: Function, name: str) -> list[Meaning]:
        key = (function, name)
        if key not in self._names:
            self._names[key] = self._find_name(function, name)
        return self._names[key]

    def _find_name(self, function: Function, name: str) -> list[Meaning]:
        scope: Function | None = function
        while scope is not None:
            if name in scope.parameters or name in scope.local_names:
                passed = self._passed(scope, name) if name in scope.parameters else []
                if name in scope.parameters and not passed:
                    return []
                found = self._given(scope).get(name, [])
                known = [(scope, value) for value in found if value is not None]
                return [*passed, *known] if len(known) == len(found) else []
            scope = scope.outer
        return []

    def _given(self, function: Function) -> Mapping[str, list[ast.expr | None]]:
        """What each variable of a function is given; None for what is no expression."""
        if function not in self._bound:
            found: dict[str, list[ast.expr | None]] = {}
            for node in function.graph.nodes:
                for name, value in bindings(node):
                    found.setdefault(name, []).append(value)
            self._bound[function] = found
        return self._bound[function]

    def _passed(self, function: Function, name: str) -> list[Meaning]:
        """What every caller passes for a parameter.

        Callers that have nothing to do with the universe are not in it: what is not private to a
        module may be called with its defaults too.
        """
        found: list[Meaning] = []
        if self.lookup.escapes(function):
            return []
        for site in self.universe.callers(function):
            passed = argument(function, site.call, name)
            if passed is None:
                return []
            found.append((site.function, passed))
        left_out = default(function, name)
        if found and left_out is not None and not function.node.name.startswith("_"):
            found.append((function, left_out))
        return found

    def _of_attribute(self, owner: ClassSymbol, name: str) -> list[Meaning]:
        key = (owner, name)
        if key not in self._attributes:
            self._attributes[key] = []  # an attribute defined in terms of itself says nothing
            self._attributes[key] = self._find_attribute(owner, name)
        return self._attributes[key]

    def _find_attribute(self, owner: ClassSymbol, name: str) -> list[Meaning]:
        found: list[Meaning] = []
        prop = self.lookup.property_of(owner, name)
        if prop is not None:
            heirs = [heir for heir in self.universe.heirs(owner, name) if heir.is_property]
            values = [self._returned(p) for p in (prop, *heirs)]
            return [v for each in values for v in each] if all(values) else []
        for method, value, _ in attribute_settings(self.universe, owner, name):
            if value is not None:
                found.append((method, value))
        for method in (f for f in self.lookup.constructors(owner) if f.owner is not owner):
            for node in method.graph.nodes:
                for bound, value in bindings(node):
                    if bound == f"{method.parameters[0]}.{name}":
                        if value is None:
                            return []
                        found.append((method, value))
        for function, statement, target in self.lookup.stores(owner, name):
            for node in function.graph.at(statement):
                for bound, value in bindings(node):
                    if bound == ".".join(map(str, target)):
                        if value is None:
                            return []
                        found.append((function, value))
        if not found and field_default(self.universe, owner, name) is not None:
            return []
        return found

    def _returned(self, function: Function) -> list[Meaning]:
        """What a function returns on the ways that it can take."""
        if function.yields or self.lookup.is_changed_by_decorator(function):
            return []
        found: list[Meaning] = []
        reachable = self.reachable(function)
        for edge in function.graph.end.before:
            if edge.source in reachable and self._taker(function)(edge):
                node = edge.source.statement
                value = node.value if isinstance(node, ast.Return) else None
                found.append((function, value or ast.Constant(None)))
        return found


def _combined(test: ast.BoolOp, values: list[bool | None]) -> bool | None:
    deciding = isinstance(test.op, ast.Or)
    if deciding in values:
        return deciding
    return None if None in values else not deciding


def _is_one_of(node: ast.expr, values: frozenset[int | None]) -> bool:
    if isinstance(node, ast.Constant) and node.value is None:
        return None in values
    found = number(node)
    return found is not None and found in values


def _tested_for_tuple(test: ast.expr) -> ast.Name | None:
    """The variable that `isinstance(variable, tuple)` tests."""
    if isinstance(test, ast.Call) and dotted_name(test.func) == "isinstance":
        if len(test.args) == 2 and dotted_name(test.args[1]) == "tuple":
            return test.args[0] if isinstance(test.args[0], ast.Name) else None
    return None


def _agreed(truths: Iterable[bool | None]) -> bool | None:
    """The one truth that all have; None where there is none or they differ."""
    found = set(truths)
    return found.pop() if len(found) == 1 else None
