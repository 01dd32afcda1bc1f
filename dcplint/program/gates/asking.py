"""Whether a method that replaces one of the engine's still asks the gate behind it, and where."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from dcplint.contracts.model import Gate
from dcplint.facts.expressions import dotted_name
from dcplint.facts.model import FunctionFacts
from dcplint.program.gates.places import last_name, names_above
from dcplint.program.program import Program
from dcplint.program.symbols import ClassSymbol, FunctionSymbol, Module
from dcplint.source.tree import walk

DEPTH = 4  # calls of calls


@dataclass(frozen=True, slots=True)
class Asking:
    """Looks for calls that reach `gate`, from a method of `symbol` that overrides `hook`."""

    program: Program
    symbol: ClassSymbol
    gate: Gate
    hook: str

    def asks(self, module: Module, node: ast.AST, depth: int) -> bool:
        """Whether a function calls the gate, the method it overrides, or something that does.

        What reads the promise itself does as the gate does.
        """
        return any(
            self._reaches(module, inner, depth)
            if isinstance(inner, ast.Call)
            else isinstance(inner, ast.Attribute)
            and (inner.attr == self.gate.capability or self._is_inherited(module, inner))
            for inner in walk(node)
        )

    def _is_inherited(self, module: Module, reference: ast.Attribute) -> bool:
        """Whether it is what the method overrides: of `super()`, or of a base class by its name.

        It need not be called on the spot: who takes it up, or hands it on, means to call it.
        """
        if reference.attr != self.hook:
            return False
        owner = reference.value
        if isinstance(owner, ast.Call):
            return dotted_name(owner.func) == "super"
        dotted = dotted_name(owner)
        base = self.program.linker.name(module, dotted) if dotted is not None else None
        if isinstance(base, ClassSymbol):
            return base in self.program.mro(self.symbol).classes[1:]
        return getattr(base, "dotted", "") in names_above(self.program, self.symbol)

    def _reaches(self, module: Module, call: ast.Call, depth: int) -> bool:
        name = last_name(call)
        if name == self.gate.function.rpartition(".")[2]:
            return True
        if depth == 0 or (name == self.hook and isinstance(call.func, ast.Attribute)):
            return False
        target = self._target(module, call)
        if target is None:
            return False
        node = self.program.function(*target)
        return node is not None and self.asks(target[0], node, depth - 1)

    def _target(self, module: Module, call: ast.Call) -> tuple[Module, FunctionFacts] | None:
        callee = call.func
        dotted = dotted_name(callee)
        if dotted is None:
            return None
        head, _, name = dotted.rpartition(".")
        if head in ("self", "cls", self.symbol.facts.name):
            method = self.program.method(self.symbol, name)
            return (method.owner.module, method.facts) if method else None
        found = self.program.linker.name(module, dotted)
        return (found.module, found.facts) if isinstance(found, FunctionSymbol) else None

    def silent_returns(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.Return]:
        """Returns of a value before which, on their way, nothing has asked."""
        yield from self._silent(node.body, False)

    def _silent(self, block: list[ast.stmt], asked: bool) -> Iterator[ast.Return]:
        for statement in block:
            if isinstance(statement, ast.Return):
                if not asked and statement.value is not None and not self._asks_here(statement):
                    yield statement
                return
            for inner in _blocks(statement):
                yield from self._silent(inner, asked or self._asks_in_header(statement))
            asked = asked or self._asks_before_the_next(statement)

    def _asks_before_the_next(self, statement: ast.stmt) -> bool:
        """Whether control that comes past a statement may have asked in it."""
        if not isinstance(statement, ast.If):
            return self._asks_here(statement)
        falling = [b for b in (statement.body, statement.orelse) if _falls_through(b)]
        return self._asks_in_header(statement) or any(
            self._asks_before_the_next(inner) for block in falling for inner in block
        )

    def _asks_here(self, statement: ast.stmt) -> bool:
        return self.asks(self.symbol.module, statement, DEPTH)

    def _asks_in_header(self, statement: ast.stmt) -> bool:
        headers = (c for c in ast.iter_child_nodes(statement) if isinstance(c, ast.expr))
        return any(self.asks(self.symbol.module, header, DEPTH) for header in headers)


def _falls_through(block: list[ast.stmt]) -> bool:
    """Whether control can come past the end of a block."""
    last = block[-1] if block else None
    if isinstance(last, ast.If):
        return _falls_through(last.body) or _falls_through(last.orelse)
    return not isinstance(last, (ast.Return, ast.Raise))


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(statement, name, None)
        if isinstance(block, list):
            yield block
    for handler in getattr(statement, "handlers", []):
        yield handler.body
    for case in getattr(statement, "cases", []):
        yield case.body
