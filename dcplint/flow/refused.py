"""What constructors refuse under DCP, as clauses that then hold of every instance.

Whatever runs only where a test comes out against them does not run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from dcplint.flow.clauses import (
    Bare,
    Clause,
    Clauses,
    Name,
    Truth,
    bare_text,
    can_hold,
    clauses,
)
from dcplint.flow.functions import Function
from dcplint.flow.graph import Node
from dcplint.flow.origins import Frame
from dcplint.flow.scenario import Scenario
from dcplint.flow.universe import Universe
from dcplint.program.dcp_use import own_call
from dcplint.program.symbols import ClassSymbol
from dcplint.source.tree import copied

_HELPERS = 2  # methods that a constructor calls, and methods that those call


@dataclass
class Refused:
    """The constructors of impls, with those of the metadata builders that go with them."""

    universe: Universe
    scenario: Scenario
    _known: dict[ClassSymbol, Clauses] = field(default_factory=dict)
    _bare: dict[Function, Bare] = field(default_factory=dict)

    def of(self, symbol: ClassSymbol) -> Clauses:
        """What holds of an instance of `symbol` under DCP, since constructors refuse all else."""
        if symbol not in self._known:
            owners = [symbol, *self.builders(symbol)]
            self._known[symbol] = tuple(
                clause
                for owner in owners
                for constructor in self.constructors(owner)
                for function in self._always_run(owner, constructor, _HELPERS)
                for clause in self._refused_by(function)
            )
        return self._known[symbol]

    def allows(self, symbol: ClassSymbol, frame: Frame, place: Node) -> bool:
        """Whether an instance of `symbol` can come to `place`, called as `frame` says."""
        parts = list(self.of(symbol))
        at: Node | None = place
        here: Frame | None = frame
        while here is not None and at is not None:
            if isinstance(at.statement, ast.stmt) and at.statement in here.function.homes:
                parts += self._leading(here.function, at.statement)
            at = here.place
            here = here.caller
        return can_hold(parts)

    def _leading(self, function: Function, statement: ast.stmt) -> Iterator[Clause]:
        """What the tests around `statement`, and the ways out before it, say of reaching it."""
        name, truth = self._reader(function)
        node: ast.stmt | None = statement
        while node is not None:
            home = function.homes[node]
            for earlier in home.block[: home.index]:
                if isinstance(earlier, ast.Assert):
                    yield from clauses(earlier.test, True, truth, name)
                elif isinstance(earlier, ast.If) and not earlier.orelse and _leaves(earlier.body):
                    yield from clauses(earlier.test, False, truth, name)
            if isinstance(home.parent, ast.If):
                taken = home.block is home.parent.body
                yield from clauses(home.parent.test, taken, truth, name)
            node = home.parent

    def _reader(self, function: Function) -> tuple[Name, Truth]:
        """How tests of `function` are named, and what is known of them."""
        if function not in self._bare:
            self._bare[function] = Bare(dict(_given_once(function)).get)
        bare = self._bare[function]

        def name(test: ast.expr) -> str:
            return bare_text(bare, test)

        def truth(test: ast.expr) -> bool | None:
            return self.scenario.truth(function, test)

        return name, truth

    def builders(self, impl: ClassSymbol) -> Iterator[ClassSymbol]:
        """The metadata builders of the backends that hand out `impl`."""
        accessors = {a.returns: a.name for a in self.universe.program.contract.accessors}
        for backend in self.universe.program.classes("backend"):
            if self.universe.program.result(backend, accessors.get("impl", "")) is impl:
                builder = self.universe.program.result(backend, accessors.get("builder", ""))
                if builder is not None:
                    yield builder

    def constructors(self, symbol: ClassSymbol) -> Iterator[Function]:
        """The constructors that making an instance of `symbol` runs."""
        for owner in self.universe.program.attributes.constructors(symbol, "__init__"):
            for facts in owner.facts.methods:
                if facts.name == "__init__":
                    function = self.universe.function(owner.module, facts)
                    if function is not None:
                        yield function

    def _always_run(
        self, symbol: ClassSymbol, function: Function, helpers: int
    ) -> Iterator[Function]:
        """The function, and the methods that it calls on its instance whatever holds."""
        yield function
        if not helpers or any(isinstance(node, ast.Return) for node in function.homes):
            return
        for statement in function.node.body:
            name = own_call(function.node, statement)
            found = self.universe.program.method(symbol, name) if name is not None else None
            method = self.universe.function(found.owner.module, found.facts) if found else None
            if method is not None:
                yield from self._always_run(symbol, method, helpers - 1)

    def _refused_by(self, function: Function) -> Iterator[Clause]:
        if any(isinstance(node, ast.Return) for node in function.homes):
            return
        name, truth = self._reader(function)
        for node in function.homes:
            if not isinstance(node, (ast.Raise, ast.Assert)):
                continue
            parts: list[Clause] = []
            home: ast.stmt | None = node
            plain = True
            while home is not None:
                place = function.homes[home]
                if isinstance(place.parent, ast.If):
                    taken = place.block is place.parent.body
                    parts += clauses(place.parent.test, taken, truth, name)
                elif place.parent is not None:
                    plain = False
                home = place.parent
            if isinstance(node, ast.Assert):
                parts += clauses(node.test, False, truth, name)
            if plain and all(len(part) == 1 for part in parts):
                yield frozenset((text, not holds) for part in parts for text, holds in part)


def _leaves(body: list[ast.stmt]) -> bool:
    return isinstance(body[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break))


def _given_once(function: Function) -> Iterator[tuple[str, ast.expr]]:
    """Variables that are assigned once, with what they are given."""
    counted: dict[str, list[ast.expr]] = {}
    for node in function.homes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    counted.setdefault(target.id, []).append(node.value)
    for name, values in counted.items():
        if len(values) == 1 and name not in function.parameters:
            yield name, Bare(lambda _: None).visit(copied(values[0]))
