"""Attribute resolution: the value a class promises, and the place it comes from.

The lookup is Python's: the instance (what `__init__` and `__new__` set), then the classes of the
MRO. A value that depends on a condition, on another object or on a base that is not known is
unknown, with the reason, unless every possibility says the same.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dcplint.facts.model import COMPUTED, AttributeFact, Condition, Expression, Setting
from dcplint.program.construction import Construction
from dcplint.program.flow import in_force, runs, tests
from dcplint.program.link import Linker, View, body_view, header_view
from dcplint.program.modules import Modules
from dcplint.program.mro import Hierarchy, Opaque
from dcplint.program.symbols import (
    ClassSymbol,
    FunctionSymbol,
    Literal,
    Module,
    Unknown,
)

_IN_BODY = frozenset({Setting.CLASS_BODY, Setting.PROPERTY, Setting.METHOD, Setting.DELETED})
_DEEPEST = 40  # values taken from other classes' values; each takes about ten frames


class Kind(enum.Enum):
    """Who says it."""

    EXPLICIT = "explicit"  # the class itself
    INHERITED = "inherited"  # a class of its own lineage
    DEFAULT = "default"  # an engine base: nobody has said anything
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Place:
    """A fact and the module it stands in. `owner` is the class it gives the attribute to."""

    owner: ClassSymbol
    module: Module
    fact: AttributeFact


@dataclass(frozen=True, slots=True)
class Resolution:
    """What a class says of one attribute.

    value: the constant, if known. place: where it is said; None where nothing is known of it.
    reason: why it is unknown. walked: the classes looked at, in order, the deciding one last.
    """

    kind: Kind
    value: object = None
    place: Place | None = None
    reason: str = ""
    walked: tuple[ClassSymbol, ...] = ()

    @property
    def known(self) -> bool:
        """Whether the value is known."""
        return self.kind is not Kind.UNKNOWN

    def holds(self) -> bool | None:
        """The truth of the value; None where it is unknown."""
        return bool(self.value) if self.known else None


@dataclass(frozen=True, slots=True)
class _Said:
    """What one class says: a constant with its place, or why it cannot be told."""

    place: Place
    value: object = None
    reason: str = ""

    @property
    def unknown(self) -> bool:
        return bool(self.reason)


@dataclass(slots=True)
class Attributes:
    """Resolves attributes. `foundation`: dotted names of the engine bases that only set defaults.

    externals: what is set on a class from outside its body.
    """

    modules: Modules
    linker: Linker
    hierarchy: Hierarchy
    foundation: frozenset[str]
    externals: dict[ClassSymbol, list[Place]] = field(default_factory=dict)
    _construction: Construction = field(init=False)
    _resolved: dict[tuple[ClassSymbol, str], Resolution] = field(default_factory=dict)
    _running: set[tuple[ClassSymbol, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._construction = Construction(self.modules, self.hierarchy)

    def resolve(self, symbol: ClassSymbol, name: str) -> Resolution:
        """What `symbol` says of attribute `name`."""
        key = (symbol, name)
        if key not in self._resolved:
            self._resolved[key] = self._resolve(symbol, name)
        return self._resolved[key]

    def _resolve(self, symbol: ClassSymbol, name: str) -> Resolution:
        on_class = self.resolve_on_class(symbol, name)
        on_instance = self.resolve_on_instance(symbol, name)
        if on_instance is None:
            return on_class
        agree = on_class.known and on_instance.known and on_class.value == on_instance.value
        return on_class if agree else on_instance

    def resolve_on_class(self, symbol: ClassSymbol, name: str) -> Resolution:
        """What the class itself answers, as code that has no instance sees it."""
        order = self.hierarchy.linearize(symbol)
        if order.problem:
            return Resolution(Kind.UNKNOWN, reason=order.problem)
        key = (symbol, name)
        if key in self._running or len(self._running) > _DEEPEST:
            return Resolution(Kind.UNKNOWN, reason=f"`{name}` is defined in terms of itself")
        self._running.add(key)
        try:
            return self._on_class(symbol, name)
        finally:
            self._running.discard(key)

    def _on_class(self, symbol: ClassSymbol, name: str) -> Resolution:
        entries = self.hierarchy.linearize(symbol).entries
        walked: list[ClassSymbol] = []
        possible: list[_Said] = []  # said under conditions by the classes walked so far
        for entry in entries:
            if isinstance(entry, Opaque):
                if entry.neutral:
                    continue
                return Resolution(Kind.UNKNOWN, reason=entry.reason, walked=tuple(walked))
            walked.append(entry)
            told, certain = self._told_by(entry, name)
            possible += told
            if certain or any(said.unknown for said in told):
                return self._resolution(symbol, self._agreed(possible), tuple(walked))
        if possible:
            said = _Said(possible[0].place, reason=self._conditional(possible[0].place))
            return self._resolution(symbol, said, tuple(walked))
        reason = f"no class defines `{name}`"
        return Resolution(Kind.UNKNOWN, reason=reason, walked=tuple(walked))

    def resolve_on_instance(self, symbol: ClassSymbol, name: str) -> Resolution | None:
        """What methods set on an instance, where that can differ from what its class says."""
        set_by, certain = self._construction.sets(symbol, name)
        later = self._construction.sets_later(symbol, name)
        if not set_by and not later:
            return None
        walked = self.hierarchy.linearize(symbol).classes
        told = [self._evaluate(self._place(owner, fact)) for owner, fact in set_by]
        found = self._resolution(symbol, self._agreed(told), walked) if told else None
        if found is None or (found.known and not certain):
            # Where no constructor is sure to set it, the class answers.
            on_class = self.resolve_on_class(symbol, name)
            if found is None or (on_class.known and on_class.value == found.value):
                found = on_class
            else:
                said = _Said(told[0].place, reason=self._conditional(told[0].place))
                found = self._resolution(symbol, said, walked)
        for owner, fact in later:
            said = self._evaluate(self._place(owner, fact))
            if found.known and (said.unknown or said.value != found.value):
                where = f"{owner.facts.name}.{fact.scope} ({self._where(said.place)})"
                found = self._resolution(
                    symbol, _Said(said.place, reason=f"set at run time in {where}"), walked
                )
        return found if set_by or not found.known else None

    def constructors(self, symbol: ClassSymbol, constructor: str) -> Iterator[ClassSymbol]:
        """The classes whose `constructor` runs: up the MRO as long as each calls the next."""
        return (owner for owner, _, _ in self._construction.chain(symbol, constructor))

    def _resolution(
        self, symbol: ClassSymbol, said: _Said, walked: tuple[ClassSymbol, ...]
    ) -> Resolution:
        if said.unknown:
            return Resolution(Kind.UNKNOWN, place=said.place, reason=said.reason, walked=walked)
        return Resolution(self._kind(symbol, said.place.owner), said.value, said.place, "", walked)

    def _kind(self, symbol: ClassSymbol, owner: ClassSymbol) -> Kind:
        if owner is symbol:
            return Kind.EXPLICIT
        return Kind.DEFAULT if owner.dotted in self.foundation else Kind.INHERITED

    def _agreed(self, told: Sequence[_Said]) -> _Said:
        """What all that may be in force say, if they agree."""
        unknown = next((said for said in told if said.unknown), None)
        if unknown is not None:
            return unknown
        if any(said.value != told[0].value for said in told):
            places = [said.place for said in told]
            place = next(filter(_is_late, places), places[0])
            return _Said(place, reason=self._conditional(place))
        return told[0]

    # What a class says

    def _told_by(self, entry: ClassSymbol, name: str) -> tuple[list[_Said], bool]:
        """What `entry` itself may give the attribute, and whether it surely gives it something.

        In the order in which Python runs it: the body, `__init_subclass__` of a base, decorators,
        then statements elsewhere.
        """
        places = [
            *(self._place(entry, f) for f in entry.said(name) if f.setting in _IN_BODY),
            *self._on_creation(entry, name),
            *(
                p
                for p in self.externals.get(entry, ())
                if _is_about(p.fact, name) and not _is_late(p)
            ),
        ]
        real = (place for place in places if runs(place.fact.conditions))
        possible, certain = in_force(real, lambda place: place.fact.conditions)
        kept = [place for place in possible if place.fact.setting is not Setting.DELETED]
        told = [self._evaluate(place) for place in kept]
        certain = certain and len(kept) == len(possible)
        late = [p for p in self.externals.get(entry, ()) if _is_about(p.fact, name) and _is_late(p)]
        told += (self._evaluate(place) for place in late)
        metaclass = self._set_by_metaclass(entry, name)
        return ([metaclass], True) if metaclass is not None else (told, certain)

    def _place(self, owner: ClassSymbol, fact: AttributeFact) -> Place:
        return Place(owner, owner.module, fact)

    def _set_by_metaclass(self, entry: ClassSymbol, name: str) -> _Said | None:
        """A metaclass of the program that speaks of the attribute may set it on every class."""
        for owner in self.hierarchy.linearize(entry).classes:
            metaclass = self.hierarchy.metaclass(owner)
            if not isinstance(metaclass, ClassSymbol):
                continue
            for ancestor in self.hierarchy.linearize(metaclass).classes:
                first, last = ancestor.facts.lines
                source = self.modules.text(ancestor.module.tree, ancestor.path)
                if name in source.between(first, last):
                    text = f"the metaclass {ancestor}"
                    fact = AttributeFact(
                        name, Setting.EXTERNAL, ancestor.facts.position, Expression("other", text)
                    )
                    place = Place(entry, ancestor.module, fact)
                    return _Said(place, reason=f"{text} may set it ({self._where(place)})")
        return None

    def _on_creation(self, entry: ClassSymbol, name: str) -> Iterator[Place]:
        """What runs when the class statement has run: `__init_subclass__`, then decorators."""
        for owner, fact in self._construction.sets_on_subclass(entry, name):
            yield Place(entry, owner.module, fact)
        for decorator in reversed(entry.facts.decorators):
            if decorator.kind not in ("name", "call"):
                continue
            function = self.linker.look_up(header_view(entry), decorator.text)
            if isinstance(function, FunctionSymbol):
                for fact in function.facts.sets:
                    # `@dec` runs dec on the class; `@dec()` runs the function that it returns.
                    inner = fact.scope != function.facts.name
                    if _is_about(fact, name) and inner == (decorator.kind == "call"):
                        yield Place(entry, function.module, fact)

    # Values

    def _evaluate(self, place: Place) -> _Said:
        fact, where = place.fact, self._where(place)
        if fact.name == COMPUTED:
            return _Said(place, reason=f"a name that is computed is set ({where})")
        if fact.setting is Setting.METHOD and fact.value.kind != "literal":
            return _Said(place, reason=f"computed by {fact.name}() ({where})")
        value = self._value(self._view(place), fact.value)
        if isinstance(value, Literal):
            return _Said(place, value.value)
        return _Said(place, reason=f"{value.reason} ({where})")

    @staticmethod
    def _view(place: Place) -> View:
        fact, owner = place.fact, place.owner
        if fact.setting is Setting.CLASS_BODY:
            return body_view(owner, fact.position[:2])
        if place.module is owner.module:
            return View(owner.module, owner.facts.scopes)
        return View(place.module)

    def _value(self, view: View, value: Expression) -> Literal | Unknown:
        """The constant an attribute is set to: a literal, a named one, another class's value."""
        if value.kind == "literal":
            return Literal(value.value)
        if value.kind == "choice":
            options = [self._value(view, option) for option in value.options]
            if options and all(option == options[0] for option in options):
                return options[0]
            return Unknown(f"it depends on `{value.text}`" if value.text else "it varies")
        if value.kind == "name":
            head, _, attribute = value.text.rpartition(".")
            holder = self.linker.look_up(view, head) if head else None
            if isinstance(holder, ClassSymbol):
                resolved = self.resolve_on_class(holder, attribute)
                return Literal(resolved.value) if resolved.known else Unknown(resolved.reason)
            symbol = self.linker.look_up(view, value.text)
            if isinstance(symbol, Literal):
                return symbol
        if value.kind in ("name", "local"):
            return Unknown(f"it is taken from `{value.text}`")
        return Unknown(f"it is {value.text}()" if value.kind == "call" else f"it is `{value.text}`")

    # Words

    def _conditional(self, place: Place) -> str:
        if _is_late(place):
            by = place.fact.scope or f"module {place.module.facts.name}"
            return f"set at run time in {by} ({self._where(place)})"
        asked = tests(place.fact.conditions)
        text = ", ".join(_spelled(c) for c in asked)
        where = self._where(place)
        return f"set under `{text}` ({where})" if text else f"set differently in places ({where})"

    @staticmethod
    def _where(place: Place) -> str:
        return f"{place.module.facts.path}:{place.fact.position[0]}"


def _spelled(condition: Condition) -> str:
    return ("not " if condition.negated else "") + condition.text


def _is_about(fact: AttributeFact, name: str) -> bool:
    return fact.name in (name, COMPUTED)


def _is_late(place: Place) -> bool:
    """Set by a function or by another module: whether and when it runs cannot be told."""
    if place.fact.setting is not Setting.EXTERNAL:
        return False
    return bool(place.fact.scope) or place.module is not place.owner.module
