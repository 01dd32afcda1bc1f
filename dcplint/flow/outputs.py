"""The values that methods owe under DCP: who owes them, and what they are made of."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from dcplint.contracts.model import Output
from dcplint.flow.branches import Branch, Branches
from dcplint.flow.clauses import can_hold
from dcplint.flow.dispatch import Dispatch
from dcplint.flow.functions import Function, callee_name
from dcplint.flow.kernels import Kernels
from dcplint.flow.origins import Origin, Origins
from dcplint.flow.refused import Refused
from dcplint.flow.scenario import Scenario
from dcplint.flow.settled import Settled
from dcplint.flow.trace import State, Step
from dcplint.flow.unbound import Unbound, unbound
from dcplint.flow.universe import Universe
from dcplint.flow.way import TooManyWays, Value, Way
from dcplint.flow.ways import Walk
from dcplint.program.dcp_use import refusal
from dcplint.program.program import Program
from dcplint.program.reach import refusing_impls
from dcplint.program.symbols import ClassSymbol
from dcplint.source.location import Tree


@dataclass(frozen=True, eq=False)
class Owed:
    """A method that owes a value: the class that promises it, and the method it runs."""

    output: Output
    symbol: ClassSymbol
    method: Function


@dataclass(frozen=True, slots=True)
class Missing:
    """A way on which an owed value is not there. tests: what leads there, as written."""

    origin: Step
    tests: tuple[str, ...]


@dataclass
class OutputFlow:
    """The outputs of a program, followed through helpers and inherited overrides."""

    program: Program
    _origins: dict[ClassSymbol, Origins] = field(default_factory=dict)
    _branches: dict[ClassSymbol, tuple[Branch, ...]] = field(default_factory=dict)
    _returned: dict[tuple[Owed, int], tuple[Origin, ...] | None] = field(default_factory=dict)
    _walked: dict[tuple[Owed, bool, frozenset[ast.expr]], tuple[Way, ...]] = field(
        default_factory=dict
    )

    @cached_property
    def universe(self) -> Universe:
        """The modules of every impl, and of its bases."""
        modules = dict.fromkeys(
            entry.module
            for symbol in self.program.classes("impl")
            for entry in self.program.mro(symbol).classes
        )
        return Universe(self.program, tuple(modules))

    @cached_property
    def scenario(self) -> Scenario:
        """What tests are with DCP on."""
        return Scenario(self.universe)

    @cached_property
    def settled(self) -> Settled:
        """What flags are with DCP on."""
        return Settled(self.universe, self.scenario)

    @cached_property
    def refused(self) -> Refused:
        """What constructors refuse."""
        return Refused(self.universe, self.scenario)

    @cached_property
    def kernels(self) -> Kernels:
        """Which calls run a kernel or a merge."""
        return Kernels(self.universe)

    @cached_property
    def owed(self) -> tuple[Owed, ...]:
        """Every concrete class that promises an output and may run under DCP, with the method."""
        return tuple(self._find_owed())

    def _find_owed(self) -> Iterator[Owed]:
        program = self.program
        for output in program.contract.outputs:
            promise = program.contract.capability(output.role, output.capability)
            if promise is None:
                continue
            for symbol in program.classes(output.role):
                if program.abstract_methods(symbol) != frozenset():
                    continue
                if program.promise(symbol, promise).holds() is not True:
                    continue
                method = program.method(symbol, output.method)
                if method is None or not self.may_run(symbol):
                    continue
                function = self.universe.function(method.owner.module, method.facts)
                if function is not None:
                    yield Owed(output, symbol, function)

    def may_run(self, symbol: ClassSymbol) -> bool:
        """Whether neither its constructor nor a gate refuses an impl under DCP."""
        return refusal(self.program, symbol) is None and not refusing_impls(self.program, symbol)

    def branches(self, symbol: ClassSymbol) -> tuple[Branch, ...]:
        """What the methods of `symbol` do only under DCP, or in another way than without."""
        if symbol not in self._branches:
            dispatch, off = self.origins(symbol).dispatch, self._unsharded.scenario
            words = frozenset({*self.program.contract.vocabulary.semantics, "causal"})
            finder = Branches(dispatch, self.scenario, off, words)
            self._branches[symbol] = tuple(
                branch
                for facts in symbol.facts.methods
                if facts.name != "__init__"
                for function in (self.universe.function(symbol.module, facts),)
                if function is not None
                for branch in finder.of(function)
            )
        return self._branches[symbol]

    def origins(self, symbol: ClassSymbol) -> Origins:
        """What makes values in the methods of `symbol`."""
        if symbol not in self._origins:
            dispatch = Dispatch(self.universe, symbol, self.kernels)
            self._origins[symbol] = Origins(dispatch, self.scenario)
        return self._origins[symbol]

    def made_of(self, owed: Owed) -> tuple[Origin, ...] | None:
        """What the owed value can be, on whatever way that no constructor refuses.

        None where that is too much to tell.
        """
        return self.returned(owed, owed.output.element)

    def returned(self, owed: Owed, element: int) -> tuple[Origin, ...] | None:
        """As `made_of`, of any element of what the method returns."""
        key = (owed, element)
        if key not in self._returned:
            found = self.origins(owed.symbol).returned(owed.method, (element,))
            self._returned[key] = found and tuple(
                o for o in found if self.refused.allows(owed.symbol, o.frame, o.place)
            )
        return self._returned[key]

    def missing(self, owed: Owed) -> tuple[Missing, ...]:
        """Where the method can return None in place of the value, once per place."""
        made = self.made_of(owed)
        if made is not None and not any(origin.is_none for origin in made):
            return ()
        return self._where(owed, lambda value: _none(value.element(owed.output.element)))

    def alone(self, owed: Owed) -> tuple[Missing, ...]:
        """Where the method can return one value, no tuple, though elsewhere it returns a tuple."""
        return self._single(owed) if self._returns_tuples(owed) else ()

    def lone(self, owed: Owed) -> tuple[Missing, ...]:
        """Where the method returns one value, no tuple, and nowhere a tuple."""
        return () if self._returns_tuples(owed) else self._single(owed)

    def _single(self, owed: Owed) -> tuple[Missing, ...]:
        if owed.output.element == 0 or self._is_told_apart(owed.output):
            return ()
        return self._where(owed, lambda value: value.origin if value.single else None)

    def _returns_tuples(self, owed: Owed) -> bool:
        """Whether some way, with DCP on or off, ends in a tuple."""
        sharded = any(_is_tuple(way.returned) for way in self._ways(owed, on=True))
        return sharded or any(_is_tuple(way.returned) for way in self._ways(owed, on=False))

    @cached_property
    def unbound(self) -> tuple[Unbound, ...]:
        """What methods of impls in the checked tree read before it has a value."""
        off = self._unsharded.scenario
        impls = frozenset(self.program.classes("impl"))
        return tuple(
            found
            for module, facts, owner, _ in self.universe.entries
            if owner in impls and module.tree is Tree.PROJECT
            for function in (self.universe.function(module, facts),)
            if function is not None
            for found in unbound(function, self.scenario, off)
            if not found.sharded or self.may_run(owner)
        )

    @cached_property
    def _unsharded(self) -> Settled:
        """What flags are with DCP off."""
        return Settled(self.universe, Scenario(self.universe, on=False))

    def _is_told_apart(self, output: Output) -> bool:
        """Whether a caller asks whether it got a tuple."""
        for site in self.universe.calls_of(output.method):
            node = site.statement
            if isinstance(node, ast.Assign) and node.value is site.call:
                names = {target.id for target in node.targets if isinstance(target, ast.Name)}
                if any(_asks_kind(call, names) for c in site.function.calls.values() for call in c):
                    return True
        return False

    def _where(self, owed: Owed, place: Callable[[Value], Step | None]) -> tuple[Missing, ...]:
        """Where `place` says that a result falls short, once per place."""
        # Few ways do so at their end: the flags that they ask are looked at closely.
        ways = self._short(owed, place)
        tests = frozenset(test for way, _ in ways for test in way.asked)
        if tests:
            ways = self._short(owed, place, tests)
        places: dict[object, Missing] = {}
        for way, origin in ways:
            key = (origin.module, origin.position)
            if key not in places or len(way.tests) < len(places[key].tests):
                places[key] = Missing(origin, way.tests)
        return tuple(places.values())

    def _short(
        self,
        owed: Owed,
        place: Callable[[Value], Step | None],
        closely: frozenset[ast.expr] = frozenset(),
    ) -> list[tuple[Way, Step]]:
        """The ways on which a result falls short, and where; none if they are many."""
        refused = self.refused.of(owed.symbol)
        found = []
        for way in self._ways(owed, True, closely):
            origin = place(way.returned or Value())
            if origin is not None and can_hold((*way.under, *refused)):
                found.append((way, origin))
        return found

    def _ways(
        self, owed: Owed, on: bool, closely: frozenset[ast.expr] = frozenset()
    ) -> tuple[Way, ...]:
        """The ways through a method with DCP on or off; none if they are many."""
        key = (owed, on, closely)
        if key not in self._walked:
            settled = self.settled if on else self._unsharded
            walk = Walk(self.origins(owed.symbol).dispatch, settled, closely)
            try:
                self._walked[key] = tuple(walk.ways(owed.method, {}, 0))
            except TooManyWays:
                self._walked[key] = ()
        return self._walked[key]


def _none(value: Value) -> Step | None:
    return value.origin if value.state is State.NONE else None


def _is_tuple(value: Value | None) -> bool:
    return value is not None and value.elements is not None and len(value.elements) > 1


def _asks_kind(call: ast.Call, names: set[str]) -> bool:
    return (
        callee_name(call) == "isinstance"
        and bool(call.args)
        and isinstance(call.args[0], ast.Name)
        and call.args[0].id in names
    )
