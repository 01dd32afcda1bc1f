"""Attribute resolution: the value a class promises, and the place it comes from.

The lookup is Python's: the instance (what `__init__` and `__new__` set), then the classes of the
MRO. A value that depends on a condition, on another object or on a base that is not known is
unknown, with the reason, unless every possibility says the same.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, field

from dcplint.facts.model import COMPUTED, AttributeFact, Expression, Setting
from dcplint.program.link import Linker
from dcplint.program.modules import Modules
from dcplint.program.mro import Hierarchy, Opaque
from dcplint.program.symbols import ClassSymbol, FunctionSymbol, Literal, Module, Unknown

_ALWAYS = frozenset({"type-checking", "guarded"})  # conditions that hold whenever code runs
_CONSTRUCTORS = ("__new__", "__init__")
_IN_CLASS = frozenset({Setting.CLASS_BODY, Setting.PROPERTY, Setting.METHOD, Setting.EXTERNAL})


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
    """Resolves attributes. `foundation`: dotted names of the engine bases that only set defaults."""

    modules: Modules
    linker: Linker
    hierarchy: Hierarchy
    foundation: frozenset[str]
    externals: dict[ClassSymbol, list[Place]] = field(default_factory=dict)
    _resolved: dict[tuple[ClassSymbol, str], Resolution] = field(default_factory=dict)

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
        walked: list[ClassSymbol] = []
        for entry in order.entries:
            if isinstance(entry, Opaque):
                if entry.neutral:
                    continue
                return Resolution(Kind.UNKNOWN, reason=entry.reason, walked=tuple(walked))
            walked.append(entry)
            said = self._said_by_class(entry, name)
            if said is not None:
                return self._resolution(symbol, said, tuple(walked))
        reason = f"no class defines `{name}`"
        return Resolution(Kind.UNKNOWN, reason=reason, walked=tuple(walked))

    def resolve_on_instance(self, symbol: ClassSymbol, name: str) -> Resolution | None:
        """What methods set on an instance, where any does."""
        said = list(self._said_on_instance(symbol, name))
        if not said:
            return None
        walked = self.hierarchy.linearize(symbol).classes
        unknown = next((s for s in said if s.unknown), None)
        if unknown is not None:
            return self._resolution(symbol, unknown, walked)
        decided = [s for s in said if all(c.kind in _ALWAYS for c in s.place.fact.conditions)]
        if not decided or any(s.value != said[0].value for s in said):
            reason = self._conditional(said[0].place)
            return Resolution(Kind.UNKNOWN, place=said[0].place, reason=reason, walked=walked)
        return self._resolution(symbol, decided[0], walked)

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

    # What a class says

    def _said_by_class(self, entry: ClassSymbol, name: str) -> _Said | None:
        """What `entry` itself gives the attribute, in the order in which Python would run it."""
        told: list[_Said] = []
        certain = True
        for place in self._places(entry, name):
            fact = place.fact
            if any(c.kind == "type-checking" and not c.negated for c in fact.conditions):
                continue
            conditions = [c for c in fact.conditions if c.kind not in _ALWAYS]
            if fact.setting is Setting.DELETED:
                told, certain = [], certain and not conditions
                continue
            said = self._evaluate(place)
            if conditions:
                told.append(said)
                certain = False
            elif self._runs_later(fact):
                reason = f"set at run time in {fact.scope} ({self._where(place)})"
                told.append(_Said(place, reason=reason))
            else:
                told, certain = [said], True
        told += self._said_on_creation(entry, name)
        if not told:
            return None
        if any(said.unknown for said in told):
            return next(said for said in told if said.unknown)
        last = told[-1]
        if any(said.value != last.value for said in told) or not certain and len(told) == 1:
            return _Said(last.place, reason=self._conditional(last.place))
        return last

    def _places(self, entry: ClassSymbol, name: str) -> Iterator[Place]:
        for fact in entry.facts.attributes:
            if fact.name == name and (fact.setting in _IN_CLASS or fact.setting is Setting.DELETED):
                yield Place(entry, entry.module, fact)
        for place in self.externals.get(entry, ()):
            if place.fact.name in (name, COMPUTED):
                yield place

    @staticmethod
    def _runs_later(fact: AttributeFact) -> bool:
        """Set from inside a function: whether and when it runs cannot be told."""
        return fact.setting is Setting.EXTERNAL and bool(fact.scope)

    def _evaluate(self, place: Place) -> _Said:
        fact = place.fact
        if fact.name == COMPUTED:
            return _Said(place, reason=f"a name that is computed is set ({self._where(place)})")
        scopes = place.owner.facts.scopes if place.module is place.owner.module else ()
        if fact.setting is Setting.METHOD and fact.value.kind != "literal":
            return _Said(place, reason=f"computed by {fact.name}() ({self._where(place)})")
        value = self._value(place.module, fact.value, place.owner, scopes)
        if isinstance(value, Literal):
            return _Said(place, value.value)
        reason = value.reason if isinstance(value, Unknown) else f"it is `{fact.value.text}`"
        return _Said(place, reason=f"{reason} ({self._where(place)})")

    def _value(
        self, module: Module, value: Expression, owner: ClassSymbol, scopes: tuple[object, ...]
    ) -> Literal | Unknown:
        """The constant an attribute is set to: a literal, a named constant, another class's value."""
        if value.kind == "literal":
            return Literal(value.value)
        if value.kind == "choice":
            options = [self._value(module, option, owner, scopes) for option in value.options]
            if options and all(option == options[0] for option in options):
                return options[0]
            return Unknown(f"it depends on `{value.text}`" if value.text else "it varies")
        if value.kind == "name":
            head, _, attribute = value.text.rpartition(".")
            if head:
                holder = self.linker.name(module, head, owner.facts.scopes)
                if isinstance(holder, ClassSymbol):
                    resolved = self.resolve(holder, attribute)
                    if resolved.known:
                        return Literal(resolved.value)
                    return Unknown(resolved.reason)
            symbol = self.linker.name(module, value.text, owner.facts.scopes)
            if isinstance(symbol, Literal):
                return symbol
            return Unknown(f"it is taken from `{value.text}`")
        return Unknown(
            f"it is `{value.text}`" if value.kind == "other" else f"it is {value.text}()"
        )

    # What decorators and __init_subclass__ say

    def _said_on_creation(self, entry: ClassSymbol, name: str) -> Iterator[_Said]:
        """What runs when the class statement has run: `__init_subclass__` and class decorators."""
        for ancestor in self.hierarchy.linearize(entry).classes:
            if ancestor is entry:
                continue
            for fact in ancestor.facts.attributes:
                if fact.name in (name, COMPUTED) and fact.setting is Setting.DECORATOR:
                    place = Place(entry, ancestor.module, fact)
                    yield self._created(place, f"{ancestor.facts.name}.__init_subclass__")
        for decorator in entry.facts.decorators:
            callee = decorator.text
            function = (
                self.linker.name(entry.module, callee, entry.facts.scopes) if callee else None
            )
            if isinstance(function, FunctionSymbol):
                for fact in function.facts.sets:
                    if fact.name in (name, COMPUTED):
                        place = Place(entry, function.module, fact)
                        yield self._created(place, f"decorator {callee}")

    def _created(self, place: Place, by: str) -> _Said:
        said = self._evaluate(place)
        if any(c.kind not in _ALWAYS for c in place.fact.conditions):
            return _Said(place, reason=f"set by {by} under a condition ({self._where(place)})")
        return said

    # What the instance says

    def _said_on_instance(self, symbol: ClassSymbol, name: str) -> Iterator[_Said]:
        """What the constructors that run for `symbol` set, and what other methods may set later."""
        running = {
            constructor: list(self.constructors(symbol, constructor))
            for constructor in _CONSTRUCTORS
        }
        for entry in self.hierarchy.linearize(symbol).classes:
            for fact in entry.facts.attributes:
                if fact.name not in (name, COMPUTED) or fact.setting is not Setting.INSTANCE:
                    continue
                place = Place(entry, entry.module, fact)
                if fact.scope not in running:
                    if fact.name == COMPUTED:
                        continue
                    where = f"{entry.facts.name}.{fact.scope}"
                    yield _Said(place, reason=f"set at run time in {where} ({self._where(place)})")
                elif entry in running[fact.scope]:
                    yield self._evaluate(place)

    def constructors(self, symbol: ClassSymbol, constructor: str) -> Iterator[ClassSymbol]:
        """The classes whose `constructor` runs: up the MRO as long as each calls the next."""
        for entry in self.hierarchy.linearize(symbol).classes:
            method = next((m for m in entry.facts.methods if m.name == constructor), None)
            if method is None:
                continue
            yield entry
            lines = self.modules.text(entry.module.tree, entry.path).lines
            source = "\n".join(lines[method.lines[0] - 1 : method.lines[1]])
            if entry.module.tree.value != "pack" and f".{constructor}(" not in source:
                return

    def _conditional(self, place: Place) -> str:
        tests = [c for c in place.fact.conditions if c.kind not in _ALWAYS]
        text = ", ".join(("not " if c.negated else "") + c.text for c in tests)
        where = self._where(place)
        return f"set under `{text}` ({where})" if text else f"set differently in places ({where})"

    @staticmethod
    def _where(place: Place) -> str:
        return f"{place.module.facts.path}:{place.fact.position[0]}"
