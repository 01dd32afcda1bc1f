"""Tests under the assumption that DCP is on, wherever the guard is kept.

`program.guards` knows the engine's own words for the DCP world size. Code also keeps the size, or
the answer, in a local, an attribute set by the constructor, a property or a helper; those are
followed here. Unknown stays unknown.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from dcplint.flow.functions import Function, Universe, argument
from dcplint.flow.types import attribute_settings, classes_of
from dcplint.program.guards import Guards
from dcplint.program.symbols import ClassSymbol

Known = dict[str, bool]
_DEPTH = 8


@dataclass
class Scenario:
    """Evaluates tests when DCP is on."""

    universe: Universe
    _active: set[tuple[Function, ast.expr]] = field(default_factory=set)
    _truths: dict[tuple[Function, ast.expr], bool | None] = field(default_factory=dict)
    _sizes: dict[tuple[Function, ast.expr], bool] = field(default_factory=dict)
    _dumps: dict[ast.expr, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        contract = self.universe.program.contract
        self._guards = Guards(contract.vocabulary)
        self._derived = frozenset(derived.name for derived in contract.derived)

    def truth(self, function: Function, test: ast.expr, known: Known | None = None) -> bool | None:
        """The value of `test` in `function`; `known` holds tests decided by the path, by dump."""
        if known:
            decided = known.get(self._dump(test))
            if decided is not None:
                return decided
        if isinstance(test, ast.Constant):
            return bool(test.value)
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self.truth(function, test.operand, known)
            return None if inner is None else not inner
        if isinstance(test, ast.BoolOp):
            deciding = isinstance(test.op, ast.Or)
            values = [self.truth(function, value, known) for value in test.values]
            if deciding in values:
                return deciding
            return None if None in values else not deciding
        return self._followed(function, test)

    def _dump(self, test: ast.expr) -> str:
        if test not in self._dumps:
            self._dumps[test] = ast.dump(test)
        return self._dumps[test]

    def _followed(self, function: Function, test: ast.expr) -> bool | None:
        key = (function, test)
        if key not in self._truths:
            if key in self._active or len(self._active) > _DEPTH:
                return None
            self._active.add(key)
            try:
                self._truths[key] = self._evaluate(function, test)
            finally:
                self._active.discard(key)
        return self._truths[key]

    def _evaluate(self, function: Function, test: ast.expr) -> bool | None:
        if isinstance(test, ast.Attribute) and test.attr in self._derived:
            return True  # DCP is on, and code asks only where its class keeps the promise
        if isinstance(test, ast.NamedExpr):
            return self.truth(function, test.value)
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            return self._compared(function, test)
        if self.is_size(function, test):
            return True
        values = self._definitions(function, test)
        if not values:
            return None
        truths = {self.truth(where, value) for where, value in values}
        return truths.pop() if len(truths) == 1 else None

    def _compared(self, function: Function, test: ast.Compare) -> bool | None:
        left, right = test.left, test.comparators[0]
        if not _is_number(left) and not _is_number(right):
            return None
        size = ast.Name(next(iter(self.universe.program.contract.vocabulary.sizes), ""))
        if self.is_size(function, left):
            left = size
        elif self.is_size(function, right):
            right = size
        return self._guards.truth(ast.Compare(left, test.ops, [right]))

    def is_size(self, function: Function, node: ast.expr) -> bool:
        """Whether `node` is the DCP world size, by its name or by what it was set to."""
        if self._guards.is_size(node):
            return True
        key = (function, node)
        if key not in self._sizes:
            self._sizes[key] = False  # a size defined in terms of itself is none
            values = self._definitions(function, node)
            self._sizes[key] = bool(values) and all(
                self.is_size(where, value) for where, value in values
            )
        return self._sizes[key]

    def _definitions(
        self, function: Function, node: ast.expr
    ) -> list[tuple[Function, ast.expr]] | None:
        """Every expression `node` may stand for; None where some are not known."""
        if isinstance(node, ast.Name):
            return self._of_name(function, node.id)
        if isinstance(node, ast.Attribute):
            owners = classes_of(self.universe, function, node.value)
            values = [self._of_attribute(owner, node.attr) for owner in owners]
            return [v for found in values for v in found] if values and all(values) else None
        if isinstance(node, ast.Call):
            callees = self.universe.callees(function, node)
            return self._returned(callees[0]) if len(callees) == 1 else None
        return None

    def _of_name(self, function: Function, name: str) -> list[tuple[Function, ast.expr]] | None:
        scope: Function | None = function
        while scope is not None:
            if name in scope.parameters:
                return self._passed(scope, name)
            found = [
                (scope, node.value)
                for node in scope.homes
                if isinstance(node, ast.Assign)
                and any(isinstance(t, ast.Name) and t.id == name for t in node.targets)
            ]
            if found:
                return found
            scope = scope.outer
        return None

    def _passed(self, function: Function, name: str) -> list[tuple[Function, ast.expr]] | None:
        """What every caller passes for a parameter."""
        found: list[tuple[Function, ast.expr]] = []
        for site in self.universe.callers(function):
            passed = argument(function, site.call, name)
            if passed is None:
                return None
            found.append((site.function, passed))
        return found or None

    def _of_attribute(self, owner: ClassSymbol, name: str) -> list[tuple[Function, ast.expr]]:
        found: list[tuple[Function, ast.expr]] = []
        for method, value, annotation in attribute_settings(self.universe, owner, name):
            if value is not None:
                found.append((method, value))
            elif annotation is None:
                return self._returned(method) or []
        return found

    def _returned(self, function: Function) -> list[tuple[Function, ast.expr]] | None:
        returns = [node for node in function.homes if isinstance(node, ast.Return)]
        values = [(function, node.value) for node in returns if node.value is not None]
        return values if values and len(values) == len(returns) else None


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int)
