"""The program: every class that plays a role in an engine's contract, linked.

This is what rules see of the checked code. Nothing here decides what is right.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from dcplint.contracts.contract import Contract
from dcplint.contracts.model import Capability
from dcplint.facts.extract import Place as ModulePlace
from dcplint.facts.extract import local_bindings
from dcplint.facts.model import Binding, FunctionFacts, Position, ReadFact, Setting, Source
from dcplint.program.abstractness import Abstractness
from dcplint.program.attributes import Attributes, Kind, Place, Resolution
from dcplint.program.link import Linker, header_view
from dcplint.program.modules import Modules
from dcplint.program.mro import Hierarchy, Linearization
from dcplint.program.symbols import ClassSymbol, FunctionSymbol, Module, Unknown, Vanished
from dcplint.source.location import Location, Tree


@dataclass(frozen=True, slots=True)
class Method:
    """A method and the class that defines it."""

    owner: ClassSymbol
    facts: FunctionFacts


@dataclass(frozen=True, slots=True)
class Read:
    """A place of the checked tree that reads an attribute."""

    module: Module
    fact: ReadFact


@dataclass(eq=False)
class Program:
    """The linked classes of a tree, for one engine release. Compared by identity.

    modules holds everything; `checked` are the modules of the checked tree that were parsed;
    `find_related` gives those that contract fields pass through, `find_ranked` those that mention
    a rank, `find_blocked` those that compute with the size of a block; only some rules need them.
    """

    contract: Contract
    modules: Modules
    linker: Linker
    hierarchy: Hierarchy
    checked: tuple[Module, ...]
    find_related: Callable[[], tuple[Module, ...]] = tuple
    find_ranked: Callable[[], tuple[Module, ...]] = tuple
    find_blocked: Callable[[], tuple[Module, ...]] = tuple
    attributes: Attributes = field(init=False)
    _abstractness: Abstractness = field(init=False)
    _roles: dict[ClassSymbol, frozenset[str]] = field(default_factory=dict)
    _results: dict[tuple[ClassSymbol, str], ClassSymbol | None] = field(default_factory=dict)
    _heirs: dict[tuple[str, str], dict[ClassSymbol, tuple[ClassSymbol, ...]]] = field(
        default_factory=dict
    )
    _spellings: dict[frozenset[str], frozenset[str]] = field(default_factory=dict)
    _locals: dict[tuple[Module, tuple[int, int]], tuple[Binding, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        foundation = {c.name for c in self.contract.classes if c.abstract}
        foundation |= {capability.owner for capability in self.contract.capabilities}
        self.attributes = Attributes(
            self.modules, self.linker, self.hierarchy, frozenset(foundation)
        )
        self._abstractness = Abstractness(self.hierarchy)
        for module in self.checked:
            self._attach_externals(module)

    def _attach_externals(self, module: Module) -> None:
        for external in module.facts.externals:
            symbol = self.linker.name(module, external.owner, external.scopes)
            if isinstance(symbol, ClassSymbol):
                place = Place(symbol, module, external.fact)
                self.attributes.externals.setdefault(symbol, []).append(place)

    # Classes and roles

    def classes(self, role: str) -> tuple[ClassSymbol, ...]:
        """The classes of the checked tree that play `role`, by path and line."""
        return self._by_role.get(role, ())

    @cached_property
    def _by_role(self) -> dict[str, tuple[ClassSymbol, ...]]:
        found: dict[str, list[ClassSymbol]] = {}
        for module in sorted(self.checked, key=lambda m: m.facts.path):
            for symbol in sorted(module.classes, key=lambda c: c.facts.position):
                for role in self.roles(symbol):
                    found.setdefault(role, []).append(symbol)
        return {role: tuple(symbols) for role, symbols in found.items()}

    def lost(self, role: str) -> tuple[ClassSymbol, ...]:
        """The classes of the checked tree that would play `role`, had a base of theirs not gone."""
        pack = self.contract.pack
        played = {c.name: c.role for c in (*pack.classes, *pack.implementations)}
        return tuple(
            symbol
            for module in self.checked
            for symbol in module.classes
            if symbol not in self.classes(role)
            and any(
                played.get(base.dotted) == role
                for entry in self.mro(symbol).classes
                if entry.module.tree is Tree.PROJECT
                for base, _ in self.absent_bases(entry)
            )
        )

    def uses_engine(self) -> bool:
        """Whether the checked tree has a class with a role, or asks for a name that has moved.

        A tree that imports an engine for something else may still compute with what DCP shards.
        """
        if self._by_role:
            return True
        targets = (b.target for module in self.checked for b in module.facts.bindings if b.target)
        bases = (
            found.dotted
            for module in self.checked
            for symbol in module.classes
            for found, _ in self.absent_bases(symbol)
        )
        return any(self.contract.missing(name) is not None for name in (*targets, *bases))

    def absent_bases(self, symbol: ClassSymbol) -> Iterator[tuple[Vanished | Unknown, Position]]:
        """The bases of `symbol` that are names of an engine and lead nowhere."""
        for base, place in zip(symbol.facts.bases, symbol.facts.base_positions, strict=True):
            found = self.linker.evaluate(header_view(symbol), base)
            if isinstance(found, (Vanished, Unknown)) and found.dotted:
                yield found, place

    def roles(self, symbol: ClassSymbol) -> frozenset[str]:
        """The engine roles `symbol` plays, by descent from the contract's base classes.

        A class whose bases have no order still descends from them.
        """
        if symbol not in self._roles:
            self._roles[symbol] = self._find_roles(symbol)
        return self._roles[symbol]

    def _find_roles(self, symbol: ClassSymbol) -> frozenset[str]:
        order = self.hierarchy.linearize(symbol)
        entries = self.hierarchy.ancestors(symbol) if order.problem else order.entries
        return frozenset(
            role
            for entry in entries
            for role in (
                (self._engine_roles.get(entry.dotted),)
                if isinstance(entry, ClassSymbol)
                else (entry.role,)
            )
            if role
        )

    @cached_property
    def _engine_roles(self) -> dict[str, str]:
        return {c.name: c.role for c in self.contract.classes}

    def is_engine_base(self, symbol: ClassSymbol) -> bool:
        """Whether the contract names `symbol` as a base class of the engine."""
        return symbol.dotted in self._engine_roles

    def mro(self, symbol: ClassSymbol) -> Linearization:
        """The lookup order of `symbol`."""
        return self.hierarchy.linearize(symbol)

    def abstract_methods(self, symbol: ClassSymbol) -> frozenset[str] | None:
        """Methods that `symbol` leaves abstract; None where a base is unknown."""
        return self._abstractness.of(symbol)

    def enclosing_class(self, path: str, symbol: str, line: int) -> ClassSymbol | None:
        """The innermost class of a checked file that `symbol`, seen on `line`, is or lies in."""
        found = [
            candidate
            for module in self.checked
            if module.facts.path == path
            for candidate in module.classes
            if f"{symbol}.".startswith(f"{candidate.facts.qualname}.")
        ]
        # Of several with one name the last above the line is meant.
        return max(
            (candidate for candidate in found if candidate.facts.position[0] <= line),
            key=lambda candidate: (len(candidate.facts.qualname), candidate.facts.position),
            default=None,
        )

    # Attributes and methods

    def resolve(self, symbol: ClassSymbol, name: str) -> Resolution:
        """What `symbol` says of attribute `name`."""
        return self.attributes.resolve(symbol, name)

    def promise(self, symbol: ClassSymbol, capability: Capability) -> Resolution:
        """What `symbol` promises.

        Where the engine's base answers by asking another class (`supports_dcp()` of a backend asks
        its impl), that class's resolution is the answer.
        """
        said = self.resolve(symbol, capability.name)
        accessor = capability.delegates
        if accessor is None or said.place is None or said.place.owner.dotted != capability.owner:
            return said
        target = self.result(symbol, accessor)
        if target is None:
            reason = f"{accessor}() returns no class that can be known"
            return Resolution(Kind.UNKNOWN, place=said.place, reason=reason, walked=said.walked)
        return self.resolve(target, capability.name)

    def heirs(self, speaker: ClassSymbol, capability: Capability) -> tuple[ClassSymbol, ...]:
        """The classes that look a capability up in `speaker`, itself included, or beyond it."""
        key = (capability.role, capability.name)
        if key not in self._heirs:
            found: dict[ClassSymbol, list[ClassSymbol]] = {}
            for symbol in self.classes(capability.role):
                for walked in self.promise(symbol, capability).walked:
                    found.setdefault(walked, []).append(symbol)
            self._heirs[key] = {walked: tuple(symbols) for walked, symbols in found.items()}
        return self._heirs[key].get(speaker, ())

    def method(self, symbol: ClassSymbol, name: str) -> Method | None:
        """The method that a call of `name` on `symbol` runs; None where it is not known."""
        for entry in self.hierarchy.linearize(symbol).entries:
            if not isinstance(entry, ClassSymbol):
                if entry.neutral:
                    continue
                return None
            for facts in reversed(entry.facts.methods):
                if facts.name == name:
                    return Method(entry, facts)
        return None

    def result(self, symbol: ClassSymbol, accessor: str) -> ClassSymbol | None:
        """The class that `accessor` of `symbol` returns, where it is one known class."""
        key = (symbol, accessor)
        if key not in self._results:
            self._results[key] = self._find_result(symbol, accessor)
        return self._results[key]

    def _find_result(self, symbol: ClassSymbol, accessor: str) -> ClassSymbol | None:
        method = self.method(symbol, accessor)
        if method is None:
            return None
        said = method.owner.said(accessor)
        fact = next((f for f in reversed(said) if f.setting is Setting.METHOD), None)
        if fact is None:
            return None
        scopes = (*method.owner.facts.scopes, self._local(method))
        found = self.linker.expression(method.owner.module, fact.value, scopes)
        return found if isinstance(found, ClassSymbol) else None

    def function(
        self, module: Module, facts: FunctionFacts
    ) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The tree of a function with its body, parsed when first asked for."""
        return self.modules.function(module, facts)

    def canonical(self, method: Method, dotted: str) -> str:
        """The absolute name of what `dotted` stands for in a method; itself where unknown."""
        scopes = (*method.owner.facts.scopes, self._local(method))
        found = self.linker.name(method.owner.module, dotted, scopes)
        if isinstance(found, FunctionSymbol):
            return f"{found.module.facts.name}.{found.facts.name}"
        return getattr(found, "dotted", "") or dotted

    def _local(self, method: Method) -> tuple[Binding, ...]:
        """The names that a method's own statements bind."""
        module = method.owner.module
        key = (module, method.facts.lines)
        if key not in self._locals:
            node = self.function(module, method.facts)
            self._locals[key] = local_bindings(node, _place(module)) if node is not None else ()
        return self._locals[key]

    def spellings(self, names: frozenset[str]) -> frozenset[str]:
        """`names` and what imports and assignments of the checked tree rename them to."""
        if names not in self._spellings:
            self._load_wrappers()
            renamed = [pair for m in self.modules.loaded(Tree.PROJECT) for pair in m.renamed]
            found, before = set(names), 0
            while len(found) > before:
                before = len(found)
                found |= {name for name, last in renamed if last in found}
            self._spellings[names] = frozenset(found)
        return self._spellings[names]

    def _load_wrappers(self) -> None:
        """Load what a plugin imports from itself: it may rename the engine's names there."""
        if self._is_engine():
            return  # the engine does not wrap itself, and it is large
        for module in self.checked:
            for binding in module.facts.bindings:
                if binding.source is Source.IMPORT:
                    self.linker.absolute(binding.target)

    def _is_engine(self) -> bool:
        """Whether the checked tree is the engine itself."""
        package = self.contract.pack.package
        return any(m.facts.name.partition(".")[0] == package for m in self.checked)

    def with_helpers(self, modules: Iterable[Module]) -> tuple[Module, ...]:
        """These modules, and those from which they import functions, or modules as such.

        Only of a plugin: an engine is full of functions that have nothing to do with its batches,
        and there those that have speak of them.
        """
        found = dict.fromkeys(modules)
        queue = [] if self._is_engine() else [m for m in found if m.tree is Tree.PROJECT]
        for module in queue:  # grows as it is read
            for binding in module.facts.bindings:
                if binding.source is Source.IMPORT and self.modules.is_own(binding.target):
                    for helper in self._helpers(module, binding):
                        if helper.tree is Tree.PROJECT and helper not in found:
                            found[helper] = None
                            queue.append(helper)
        return tuple(found)

    def _helpers(self, module: Module, binding: Binding) -> Iterator[Module]:
        """Where a function that is imported stands, and the module it is imported from."""
        imported = self.linker.name(module, binding.name)
        if isinstance(imported, Module):
            yield imported
        elif isinstance(imported, FunctionSymbol):
            yield imported.module
            named = self.modules.find(binding.target.rpartition(".")[0])
            yield from (named,) if named is not None else ()

    # Places

    def reads(self, name: str) -> Iterator[Read]:
        """Every place of the checked tree that reads attribute `name`."""
        for module in self.checked:
            for fact in module.facts.reads:
                if fact.name == name:
                    yield Read(module, fact)

    def location(self, module: Module, position: Position) -> Location:
        """A position in a module as a location for people."""
        line, column, end_line, end_column = position
        if module.tree is Tree.PACK:
            return Location(module.facts.path, line, tree=Tree.PACK)
        text = self.modules.text(module.tree, module.facts.path)
        return Location(
            module.facts.path,
            line,
            text.column(line, column),
            end_line,
            text.column(end_line, end_column),
            module.tree,
        )

    def location_of(self, symbol: ClassSymbol) -> Location:
        """The header of a class."""
        return self.location(symbol.module, symbol.facts.position)


def _place(module: Module) -> ModulePlace:
    return ModulePlace(module.facts.path, module.facts.name, module.facts.is_package)
