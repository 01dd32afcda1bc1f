"""Linking: what a name in a module stands for, across imports, re-exports and aliases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from dcplint.facts.model import Binding, Expression, Source
from dcplint.findings.model import Tree
from dcplint.program.modules import Modules
from dcplint.program.symbols import (
    ClassSymbol,
    External,
    FunctionSymbol,
    Literal,
    Module,
    Parametric,
    Symbol,
    Unknown,
    Vanished,
)

Scopes = tuple[tuple[Binding, ...], ...]
_BUILTINS = frozenset(dir(__builtins__) if not isinstance(__builtins__, dict) else __builtins__)
_MAX_DEPTH = 60  # a chain of aliases longer than this is a cycle through differing names


@dataclass(slots=True)
class Linker:
    """Resolves names. `accessors` maps the methods that return a class of some role to the role."""

    modules: Modules
    accessors: dict[str, str]
    _found: dict[tuple[Module, str], Symbol] = field(default_factory=dict)
    _active: set[tuple[Module, str]] = field(default_factory=set)

    def absolute(self, dotted: str) -> Symbol:
        """What the absolute name `dotted` stands for."""
        if dotted.startswith("?"):
            return Unknown(f"`{dotted[2:]}` is imported from beyond the tree")
        parts = dotted.split(".")
        for length in range(len(parts), 0, -1):
            name = ".".join(parts[:length])
            module = self.modules.find(name)
            if module is not None:
                return self._members(module, parts[length:])
            if self._is_broken(name):
                return Unknown(f"module `{name}` cannot be parsed")
        return self._absent(dotted)

    def _absent(self, dotted: str) -> Symbol:
        top = dotted.partition(".")[0]
        if self.modules.has_source(top):
            return Vanished(dotted)
        if self.modules.is_package(top):
            return _undescribed(dotted)
        return External(dotted)

    def _is_broken(self, name: str) -> bool:
        return any(tree.locate(name) is not None for tree in self.modules.trees)

    def name(self, module: Module, dotted: str, scopes: Scopes = ()) -> Symbol:
        """What `dotted` stands for in `module`, seen from inside the functions `scopes`."""
        first, *rest = dotted.split(".")
        for scope in reversed(scopes):
            bindings = tuple(b for b in scope if b.name == first)
            if bindings:
                return self._attributes(self._choose(module, bindings, scopes), rest)
        return self._members(module, [first, *rest], lexical=True)

    def expression(self, module: Module, value: Expression, scopes: Scopes = ()) -> Symbol:
        """What an expression evaluates to, as far as linking can tell."""
        if value.kind in ("name", "subscript"):
            return self.name(module, value.text, scopes)
        if value.kind == "literal":
            return Literal(value.value)
        if value.kind == "choice":
            options = tuple(self.expression(module, option, scopes) for option in value.options)
            return _one_of(options, f"it depends on `{value.text}`")
        if value.kind == "call":
            return self._call(module, value, scopes)
        return Unknown(f"it is `{value.text}`")

    def _call(self, module: Module, value: Expression, scopes: Scopes) -> Symbol:
        method = value.text.rpartition(".")[2]
        if method in self.accessors:
            return Parametric(self.accessors[method], f"{value.text}()")
        if method == "cast" and len(value.arguments) == 2:
            return self.expression(module, value.arguments[1], scopes)
        if value.text == "type" and len(value.arguments) == 3:
            return Unknown("the class is built at run time by type()")
        return Unknown(f"it is the result of {value.text}()")

    # Members of modules and classes

    def _members(self, module: Module, names: list[str], lexical: bool = False) -> Symbol:
        if not names:
            return module
        return self._attributes(self._member(module, names[0], lexical), names[1:])

    def _attributes(self, symbol: Symbol, names: list[str]) -> Symbol:
        for position, name in enumerate(names):
            if isinstance(symbol, Module):
                symbol = self._member(symbol, name, False)
            elif isinstance(symbol, ClassSymbol):
                symbol = self._class_member(symbol, name)
            elif isinstance(symbol, External):
                return External(".".join((symbol.dotted, *names[position:])))
            elif isinstance(symbol, Unknown) and symbol.dotted:
                return _undescribed(".".join((symbol.dotted, *names[position:])))
            else:
                return symbol
        return symbol

    def _member(self, module: Module, name: str, lexical: bool) -> Symbol:
        key = (module, name)
        if key in self._found:
            return self._found[key]
        if key in self._active or len(self._active) > _MAX_DEPTH:
            return Unknown(f"`{name}` is defined in terms of itself")
        self._active.add(key)
        try:
            symbol = self._find_member(module, name, lexical)
        finally:
            self._active.discard(key)
        self._found[key] = symbol
        return symbol

    def _find_member(self, module: Module, name: str, lexical: bool) -> Symbol:
        bindings = module.bindings.get(name)
        if bindings:
            return self._choose(module, bindings, ())
        dotted = f"{module.facts.name}.{name}"
        if not lexical and module.facts.is_package and self.modules.is_package(dotted):
            submodule = self.modules.find(dotted)
            return submodule if submodule is not None else Unknown(f"`{dotted}` is a namespace")
        from_star = self._from_stars(module, name)
        if from_star is not None:
            return from_star
        if lexical and name in _BUILTINS:
            return External(f"builtins.{name}")
        if "__getattr__" in module.bindings:
            return Unknown(f"`{dotted}` comes from a module-level __getattr__")
        if module.tree is Tree.PACK:
            return _undescribed(dotted)
        return Vanished(dotted)

    def _from_stars(self, module: Module, name: str) -> Symbol | None:
        unknown: Symbol | None = None
        for star in reversed(module.facts.stars):
            source = self.absolute(star)
            if not isinstance(source, Module):
                unknown = Unknown(f"`{name}` may come from `from {star} import *`")
                continue
            exports = source.facts.exports
            public = name in exports if exports is not None else not name.startswith("_")
            if public:
                symbol = self._member(source, name, False)
                if not isinstance(symbol, Vanished):
                    return symbol
        return unknown

    def _class_member(self, owner: ClassSymbol, name: str) -> Symbol:
        qualname = f"{owner.facts.qualname}.{name}"
        for candidate in owner.module.classes:
            if candidate.facts.qualname == qualname:
                return candidate
        for fact in reversed(owner.facts.attributes):
            if fact.name == name and not fact.conditions:
                return self.expression(owner.module, fact.value, owner.facts.scopes)
        return Unknown(f"`{name}` is looked up on class {owner.facts.name}")

    # Bindings

    def _choose(self, module: Module, bindings: tuple[Binding, ...], scopes: Scopes) -> Symbol:
        """The binding in force: the last unconditional one and the conditional ones after it.

        A binding in an `except` clause counts where the one it stands in for has vanished; one
        under TYPE_CHECKING where there is no other, since it does not exist at run time.
        """
        live: list[Binding] = []
        fallbacks: list[Binding] = []
        typing_only: list[Binding] = []
        for binding in bindings:
            kinds = {c.kind for c in binding.conditions} - {"type-checking", "guarded"}
            if any(c.kind == "type-checking" and not c.negated for c in binding.conditions):
                typing_only.append(binding)
            elif kinds & {"import-error", "handler"}:
                fallbacks.append(binding)
            elif kinds:
                live.append(binding)
            else:
                live = [binding]
        chosen = live or fallbacks or typing_only
        symbols = [self._bound(module, binding, scopes) for binding in chosen]
        present = [s for s in symbols if not isinstance(s, Vanished)]
        if not present and live and fallbacks:
            symbols = [self._bound(module, binding, scopes) for binding in fallbacks]
            present = [s for s in symbols if not isinstance(s, Vanished)]
        test = next((c.text for b in chosen for c in b.conditions if c.kind == "test"), "")
        return _one_of(present or symbols, f"it depends on `{test}`" if test else "it varies")

    def _bound(self, module: Module, binding: Binding, scopes: Scopes) -> Symbol:
        if binding.source is Source.IMPORT:
            return self.absolute(binding.target)
        if binding.source is Source.CLASS:
            symbol = module.class_at.get(binding.position[:2])
            return symbol or Unknown(f"class `{binding.name}` stands inside a function")
        if binding.source is Source.FUNCTION:
            facts = next((f for f in module.facts.functions if f.name == binding.name), None)
            return FunctionSymbol(module, facts) if facts else Unknown("it is a local function")
        if binding.source is Source.PARAMETER:
            return Unknown(f"it is the parameter `{binding.name}`")
        assert binding.value is not None
        if _refers_to_itself(binding):
            return Unknown(f"`{binding.name}` is defined in terms of itself")
        return self.expression(module, binding.value, scopes)


def _undescribed(dotted: str) -> Unknown:
    reason = f"`{dotted}` is not described by the pack, and its source is not at hand"
    return Unknown(reason, dotted=dotted)


def _refers_to_itself(binding: Binding) -> bool:
    value = binding.value
    return value is not None and value.text.partition(".")[0] == binding.name


def _one_of(symbols: Iterable[Symbol], reason: str) -> Symbol:
    """The single symbol, if all are the same; else Unknown with the candidates."""
    distinct = list(_distinct(symbols))
    if len(distinct) == 1:
        return distinct[0]
    return Unknown(reason, tuple(distinct))


def _distinct(symbols: Iterable[Symbol]) -> Iterator[Symbol]:
    seen: list[Symbol] = []
    for symbol in symbols:
        if symbol not in seen:
            seen.append(symbol)
            yield symbol
