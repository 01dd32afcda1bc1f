"""The order in which Python looks attributes up: C3 over the classes that can be known."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from dcplint.program.link import Linker
from dcplint.program.symbols import (
    ClassSymbol,
    External,
    Literal,
    Module,
    Parametric,
    Symbol,
    Unknown,
    Vanished,
)

_STATELESS = frozenset(
    {"builtins.object", "typing.Generic", "typing.Protocol", "typing_extensions.Protocol"}
)


@dataclass(frozen=True, slots=True)
class Opaque:
    """A base whose source is not known.

    neutral: it belongs to a package that cannot speak of an engine's contract, so a lookup may
    pass through it. role: the role it plays, where that much is known. base: how it is written.
    """

    base: str
    reason: str
    neutral: bool = False
    role: str = ""
    vanished: str = ""


Entry = ClassSymbol | Opaque


@dataclass(frozen=True, slots=True)
class Linearization:
    """The classes a lookup visits, in order. `problem` says why there is no such order."""

    entries: tuple[Entry, ...]
    problem: str = ""

    @property
    def classes(self) -> tuple[ClassSymbol, ...]:
        """The entries whose source is known."""
        return tuple(entry for entry in self.entries if isinstance(entry, ClassSymbol))

    def obstacle(self) -> Opaque | None:
        """The first base that hides what comes after it, or None."""
        return next((e for e in self.entries if isinstance(e, Opaque) and not e.neutral), None)


N = TypeVar("N")


class Inconsistent(Exception):
    """The bases allow no linear order (Python raises TypeError at class creation)."""


def c3(
    node: N, bases: Callable[[N], Iterable[N]], active: tuple[N, ...] = ()
) -> tuple[N, ...]:
    """The C3 linearization of `node` (Barrett et al., 1996), as `type.__mro__` without `object`.

    Raises Inconsistent for an impossible order or a cycle.
    """
    if node in active:
        raise Inconsistent("it inherits from itself")
    parents = tuple(bases(node))
    sequences = [list(c3(parent, bases, (*active, node))) for parent in parents]
    sequences.append(list(parents))
    merged: list[N] = [node]
    while sequences := [s for s in sequences if s]:
        head = next((s[0] for s in sequences if not any(s[0] in t[1:] for t in sequences)), None)
        if head is None:
            raise Inconsistent("its bases have no consistent order")
        merged.append(head)
        for sequence in sequences:
            if sequence[0] == head:
                del sequence[0]
    return tuple(merged)


@dataclass(slots=True)
class Hierarchy:
    """Bases and linearizations of the program's classes. `neutral`: top-level packages."""

    linker: Linker
    neutral: frozenset[str]
    _bases: dict[ClassSymbol, tuple[Entry, ...]] = field(default_factory=dict)
    _orders: dict[ClassSymbol, Linearization] = field(default_factory=dict)

    def linearize(self, symbol: ClassSymbol) -> Linearization:
        """The lookup order of `symbol`. Never raises: an impossible order is a `problem`."""
        if symbol not in self._orders:
            try:
                order = Linearization(c3(symbol, self._entry_bases))
            except Inconsistent as error:
                order = Linearization((symbol,), str(error))
            except RecursionError:
                order = Linearization((symbol,), "its hierarchy is too deep")
            self._orders[symbol] = order
        return self._orders[symbol]

    def bases(self, symbol: ClassSymbol) -> tuple[Entry, ...]:
        """The direct bases, without those that hold no attributes (`object`, `Generic`)."""
        if symbol not in self._bases:
            found = (self._base(symbol, index) for index in range(len(symbol.facts.bases)))
            self._bases[symbol] = tuple(entry for entry in found if entry is not None)
        return self._bases[symbol]

    def _entry_bases(self, entry: Entry) -> tuple[Entry, ...]:
        return self.bases(entry) if isinstance(entry, ClassSymbol) else ()

    def _base(self, symbol: ClassSymbol, index: int) -> Entry | None:
        expression = symbol.facts.bases[index]
        text = expression.text or "…"
        found = self.linker.expression(symbol.module, expression, symbol.facts.scopes)
        if isinstance(found, ClassSymbol):
            return found
        if isinstance(found, External) and found.dotted in _STATELESS:
            return None
        return self._opaque(text, found)

    def _opaque(self, text: str, found: Symbol) -> Entry:
        if isinstance(found, External):
            top = found.dotted.partition(".")[0]
            neutral = top in self.neutral or top in sys.stdlib_module_names or top == "builtins"
            return Opaque(found.dotted, f"`{found.dotted}` is not part of the program", neutral)
        if isinstance(found, Vanished):
            reason = f"`{found.dotted}` does not exist in the release"
            return Opaque(text, reason, vanished=found.dotted)
        if isinstance(found, Parametric):
            return Opaque(text, f"its base is {found.text}, decided at run time", role=found.role)
        if isinstance(found, Unknown):
            return self._narrowed(text, found)
        if isinstance(found, (Module, Literal)):
            return Opaque(text, f"its base `{text}` is not a class")
        return Opaque(text, f"its base `{text}` is a function's result")

    def _narrowed(self, text: str, found: Unknown) -> Entry:
        """A choice of which all but one are no classes (`Base = None` in a branch) is that one."""
        options = [o for o in found.options if not isinstance(o, (Literal, Vanished))]
        if len(options) == 1 and isinstance(options[0], ClassSymbol):
            return options[0]
        roles = {o.role for o in options if isinstance(o, Parametric)}
        role = roles.pop() if len(roles) == 1 and len(options) == 1 else ""
        return Opaque(text, f"its base `{text}` is unknown: {found.reason}", role=role)
