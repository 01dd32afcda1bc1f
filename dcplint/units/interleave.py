"""Whether code that takes tokens to be dealt out one by one is known to see no other deal.

Storing an interleave size, computing with it or handing it to an engine's own function says
nothing of a formula beside it. A test of it does: it refuses other sizes, or chooses by them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from dcplint.facts.expressions import dotted_name
from dcplint.flow.functions import Function, callee_name
from dcplint.flow.universe import Universe
from dcplint.program.symbols import ClassSymbol, Module
from dcplint.source.tree import children, walk
from dcplint.units.expressions import Written
from dcplint.units.roles import Role, is_block_size, role

_WORD = "interleave"
_LAYOUT = re.compile(r"(?:\A|_)[dp]?cp(?:_|\Z)|context_parallel", re.IGNORECASE)
_SAYING = frozenset({"logger", "logging", "warnings", "print"})
_DEALT = (Role.LENGTH, Role.INDEX)  # what a formula turns into this rank's part of it
_VALID = {ast.Gt: 0, ast.GtE: 1, ast.LtE: 0, ast.Lt: 1}  # of every interleave size, or of none


def _is_named(name: str) -> bool:
    return _WORD in name.lower().replace("repeat_interleave", "")


@dataclass
class Interleaving:
    """Where the functions of a universe look at the interleave size."""

    universe: Universe
    _modules: dict[Module, bool] = field(default_factory=dict)
    _answering: dict[Function, bool] = field(default_factory=dict)
    _judging: dict[Function, bool] = field(default_factory=dict)

    def may_vary(self, function: Function, entry: Written, formula: ast.AST) -> bool:
        """Whether `formula`, found in `entry`, may meet an interleave size other than 1.

        False where its module, a class above its own or a caller tests the size, and where the
        size goes into its length or meets its result: that may be the other half of it.
        """
        if self._is_tested(function) or _is_joined(function, entry, formula):
            return False
        given = not {*function.parameters}.isdisjoint(_dealt(entry, formula))
        for site in self.universe.callers(function):
            if given and any(_mentions(node) for node in walk(site.function.node)):
                return False
            if self._tests([site.function]):
                return False
        return True

    def is_open(self, function: Function) -> bool:
        """Whether neither the module of `function`, nor a class above, nor a caller tests it."""
        return not self._is_tested(function) and not any(
            self._tests([site.function]) for site in self.universe.callers(function)
        )

    def _is_tested(self, function: Function) -> bool:
        module = function.module
        if module not in self._modules:
            self._modules[module] = self._tests(self._functions_of(module), partly=False)
        owner = function.owner
        if self._modules[module] or self._tests([function]):
            return True
        if owner is not None and self.is_tested_by(owner):
            return True
        return any(
            self._tests(self._methods(other))
            for other in (*self._platforms, *(self._backends_of(owner) if owner else ()))
        )

    def is_tested_by(self, owner: ClassSymbol) -> bool:
        """Whether a method of a class or of one above it tests the size."""
        return self._tests(self._methods(owner))

    def _methods(self, owner: ClassSymbol) -> Iterator[Function]:
        for symbol in self.universe.program.mro(owner).classes:
            for facts in symbol.facts.methods:
                method = self.universe.function(symbol.module, facts)
                if method is not None:
                    yield method

    @cached_property
    def _platforms(self) -> tuple[ClassSymbol, ...]:
        """The one platform that a plugin brings: it judges every configuration."""
        found = self.universe.program.classes("platform")
        return found if len(found) == 1 else ()

    def _backends_of(self, owner: ClassSymbol) -> Iterator[ClassSymbol]:
        """The backends that name a class, or one that derives from it, as their own."""
        program = self.universe.program
        accessors = program.contract.accessors
        for backend in program.classes("backend"):
            for accessor in accessors:
                named = program.result(backend, accessor.name)
                if named is not None and owner in program.mro(named).classes:
                    yield backend

    def _functions_of(self, module: Module) -> Iterator[Function]:
        for index, entry in enumerate(self.universe.entries):
            if entry[0] is module:
                yield from self.universe.functions_of(index)[:1]

    def _tests(
        self, functions: Iterable[Function], helpers: bool = True, partly: bool = True
    ) -> bool:
        """Whether a function tests the size, or hands it to something that may refuse it.

        helpers: whether what it calls for nothing else may do so in its place. partly: whether a
        test counts that is made only where something else holds; it may be the formula's own case.
        """
        looking = tuple(functions)
        kept: set[str] = set()  # attributes that hold it
        while True:
            before = len(kept)
            for function in looking:
                if self._looks(function, kept, partly):
                    return True
            if len(kept) == before:
                return helpers and any(map(self._asks_another, looking))

    def _looks(self, function: Function, kept: set[str], partly: bool) -> bool:
        """Whether a function tests the size. partly: see `_tests`."""
        names: set[str] = set()
        text = self.universe.written(function)
        if _WORD not in text.lower() and not any(name in text for name in kept):
            return False
        nodes = list(walk(function.node))
        before = -1
        while len(names) + len(kept) > before:
            before = len(names) + len(kept)
            for node in nodes:
                if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and node.value:
                    if self._holds(function, node.value, names, kept):
                        _keep(node, names, kept)
        tests = (
            test
            for node in nodes
            for test in _tested(node)
            if not isinstance(node, ast.Expr) or self._may_refuse(function, node.value)
        )
        if not partly:
            partial = {part for node in nodes for part in _partial(node)}
            tests = (test for test in tests if test not in partial)
        return any(self._holds(function, test, names, kept) for test in tests)

    def _asks_another(self, function: Function) -> bool:
        """Whether a statement does nothing but call a function that tests the size."""
        return any(
            self._tests(callees, helpers=False, partly=False)
            for statement, calls in function.calls.items()
            for call in calls
            if isinstance(statement, ast.Expr) and statement.value is call
            if callee_name(call) in self._concerned
            if (callees := self.universe.callees(function, call, statement))
        )

    @cached_property
    def _concerned(self) -> frozenset[str]:
        """The names of the functions that speak of the size."""
        return frozenset(e.facts.name for e in self.universe.entries if _WORD in e.text.lower())

    def _may_refuse(self, function: Function, call: ast.expr) -> bool:
        """Whether what a call runs may test the size: what takes it by another name may.

        What is told the rank as well computes with both.
        """
        assert isinstance(call, ast.Call)
        if any(
            role(given) is Role.RANK for given in (*call.args, *(k.value for k in call.keywords))
        ):
            return False
        run = self.universe.callees(function, call)
        return not run or any(map(self._judges, run))

    def _judges(self, function: Function) -> bool:
        if function not in self._judging:
            self._judging[function] = True
            self._judging[function] = not any(map(_is_named, function.parameters)) or self._tests(
                [function]
            )
        return self._judging[function]

    def _holds(self, function: Function, node: ast.AST, names: set[str], kept: set[str]) -> bool:
        """Whether an expression is the size, or is decided by it; what is computed of it is not."""
        if isinstance(node, ast.BinOp):
            return False
        if isinstance(node, ast.Compare):
            sides = (node.left, *node.comparators)
            if any(map(is_block_size, sides)):
                return False  # that it is as large as a block does not make it 1
            if _is_of_all(node) or all(self._holds(function, s, names, kept) for s in sides):
                return False  # that two of them are one says nothing of which
        if isinstance(node, ast.Name) and node.id in names:
            return True
        if isinstance(node, ast.Attribute) and node.attr in kept:
            return True
        if _mentions(node):
            return True
        inner = children(node)
        found = any(self._holds(function, child, names, kept) for child in inner)
        return found and (not isinstance(node, ast.Call) or self._may_answer(function, node))

    def _may_answer(self, function: Function, call: ast.Call) -> bool:
        """Whether what a call with the size gives may be it, or decided by it.

        An instance is not, but its class may refuse to make one.
        """
        dotted = dotted_name(call.func)
        if dotted is None:
            return True
        program = self.universe.program
        built = function.named(program.linker, dotted)
        if isinstance(built, ClassSymbol):
            made = program.method(built, "__init__")
            inside = self.universe.function(made.owner.module, made.facts) if made else None
            return inside is not None and self._answers(inside)
        return all(map(self._answers, self.universe.plain(function, dotted)))

    def _answers(self, function: Function) -> bool:
        """Whether what a function returns is the size or decided by it, as far as it can be told.

        What takes the size by another name may do anything with it.
        """
        if function not in self._answering:
            self._answering[function] = True
            self._answering[function] = not any(map(_is_named, function.parameters)) or (
                self._tests([function])
                or any(
                    self._holds(function, node.value, set(), set())
                    for node in walk(function.node)
                    if isinstance(node, ast.Return) and node.value is not None
                )
            )
        return self._answering[function]


def _keep(
    node: ast.Assign | ast.AnnAssign | ast.NamedExpr, names: set[str], kept: set[str]
) -> None:
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        if isinstance(target, ast.Name):
            names.add(target.id)
        elif isinstance(target, ast.Attribute):
            kept.add(target.attr)


def _is_joined(function: Function, entry: Written, formula: ast.AST) -> bool:
    """Whether a statement gives the formula its length, or uses its result, by the size."""
    lengths = {*_dealt(entry, formula)}
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


def _dealt(entry: Written, formula: ast.AST) -> Iterator[str]:
    """The lengths and places that go into a formula, by dotted name."""
    for node in walk(formula):
        if isinstance(node, ast.expr) and role(node) in _DEALT:
            name = dotted_name(node) or ""
            yield entry.origins.get(name, name)


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


def _tested(node: ast.AST) -> Iterator[ast.expr]:
    """The expressions whose value `node` decides by, or that it hands on to be judged."""
    if isinstance(node, ast.Compare):
        yield node
    elif isinstance(node, (ast.If, ast.While, ast.IfExp, ast.Assert)):
        yield node.test
    elif isinstance(node, ast.Match):
        yield node.subject
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        callee = dotted_name(node.value.func) or ""
        if callee and callee.partition(".")[0] not in _SAYING:
            yield from (*node.value.args, *(k.value for k in node.value.keywords))


def _partial(node: ast.AST) -> Iterator[ast.AST]:
    """What is asked only where something holds that has nothing to do with context parallelism."""
    if isinstance(node, ast.BoolOp) and not _is_of_layout(node):
        yield from walk(node)
    elif isinstance(node, ast.If) and not _is_of_layout(node.test):
        yield from (inner for part in (*node.body, *node.orelse) for inner in walk(part))


def _is_of_layout(test: ast.expr) -> bool:
    """Whether a test, or each of those that have to hold, is about context parallelism."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return all(map(_is_of_layout, test.values))
    names = (getattr(node, "id", getattr(node, "attr", "")) for node in walk(test))
    return any(_is_named(name) or _LAYOUT.search(name) for name in names)


def _is_of_all(node: ast.Compare) -> bool:
    """Whether a comparison tells no size from another: with None, or with the least size."""
    other = node.comparators[0]
    if len(node.ops) != 1 or not isinstance(other, ast.Constant):
        return False
    return other.value is None or _VALID.get(type(node.ops[0])) == other.value
