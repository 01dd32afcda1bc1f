"""Which function a call runs when `self` is of one known class."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from dcplint.facts.expressions import dotted_name
from dcplint.flow.functions import Function
from dcplint.flow.kernels import Kernels
from dcplint.flow.types import classes_of, narrowed
from dcplint.flow.universe import Universe
from dcplint.program.symbols import ClassSymbol


@dataclass(frozen=True)
class Dispatch:
    """Calls inside the methods of `symbol`, as an instance of that very class makes them."""

    universe: Universe
    symbol: ClassSymbol
    kernels: Kernels
    _callees: dict[tuple[Function, ast.Call], Function | None] = field(default_factory=dict)
    _written_out: dict[tuple[ast.Call, str], ast.Call] = field(default_factory=dict)

    def callee(self, function: Function, call: ast.Call) -> Function | None:
        """The one function that `call`, made by `function`, runs; None where it is not known."""
        key = (function, call)
        if key not in self._callees:
            self._callees[key] = self._find_callee(function, call)
        return self._callees[key]

    def _find_callee(self, function: Function, call: ast.Call) -> Function | None:
        node = call.func
        if self.kernels.kernel(function, node) is not None:
            return None
        if isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and node.value.id == receiver_name(function):
                return self.method(node.attr)
            if isinstance(node.value, ast.Call) and dotted_name(node.value.func) == "super":
                return self.method(node.attr, function.owner)
        found = self.universe.callees(function, call)
        return found[0] if len(found) == 1 and found[0].owner is None else None

    def method_of_another(
        self, function: Function, call: ast.Call, statement: ast.stmt
    ) -> Function | None:
        """The one method that `call` runs of an object whose class is known."""
        if not isinstance(call.func, ast.Attribute):
            return None
        receiver = call.func.value
        if not narrowed(self.universe, function, statement, receiver):
            if not classes_of(self.universe, function, receiver):
                return None
        found = self.universe.callees(function, call, statement)
        return found[0] if len(found) == 1 else None

    def is_of_it(self, function: Function) -> bool:
        """Whether `self` in a function is an instance of the class."""
        classes = self.universe.program.mro(self.symbol).classes
        return function.owner is None or function.owner in classes

    def held(self, function: Function, node: ast.expr) -> ast.Attribute | None:
        """The method of the instance that `node` is, uncalled: `self.m`."""
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id == receiver_name(function) and self.method(node.attr) is not None:
                return node
        return None

    def written_out(self, call: ast.Call, method: ast.Attribute) -> ast.Call:
        """`call`, of a variable that holds `method`, as a call of the method itself."""
        key = (call, method.attr)
        if key not in self._written_out:
            made = ast.Call(method, call.args, call.keywords)
            self._written_out[key] = ast.copy_location(made, call)
        return self._written_out[key]

    def method(self, name: str, after: ClassSymbol | None = None) -> Function | None:
        """The class's method of that name; the one behind `after` in its order, where given."""
        entries = self.universe.program.mro(self.symbol).entries
        if after is not None:
            if after not in entries:
                return None
            entries = entries[entries.index(after) + 1 :]
        for entry in entries:
            if not isinstance(entry, ClassSymbol):
                if entry.neutral:
                    continue
                return None
            for facts in reversed(entry.facts.methods):
                if facts.name == name:
                    return self.universe.function(entry.module, facts)
        return None


def receiver_name(function: Function) -> str | None:
    """What a method, or a function nested in one, calls the instance (or the class)."""
    outermost = function
    while outermost.outer is not None:
        outermost = outermost.outer
    return outermost.parameters[0] if outermost.is_method and outermost.parameters else None
