"""Classes that a backend hands out without DCP only: with it, another class takes their place."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from dcplint.facts.expressions import dotted_name
from dcplint.flow.functions import Function
from dcplint.flow.scenario import Scenario
from dcplint.flow.universe import Universe
from dcplint.program.program import Program
from dcplint.program.symbols import ClassSymbol


@dataclass(frozen=True, slots=True)
class Exchange:
    """A method of a backend, a return of it that DCP rules out, and the classes that it takes."""

    accessor: Function
    statement: ast.Return
    instead: tuple[ClassSymbol, ...]


@dataclass(frozen=True)
class Exchanged:
    """Reads the methods by which backends name their classes."""

    program: Program

    def of(self, symbol: ClassSymbol, role: str) -> Exchange | None:
        """How DCP exchanges `symbol`, which plays `role`; None where it may be handed out.

        Its own name decides: a class that derives from it is handed out, or not, by itself.
        """
        exchange = None
        for accessor in self._accessors(symbol, role):
            handed = list(self._handed(accessor))
            ruled_out = next((s for s, one, can_be in handed if one is symbol and not can_be), None)
            instead = tuple(dict.fromkeys(one for _, one, can_be in handed if can_be))
            known = tuple(one for one in instead if one is not None)
            if ruled_out is None or symbol in instead or known != instead:
                return None
            exchange = exchange or Exchange(accessor, ruled_out, known)
        return exchange

    def _accessors(self, symbol: ClassSymbol, role: str) -> Iterator[Function]:
        """The methods that name the classes of a role, and speak of `symbol`."""
        names = {a.name for a in self.program.contract.accessors if a.returns == role}
        for backend in self.program.classes("backend"):
            for facts in backend.facts.methods:
                if facts.name not in names:
                    continue
                if symbol.facts.name in self.program.modules.source(backend.module, facts):
                    accessor = self._scenario.universe.function(backend.module, facts)
                    if accessor is not None and symbol.facts.name in accessor.mentions:
                        yield accessor

    def _handed(self, accessor: Function) -> Iterator[tuple[ast.Return, ClassSymbol | None, bool]]:
        """What each return names, a class where that can be told, and whether it may under DCP."""
        for statement in accessor.homes:
            if isinstance(statement, ast.Return):
                can_run = self._scenario.can_run(accessor, statement)
                for value, can_be in self._choices(accessor, statement.value):
                    yield statement, self._named(accessor, value), can_run and can_be

    def _choices(
        self, accessor: Function, value: ast.expr | None
    ) -> Iterator[tuple[ast.expr | None, bool]]:
        if not isinstance(value, ast.IfExp):
            yield value, True
            return
        truth = self._scenario.truth(accessor, value.test)
        for side, holds in ((value.body, True), (value.orelse, False)):
            for choice, can_be in self._choices(accessor, side):
                yield choice, can_be and truth is not (not holds)

    def _named(self, accessor: Function, value: ast.expr | None) -> ClassSymbol | None:
        dotted = dotted_name(value) if value is not None else None
        if dotted is None:
            return None
        found = accessor.named(self.program.linker, dotted)
        return found if isinstance(found, ClassSymbol) else None

    @cached_property
    def _scenario(self) -> Scenario:
        modules = dict.fromkeys(symbol.module for symbol in self.program.classes("backend"))
        return Scenario(Universe(self.program, self.program.with_helpers(modules)))
