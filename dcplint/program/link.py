"""Linking: what a name in a module stands for, across imports, re-exports and aliases.

A name used in the header or the body of a class is looked up as Python does when it runs that
statement: among the bindings before it. A name used in a function may see all of its module.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from dcplint.facts.extract import Place, local_bindings
from dcplint.facts.model import Binding, Expression, Source
from dcplint.program.flow import in_force, runs, tests
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
    Variable,
)
from dcplint.source.location import Tree

Scopes = tuple[tuple[Binding, ...], ...]
At = tuple[int, int]
_BUILTINS = frozenset(dir(builtins))
_LONGEST_CHAIN = 50  # aliases of aliases; each takes about ten frames of the running Python
_NOTHING = frozenset({"builtins.object", "typing.Any"})
_CYCLE = Unknown("it is defined in terms of itself")
_TOO_LONG = Unknown("it is an alias of an alias, too many times over")


@dataclass(frozen=True, slots=True)
class View:
    """A place from which names are looked up.

    functions: bindings of the functions around it, innermost last. body: those of the class body
    it stands in. at: line and column; bindings of the code that runs here count from before it.
    """

    module: Module
    functions: Scopes = ()
    body: tuple[Binding, ...] = ()
    at: At | None = None


def header_view(symbol: ClassSymbol) -> View:
    """Where the bases, keywords and decorators of a class are evaluated."""
    facts = symbol.facts
    return View(symbol.module, facts.scopes, facts.outer, facts.position[:2])


def body_view(symbol: ClassSymbol, at: At) -> View:
    """Where a statement of a class's body is evaluated."""
    return View(symbol.module, symbol.facts.scopes, symbol.facts.body, at)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A binding that may give a name its value; `symbol` where a star import already told."""

    binding: Binding
    symbol: Symbol | None = None


@dataclass(slots=True)
class Linker:
    """Resolves names. `accessors` maps the methods that return a class of some role to the role.

    A lookup that meets itself gives no answer there. What was found on the way holds only for
    that lookup, and is kept apart (`_tentative`) until it is done.
    """

    modules: Modules
    accessors: dict[str, str]
    _found: dict[object, Symbol | None] = field(default_factory=dict)
    _tentative: dict[object, Symbol | None] = field(default_factory=dict)
    _running: dict[object, int] = field(default_factory=dict)
    _explaining: set[str] = field(default_factory=set)
    _met: int = _LONGEST_CHAIN

    def absolute(self, dotted: str) -> Symbol:
        """What the absolute name `dotted` stands for."""
        if dotted.startswith("?"):
            return Unknown(f"`{dotted[2:]}` is imported from beyond the tree")
        parts = dotted.split(".")
        if len(parts) > 1 and (bound := self._bound_in_package(parts)) is not None:
            return bound
        for length in range(len(parts), 0, -1):
            name = ".".join(parts[:length])
            module = self.modules.find(name)
            if module is not None:
                return self._attributes(module, parts[length:])
            if self.modules.is_file(name):
                return Unknown(f"module `{name}` cannot be parsed")
        return self._absent(dotted)

    def _bound_in_package(self, parts: list[str]) -> Symbol | None:
        """A name that a package's own code binds hides the submodule of that name."""
        package = self.modules.find(".".join(parts[:-1]))
        if package is None or parts[-1] not in package.bindings:
            return None
        found = self._member(package, parts[-1])
        return None if isinstance(found, Vanished) else found

    def _absent(self, dotted: str) -> Symbol:
        top = dotted.partition(".")[0]
        if self.modules.has_source(top):
            return Vanished(dotted)
        if self.modules.is_package(top):
            return _undescribed(dotted)
        return External(dotted)

    # Names and expressions

    def name(self, module: Module, dotted: str, scopes: Scopes = ()) -> Symbol:
        """What `dotted` stands for in `module`, seen from inside the functions `scopes`."""
        return self.look_up(View(module, scopes), dotted)

    def expression(self, module: Module, value: Expression, scopes: Scopes = ()) -> Symbol:
        """What an expression evaluates to, as far as linking can tell."""
        return self.evaluate(View(module, scopes), value)

    def look_up(self, view: View, dotted: str) -> Symbol:
        """What `dotted` stands for where `view` is."""
        first, *rest = dotted.split(".")
        return self._attributes(self._first(view, first), rest)

    def evaluate(self, view: View, value: Expression) -> Symbol:
        """What an expression evaluates to where `view` is."""
        if value.kind in ("name", "subscript"):
            return self.look_up(view, value.text)
        if value.kind == "literal":
            return Literal(value.value)
        if value.kind == "absolute":
            return self.absolute(value.text)
        if value.kind == "choice":
            options = (self.evaluate(view, option) for option in value.options)
            return _one_of(options, f"it depends on `{value.text}`")
        if value.kind == "default":
            wanted, otherwise = value.options
            found = self.evaluate(view, wanted)
            return self.evaluate(view, otherwise) if isinstance(found, Vanished) else found
        if value.kind == "call":
            return self._call(view, value)
        return Unknown(f"it is `{value.text}`")

    def _call(self, view: View, value: Expression) -> Symbol:
        method = value.text.rpartition(".")[2]
        if method in self.accessors:
            return Parametric(self.accessors[method], f"{value.text}()")
        if method == "cast" and len(value.arguments) == 2:
            return self.evaluate(view, value.arguments[1])
        if value.text == "type" and len(value.arguments) == 3:
            return Unknown("the class is built at run time by type()")
        if method == "TypeVar":
            return Variable(tuple(self._bound_of(view, bound) for bound in value.arguments))
        return Unknown(f"it is the result of {value.text}()")

    def _bound_of(self, view: View, bound: Expression) -> Symbol:
        """What bounds a type variable: it may be named before it is there."""
        if isinstance(bound.value, str):
            return self.look_up(View(view.module, view.functions), bound.value)
        return self.evaluate(view, bound)

    def _first(self, view: View, name: str) -> Symbol:
        """The first part of a dotted name: class body, functions from the inside out, module."""
        seen = _before(_named(view.body, name), view.at)
        if seen:
            return self._choose(view, [_Candidate(b) for b in seen])
        for depth in range(len(view.functions), 0, -1):
            named = _named(view.functions[depth - 1], name)
            if named:
                runs_here = depth == len(view.functions)
                seen = (_before(named, view.at) if runs_here else named) or named
                around = View(view.module, view.functions[:depth])
                return self._choose(around, [_Candidate(b) for b in seen])
        return self._member(view.module, name, True, None if view.functions else view.at)

    def _attributes(self, symbol: Symbol, names: Sequence[str]) -> Symbol:
        for position, name in enumerate(names):
            if isinstance(symbol, Module):
                symbol = self._member(symbol, name)
            elif isinstance(symbol, ClassSymbol):
                symbol = self._class_member(symbol, name)
            elif isinstance(symbol, External):
                return External(".".join((symbol.dotted, *names[position:])))
            elif isinstance(symbol, Unknown) and symbol.dotted:
                return _undescribed(".".join((symbol.dotted, *names[position:])))
            else:
                return symbol
        return symbol

    def _class_member(self, owner: ClassSymbol, name: str) -> Symbol:
        named = _named(owner.facts.body, name)
        if not named:
            return Unknown(f"`{name}` is looked up on class {owner.facts.name}")
        view = View(owner.module, owner.facts.scopes, owner.facts.body)
        return self._choose(view, [_Candidate(b) for b in named])

    # Members of modules

    def _member(
        self, module: Module, name: str, lexical: bool = False, at: At | None = None
    ) -> Symbol:
        """lexical: looked up by code of the module itself, not as its attribute."""
        found = self._find(module, name, lexical, at)
        return found if found is not None else self._missing(module, name)

    def _find(self, module: Module, name: str, lexical: bool, at: At | None) -> Symbol | None:
        bindings = module.bindings.get(name, ())
        stars = module.bindings.get("*", ())
        key = (module, name, lexical, None if at is None else len(_before((*bindings, *stars), at)))
        for known in (self._found, self._tentative):
            if key in known:
                return known[key]
        if key in self._running:
            self._met = min(self._met, self._running[key])
            return _CYCLE
        depth = len(self._running)
        if depth > _LONGEST_CHAIN:
            self._met = 0
            return _TOO_LONG
        met_before, self._met = self._met, _LONGEST_CHAIN + 1
        self._running[key] = depth
        try:
            symbol = self._find_anew(module, name, lexical, at)
        finally:
            del self._running[key]
            met, self._met = self._met, min(met_before, self._met)
        if met >= depth:
            self._found[key] = symbol
        else:
            self._tentative[key] = symbol
        if not self._running:
            self._tentative.clear()
        return symbol

    def _find_anew(self, module: Module, name: str, lexical: bool, at: At | None) -> Symbol | None:
        candidates = self._candidates(module, name)
        seen = [c for c in candidates if at is None or c.binding.position[:2] < at]
        if seen:
            return self._choose(View(module), seen)
        if not lexical and module.facts.is_package:
            submodule = self.modules.find(f"{module.facts.name}.{name}".lstrip("."))
            if submodule is not None:
                return submodule
        if lexical and name in _BUILTINS:
            return External(f"builtins.{name}")
        return self._choose(View(module), candidates) if candidates else None

    def _candidates(self, module: Module, name: str) -> list[_Candidate]:
        """The module's own bindings of `name` and the star imports that provide it, in order."""
        found = [_Candidate(binding) for binding in module.bindings.get(name, ())]
        stars = module.bindings.get("*")
        if stars is None:
            return found
        for star in stars:
            source = self.absolute(star.target)
            if isinstance(source, Module) and _is_exported(source, name):
                symbol = self._find(source, name, False, None)
                if symbol is not None and symbol is not _CYCLE:
                    found.append(_Candidate(star, symbol))
        return sorted(found, key=lambda candidate: candidate.binding.position)

    def _missing(self, module: Module, name: str) -> Symbol:
        """Why a module has no such name."""
        dotted = f"{module.facts.name}.{name}"
        if dotted in self._explaining:
            return Unknown(f"`{dotted}` is missing, and what may provide it needs it")
        self._explaining.add(dotted)
        try:
            for star in module.bindings.get("*", ()):
                if not isinstance(self.absolute(star.target), (Module, Vanished)):
                    return Unknown(f"`{name}` may come from `from {star.target} import *`")
        finally:
            self._explaining.discard(dotted)
        if "__getattr__" in module.bindings:
            reason = f"`{dotted}` comes from a module-level __getattr__"
            return self._loaded_late(module, name) or Unknown(reason)
        if module.facts.is_open:
            return Unknown(f"`{dotted}` may be put into the module at run time")
        if module.tree is Tree.PACK:
            return _undescribed(dotted)
        if self.modules.is_file(dotted):
            return Unknown(f"module `{dotted}` cannot be parsed")
        return Vanished(dotted)

    def _loaded_late(self, module: Module, name: str) -> Symbol | None:
        """What a module-level `__getattr__` imports by `name` itself, to hand it on."""
        for facts in module.facts.functions:
            node = self.modules.function(module, facts) if facts.name == "__getattr__" else None
            if node is not None:
                place = Place(module.facts.path, module.facts.name, module.facts.is_package)
                found = _named(local_bindings(node, place), name)
                if len(found) == 1 and found[0].source is Source.IMPORT:
                    return self._imported(module, found[0])
        return None

    # Bindings

    def _choose(self, view: View, candidates: Sequence[_Candidate]) -> Symbol:
        """The binding in force: the last unconditional one and the conditional ones after it.

        A binding in an `except` clause counts where the one it stands in for has vanished; one
        under TYPE_CHECKING where there is no other, since it does not exist at run time; and an
        empty class beside another package's, in the branch for where that one is not installed,
        where it is not.
        """
        real = [c for c in candidates if runs(c.binding.conditions)]
        fallbacks = [c for c in real if _is_fallback(c.binding)]
        live, _ = in_force(
            (c for c in real if not _is_fallback(c.binding)), lambda c: c.binding.conditions
        )
        chosen = live or fallbacks or candidates
        symbols = [self._bound(view, c) for c in chosen]
        present = [s for s in symbols if not isinstance(s, Vanished)]
        if live and fallbacks and (not present or _are_flags(symbols)):
            # A flag set on either side of an import says which import worked; that is not known.
            symbols = [*present, *(self._bound(view, c) for c in fallbacks)]
            present = [s for s in symbols if not isinstance(s, Vanished)]
        asked = (t for c in chosen for t in tests(c.binding.conditions) if t.kind == "test")
        test = next((t.text for t in asked), "")
        foreign = [s for s in present if _is_of_another(view.module, s)]
        if test and foreign and all(s in foreign or _is_stand_in(view.module, s) for s in present):
            present = foreign
        return _one_of(present or symbols, f"it depends on `{test}`" if test else "it varies")

    def _bound(self, view: View, candidate: _Candidate) -> Symbol:
        if candidate.symbol is not None:
            return candidate.symbol
        module, binding = view.module, candidate.binding
        if binding.source is Source.IMPORT:
            return self._imported(module, binding)
        if binding.source is Source.CLASS:
            symbol = module.class_at.get((binding.name, *binding.position[:2]))
            return symbol or Unknown(f"class `{binding.name}` stands inside a function")
        if binding.source is Source.FUNCTION:
            facts = module.function_at.get((binding.name, *binding.position[:2]))
            return FunctionSymbol(module, facts) if facts else Unknown("it is a local function")
        if binding.source is Source.PARAMETER:
            return Unknown(f"it is the parameter `{binding.name}`")
        return self._assigned(view, binding)

    def _imported(self, module: Module, binding: Binding) -> Symbol:
        own_submodule = f"{module.facts.name}.{binding.name}".lstrip(".")
        if binding.target == own_submodule:
            submodule = self.modules.find(own_submodule)
            if submodule is not None:
                return submodule
        return self.absolute(binding.target)

    def _assigned(self, view: View, binding: Binding) -> Symbol:
        key = id(binding)
        if key in self._running:
            self._met = min(self._met, self._running[key])
            return _CYCLE
        if len(self._running) > _LONGEST_CHAIN:
            self._met = 0
            return _TOO_LONG
        self._running[key] = len(self._running)
        try:
            here = View(view.module, view.functions, view.body, binding.position[:2])
            return self.evaluate(here, binding.value or Expression("other"))
        finally:
            del self._running[key]


