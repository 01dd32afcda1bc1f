"""What of an engine is out of play beside a plugin that brings a platform of its own.

Such a plugin names the backends itself, and runs its own model runners on them. The engine's
backends then never see its batches, what its classes override does not run, and what they do not
inherit makes no batches for its backends.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cached_property

from dcplint.facts.model import FunctionFacts
from dcplint.program.program import Program
from dcplint.program.symbols import ClassSymbol, Literal, Module
from dcplint.source.location import Tree
from dcplint.source.tree import walk


class OwnPlatform:
    """The engine's functions that a checked plugin keeps out of play. None where it has none."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def keeps_from(self, origin: Module, owner: ClassSymbol, method: str) -> bool:
        """Whether a batch made in `origin` cannot get to a method of `owner`, a backend's class.

        Of the engine's methods only what the plugin's classes inherit or call sees its batches.
        """
        if (origin.tree, owner.module.tree) != (Tree.PROJECT, Tree.ENGINE):
            return False
        return self._names_its_own and not any(
            self._runs(symbol, owner, method) for symbol in self._built_on.get(owner, ())
        )

    def _runs(self, symbol: ClassSymbol, owner: ClassSymbol, name: str) -> bool:
        """Whether a call of `name` on `symbol` comes to the method of `owner`, its ancestor."""
        calls = (f"super().{name}(", f"{owner.facts.name}.{name}(")
        for entry in self.program.mro(symbol).classes:
            if entry is owner:
                return True
            for method in entry.facts.methods:
                text = self.program.modules.source(entry.module, method)
                if method.name == name and not any(call in text for call in calls):
                    return False
        return False

    def replaces(self, module: Module, qualname: str) -> bool:
        """Whether `qualname` is a method of the engine's that a class of the plugin overrides."""
        return module.tree is Tree.ENGINE and any(
            replaced is module and f"{qualname}.".startswith(f"{method}.")
            for replaced, method in self._replaced
        )

    def comes_to(self, places: Iterable[tuple[Module, str]], owner: ClassSymbol | None) -> bool:
        """Whether a batch that passes through `places`, functions, may come to a backend's class.

        Beside runners of the plugin's own, the engine's code runs where a class of the plugin
        inherits it, or where the plugin calls it.
        """
        if not self._runs_its_own:
            return True
        own = f"{owner.facts.qualname}." if owner is not None else "."
        return any(
            (module, qualname.partition(".<locals>")[0].rpartition(".")[0]) in self._inherited
            if module.tree is Tree.ENGINE
            else not qualname.startswith(own)
            for module, qualname in places
        )

    @cached_property
    def _runs_its_own(self) -> bool:
        runners = self.program.classes("runner") if self._names_its_own else ()
        return any(symbol.module.tree is Tree.PROJECT for symbol in runners)

    @cached_property
    def _inherited(self) -> frozenset[tuple[Module, str]]:
        """The engine's classes that classes of the plugin derive from."""
        return frozenset(
            (entry.module, entry.facts.qualname)
            for symbol in self._own
            for entry in self.program.mro(symbol).classes[1:]
            if entry.module.tree is Tree.ENGINE
        )

    @property
    def _own(self) -> Iterator[ClassSymbol]:
        return (symbol for module in self.program.checked for symbol in module.classes)

    @cached_property
    def _names_its_own(self) -> bool:
        found = [
            hook for symbol in self.program.classes("platform") for hook in self._hooks(symbol)
        ]
        return bool(found) and all(map(self._is_answered_alone, found))

    def _hooks(self, symbol: ClassSymbol) -> Iterator[tuple[ClassSymbol, FunctionFacts]]:
        """The methods by which a platform answers for the engine's choice of a backend.

        They are as old as platforms; that gates count on them is newer.
        """
        gates = self.program.contract.pack.gates
        hooks = {hook.function for gate in gates for hook in gate.hooks}
        ancestors = {entry.dotted for entry in self.program.mro(symbol).classes[1:]}
        for method in symbol.facts.methods:
            if any(f"{ancestor}.{method.name}" in hooks for ancestor in ancestors):
                yield symbol, method

    def _is_answered_alone(self, hook: tuple[ClassSymbol, FunctionFacts]) -> bool:
        """Whether every answer of a method is known, and names nothing of the engine's."""
        owner, method = hook
        node = self.program.function(owner.module, method)
        if node is None:
            return False
        assigned = [n for n in walk(node) if isinstance(n, ast.Assign)]
        answers = [n.value for n in walk(node) if isinstance(n, ast.Return) and n.value is not None]
        engine = f"{self.program.contract.pack.package}."
        for answer in answers:
            names = list(self._named(owner, answer, assigned))
            if not names or any(name.startswith(engine) for name in names):
                return False
        return bool(answers)

    def _named(
        self, owner: ClassSymbol, answer: ast.expr, assigned: list[ast.Assign]
    ) -> Iterator[str]:
        """The dotted names in an answer, and in what the variables in it hold."""
        for node in walk(answer):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                if "." in node.value:
                    yield node.value
            elif isinstance(node, ast.Name):
                for statement in assigned:
                    if any(isinstance(t, ast.Name) and t.id == node.id for t in statement.targets):
                        rest = [other for other in assigned if other is not statement]
                        yield from self._named(owner, statement.value, rest)
                held = self.program.linker.name(owner.module, node.id, owner.facts.scopes)
                if isinstance(held, Literal) and isinstance(held.value, str):
                    yield held.value

    @cached_property
    def _built_on(self) -> dict[ClassSymbol, list[ClassSymbol]]:
        """The plugin's classes that derive from a class."""
        found: dict[ClassSymbol, list[ClassSymbol]] = {}
        for symbol in (s for role in ("impl", "builder") for s in self.program.classes(role)):
            for entry in self.program.mro(symbol).classes[1:]:
                found.setdefault(entry, []).append(symbol)
        return found

    @cached_property
    def _replaced(self) -> frozenset[tuple[Module, str]]:
        return frozenset(
            (entry.module, method.qualname)
            for symbol in (self._own if self._names_its_own else ())
            for entry in self.program.mro(symbol).classes[1:]
            for method in entry.facts.methods
            if any(method.name == replacing.name for replacing in symbol.facts.methods)
            and entry.module.tree is Tree.ENGINE
        )
