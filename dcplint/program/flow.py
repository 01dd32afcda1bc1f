"""Which of several statements about one name can be the one in force."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from dcplint.facts.model import Condition

T = TypeVar("T")
Conditions = tuple[Condition, ...]
_ALWAYS = frozenset({"type-checking", "guarded"})  # conditions that hold whenever code runs


def runs(conditions: Conditions) -> bool:
    """Whether code under these conditions exists at run time."""
    return not any(c.kind == "type-checking" and not c.negated for c in conditions)


def tests(conditions: Conditions) -> Conditions:
    """Those of the conditions that may or may not hold when the code runs."""
    return tuple([c for c in conditions if c.kind not in _ALWAYS]) if conditions else ()


def in_force(items: Iterable[T], conditions: Callable[[T], Conditions]) -> tuple[list[T], bool]:
    """The items, in source order, of which one is in force at the end, and whether one surely is.

    An unconditional item replaces everything before it; so do the branches of an `if` together,
    when each of them has an item.
    """
    possible: list[T] = []
    certain = False
    # Conditions under which some item is in force, and the first item that contributes.
    covered: dict[Conditions, int] = {}
    for item in items:
        under = tests(conditions(item))
        first = len(possible)
        possible.append(item)
        while under:
            sibling = (*under[:-1], _opposite(under[-1]))
            if sibling not in covered:
                break
            first = min(first, covered[sibling])
            under = under[:-1]
        if under:
            covered[under] = min(first, covered.get(under, first))
        else:
            possible, certain = possible[first:], True
            covered.clear()
    return possible, certain


def _opposite(condition: Condition) -> Condition:
    return replace(condition, negated=not condition.negated)
