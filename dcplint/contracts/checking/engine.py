"""An engine release as the comparison sees it. `program.release` reads one from its source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the engine's source; `path` is relative to the folder that holds its package."""

    path: str
    line: int


class Engine(Protocol):
    """An engine release as the comparison sees it. Names are dotted and absolute."""

    def resolve(self, name: str) -> str | None:
        """The name under which that module, class, function or attribute is defined.

        Imports and re-exports are followed; None where the release has no such name.
        """

    def place(self, name: str) -> Place:
        """Where a name that resolves is defined."""

    def bases(self, name: str) -> tuple[str, ...]:
        """The defining names of a class's direct bases, subscripts dropped."""

    def methods(self, name: str) -> frozenset[str]:
        """The methods in a class's own body."""

    def abstract_methods(self, name: str) -> frozenset[str]:
        """Those of them that are abstract."""

    def fields(self, name: str) -> frozenset[str]:
        """The annotated attributes in a class's own body."""

    def class_value(self, name: str, attribute: str) -> object:
        """The literal a class's own body gives an attribute, or None."""

    def parameters(self, function: str) -> tuple[str, ...]:
        """The names of a function's parameters."""

    def mentions(self, function: str, name: str) -> bool:
        """Whether a function's body names an attribute, a variable or a string `name`."""

    def source_line(self, path: str, line: int) -> str | None:
        """One line of the release, or None where there is none."""
