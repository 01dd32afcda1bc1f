"""Who calls whom among the functions of some modules."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from dcplint.facts.expressions import dotted_name
from dcplint.facts.model import Source
from dcplint.flow.functions import CallSite, Function, callee_name, fits, given_once, launched
from dcplint.flow.listing import Listing, ends_word
from dcplint.flow.types import classes_of, narrowed
from dcplint.program.symbols import ClassSymbol, FunctionSymbol

_IMPORTED_AS = re.compile(r"\b(\w+) as (\w+)")
_OWN_CALLS = ("self.", "cls.", "def ")


@dataclass
class Universe(Listing):
    """All functions that a flow analysis may walk through."""

    _callers: dict[Function, tuple[CallSite, ...]] = field(default_factory=dict)
    _callees: dict[tuple[Function, ast.Call, ast.stmt | None], tuple[Function, ...]] = field(
        default_factory=dict
    )

    def callees(
        self, function: Function, call: ast.Call, statement: ast.stmt | None = None
    ) -> tuple[Function, ...]:
        """The functions of the universe that `call`, made by `statement`, may run."""
        key = (function, call, statement)
        if key not in self._callees:
            self._callees[key] = self._find_callees(function, call, statement)
        return self._callees[key]

    def _find_callees(
        self, function: Function, call: ast.Call, statement: ast.stmt | None
    ) -> tuple[Function, ...]:
        callee = call.func
        if isinstance(callee, ast.Name):
            named = self.plain(function, callee.id)
            held = None if named else given_once(function, callee.id)
            if not isinstance(held, ast.Attribute):
                return named
            return self.callees(function, ast.Call(held, call.args, call.keywords), statement)
        if not isinstance(callee, ast.Attribute):
            return ()
        receiver = callee.value
        if isinstance(receiver, ast.Name) and receiver.id in ("self", "cls") and function.owner:
            return self._methods(function.owner, callee.attr)
        if isinstance(receiver, ast.Call) and dotted_name(receiver.func) == "super":
            return self._parent_method(function, callee.attr)
        owners = narrowed(self, function, statement, receiver) if statement else frozenset()
        owners = owners or classes_of(self, function, receiver)
        if owners:
            targets = (f for owner in owners for f in self._methods(owner, callee.attr))
            return tuple(dict.fromkeys(targets))
        dotted = dotted_name(callee)
        if dotted is not None:
            found = function.named(self.program.linker, dotted)
            if isinstance(found, FunctionSymbol):
                target = self.function(found.module, found.facts)
                return (target,) if target is not None else ()
            owner = function.named(self.program.linker, dotted.rpartition(".")[0])
            if isinstance(owner, ClassSymbol):
                method = self.program.method(owner, callee.attr)
                exact = self.function(method.owner.module, method.facts) if method else None
                return (exact,) if exact is not None else ()
        return tuple(
            function
            for index in self._by_name.get(callee.attr, ())
            if self.entries[index].owner is not None
            for function in self.functions_of(index)[:1]
        )

    def called(self, function: Function, call: ast.Call) -> str:
        """The absolute dotted name of what is called, as far as imports tell."""
        dotted = dotted_name(launched(call))
        if dotted is None:
            return ""
        found = function.named(self.program.linker, dotted)
        if isinstance(found, FunctionSymbol):
            return f"{found.module.facts.name}.{found.facts.name}"
        return getattr(found, "dotted", "") or _imported(function, dotted)

    def plain(self, function: Function, name: str) -> tuple[Function, ...]:
        """The function that a bare `name` stands for in `function`."""
        scope: Function | None = function
        while scope is not None:
            for nested in scope.nested:
                if nested.node.name == name:
                    return (nested,)
            scope = scope.outer
        found = function.named(self.program.linker, name)
        if isinstance(found, FunctionSymbol):
            target = self.function(found.module, found.facts)
            return (target,) if target is not None else ()
        return ()

    def _methods(self, owner: ClassSymbol, name: str) -> tuple[Function, ...]:
        """The method that `owner` has, and those by which subclasses replace it."""
        found = self.program.method(owner, name)
        targets = [self.function(found.owner.module, found.facts)] if found else []
        targets += self.heirs(owner, name)
        return tuple(target for target in targets if target is not None)

    def _parent_method(self, function: Function, name: str) -> tuple[Function, ...]:
        """What `super().name()` runs: the next class's method, or, where a base is decided at run
        time (`class X(underlying_builder)`), that of any class which plays the base's role."""
        if function.owner is None:
            return ()
        program = self.program
        for entry in program.mro(function.owner).entries[1:]:
            if isinstance(entry, ClassSymbol):
                for facts in entry.facts.methods:
                    if facts.name == name:
                        target = self.function(entry.module, facts)
                        return (target,) if target is not None else ()
            elif entry.role:
                return tuple(self._playing(entry.role, name, function.owner))
        return ()

    def _playing(self, role: str, name: str, other: ClassSymbol) -> Iterator[Function]:
        """The methods called `name` of the classes that play `role`, save one class's."""
        for index in self._by_name.get(name, ()):
            owner = self.entries[index].owner
            if owner is not None and owner is not other and role in self.program.roles(owner):
                yield from self.functions_of(index)[:1]

    def callers(self, target: Function) -> tuple[CallSite, ...]:
        """The calls that may run `target`; for a constructor, those that make an instance too."""
        if target not in self._callers:
            self._callers[target] = tuple(self._find_callers(target))
        return self._callers[target]

    def _chained(self, target: Function) -> Iterator[CallSite]:
        """The calls of an `__init__` by those of the classes that derive from its class."""
        assert target.owner is not None
        for heir in self.heirs(target.owner, "__init__"):
            for statement, made in heir.calls.items():
                for call in made:
                    if callee_name(call) == "__init__":
                        yield CallSite(heir, statement, call)

    def _possible_calls(self, target: Function) -> Iterator[CallSite]:
        """The calls by its names, but for other classes' own methods: by text, unparsed."""
        for name in self._names_of(target):
            for index in self._calling(name):
                _, _, owner, text = self.entries[index]
                related = owner is None or self._are_related(owner, target.owner)
                if related or _is_called(text, name):
                    yield from self._calls_in(index, name)

    def _names_of(self, target: Function) -> list[str]:
        """What a function is called where it is defined, and what modules call it elsewhere."""
        names = [target.node.name]
        if target.owner is None:
            for name in names:  # grows: what is renamed may be renamed again
                names += sorted(self._renamed.get(name, set()) - set(names))
        return names

    @cached_property
    def _renamed(self) -> dict[str, set[str]]:
        """The names that imports and assignments give to what has another name."""
        found: dict[str, set[str]] = {}
        for module in self.modules:
            for name, last in module.renamed:
                found.setdefault(last, set()).add(name)
        inside = {*self._spelled("import")}.intersection(self._spelled("as"))
        for index in sorted(inside):  # a function that imports for itself
            for old, new in _IMPORTED_AS.findall(self.entries[index].text):
                found.setdefault(old, set()).add(new)
        return found

    def _are_related(self, one: ClassSymbol, other: ClassSymbol | None) -> bool:
        if other is None:
            return False
        return one in self.ancestry(other) or other in self.ancestry(one)

    def _find_callers(self, target: Function) -> Iterator[CallSite]:
        is_constructor = target.node.name == "__init__" and target.owner is not None
        sites = self._chained(target) if is_constructor else self._possible_calls(target)
        for site in sites:
            found = self.callees(site.function, site.call, site.statement)
            if target in found and fits(target, site.call):
                yield site
        if is_constructor and target.owner is not None:
            for site in self.calls_of(target.owner.facts.name):
                dotted = dotted_name(site.call.func) or ""
                made = site.function.named(self.program.linker, dotted)
                if made is target.owner and fits(target, site.call):
                    yield site


def _imported(function: Function, dotted: str) -> str:
    """What a name is imported as, where it leads to nothing that can be read."""
    root, _, rest = dotted.partition(".")
    for scope in (*reversed(function.scopes), function.module.facts.bindings):
        for binding in scope:
            if binding.name == root and binding.source is Source.IMPORT:
                return f"{binding.target}.{rest}" if rest else binding.target
    return dotted


def _is_called(text: str, name: str) -> bool:
    """Whether a method's text may call `name` of anything but its own instance or class."""
    word = f"{name}("
    at = text.find(word)
    while at >= 0:
        if not ends_word(text[at - 1]) and not text.endswith(_OWN_CALLS, 0, at):
            return True
        at = text.find(word, at + 1)
    return "class " in text