def _named(bindings: Iterable[Binding], name: str) -> tuple[Binding, ...]:
    return tuple(binding for binding in bindings if binding.name == name)


def _before(bindings: Iterable[Binding], at: At | None) -> tuple[Binding, ...]:
    return tuple(b for b in bindings if at is None or b.position[:2] < at)


def _is_fallback(binding: Binding) -> bool:
    return any(c.kind in ("import-error", "handler") for c in binding.conditions)


def _is_exported(module: Module, name: str) -> bool:
    exports = module.facts.exports
    return name in exports if exports is not None else not name.startswith("_")


def _are_flags(symbols: Sequence[Symbol]) -> bool:
    return all(isinstance(s, Literal) and s.value is not None for s in symbols)


def _is_of_another(module: Module, symbol: Symbol) -> bool:
    """Whether a symbol is a class of another package that is at hand."""
    return isinstance(symbol, ClassSymbol) and _package(symbol.module) != _package(module)


def _package(module: Module) -> str:
    return module.facts.name.partition(".")[0]


def _is_stand_in(module: Module, symbol: Symbol) -> bool:
    """Whether a symbol is what a module has in a class's place, where its package is missing.

    That is `object`, None, or a class that the module itself makes of nothing.
    """
    if isinstance(symbol, ClassSymbol):
        return symbol.module is module and all(
            _is_stand_in(module, base) for base in _own_bases(module, symbol)
        )
    if isinstance(symbol, Literal):
        return symbol.value is None
    return isinstance(symbol, External) and symbol.dotted in _NOTHING


def _own_bases(module: Module, symbol: ClassSymbol) -> Iterator[Symbol]:
    before = [c for c in module.classes if c.facts.position < symbol.facts.position]
    for base in symbol.facts.bases:
        named = [c for c in before if c.facts.qualname == base.text]
        yield named[0] if len(named) == 1 else External(f"builtins.{base.text}")


def _undescribed(dotted: str) -> Unknown:
    reason = f"`{dotted}` is not described by the pack, and its source is not at hand"
    return Unknown(reason, dotted=dotted)


def _one_of(symbols: Iterable[Symbol], reason: str) -> Symbol:
    """The single symbol, if all are the same; else Unknown with the candidates."""
    distinct = list(dict.fromkeys(symbols))
    return distinct[0] if len(distinct) == 1 else Unknown(reason, tuple(distinct))
