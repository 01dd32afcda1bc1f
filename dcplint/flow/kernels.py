"""Which calls run an attention kernel, or a merge, that the contract describes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from dcplint.contracts.model import Kernel, Term
from dcplint.facts.expressions import dotted_name
from dcplint.facts.model import Source
from dcplint.flow.foreign import foreign_classes
from dcplint.flow.functions import Function
from dcplint.flow.universe import Universe
from dcplint.program.program import Program
from dcplint.program.symbols import FunctionSymbol

T = TypeVar("T")
MERGES = ("merges", "combines")


@dataclass
class Kernels:
    """Finds them by the names that a module imports them under."""

    universe: Universe
    _found: dict[tuple[Function, str], frozenset[str]] = field(default_factory=dict)

    @property
    def program(self) -> Program:
        """The program whose calls these are."""
        return self.universe.program

    def kernel(self, function: Function, callee: ast.expr) -> Kernel | None:
        """The kernel that `callee` is in `function`: a function, or a method of a known object."""
        found = next(self._described(function, callee, self._kernels), None)
        if found is None and isinstance(callee, ast.Attribute) and callee.attr in self._methods:
            owners = foreign_classes(self, function, callee.value)
            of = {self._kernels.get(f"{owner}.{callee.attr}") for owner in owners}
            found = of.pop() if len(of) == 1 else None
        return found

    def merge(self, function: Function, callee: ast.expr) -> Term | None:
        """The merge, over ranks or on one, that `callee` is in `function`."""
        return next(self._described(function, callee, self._merges), None)

    def _described(
        self, function: Function, callee: ast.expr, described: dict[str, T]
    ) -> Iterator[T]:
        dotted = dotted_name(callee)
        if dotted is not None:
            names = self.names(function, dotted)
            yield from (described[name] for name in sorted(names & described.keys()))

    @cached_property
    def _kernels(self) -> dict[str, Kernel]:
        kernels = self.program.contract.kernels
        return {name: kernel for kernel in kernels for name in (kernel.name, *kernel.aliases)}

    @cached_property
    def _methods(self) -> frozenset[str]:
        """The last names of those that are methods: a class's name stands before them."""
        kernels = self.program.contract.kernels
        return frozenset(k.called.rpartition(".")[2] for k in kernels if "." in k.called)

    @cached_property
    def _merges(self) -> dict[str, Term]:
        return {term.name: term for kind in MERGES for term in self.described(kind)}

    def described(self, kind: str) -> tuple[Term, ...]:
        """The words of that kind in the release at hand."""
        contract = self.program.contract
        terms = (term for term in contract.pack.terms if term.kind == kind)
        return tuple(term for term in terms if contract.effective in term.releases)

    def names(self, function: Function, dotted: str) -> frozenset[str]:
        """The absolute names that `dotted` may stand for: its own, and those it is imported by."""
        key = (function, dotted)
        if key not in self._found:
            self._found[key] = frozenset(self._find_names(function, dotted))
        return self._found[key]

    def _find_names(self, function: Function, dotted: str) -> Iterator[str]:
        found = function.named(self.program.linker, dotted)
        if isinstance(found, FunctionSymbol):
            yield f"{found.module.facts.name}.{found.facts.qualname}"
        yield getattr(found, "dotted", "")
        # A name that several branches import is no one symbol.
        first, _, rest = dotted.partition(".")
        for bindings in (*reversed(function.scopes), function.module.facts.bindings):
            mine = [binding for binding in bindings if binding.name == first]
            for binding in mine:
                if binding.source is Source.IMPORT:
                    yield f"{binding.target}.{rest}" if rest else binding.target
            if mine:
                return
