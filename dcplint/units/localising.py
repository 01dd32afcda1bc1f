"""Every place where lengths are localised: by a localizer of the pack, or a function around one.

What such a function returns for a global length of whatever kind is the local length of that kind:
it may test whether DCP is on, take the rank from an attribute and put the result into a buffer.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from dcplint.flow.functions import CallSite, Function, argument
from dcplint.source.tree import walk
from dcplint.units.flow import UnitFlow
from dcplint.units.lattice import Counts, Space, Unit, Value
from dcplint.units.stores import stores

_LEVELS = 3  # functions around functions around a localizer
_GIVEN = Value(Unit(Space.GLOBAL, Counts.GIVEN))


@dataclass(frozen=True, slots=True)
class Localisation:
    """A call that localises `length`.

    is_share: whether it gives this rank's share, not every rank's or the largest. is_around:
    whether it stands in a function that localises one of its own parameters by it.
    """

    site: CallSite
    length: ast.expr
    is_share: bool
    is_around: bool


@dataclass
class Localising:
    """Finds them."""

    units: UnitFlow
    _parameters: dict[Function, str | None] = field(default_factory=dict)

    @cached_property
    def places(self) -> tuple[Localisation, ...]:
        """The calls that localise lengths, those of the pack's localizers first."""
        found: dict[ast.Call, Localisation] = {}
        fresh = list(self._direct())
        for _ in range(_LEVELS + 1):
            found |= {place.site.call: place for place in fresh}
            around = dict.fromkeys(p.site.function for p in fresh if p.is_around)
            calls = [site for f in around for site in self.units.universe.callers(f)]
            fresh = [p for c in calls if c.call not in found for p in self._indirect(c)]
        return tuple(found.values())

    def _direct(self) -> Iterator[Localisation]:
        localizers = self.units.localizers
        for spelling in localizers.spellings:
            for site in self.units.universe.calls_of(spelling):
                length = localizers.localised(site.function, site.call)
                if length is not None:
                    is_share = localizers.sharded(site.function, site.call) is not None
                    yield self._at(site, length, is_share)

    def _indirect(self, site: CallSite) -> Iterator[Localisation]:
        """A call of functions that all localise what it passes them."""
        lengths = [
            argument(callee, site.call, name) if (name := self._parameters.get(callee)) else None
            for callee in self.units.universe.callees(site.function, site.call, site.statement)
        ]
        length = lengths[0] if lengths else None
        if length is not None and all(other is length for other in lengths):
            value = self.units.value(site.function, site.statement, site.call)
            unit = value.unit if isinstance(value, Value) else None
            is_share = unit is not None and unit.space is Space.LOCAL and unit.bound is not True
            yield self._at(site, length, is_share)

    def _at(self, site: CallSite, length: ast.expr, is_share: bool) -> Localisation:
        function = site.function
        if self._parameters.get(function) is None:
            names = _going_into(function, length)
            asked = (name for name in function.parameters if name in names)
            found = (name for name in asked if self._is_localised(function, name))
            self._parameters[function] = next(found, None)
        return Localisation(site, length, is_share, self._parameters[function] is not None)

    def _is_localised(self, function: Function, parameter: str) -> bool:
        """Whether a function returns the local length for what it is given for a parameter."""
        if function.yields or function.is_property:
            return False
        found = self.units.returned(function, parameter, _GIVEN)
        if not isinstance(found, Value) or found.unit.counts is not Counts.GIVEN:
            return False
        return found.unit.space is not Space.GLOBAL and found.unit.bound is False


def _going_into(function: Function, node: ast.expr) -> set[str]:
    """The variables of which an expression may be made, at most."""
    names = {*_variables(node)}
    given = list(stores(function))
    before = -1
    while len(names) > before:
        before = len(names)
        for target, value in given:
            if target.partition(".")[0] in names:
                names |= {*_variables(value)}
    return names


def _variables(node: ast.AST) -> Iterator[str]:
    return (inner.id for inner in walk(node) if isinstance(inner, ast.Name))
