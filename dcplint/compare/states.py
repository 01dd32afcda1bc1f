"""What the classes of a tree promise, who says so and who asks, apart from the program itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dcplint.contracts.model import Capability, Gate
from dcplint.program.attributes import Kind
from dcplint.program.matrix import Cell, Row, columns, rows
from dcplint.program.program import Program
from dcplint.program.symbols import ClassSymbol
from dcplint.source.location import Location

_ROLE = "impl"


@dataclass(frozen=True, slots=True)
class Promise:
    """What a class says of one capability.

    value: None where it is unknown, for which `reason` then says why. owner: the class that says
    it, at `location`. asked: the gates that ask this class, as `stage: function()`; unasked: why
    there are none. deliberate: whether the capability is one that has to be made deliberately.
    """

    capability: str
    value: object
    kind: Kind
    owner: str
    location: Location | None
    reason: str
    asked: tuple[str, ...]
    unasked: str
    deliberate: bool


@dataclass(frozen=True, slots=True)
class ClassState:
    """One class. level: `base` for one of the engine's, else as in the capability matrix."""

    module: str
    qualname: str
    location: Location
    level: str
    promises: tuple[Promise, ...]

    def promise(self, capability: str) -> Promise | None:
        """What it says of `capability`; None where its release has no such thing."""
        return next((p for p in self.promises if p.capability == capability), None)


def states(program: Program) -> Iterator[ClassState]:
    """The attention classes of the checked tree, by path and line."""
    wanted = columns(program, _ROLE)
    asking = _Asking(program)
    for row in rows(program, _ROLE):
        cells = zip(row.cells, wanted, strict=True)
        yield ClassState(
            row.symbol.module.facts.name,
            row.symbol.facts.qualname,
            row.location,
            "base" if program.is_engine_base(row.symbol) else row.level,
            tuple(_promise(row, cell, capability, asking) for cell, capability in cells),
        )


def _promise(row: Row, cell: Cell, capability: Capability, asking: _Asking) -> Promise:
    said = cell.resolution
    asked, unasked = asking.of(row.symbol, capability)
    return Promise(
        capability.name,
        said.value if said.known else None,
        said.kind,
        said.place.owner.facts.qualname if said.place else "",
        cell.location,
        said.reason,
        asked,
        unasked,
        capability.opt_in,
    )


class _Asking:
    """Which gates ask which class."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._running: dict[ClassSymbol, list[ClassSymbol]] = {}
        for accessor in program.contract.accessors:
            for backend in program.classes(accessor.role) if accessor.returns == _ROLE else ():
                target = program.result(backend, accessor.name)
                if target is not None:
                    self._running.setdefault(target, []).append(backend)

    def of(self, symbol: ClassSymbol, capability: Capability) -> tuple[tuple[str, ...], str]:
        """The gates that ask `symbol` for `capability`; where there are none, the reason."""
        contract = self._program.contract
        gates = [gate for gate in contract.gates if gate.capability == capability.name]
        asked = tuple(_name(gate) for gate in gates if self._reaches(gate, symbol))
        if asked:
            return asked, ""
        if not gates:
            return (), f"no gate of {contract.pack.engine} {contract.version} reads it"
        if symbol not in self._running:
            return (), "no backend that is known runs it"
        return (), "the backends that run it answer for themselves"

    def _reaches(self, gate: Gate, symbol: ClassSymbol) -> bool:
        """Whether a gate that asks classes of its own role gets to this one."""
        if gate.role == _ROLE:
            return True
        program = self._program
        general = program.contract.capability(gate.role, gate.capability)
        for backend in self._running.get(symbol, ()):
            said = program.resolve(backend, gate.capability).place
            if general and said and general.delegates and said.owner.dotted == general.owner:
                return True
        return False


def _name(gate: Gate) -> str:
    return f"{gate.stage}: {gate.function.rpartition('.')[2]}()"
