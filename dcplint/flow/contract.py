"""The contract as a table: who fills each field in, who leaves it None, and who reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from dcplint.contracts.model import ContractField
from dcplint.facts.positions import position
from dcplint.flow.fields import FieldFlow, Guard, Read, gaps, producers
from dcplint.flow.trace import State, Step
from dcplint.source.location import Location


@dataclass(frozen=True, slots=True)
class Place:
    """A function that fills the field in or leaves it None. reaches: the readers that get it."""

    symbol: str
    location: Location
    guard: Guard
    text: str
    reaches: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reader:
    """A builder or impl that reads the field. closed: all that can get there has been followed."""

    symbol: str
    location: Location
    guard: Guard
    closed: bool


@dataclass(frozen=True, slots=True)
class FieldTable:
    """One field of the contract."""

    field: ContractField
    producers: tuple[Place, ...]
    gaps: tuple[Place, ...]
    readers: tuple[Reader, ...]

    def moved(self, move: Callable[[Location], Location]) -> FieldTable:
        """The same with other locations."""
        return replace(
            self,
            producers=tuple(replace(p, location=move(p.location)) for p in self.producers),
            gaps=tuple(replace(p, location=move(p.location)) for p in self.gaps),
            readers=tuple(replace(r, location=move(r.location)) for r in self.readers),
        )


def field_tables(flow: FieldFlow) -> Iterator[FieldTable]:
    """A table per field of the release."""
    for field in flow.program.contract.fields:
        filled: list[tuple[Step, Read]] = []
        missing: list[tuple[Step, Read]] = []
        readers: list[Reader] = []
        for read in flow.consumers(field):
            outcomes = flow.outcomes(read.function, read.statement, read.path)
            filled += ((step, read) for step in producers(outcomes, field))
            missing += ((o.origin, read) for o in gaps(outcomes) if o.origin is not None)
            readers.append(
                Reader(
                    read.function.qualname,
                    flow.program.location(read.function.module, position(read.node)),
                    flow.guard_at(read.function, read.statement),
                    bool(outcomes) and all(o.state is not State.UNKNOWN for o in outcomes),
                )
            )
        yield FieldTable(
            field,
            tuple(_places(flow, filled)),
            tuple(_places(flow, missing)),
            tuple(sorted(dict.fromkeys(readers), key=_by_place)),
        )


def _places(flow: FieldFlow, steps: Iterable[tuple[Step, Read]]) -> list[Place]:
    reached: dict[tuple[object, int], dict[str, None]] = {}
    first: dict[tuple[object, int], Step] = {}
    for step, read in steps:
        key = (step.module, step.position[0])
        first.setdefault(key, step)
        reached.setdefault(key, {})[read.function.qualname] = None
    places = [
        Place(
            step.symbol,
            flow.program.location(step.module, step.position),
            flow.guard(step),
            step.text,
            tuple(reached[key]),
        )
        for key, step in first.items()
    ]
    return sorted(places, key=_by_place)


def _by_place(place: Place | Reader) -> tuple[str, int]:
    return place.location.path, place.location.line
