"""What the methods that owe a value under DCP really return."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from dcplint.contracts.model import Output
from dcplint.flow.functions import Function, Universe
from dcplint.flow.trace import Outcome, Tracer
from dcplint.program.program import Program
from dcplint.program.symbols import ClassSymbol


@dataclass(frozen=True, eq=False)
class Owed:
    """A method that owes a value: the class that promises it, and the method it runs."""

    output: Output
    symbol: ClassSymbol
    method: Function


class OutputFlow:
    """The outputs of a program, traced through helpers and inherited overrides."""

    def __init__(self, program: Program) -> None:
        self.program = program

    @cached_property
    def tracer(self) -> Tracer:
        """Traces values through the modules of every class that owes something, and its bases'."""
        roles = {output.role for output in self.program.contract.outputs}
        classes = [symbol for role in roles for symbol in self.program.classes(role)]
        modules = dict.fromkeys(
            entry.module for symbol in classes for entry in self.program.mro(symbol).classes
        )
        return Tracer(Universe(self.program, tuple(modules)))

    def owed(self) -> Iterator[Owed]:
        """Every concrete class that promises an output, with the method that owes it."""
        for output in self.program.contract.outputs:
            promise = self.program.contract.capability(output.role, output.capability)
            if promise is None:
                continue
            for symbol in self.program.classes(output.role):
                if self.program.abstract_methods(symbol) != frozenset():
                    continue
                if self.program.promise(symbol, promise).holds() is not True:
                    continue
                method = self.program.method(symbol, output.method)
                if method is None:
                    continue
                function = self.tracer.universe.function(method.owner.module, method.facts)
                if function is not None:
                    yield Owed(output, symbol, function)

    def outcomes(self, owed: Owed) -> tuple[Outcome, ...]:
        """What the method returns in place of the value, with DCP on."""
        return self.tracer.returned(owed.method, (owed.output.element,))
