"""An engine release as `contracts.check` compares it with a pack: facts by dotted name."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from dcplint.contracts.checking.engine import Place
from dcplint.contracts.contract import Contract
from dcplint.facts.model import FunctionFacts, Setting
from dcplint.program.abstractness import is_abstract
from dcplint.program.link import Linker
from dcplint.program.modules import Modules, SourceTree, Words
from dcplint.program.mro import Hierarchy, Opaque
from dcplint.program.symbols import ClassSymbol, FunctionSymbol, Literal, Module, Symbol, Unknown
from dcplint.source.location import Tree
from dcplint.source.parse import parse_function
from dcplint.source.text import UnreadableSource
from dcplint.source.tree import walk


@dataclass
class Release:
    """A release unpacked in `directory`, the folder that holds its package.

    Implements `contracts.checking.engine.Engine`. Modules are parsed when a name leads to them.
    """

    directory: Path
    contract: Contract
    modules: Modules = field(init=False)

    def __post_init__(self) -> None:
        tree = SourceTree(self.directory, Tree.ENGINE)
        words = {capability.name for capability in self.contract.capabilities}
        self.modules = Modules((tree,), Words(words))

    @cached_property
    def _linker(self) -> Linker:
        return Linker(self.modules, {})

    @cached_property
    def _hierarchy(self) -> Hierarchy:
        return Hierarchy(self._linker, frozenset())

    def resolve(self, name: str) -> str | None:
        """The dotted name under which `name` is defined; None where there is no such thing."""
        found = self._linker.absolute(name)
        if isinstance(found, Module):
            return found.facts.name
        if isinstance(found, ClassSymbol):
            return found.dotted
        if isinstance(found, FunctionSymbol):
            return f"{found.module.facts.name}.{found.facts.qualname}"
        if isinstance(found, Literal):
            return name
        return name if self._member(name) is not None or self._is_bound(name) else None

    def place(self, name: str) -> Place:
        """Where `name` is defined."""
        found = self._linker.absolute(name)
        if isinstance(found, (ClassSymbol, FunctionSymbol)):
            return Place(found.module.facts.path, found.facts.position[0])
        if isinstance(found, Module):
            return Place(found.facts.path, 1)
        member = self._member(name)
        if member is not None:
            return Place(member[0].facts.path, member[1].position[0])
        module = self._linker.absolute(name.rpartition(".")[0])
        return Place(module.facts.path if isinstance(module, Module) else "", 1)

    def bases(self, name: str) -> tuple[str, ...]:
        """The defining names of the direct bases of class `name`."""
        symbol = self._class(name)
        if symbol is None:
            return ()
        bases = self._hierarchy.bases(symbol)
        return tuple(base.base if isinstance(base, Opaque) else base.dotted for base in bases)

    def methods(self, name: str) -> frozenset[str]:
        """The methods in the body of class `name`."""
        symbol = self._class(name)
        return frozenset(m.name for m in symbol.facts.methods) if symbol else frozenset()

    def abstract_methods(self, name: str) -> frozenset[str]:
        """Those of them that a decorator marks abstract."""
        symbol = self._class(name)
        methods = symbol.facts.methods if symbol else ()
        return frozenset(method.name for method in methods if is_abstract(method))

    def fields(self, name: str) -> frozenset[str]:
        """The annotated attributes in the body of class `name`."""
        symbol = self._class(name)
        attributes = symbol.facts.attributes if symbol else ()
        return frozenset(fact.name for fact in attributes if fact.annotation)

    def class_value(self, name: str, attribute: str) -> object:
        """The literal that the body of class `name` gives `attribute`, or None."""
        symbol = self._class(name)
        for fact in reversed(symbol.facts.attributes if symbol else ()):
            if fact.name == attribute and fact.setting is Setting.CLASS_BODY:
                return fact.value.value if fact.value.kind == "literal" else None
        return None

    def parameters(self, function: str) -> tuple[str, ...]:
        """The names of a function's parameters."""
        found = self._function(function)
        return found[1].parameters if found else ()

    def mentions(self, function: str, name: str) -> bool:
        """Whether the source of a function or class names `name`: attribute, variable or string."""
        found = self._function(function)
        if found is None:
            return False
        module, facts = found
        source = self.modules.source(module, facts)
        if name not in source:
            return False
        try:
            tree = parse_function(source, *facts.lines)
        except UnreadableSource:
            return False
        return any(
            name in (getattr(node, "attr", None), getattr(node, "id", None))
            or (isinstance(node, ast.Constant) and node.value == name)
            for node in walk(tree)
        )

    def source_line(self, path: str, line: int) -> str | None:
        """One line of a file of the release."""
        text = self.modules.text(Tree.ENGINE, path)
        there = text.text and 0 < line <= text.text.count("\n") + 1
        return text.between(line, line) if there else None

    def _class(self, name: str) -> ClassSymbol | None:
        found = self._linker.absolute(name)
        return found if isinstance(found, ClassSymbol) else None

    def _function(self, name: str) -> tuple[Module, FunctionFacts] | None:
        found: Symbol = self._linker.absolute(name)
        if isinstance(found, FunctionSymbol):
            return found.module, found.facts
        return self._member(name)

    def _member(self, name: str) -> tuple[Module, FunctionFacts] | None:
        """The method called `name`, by class and method name."""
        owner, _, method = name.rpartition(".")
        symbol = self._class(owner) if owner else None
        if symbol is None:
            return None
        return next(((symbol.module, f) for f in symbol.facts.methods if f.name == method), None)

    def _is_bound(self, name: str) -> bool:
        """Whether a module binds `name` to what is neither class, function nor constant."""
        owner, _, attribute = name.rpartition(".")
        module = self._linker.absolute(owner) if owner else Unknown("")
        return isinstance(module, Module) and attribute in module.bindings
