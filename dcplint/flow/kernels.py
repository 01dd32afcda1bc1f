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
from dcplint.flow.functions import Function
from dcplint.program.program import Program
from dcplint.program.symbols import FunctionSymbol

T = TypeVar("T")
MERGES = ("merges", "combines")


@dataclass
class Kernels:
    """Finds them by the names that a module imports them under."""

    program: Program
    _found: dict[tuple[Function, str], frozenset[str]] = field(default_factory=dict)

    def kernel(self, function: Function, callee: ast.expr) -> Kernel | None:
        """The kernel that `callee` is in `function`."""
        return next(self._described(function, callee, self._kernels), None)

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
