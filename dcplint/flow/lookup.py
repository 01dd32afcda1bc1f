"""Questions about a universe that need more than one function: who sets, makes, or keeps what."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from dcplint.facts.expressions import dotted_name
from dcplint.flow.conditions import Path, path_of
from dcplint.flow.dataclasses import is_record
from dcplint.flow.functions import CallSite, Function, callee_name
from dcplint.flow.types import classes_of
from dcplint.flow.universe import Universe
from dcplint.program.symbols import ClassSymbol, FunctionSymbol, Module

_CONSTRUCTORS = frozenset({"__init__", "__post_init__"})
_LEVELS = 3  # helpers of helpers that may set an attribute of what they are given
_PROPERTIES = frozenset({"property", "cached_property"})
_TRANSPARENT = frozenset({"staticmethod", "classmethod", "abstractmethod", "wraps", "override"})

Stored = tuple[Function, ast.stmt, Path]
"""An assignment to an attribute: the path that is assigned to, as written."""


@dataclass
class Lookup:
    """Answers them, each once."""

    universe: Universe
    _stores: dict[tuple[ClassSymbol, str], tuple[Stored, ...]] = field(default_factory=dict)
    _setters: dict[str, frozenset[tuple[Module, str]]] = field(default_factory=dict)
    _escapes: dict[Function, bool] = field(default_factory=dict)
    _changed: dict[Function, bool] = field(default_factory=dict)

    # Classes

    def built(self, function: Function, call: ast.Call) -> ClassSymbol | None:
        """The class that `call` makes an instance of."""
        dotted = dotted_name(call.func)
        if dotted is None:
            return None
        if dotted == "cls" and function.is_method and "cls" in function.parameters[:1]:
            return function.owner
        found = function.named(self.universe.program.linker, dotted)
        return found if isinstance(found, ClassSymbol) else None

    def constructor(self, symbol: ClassSymbol) -> Function | None:
        """The method that runs when an instance is made: `__init__`, or a record's second step."""
        name = "__init__"
        found = self.universe.program.method(symbol, name)
        if found is None and is_record(self.universe, symbol):
            found = self.universe.program.method(symbol, "__post_init__")
        return self.universe.function(found.owner.module, found.facts) if found else None

    def constructors(self, owner: ClassSymbol) -> tuple[Function, ...]:
        """The constructors of a class and of those that derive from it."""
        own = self.constructor(owner)
        name = own.node.name if own is not None else "__init__"
        return (*((own,) if own else ()), *self.universe.heirs(owner, name))

    def constructions(self, owner: ClassSymbol) -> Iterator[CallSite]:
        """The calls that make instances of `owner`."""
        for name in (owner.facts.name, "cls"):
            for site in self.universe.calls_of(name):
                if self.built(site.function, site.call) is owner:
                    yield site

    @cached_property
    def properties(self) -> frozenset[str]:
        """The names of all properties."""
        return frozenset(
            facts.name
            for _, facts, _, _ in self.universe.entries
            if any(d.text.rpartition(".")[2] in _PROPERTIES for d in facts.decorators)
        )

    def property_of(self, owner: ClassSymbol, name: str) -> Function | None:
        """The property `name` of a class."""
        if name not in self.properties:
            return None
        for entry in self.universe.program.mro(owner).classes:
            for facts in entry.facts.methods:
                if facts.name == name:
                    found = self.universe.function(entry.module, facts)
                    if found is not None and found.is_property:
                        return found
        return None

    # Stores

    def stores(self, owner: ClassSymbol, name: str) -> tuple[Stored, ...]:
        """Assignments to `name` of instances of `owner`, outside of constructors."""
        key = (owner, name)
        if key not in self._stores:
            self._stores[key] = tuple(self._find_stores(owner, name))
        return self._stores[key]

    def _find_stores(self, owner: ClassSymbol, name: str) -> Iterator[Stored]:
        for index, at_self in self.universe.stored(name).items():
            _, facts, symbol, _ = self.universe.entries[index]
            own = symbol is not None and self._are_related(owner, symbol)
            if False in at_self or (own and facts.name not in _CONSTRUCTORS):
                for function in self.universe.functions_of(index):
                    yield from self._stores_in(function, owner, name)

    def _stores_in(self, function: Function, owner: ClassSymbol, name: str) -> Iterator[Stored]:
        if name not in function.attributes_set:
            return
        for statement, nodes in function.own_nodes.items():
            for node in nodes:
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                    path = path_of(node)
                    if (
                        path is not None
                        and path[1] == name
                        and self._is_instance(function, path, owner)
                    ):
                        yield function, statement, path

    def _is_instance(self, function: Function, path: Path, owner: ClassSymbol) -> bool:
        variable = str(path[0])
        classes = classes_of(self.universe, function, ast.Name(variable))
        if function.is_method and variable == function.parameters[0]:
            if function.node.name in _CONSTRUCTORS:
                return False
            classes = (function.owner,) if function.owner else ()
        return any(self._are_related(owner, symbol) for symbol in classes)

    def may_set(self, function: Function, attribute: str) -> bool:
        """Whether `function` may set `attribute` of something it is given, itself or by helpers."""
        if attribute not in self._setters:
            self._setters[attribute] = frozenset(self._find_setters(attribute))
        top = function
        while top.outer is not None:
            top = top.outer
        return (top.module, top.qualname) in self._setters[attribute]

    def _find_setters(self, attribute: str) -> set[tuple[Module, str]]:
        quoted = (f'"{attribute}"', f"'{attribute}'")
        indices = {index for word in quoted for index in self.universe.containing(word)}
        indices |= self.universe.stored(attribute).keys()
        entries = [self.universe.entries[index] for index in sorted(indices)]
        found = {(module, facts.qualname) for module, facts, _, _ in entries}
        names = {facts.name for _, facts, _, _ in entries}
        for _ in range(_LEVELS):
            # A name says little where most functions that have it do nothing of the kind.
            telling = {n for n in names if self._share(n, found) >= 0.5}
            callers = {c for name in telling for c in self.universe.calling(name)} - found
            found |= callers
            names = {qualname.rpartition(".")[2] for _, qualname in callers}
        return found

    def _share(self, name: str, found: set[tuple[Module, str]]) -> float:
        keys = list(self.universe.keys_named(name))
        return sum(key in found for key in keys) / len(keys) if keys else 0.0

    # Functions as values

    def escapes(self, function: Function) -> bool:
        """Whether `function` is also kept or passed somewhere, to be called by whoever has it."""
        if function not in self._escapes:
            self._escapes[function] = any(self._references(function))
        return self._escapes[function]

    def _references(self, function: Function) -> Iterator[bool]:
        name = function.node.name
        kinds: tuple[type[ast.expr], ...] = (ast.Name,)
        if function.owner is not None and not function.is_property:
            kinds += (ast.Attribute, ast.Call)
        before, other_than = (".'\"", "") if function.owner is not None else ("", ".'\"")
        for other in self.universe.referring(name, before, other_than):
            for nodes in other.own_nodes.values():
                called = {id(n.func) for n in nodes if isinstance(n, ast.Call)}
                for node in [n for n in nodes if isinstance(n, kinds)]:
                    may = isinstance(node, ast.Call) or id(node) not in called
                    if may and self._refers(function, other, node):
                        yield True

    def _refers(self, function: Function, other: Function, node: ast.AST) -> bool:
        name = function.node.name
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            return function in self.universe.plain(other, name)
        if function.owner is None:
            return False
        if isinstance(node, ast.Attribute) and node.attr == name:
            return isinstance(node.ctx, ast.Load) and self._may_be(
                function.owner, other, node.value
            )
        if isinstance(node, ast.Call) and callee_name(node) == "getattr" and len(node.args) > 1:
            named = node.args[1]
            said = isinstance(named, ast.Constant) and named.value == name
            return said and self._may_be(function.owner, other, node.args[0])
        return False

    def _may_be(self, owner: ClassSymbol, function: Function, node: ast.expr) -> bool:
        found = classes_of(self.universe, function, node)
        return any(self._are_related(owner, symbol) for symbol in found)

    def _are_related(self, one: ClassSymbol, other: ClassSymbol) -> bool:
        return one in self.universe.ancestry(other) or other in self.universe.ancestry(one)

    def is_changed_by_decorator(self, function: Function) -> bool:
        """Whether a decorator of the program may return something else than the function does."""
        if function not in self._changed:
            self._changed[function] = any(
                self._is_changing(function, decorator) for decorator in function.node.decorator_list
            )
        return self._changed[function]

    def _is_changing(self, function: Function, decorator: ast.expr) -> bool:
        made = decorator.func if isinstance(decorator, ast.Call) else decorator
        dotted = dotted_name(made)
        if dotted is None or dotted.rpartition(".")[2] in _TRANSPARENT | _PROPERTIES:
            return False
        scopes = function.outer.scopes if function.outer else ()
        found = self.universe.program.linker.name(function.module, dotted, scopes)
        if not isinstance(found, FunctionSymbol):
            return False
        target = self.universe.function(found.module, found.facts)
        return target is not None and any(
            not _hands_through(inner) for inner in target.nested if not inner.nested
        )

    def rebinds_global(self, module: Module, name: str) -> bool:
        """Whether a function of the module assigns to its variable `name`."""
        methods = (m for symbol in module.classes for m in symbol.facts.methods)
        texts = (self.universe.text(module, f) for f in (*module.facts.functions, *methods))
        said = rf"\bglobal\b.*\b{re.escape(name)}\b"
        return any("global " in text and re.search(said, text) for text in texts)


def _hands_through(wrapper: Function) -> bool:
    """Whether a decorator's wrapper returns what it is given to call, unchanged."""
    values = [node.value for node in wrapper.homes if isinstance(node, ast.Return)]
    if not values:
        return bool(wrapper.yields)
    for value in values:
        if isinstance(value, ast.Await):
            value = value.value
        if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Name):
            return False
        if not any(isinstance(a, ast.Starred) for a in value.args):
            return False
    return True
