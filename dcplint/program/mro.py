"""The order in which Python looks attributes up: C3 over the classes that can be known."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic, TypeVar

from dcplint.program.link import Linker, header_view
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

_STATELESS = frozenset({"builtins.object", "typing.Generic", "typing_extensions.Generic"})
_NEUTRAL = sys.stdlib_module_names | {"builtins", "typing_extensions"}
_DEEPEST = 1000  # classes; an order that long is no hierarchy of an engine


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


@dataclass(frozen=True)
class Linearization:
    """The classes a lookup visits, in order. `problem` says why there is no such order."""

    entries: tuple[Entry, ...]
    problem: str = ""

    @cached_property
    def classes(self) -> tuple[ClassSymbol, ...]:
        """The entries whose source is known."""
        return tuple(entry for entry in self.entries if isinstance(entry, ClassSymbol))

    def obstacle(self) -> Opaque | None:
        """The first base that hides what comes after it, or None."""
        return next((e for e in self.entries if isinstance(e, Opaque) and not e.neutral), None)


N = TypeVar("N", bound=Hashable)


class Inconsistent(Exception):
    """The bases allow no linear order (Python raises TypeError at class creation)."""


@dataclass(slots=True)
class Orders(Generic[N]):
    """C3 linearizations (Barrett et al., 1996): `type.__mro__` for nodes with the given bases.

    Each node is merged once, from the orders of its bases; no recursion, so depth costs nothing.
    """

    bases: Callable[[N], Iterable[N]]
    _known: dict[N, tuple[N, ...]] = field(default_factory=dict)
    _failed: dict[N, str] = field(default_factory=dict)

    def of(self, node: N) -> tuple[N, ...]:
        """The order of `node`, itself first. Raises Inconsistent where there is none."""
        path: dict[N, None] = {node: None}
        while node not in self._known:
            current = next(reversed(path))
            parents = tuple(self.bases(current))
            waiting = next((p for p in parents if p not in self._known), None)
            if waiting is None:
                problem = self._merge_into(current, parents)
            else:
                problem = self._failed.get(waiting, "")
                if waiting in path:
                    problem = "its bases inherit from themselves"
            if problem:
                # Whatever derives from an impossible class is impossible too.
                self._failed.update(dict.fromkeys(path, problem))
                raise Inconsistent(problem)
            if waiting is None:
                del path[current]
            else:
                path[waiting] = None
        return self._known[node]

    def _merge_into(self, node: N, parents: tuple[N, ...]) -> str:
        merged = _merge([*(self._known[p] for p in parents), parents])
        if merged is None:
            return "its bases have no consistent order"
        if len(merged) > _DEEPEST:
            return f"it has more than {_DEEPEST} ancestors"
        self._known[node] = (node, *merged)
        return ""


def _merge(sequences: list[tuple[N, ...]]) -> Sequence[N] | None:
    """Merge orders so that each keeps its own; None where they contradict one another."""
    if len(sequences) == 2:
        return sequences[0]  # one base: its order, and the list of bases says nothing more
    in_tails = Counter(node for sequence in sequences for node in sequence[1:])
    heads = [0] * len(sequences)
    merged: list[N] = []
    while True:
        left = [s[i] for s, i in zip(sequences, heads, strict=True) if i < len(s)]
        if not left:
            return merged
        head = next((node for node in left if not in_tails[node]), None)
        if head is None:
            return None
        merged.append(head)
        for index, sequence in enumerate(sequences):
            if heads[index] < len(sequence) and sequence[heads[index]] == head:
                heads[index] += 1
                if heads[index] < len(sequence):
                    in_tails[sequence[heads[index]]] -= 1


@dataclass(slots=True)
class Hierarchy:
    """Bases and linearizations of the program's classes. `neutral`: top-level packages."""

    linker: Linker
    neutral: frozenset[str]
    _bases: dict[ClassSymbol, tuple[Entry, ...]] = field(default_factory=dict)
    _linear: dict[ClassSymbol, Linearization] = field(default_factory=dict)
    _metaclasses: dict[ClassSymbol, Symbol | None] = field(default_factory=dict)
    _orders: Orders[Entry] = field(init=False)

    def __post_init__(self) -> None:
        self._orders = Orders(self._entry_bases)

    def linearize(self, symbol: ClassSymbol) -> Linearization:
        """The lookup order of `symbol`. Never raises: an impossible order is a `problem`."""
        if symbol not in self._linear:
            try:
                order = Linearization(self._orders.of(symbol))
            except Inconsistent as error:
                order = Linearization((symbol,), str(error))
            self._linear[symbol] = order
        return self._linear[symbol]

    def ancestors(self, symbol: ClassSymbol) -> tuple[Entry, ...]:
        """`symbol` and everything it derives from, in no order that means anything."""
        found: dict[Entry, None] = {symbol: None}
        queue: list[Entry] = [symbol]
        while queue:
            for base in self._entry_bases(queue.pop()):
                if base not in found:
                    found[base] = None
                    queue.append(base)
        return tuple(found)

    def bases(self, symbol: ClassSymbol) -> tuple[Entry, ...]:
        """The direct bases, without those that hold no attributes (`object`, `Generic`)."""
        if symbol not in self._bases:
            found = (self._base(symbol, index) for index in range(len(symbol.facts.bases)))
            self._bases[symbol] = tuple(entry for entry in found if entry is not None)
        return self._bases[symbol]

    def metaclass(self, symbol: ClassSymbol) -> Symbol | None:
        """What the class statement itself names as metaclass."""
        if symbol not in self._metaclasses:
            written = dict(symbol.facts.keywords).get("metaclass")
            found = self.linker.evaluate(header_view(symbol), written) if written else None
            self._metaclasses[symbol] = found
        return self._metaclasses[symbol]

    def _entry_bases(self, entry: Entry) -> tuple[Entry, ...]:
        return self.bases(entry) if isinstance(entry, ClassSymbol) else ()

    def _base(self, symbol: ClassSymbol, index: int) -> Entry | None:
        expression = symbol.facts.bases[index]
        text = expression.text or "…"
        found = self.linker.evaluate(header_view(symbol), expression)
        if isinstance(found, ClassSymbol):
            return found
        if isinstance(found, External) and found.dotted in _STATELESS:
            return None
        return self._opaque(text, found)

    def _opaque(self, text: str, found: Symbol) -> Entry:
        if isinstance(found, External):
            top = found.dotted.partition(".")[0]
            neutral = top in self.neutral or top in _NEUTRAL
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
