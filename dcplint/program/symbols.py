"""What a name can turn out to be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from dcplint.facts.model import (
    COMPUTED,
    AttributeFact,
    Binding,
    ClassFacts,
    FunctionFacts,
    ModuleFacts,
)
from dcplint.source.location import Tree


@dataclass(frozen=True, eq=False)
class Module:
    """A module of the program. Compared by identity: one file is one module."""

    facts: ModuleFacts
    tree: Tree

    @cached_property
    def bindings(self) -> dict[str, tuple[Binding, ...]]:
        """Bindings by name, in source order."""
        found: dict[str, list[Binding]] = {}
        for binding in self.facts.bindings:
            found.setdefault(binding.name, []).append(binding)
        return {name: tuple(bindings) for name, bindings in found.items()}

    @cached_property
    def renamed(self) -> tuple[tuple[str, str], ...]:
        """(name, the name of what it stands for) of what imports and assignments rename."""
        named = ((binding.name, binding.last_part) for binding in self.facts.bindings)
        return tuple((name, last) for name, last in named if last != name)

    @cached_property
    def classes(self) -> tuple[ClassSymbol, ...]:
        """Every class of the module, nested and local ones included."""
        return tuple(ClassSymbol(self, facts) for facts in self.facts.classes)

    @cached_property
    def class_at(self) -> dict[tuple[str, int, int], ClassSymbol]:
        """Classes by name, line and column of their header."""
        return {(s.facts.name, *s.facts.position[:2]): s for s in self.classes}

    @cached_property
    def function_at(self) -> dict[tuple[str, int, int], FunctionFacts]:
        """Module-level functions by name, line and column of their header."""
        return {(f.name, *f.position[:2]): f for f in self.facts.functions}


@dataclass(frozen=True, eq=False)
class ClassSymbol:
    """A class of the program. Compared by identity: two classes may share a name."""

    module: Module
    facts: ClassFacts

    @property
    def dotted(self) -> str:
        """Where the class is defined, as one would import it."""
        return f"{self.module.facts.name}.{self.facts.qualname}"

    @cached_property
    def _said(self) -> dict[str, list[AttributeFact]]:
        found: dict[str, list[AttributeFact]] = {}
        for fact in self.facts.attributes:
            found.setdefault(fact.name, []).append(fact)
        return found

    def said(self, name: str) -> Sequence[AttributeFact]:
        """What its source says, or may say, of an attribute, in source order."""
        computed = self._said.get(COMPUTED)
        if computed is None:
            return self._said.get(name, ())
        return sorted([*self._said.get(name, ()), *computed], key=lambda fact: fact.position)

    @property
    def path(self) -> str:
        """Path of the defining file, relative to its tree."""
        return self.module.facts.path

    def __str__(self) -> str:
        return self.facts.name


@dataclass(frozen=True, slots=True)
class FunctionSymbol:
    """A function of the program."""

    module: Module
    facts: FunctionFacts


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant."""

    value: object


@dataclass(frozen=True, slots=True)
class External:
    """A name of a package that is not part of the program."""

    dotted: str


@dataclass(frozen=True, slots=True)
class Vanished:
    """A name that a package of the program does not have; `dotted` ends with the missing part."""

    dotted: str


@dataclass(frozen=True, slots=True)
class Parametric:
    """Some class of a role, decided at run time (`backend.get_impl_cls()`)."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """What cannot be known from the source, and why. `options` are the candidates, if any.

    dotted: the engine name, where it is one that the pack does not describe.
    """

    reason: str
    options: tuple[Symbol, ...] = ()
    dotted: str = ""


@dataclass(frozen=True, slots=True)
class Variable:
    """A type variable, and the classes that what it stands for derives from, where it is bound."""

    bounds: tuple[Symbol, ...]


Symbol = (
    Module
    | ClassSymbol
    | FunctionSymbol
    | Literal
    | External
    | Vanished
    | Parametric
    | Unknown
    | Variable
)
