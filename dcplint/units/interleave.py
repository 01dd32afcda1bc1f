"""Whether code that takes tokens to be dealt out one by one is known to see no other deal.

Storing an interleave size, computing with it or handing it to an engine's own function says
nothing of a formula beside it. A test of it does: it refuses other sizes, or chooses by them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from dcplint.facts.expressions import dotted_name
from dcplint.flow.functions import Function
from dcplint.flow.universe import Universe
from dcplint.program.symbols import ClassSymbol, Module
from dcplint.source.tree import walk
from dcplint.units.expressions import Written
from dcplint.units.roles import Role, role

_WORD = "interleave"
_SAYING = frozenset({"logger", "logging", "warnings", "print"})
_DEALT = (Role.LENGTH, Role.INDEX)  # what a formula turns into this rank's part of it
_VALID = {ast.Gt: 0, ast.GtE: 1}  # what holds of every interleave size


def _is_named(name: str) -> bool:
    return _WORD in name.lower().replace("repeat_interleave", "")


@dataclass
class Interleaving:
    """Where the functions of a universe look at the interleave size."""

    universe: Universe
    _tests: dict[Module, bool] = field(default_factory=dict)

    def may_vary(self, function: Function, entry: Written, formula: ast.AST) -> bool:
        """Whether `formula`, found in `entry`, may meet an interleave size other than 1.

        False where its module, a class above its own or a caller tests the size, and where the
        size goes into its length or meets its result: that may be the other half of it.
        """
        if self._is_tested(function) or _is_joined(function, entry, formula):
            return False
        given = any(
            isinstance(node, ast.Name) and node.id in function.parameters and role(node) in _DEALT
            for node in walk(formula)
        )
        for site in self.universe.callers(function):
            if given and any(_mentions(node) for node in walk(site.function.node)):
                return False
            if _tests([site.function]):
                return False
        return True

    def is_open(self, function: Function) -> bool:
        """Whether neither the module of `function`, nor a class above, nor a caller tests it."""
        return not self._is_tested(function) and not any(
            _tests([site.function]) for site in self.universe.callers(function)
        )

    def _is_tested(self, function: Function) -> bool:
        module = function.module
        if module not in self._tests:
            self._tests[module] = _tests(self._functions_of(module))
        owner = function.owner
        return self._tests[module] or (owner is not None and self.is_tested_by(owner))

    def is_tested_by(self, owner: ClassSymbol) -> bool:
        """Whether a method of a class or of one above it tests the size."""
        return _tests(
            method
            for symbol in self.universe.program.mro(owner).classes
            for facts in symbol.facts.methods
            if (method := self.universe.function(symbol.module, facts)) is not None
        )

    def _functions_of(self, module: Module) -> Iterator[Function]:
        for index, entry in enumerate(self.universe.entries):
            if entry[0] is module:
                yield from self.universe.functions_of(index)[:1]


def _is_joined(function: Function, entry: Written, formula: ast.AST) -> bool:
    """Whether a statement gives the formula its length, or uses its result, by the size."""
    lengths = {
        dotted_name(n) for n in walk(formula) if isinstance(n, ast.expr) and role(n) in _DEALT
    }
    results = set(_targets(entry.statement))
    for statement, nodes in function.own_nodes.items():
        if not any(_mentions(node) for node in nodes):
            continue
        if statement is entry.statement or lengths & set(_targets(statement)):
            return True
        if any(
            isinstance(n, (ast.Name, ast.Attribute)) and dotted_name(n) in results for n in nodes
        ):
            return True
    return False


def _targets(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, (ast.AnnAssign, ast.AugAssign)):
        targets = [statement.target]
    else:
        return
    for target in targets:
        yield from filter(None, (dotted_name(n) for n in walk(target) if isinstance(n, ast.expr)))


def _mentions(node: ast.AST) -> bool:
    """Whether a node itself names an interleave size."""
    if isinstance(node, ast.Name):
        return _is_named(node.id)
    if isinstance(node, ast.Attribute):
        return _is_named(node.attr)
    if isinstance(node, (ast.arg, ast.keyword)):
        return _is_named(node.arg or "")
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and _is_named(node.value)


def _tests(functions: Iterable[Function]) -> bool:
    """Whether one of the functions tests the size, or hands it to something that may refuse it."""
    bodies = [function.node for function in functions]
    kept: set[str] = set()  # attributes that hold it
    while True:
        before = len(kept)
        for body in bodies:
            if _looks(body, kept):
                return True
        if len(kept) == before:
            return False


def _looks(body: ast.AST, kept: set[str]) -> bool:
    names: set[str] = set()
    nodes = list(walk(body))
    before = -1
    while len(names) + len(kept) > before:
        before = len(names) + len(kept)
        for node in nodes:
            if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and node.value:
                if _holds(node.value, names, kept):
                    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                        if isinstance(target, ast.Name):
                            names.add(target.id)
                        elif isinstance(target, ast.Attribute):
                            kept.add(target.attr)
    return any(_holds(test, names, kept) for node in nodes for test in _tested(node))


def _tested(node: ast.AST) -> Iterator[ast.expr]:
    """The expressions whose value `node` decides by, or that it hands on to be judged."""
    if isinstance(node, ast.Compare):
        if not _is_of_all(node):
            yield from (node.left, *node.comparators)
    elif isinstance(node, (ast.If, ast.While, ast.IfExp, ast.Assert)):
        yield node.test
    elif isinstance(node, ast.Match):
        yield node.subject
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        callee = dotted_name(node.value.func) or ""
        if callee and callee.partition(".")[0] not in _SAYING:
            yield from (*node.value.args, *(k.value for k in node.value.keywords))


def _is_of_all(node: ast.Compare) -> bool:
    """Whether a comparison is one that every size passes: with None, or with the least size."""
    other = node.comparators[0]
    if len(node.ops) != 1 or not isinstance(other, ast.Constant):
        return False
    return other.value is None or _VALID.get(type(node.ops[0])) == other.value


def _holds(node: ast.AST, names: set[str], kept: set[str]) -> bool:
    """Whether an expression is the size, or is decided by it. What is computed from it is not."""
    if isinstance(node, ast.BinOp):
        return False
    if isinstance(node, ast.Compare) and _is_of_all(node):
        return False
    if isinstance(node, ast.Name) and node.id in names:
        return True
    if isinstance(node, ast.Attribute) and node.attr in kept:
        return True
    if _mentions(node):
        return True
    return any(_holds(child, names, kept) for child in ast.iter_child_nodes(node))
