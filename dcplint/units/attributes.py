"""What an attribute of a class holds: what the pack says, or all that instances are given.

Constructions give it something, and assignments do, in the class's own methods and elsewhere.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from dcplint.flow.dataclasses import constructor_argument
from dcplint.flow.lookup import Lookup
from dcplint.flow.types import attribute_settings
from dcplint.flow.universe import Universe
from dcplint.program.symbols import ClassSymbol
from dcplint.units.effort import MOST_CALLS, MOST_SITES
from dcplint.units.frames import Evaluate, Frame
from dcplint.units.lattice import UNITS, Abstract, Neutral, Value, joined
from dcplint.units.owners import owners


@dataclass
class Attributes:
    """Follows attributes to what instances are given."""

    universe: Universe
    lookup: Lookup
    evaluate: Evaluate
    _known: dict[tuple[ClassSymbol, str], Abstract] = field(default_factory=dict)

    def __post_init__(self) -> None:
        lengths = self.universe.program.contract.lengths
        self._seeds = {(length.record, length.name): length for length in lengths}

    def of(self, frame: Frame, node: ast.Attribute) -> Abstract:
        """What an attribute is, by the class of what it is read from."""
        found = [
            self._of_class(frame, owner, node.attr)
            for owner in owners(self.universe, frame.function, node.value)
        ]
        known = joined(found) if found else None
        return None if isinstance(known, Neutral) else known

    def _of_class(self, frame: Frame, owner: ClassSymbol, name: str) -> Abstract:
        for entry in self.universe.program.mro(owner).classes:
            seed = self._seeds.get((entry.dotted, name))
            if seed is not None:
                return Value(UNITS[seed.unit], seed.on_device)
        key = (owner, name)
        if key not in self._known:
            self._known[key] = None  # an attribute defined in terms of itself says nothing
            self._known[key] = self._given(frame, owner, name)
        return self._known[key]

    def _given(self, frame: Frame, owner: ClassSymbol, name: str) -> Abstract:
        """What every place that sets an attribute gives it."""
        if frame.calls >= MOST_CALLS or self.lookup.property_of(owner, name) is not None:
            return None
        sites = list(islice(self.lookup.constructions(owner), MOST_SITES + 1))
        if len(sites) > MOST_SITES:
            return None
        values: list[Abstract] = []
        for site in sites:
            passed = constructor_argument(self.universe, site.call, owner, name)
            if passed is not None:
                where = frame.entered(site.function)
                values += [self.evaluate(where, place, passed) for place in site.nodes]
        for method, value, _ in attribute_settings(self.universe, owner, name):
            if value is not None:
                values += self._set(frame.entered(method), value)
        for function, statement, _ in self.lookup.stores(owner, name):
            if function.owner is not owner:  # else set through `self`, which the settings hold
                values += self._stored(frame.entered(function), statement)
        return joined(values) if values else None

    def _set(self, frame: Frame, value: ast.expr) -> Iterator[Abstract]:
        """What a method's `self.name = value` gives."""
        for statement, nodes in frame.function.own_nodes.items():
            if any(node is value for node in nodes):
                for place in frame.function.graph.at(statement):
                    yield self.evaluate(frame, place, value)
                return
        yield None  # part of something that is not listed there

    def _stored(self, frame: Frame, statement: ast.stmt) -> Iterator[Abstract]:
        """What a statement elsewhere gives."""
        value = getattr(statement, "value", None)
        for place in frame.function.graph.at(statement):
            if isinstance(value, ast.expr) and not isinstance(statement, ast.AugAssign):
                yield self.evaluate(frame, place, value)
            else:
                yield None
