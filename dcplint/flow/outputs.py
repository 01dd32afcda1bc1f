"""The values that methods owe under DCP: who owes them, and what they are made of."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from dcplint.contracts.model import Output
from dcplint.flow.clauses import can_hold
from dcplint.flow.dispatch import Dispatch
from dcplint.flow.functions import Function, Universe
from dcplint.flow.kernels import Kernels
from dcplint.flow.origins import Origin, Origins
from dcplint.flow.refused import Refused
from dcplint.flow.scenario import Scenario
from dcplint.flow.settled import Settled
from dcplint.flow.trace import State, Step
from dcplint.flow.ways import TooManyWays, Value, Walk, Way
from dcplint.program.dcp_use import refusal
from dcplint.program.program import Program
from dcplint.program.reach import refusing_impls
from dcplint.program.symbols import ClassSymbol


@dataclass(frozen=True, eq=False)
class Owed:
    """A method that owes a value: the class that promises it, and the method it runs."""

    output: Output
    symbol: ClassSymbol
    method: Function


@dataclass(frozen=True, slots=True)
class Missing:
    """A way on which an owed value is None. tests: what leads there, as written."""

    origin: Step
    tests: tuple[str, ...]


@dataclass
class OutputFlow:
    """The outputs of a program, followed through helpers and inherited overrides."""

    program: Program
    _origins: dict[ClassSymbol, Origins] = field(default_factory=dict)
    _returned: dict[tuple[Owed, int], tuple[Origin, ...] | None] = field(default_factory=dict)

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
        return Kernels(self.program)

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
        # Few ways have a None at their end: the flags that they ask are looked at closely.
        ways = self._none_ways(owed)
        tests = frozenset(test for way, _ in ways for test in way.asked)
        if tests:
            ways = self._none_ways(owed, tests)
        places: dict[object, Missing] = {}
        for way, origin in ways:
            key = (origin.module, origin.position)
            if key not in places or len(way.tests) < len(places[key].tests):
                places[key] = Missing(origin, way.tests)
        return tuple(places.values())

    def _none_ways(
        self, owed: Owed, closely: frozenset[ast.expr] = frozenset()
    ) -> list[tuple[Way, Step]]:
        """The ways on which the value is None, and where it becomes so; none if they are many."""
        walk = Walk(self.origins(owed.symbol).dispatch, self.settled, closely)
        refused = self.refused.of(owed.symbol)
        found = []
        try:
            for way in walk.ways(owed.method, {}, 0):
                value = (way.returned or Value()).element(owed.output.element)
                if value.state is State.NONE and value.origin is not None:
                    if can_hold((*way.under, *refused)):
                        found.append((way, value.origin))
        except TooManyWays:
            return []
        return found
