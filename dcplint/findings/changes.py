"""What a fix does, as a rule says it. `dcplint.fixes` turns it into edits.

A change names places only, so a check can say it without a concrete syntax tree.
"""

from __future__ import annotations

from dataclasses import dataclass

from dcplint.source.location import Location


@dataclass(frozen=True, slots=True)
class Change:
    """Base of the changes.

    scope: the lines of the class or function that it stands in, decorators included; nothing else
    has to be parsed for it. at: the node that it is about.
    """

    scope: Location
    at: Location


@dataclass(frozen=True, slots=True)
class StateAttribute(Change):
    """State `name = value` in the class `at`. siblings: attributes that it belongs beside."""

    name: str
    value: bool
    siblings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PassArgument(Change):
    """Pass `name=value` in the call `at`, whatever it passes under that name now."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class DropFallback(Change):
    """Remove what stands in for `path` where the test `at` finds it None.

    What was a statement becomes an assertion; in an expression the path is used bare.
    """

    path: str


@dataclass(frozen=True, slots=True)
class CloneValue(Change):
    """Clone the tensor that the expression `at` is."""
