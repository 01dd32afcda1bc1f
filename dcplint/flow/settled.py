"""What an expression surely is when DCP is on, where every way to set it says the same.

A flag that a builder computes once and an impl reads through the metadata is settled by name: if
each place of the universe that sets an attribute of that name gives the same constant with DCP on,
so does every read of it. What is not settled is unknown.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from dcplint.facts.model import Setting
from dcplint.flow.functions import Function, expressions
from dcplint.flow.scenario import Scenario
from dcplint.flow.universe import Universe
from dcplint.source.tree import walk

K = TypeVar("K")
_DEPTH = 9
_SETTLED = (ast.Constant, ast.Name, ast.Attribute, ast.Call, ast.IfExp, ast.UnaryOp, ast.BoolOp)
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that is known."""

    value: object


@dataclass
class Settled:
    """Evaluates expressions and reachability when DCP is on."""

    universe: Universe
    scenario: Scenario
    _values: dict[tuple[Function, str], Constant | None] = field(default_factory=dict)
    _attributes: dict[str, Constant | None] = field(default_factory=dict)
    _active: set[object] = field(default_factory=set)
    _leaving: dict[ast.stmt, bool] = field(default_factory=dict)

    def truth(self, function: Function, test: ast.expr) -> bool | None:
        """The value of `test` in `function`; None where it depends on more than DCP."""
        known = self.scenario.truth(function, test)
        if known is not None:
            return known
        found = self.value(function, test)
        return None if found is None else bool(found.value)

    def reachable(self, function: Function, statement: ast.stmt) -> bool:
        """Whether `statement` can run with DCP on."""
        node: ast.stmt | None = statement
        while node is not None:
            home = function.homes[node]
            if any(self._leaves(function, earlier) for earlier in home.block[: home.index]):
                return False
            if isinstance(home.parent, ast.If):
                truth = self.truth(function, home.parent.test)
                if truth is not None and (home.block is home.parent.body) is not truth:
                    return False
            node = home.parent
        return True

    def _leaves(self, function: Function, node: ast.stmt) -> bool:
        if isinstance(node, _LEAVES):
            return True
        if not isinstance(node, ast.If):
            return False
        if node not in self._leaving:
            self._leaving[node] = any(isinstance(inner, _LEAVES) for inner in walk(node))
        if not self._leaving[node]:
            return False
        taken = any(self._leaves(function, inner) for inner in node.body)
        other = any(self._leaves(function, inner) for inner in node.orelse)
        if taken == other:
            return taken
        truth = self.truth(function, node.test)
        return truth is not None and (taken if truth else other)

    def value(self, function: Function, node: ast.expr) -> Constant | None:
        """The constant that `node` is with DCP on, if it is one."""
        if isinstance(node, ast.Constant):
            return Constant(node.value)
        key = (function, ast.dump(node))
        if key not in self._values:
            return self._worked_out(key, self._values, lambda: self._evaluate(function, node))
        return self._values[key]

    def _worked_out(
        self, key: K, cache: dict[K, Constant | None], evaluate: Callable[[], Constant | None]
    ) -> Constant | None:
        if key in self._active or len(self._active) > _DEPTH:
            return None
        self._active.add(key)
        try:
            cache[key] = evaluate()
        finally:
            self._active.discard(key)
        return cache[key]

    def _evaluate(self, function: Function, node: ast.expr) -> Constant | None:
        if isinstance(node, ast.BoolOp):
            return self._combined(function, node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            truth = self.truth(function, node.operand)
            return None if truth is None else Constant(not truth)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            known = self.scenario.truth(function, node)
            return Constant(known) if known is not None else self._compared(function, node)
        if isinstance(node, ast.IfExp):
            truth = self.truth(function, node.test)
            if truth is not None:
                return self.value(function, node.body if truth else node.orelse)
            return self._same([(function, node.body), (function, node.orelse)])
        if isinstance(node, ast.Name):
            return self._name(function, node.id)
        if isinstance(node, ast.Attribute):
            return self._attribute(node.attr)
        if isinstance(node, ast.Call):
            return self._call(function, node)
        return None

    def _combined(self, function: Function, node: ast.BoolOp) -> Constant | None:
        deciding = isinstance(node.op, ast.Or)
        truths = [self.truth(function, value) for value in node.values]
        if deciding in truths:
            return Constant(deciding)
        return None if None in truths else Constant(not deciding)

    def _compared(self, function: Function, node: ast.Compare) -> Constant | None:
        sides = (node.left, node.comparators[0])
        if not all(isinstance(side, _SETTLED) for side in sides):
            return None
        left, right = map(partial(self.value, function), sides)
        if left is None or right is None:
            return None
        operator, (a, b) = node.ops[0], (left.value, right.value)
        if isinstance(operator, (ast.Is, ast.Eq)):
            return Constant(a is b or a == b)
        if isinstance(operator, (ast.IsNot, ast.NotEq)):
            return Constant(not (a is b or a == b))
        if isinstance(a, int) and isinstance(b, int):
            if isinstance(operator, ast.Gt):
                return Constant(a > b)
            if isinstance(operator, ast.GtE):
                return Constant(a >= b)
            if isinstance(operator, ast.Lt):
                return Constant(a < b)
            if isinstance(operator, ast.LtE):
                return Constant(a <= b)
        return None

    def _same(self, values: list[tuple[Function, ast.expr]]) -> Constant | None:
        found: Constant | None = None
        for function, node in values:
            value = self.value(function, node)
            if value is None or (found is not None and value != found):
                return None
            found = value
        return found

    def _name(self, function: Function, name: str) -> Constant | None:
        """A local variable: what the assignments that can run give it."""
        if name in function.parameters:
            return None
        values: list[tuple[Function, ast.expr]] = []
        for statement in function.mentions.get(name, ()):
            found = list(_bound(statement, name))
            if found and self.reachable(function, statement):
                if None in found:
                    return None
                values += [(function, value) for value in found if value is not None]
        return self._same(values) if values else None

    def _attribute(self, name: str) -> Constant | None:
        """An attribute, settled by its name alone."""
        if name not in self._attributes:
            return self._worked_out(name, self._attributes, lambda: self._settings(name))
        return self._attributes[name]

    def _settings(self, name: str) -> Constant | None:
        found: Constant | None = None
        for module in self.universe.modules:
            for symbol in module.classes:
                for fact in symbol.facts.attributes:
                    if fact.name != name or fact.setting is not Setting.CLASS_BODY:
                        continue
                    if fact.value.kind == "literal":
                        default = Constant(fact.value.value)
                        if found is not None and default != found:
                            return None
                        found = default
        is_set = False
        for function in self._setters(name):
            if function.node.name == name and function.is_property:
                return None
            for statement in function.mentions.get(name, ()):
                for given in _set(statement, name):
                    # Most are not constants, which shows at once; that they can run, later.
                    value = None if given is None else self.value(function, given)
                    differs = value is None or (found is not None and value != found)
                    if (differs or not is_set) and not self.reachable(function, statement):
                        continue
                    if differs:
                        return None
                    found, is_set = value, True
        return found if is_set else None

    def _setters(self, name: str) -> Iterator[Function]:
        """The functions whose text looks as if it gave something of that name a value."""
        seen: set[Function] = set()
        given = (f"{name}{sign}" for sign in ("=", " =", ": ", " +=", " -="))
        for words in (*given, f".{name}, self.", f"def {name}("):
            for function in self.universe.mentioning(words):
                if function not in seen:
                    seen.add(function)
                    yield function

    def _call(self, function: Function, call: ast.Call) -> Constant | None:
        """What every return that can run gives."""
        callees = self.universe.callees(function, call)
        if len(callees) != 1:
            return None
        (callee,) = callees
        returns = [
            node
            for node in callee.homes
            if isinstance(node, ast.Return) and self.reachable(callee, node)
        ]
        values = [(callee, node.value) for node in returns if node.value is not None]
        return self._same(values) if values and len(values) == len(returns) else None


def _bound(statement: ast.stmt, name: str) -> Iterator[ast.expr | None]:
    """What a statement gives a variable; None where it cannot be told."""
    if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for target in targets:
            if isinstance(target, ast.Name) and target.id == name:
                yield statement.value
            elif _binds(target, name):
                yield None
    else:
        # A loop, `with` or augmented assignment.
        others: list[ast.expr | None] = [i.optional_vars for i in getattr(statement, "items", ())]
        others.append(getattr(statement, "target", None))
        if any(target is not None and _binds(target, name) for target in others):
            yield None
    for expression in expressions(statement):
        for node in walk(expression):
            if isinstance(node, ast.NamedExpr) and node.target.id == name:
                yield node.value


def _binds(target: ast.expr, name: str) -> bool:
    return any(
        isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)
        for node in walk(target)
    )


def _set(statement: ast.stmt, name: str) -> Iterator[ast.expr | None]:
    """What a statement gives attributes called `name`: by assignment, or as a keyword argument."""
    targets: list[ast.expr] = []
    value: ast.expr | None = None
    if isinstance(statement, ast.Assign):
        targets, value = statement.targets, statement.value
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        targets, value = [statement.target], statement.value
    elif isinstance(statement, ast.AugAssign):
        targets = [statement.target]
    for target in targets:
        for node in walk(target):
            written = isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)
            if written and getattr(node, "attr", "") == name:
                yield value if node is target else None
    for expression in expressions(statement):
        for node in walk(expression):
            if isinstance(node, ast.keyword) and node.arg == name:
                yield node.value
