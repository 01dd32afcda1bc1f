"""Who says what: every class of a role against every capability."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dcplint.contracts.model import Capability
from dcplint.program.attributes import Resolution
from dcplint.program.program import Program
from dcplint.program.symbols import ClassSymbol
from dcplint.source.location import Location


@dataclass(frozen=True, slots=True)
class Cell:
    """One answer: the resolution, and where it is said."""

    capability: str
    resolution: Resolution
    location: Location | None


@dataclass(frozen=True, slots=True)
class Row:
    """One class. abstract: methods left to subclasses; None where a base is unknown.

    backends: the selector-facing classes that run it.
    """

    symbol: ClassSymbol
    location: Location
    abstract: frozenset[str] | None
    backends: tuple[str, ...]
    cells: tuple[Cell, ...]

    @property
    def level(self) -> str:
        """`concrete`, `abstract`, or `unknown` where a base is not known."""
        if self.abstract is None:
            return "unknown"
        return "abstract" if self.abstract else "concrete"


def columns(program: Program, role: str) -> tuple[Capability, ...]:
    """The capabilities of the role in this release, in the order of the pack."""
    return tuple(c for c in program.contract.capabilities if c.role == role)


def rows(program: Program, role: str = "impl") -> Iterator[Row]:
    """A row per class that plays `role`, by path and line."""
    wanted = columns(program, role)
    running = _running(program, role)
    found = (*program.classes(role), *program.lost(role))
    for symbol in sorted(found, key=lambda s: (s.module.facts.path, s.facts.position)):
        yield Row(
            symbol,
            program.location_of(symbol),
            program.abstract_methods(symbol),
            running.get(symbol, ()),
            tuple(_cell(program, symbol, capability) for capability in wanted),
        )


def _cell(program: Program, symbol: ClassSymbol, capability: Capability) -> Cell:
    resolution = program.promise(symbol, capability)
    place = resolution.place
    location = program.location(place.module, place.fact.position) if place else None
    return Cell(capability.name, resolution, location)


def _running(program: Program, role: str) -> dict[ClassSymbol, tuple[str, ...]]:
    """For each class of `role`, the classes whose accessor returns it."""
    found: dict[ClassSymbol, list[str]] = {}
    for accessor in program.contract.accessors:
        if accessor.returns != role:
            continue
        for symbol in program.classes(accessor.role):
            target = program.result(symbol, accessor.name)
            if target is not None:
                found.setdefault(target, []).append(symbol.facts.name)
    return {symbol: tuple(sorted(set(names))) for symbol, names in found.items()}
