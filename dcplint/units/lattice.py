"""What a length counts, and of which tokens: the units that values of engine code carry."""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterable
from dataclasses import dataclass, replace

from dcplint.flow.functions import Function


class Space(enum.Enum):
    """Of which tokens."""

    GLOBAL = "global"
    LOCAL = "local"
    ALL_RANKS = "all ranks'"


class Counts(enum.Enum):
    """What is counted."""

    SEQUENCE = "length"
    CONTEXT = "context length"  # without the tokens that are new in this step
    ROWS = "length per query row"
    QUERIES = "query length"
    OFFSETS = "row offset"
    PAGES = "page count"
    PLACES = "token indices"
    OTHER = "quantity"
    GIVEN = "given length"  # of whatever kind: what a function is asked what it makes of


@dataclass(frozen=True, slots=True)
class Unit:
    """bound: it may be larger than the exact number. None: that depends on the way taken."""

    space: Space
    counts: Counts = Counts.SEQUENCE
    bound: bool | None = False

    def __str__(self) -> str:
        bound = "upper bound of the " if self.bound else ""
        return f"{bound}{self.space.value} {self.counts.value}"

    def joined(self, other: Unit) -> Unit | None:
        """What both of them are; None where that says nothing."""
        if self.space is not other.space:
            return None
        counts = self.counts if self.counts is other.counts else Counts.OTHER
        return Unit(self.space, counts, self.bound if self.bound is other.bound else None)


UNITS = {
    "global": Unit(Space.GLOBAL),
    "local": Unit(Space.LOCAL),
    "all-ranks": Unit(Space.ALL_RANKS),
    "upper-bound": Unit(Space.GLOBAL, bound=True),
    "local-upper-bound": Unit(Space.LOCAL, bound=True),
    "queries": Unit(Space.GLOBAL, Counts.QUERIES),
    "query-offsets": Unit(Space.GLOBAL, Counts.OFFSETS),
    "places": Unit(Space.GLOBAL, Counts.PLACES),
    "local-places": Unit(Space.LOCAL, Counts.PLACES),
}
"""The units of a pack."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One place that a value passed through."""

    function: Function
    node: ast.AST
    text: str


@dataclass(frozen=True, slots=True)
class Value:
    """A value whose unit is known. trail: where it got it, origin first."""

    unit: Unit
    on_device: bool = False
    trail: tuple[Mark, ...] = ()

    def at(self, mark: Mark) -> Value:
        """The same value, seen after one more place."""
        return replace(self, trail=(*self.trail, mark)[-_TRAIL:])


_TRAIL = 6


class Neutral:
    """A number or None: it says nothing of the unit of what it stands beside."""


@dataclass(frozen=True, slots=True)
class Several:
    """The elements of a tuple or list."""

    items: tuple[Abstract, ...]


Abstract = Value | Neutral | Several | None
"""What is known of a value; None where nothing is."""

NEUTRAL = Neutral()


def joined(values: Iterable[Abstract]) -> Abstract:
    """What all of the values are."""
    found: Abstract = NEUTRAL
    for value in values:
        found = _join(found, value)
        if found is None:
            return None
    return found


def _join(one: Abstract, other: Abstract) -> Abstract:
    if isinstance(one, Neutral):
        return other
    if isinstance(other, Neutral):
        return one
    if isinstance(one, Value) and isinstance(other, Value):
        unit = one.unit.joined(other.unit)
        if unit is None:
            return None
        return replace(one, unit=unit, on_device=one.on_device and other.on_device)
    if isinstance(one, Several) and isinstance(other, Several):
        if len(one.items) == len(other.items):
            pairs = zip(one.items, other.items, strict=True)
            return Several(tuple(_join(a, b) for a, b in pairs))
    return None


def item(found: Abstract, index: object) -> Abstract:
    """One element of what is known by its elements."""
    if isinstance(found, Several) and isinstance(index, int):
        if -len(found.items) <= index < len(found.items):
            return found.items[index]
    return None


def added(one: Abstract, other: Abstract, negative: bool) -> Unit | None:
    """The unit of a sum or difference; None where it is no length any more."""
    if any(isinstance(v, Value) and v.unit.counts is Counts.GIVEN for v in (one, other)):
        return None  # it is another one
    if isinstance(other, Neutral) and isinstance(one, Value):
        return one.unit
    if isinstance(one, Neutral) and isinstance(other, Value) and not negative:
        return other.unit
    if not isinstance(one, Value) or not isinstance(other, Value):
        return None
    if one.unit.counts in _STEPS and other.unit.counts in _STEPS:
        offset = Counts.OFFSETS in (one.unit.counts, other.unit.counts)
        return replace(one.unit, counts=Counts.OFFSETS if offset else Counts.QUERIES)
    if one.unit.counts in _STEPS and not negative:
        one, other = other, one
    if one.unit.space is not Space.GLOBAL or other.unit.counts not in _STEPS:
        return None
    if other.unit.counts is Counts.OFFSETS or one.unit.counts is Counts.ROWS:
        return replace(one.unit, counts=Counts.ROWS)
    if one.unit.counts is Counts.SEQUENCE and negative:
        return replace(one.unit, counts=Counts.CONTEXT)
    if one.unit.counts is Counts.CONTEXT and not negative:
        return replace(one.unit, counts=Counts.SEQUENCE)
    return None


_STEPS = frozenset({Counts.QUERIES, Counts.OFFSETS})
LENGTHS = frozenset({Counts.SEQUENCE, Counts.CONTEXT, Counts.ROWS})


def shifts_local(one: Abstract, other: Abstract) -> bool:
    """Whether a sum or difference moves a local length by tokens of this step."""
    values = [v for v in (one, other) if isinstance(v, Value)]
    return (
        len(values) == 2
        and any(v.unit.space is Space.LOCAL and v.unit.counts in LENGTHS for v in values)
        and any(v.unit.counts in _STEPS for v in values)
    )
