"""In-place stores into the tensors of a record that a function was given, under whatever name."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial

from dcplint.contracts.model import ContractField
from dcplint.flow.conditions import (
    Conditions,
    Path,
    conjuncts,
    dumped,
    names,
    null_test,
    path_of,
    substituted,
)
from dcplint.flow.fields import FieldFlow
from dcplint.flow.functions import Function, argument, callee_name
from dcplint.flow.graph import Node, Role
from dcplint.flow.scenario import Scenario
from dcplint.flow.types import classes_of
from dcplint.flow.universe import Universe
from dcplint.flow.values import unpacked
from dcplint.flow.walk import bindings, definitions_at
from dcplint.source.tree import walk

_VIEWS = frozenset(
    {"view", "reshape", "narrow", "squeeze", "unsqueeze", "detach", "numpy", "expand"}
    | {"contiguous", "ravel", "flatten", "view_as", "transpose", "permute", "t"}
)
_PARTS = frozenset({"split", "chunk", "tensor_split", "unbind", "split_with_sizes"})
_COPIES = frozenset({"clone", "copy", "deepcopy"})
_NO_STORES = frozenset({"requires_grad_", "share_memory_"})
_STORING = re.compile(r"[-+*/|&@%]=|\]\s*=(?!=)|[a-z]_\(|\bout\s*=")
_CALLED = re.compile(r"\b(\w+)\(")
_COUNTED = (ast.Gt, ast.GtE, ast.Lt, ast.LtE, ast.Eq, ast.NotEq)
_NUMBER = re.compile(r"(?:Optional\[)?(?:int|float|bool|str)\]?(?: *\| *None)?")
_SCALAR = frozenset({"upper-bound", "queries"})  # what one number may stand for
_ALIASES = 6  # names of names
_WORK = 4_000  # places and conditions that are looked at for one store
_LEVELS = 2  # helpers of helpers that store


@dataclass(frozen=True, eq=False)
class Store:
    """A store into a tensor that belongs to a record the function was given.

    by: the helper's function and statement, where that is what stores.
    """

    function: Function
    statement: ast.stmt
    target: ast.expr
    record: str
    attribute: str
    by: tuple[Function, ast.stmt] | None = None


def storing(universe: Universe) -> Callable[[str], bool]:
    """Whether a function seems to store into something, or to call what does: by its text."""
    calls_one = cache(partial(_seems_to_store, universe))

    def seems(text: str) -> bool:
        return _STORING.search(text) is not None or any(map(calls_one, _CALLED.findall(text)))

    return seems


def _seems_to_store(universe: Universe, name: str) -> bool:
    return any(_STORING.search(text) for text in universe.listed(name))


def shared_stores(flow: FieldFlow, function: Function, field: ContractField) -> Iterator[Store]:
    """In-place stores of `function` into tensors of a record that it was given as an argument."""
    records = frozenset(
        name
        for name in function.parameters
        if flow.is_record_expression(function, ast.Name(name), field)
    )
    if not records:
        return
    search = _Search(flow, field)
    for statement, target, path, by in search.stores(function, records, _LEVELS):
        if len(path) != 2:
            continue
        record, attribute = map(str, path)
        stores = by[1] if by is not None else statement
        named = isinstance(stores, ast.AugAssign) and isinstance(stores.target, ast.Name)
        if named and not _is_tensor(flow, function, record, attribute):
            continue  # `n = record.count; n += 1` gives `n` another number
        yield Store(function, statement, target, record, attribute, by)


def _is_tensor(flow: FieldFlow, function: Function, record: str, attribute: str) -> bool:
    """Whether a field holds a tensor: by its annotation, else by the contract's lengths."""
    annotations = [
        fact.annotation
        for symbol in classes_of(flow.universe, function, ast.Name(record))
        for entry in flow.program.mro(symbol).classes
        for fact in entry.facts.attributes
        if fact.name == attribute and fact.annotation
    ]
    if annotations:
        return not any(map(_NUMBER.fullmatch, annotations))
    return any(
        length.name == attribute and length.unit not in _SCALAR
        for length in flow.program.contract.lengths
    )


def stored_by(function: Function, node: ast.stmt) -> Iterator[ast.expr]:
    """What a statement stores into in place: `x[…] = v`, `x -= v`, `x.add_(v)`, `f(…, out=x)`."""
    if isinstance(node, ast.AugAssign):
        yield _whole(node.target)
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            for inner, _ in unpacked(target, ()):
                if isinstance(inner, ast.Subscript):
                    yield inner.value
    for call in function.calls.get(node, ()):
        callee = call.func
        if isinstance(callee, ast.Attribute) and callee.attr.endswith("_"):
            if not callee.attr.startswith("_") and callee.attr not in _NO_STORES:
                yield _whole(callee.value)
        yield from (_whole(k.value) for k in call.keywords if k.arg == "out")


def _whole(value: ast.expr) -> ast.expr:
    return value.value if isinstance(value, ast.Subscript) else value


_Found = tuple[ast.stmt, ast.expr, Path, "tuple[Function, ast.stmt] | None"]


@dataclass(frozen=True)
class _Search:
    """Finds the stores of a function into what some of its parameters hold."""

    flow: FieldFlow
    field: ContractField

    def stores(self, function: Function, given: frozenset[str], levels: int) -> Iterator[_Found]:
        """The stores, with the path from the parameter on, and the helper that makes it."""
        aliases = _Aliases(function, self.flow.tracer.scenario, given)
        for statement in function.homes:
            for target in stored_by(function, statement):
                for path in aliases.stored(statement, target):
                    yield statement, target, path, None
            for call in function.calls.get(statement, ()) if levels else ():
                if not _seems_to_store(self.flow.universe, callee_name(call)):
                    continue
                for passed in (*call.args, *(keyword.value for keyword in call.keywords)):
                    for path in aliases.stored(statement, passed):
                        yield from self._by_helper(function, statement, call, passed, path, levels)

    def _by_helper(
        self,
        function: Function,
        statement: ast.stmt,
        call: ast.Call,
        passed: ast.expr,
        path: Path,
        levels: int,
    ) -> Iterator[_Found]:
        """The stores that a called function makes into what it is passed."""
        callees = self.flow.universe.callees(function, call, statement)
        if len(callees) != 1:
            return
        made = _Made(self.flow.tracer.scenario, function, call, callees[0])
        for name in callees[0].parameters:
            if argument(callees[0], call, name) is not passed:
                continue
            if len(path) == 1 and self._is_looked_at(callees[0], name):
                continue
            for inner, _, rest, by in self.stores(callees[0], frozenset({name}), levels - 1):
                if made.runs(inner):
                    yield statement, passed, (*path, *rest[1:]), by or (callees[0], inner)

    def _is_looked_at(self, function: Function, name: str) -> bool:
        """Whether what a function stores into the record that it is given is told of itself."""
        return function.owner is not None and self.flow.is_record_expression(
            function, ast.Name(name), self.field
        )


@dataclass(frozen=True)
class _Made:
    """A call, made by `caller`, that runs `callee`."""

    scenario: Scenario
    caller: Function
    call: ast.Call
    callee: Function

    def runs(self, statement: ast.stmt) -> bool:
        """Whether the call runs `statement` as far as its arguments decide that."""
        reached = self._reached
        if not any(node in reached for node in self.callee.graph.at(statement)):
            return False
        given = set(self.callee.parameters[1 if self.callee.is_method else 0 :])
        tests = [around.test for around, _ in _enclosing(self.callee, statement)]
        return all(self._truth(test) is not None for test in tests if names(test) & given)

    @cached_property
    def _reached(self) -> set[Node]:
        return self.callee.graph.reachable(
            lambda edge: edge.test is None or self._truth(edge.test) is not (not edge.holds)
        )

    def _truth(self, test: ast.expr) -> bool | None:
        """The value of a test in the called function, with this call's arguments put in."""
        known = self.scenario.truth(self.callee, test)
        read = names(test)
        if known is not None or not read <= set(self.callee.parameters):
            return known
        given = {name: argument(self.callee, self.call, name) for name in read}
        values = {name: value for name, value in given.items() if value is not None}
        if len(values) < len(read) or any(map(self.callee.rebinds, read)):
            return None
        return self.scenario.truth(self.caller, substituted(test, values))


def _enclosing(function: Function, statement: ast.stmt) -> Iterator[tuple[ast.If, bool]]:
    """The `if` statements around one, and whether it stands under the test."""
    node: ast.stmt | None = statement
    while node is not None:
        home = function.homes[node]
        node = home.parent
        if isinstance(node, ast.If):
            yield node, home.block is node.body


@dataclass(frozen=True)
class _Alias:
    """What an expression can be: a path from a parameter on, or (None) something else.

    tests: those under which it is that. value: what it is, where it is something else.
    """

    path: Path | None
    tests: frozenset[_Test]
    value: ast.expr | None = None


class _TooMuchError(Exception):
    """What a variable can be is more than is worth finding."""


@dataclass(frozen=True)
class _Test:
    """A test that decides whether a statement runs; compared by what it says."""

    said: object
    node: ast.expr = field(compare=False)


@dataclass
class _Aliases:
    """Finds what belongs to a function's parameters behind variables and views, with DCP on."""

    function: Function
    scenario: Scenario
    given: frozenset[str]
    _seen: set[object] = field(default_factory=set)
    _exact: bool = False
    _work: int = 0

    def stored(self, statement: ast.stmt, base: ast.expr) -> tuple[Path, ...]:
        """What a store into `base` goes into, on some way at least: paths from a parameter on.

        A store under a test of its own may be one that only copies come to; that is not known.
        """
        if not self._holding.intersection(_roots(base)):
            return ()
        for self._exact in (False, True):  # telling ways apart is dear, and seldom needed
            self._seen.clear()
            self._work = 0
            try:
                found = [
                    alias
                    for node in self.function.graph.at(statement)
                    for alias in self._of(node, base, Conditions(), frozenset(), _ALIASES)
                ]
            except _TooMuchError:
                return ()
            others = [alias for alias in found if alias.path is None]
            if len(others) in (0, len(found)):
                break
        own = self._tests(statement) if others else frozenset()
        paths = (
            alias.path
            for alias in found
            if alias.path is not None and self._meets(alias, own - alias.tests, others)
        )
        return tuple(dict.fromkeys(paths))

    @cached_property
    def _holding(self) -> frozenset[str]:
        """The variables that may hold what was given, whichever of their values they have."""
        sources: dict[str, set[str]] = {}
        for statement, nodes in self.function.own_nodes.items():
            for target, value in _handed_on(statement, nodes):
                roots = set(_roots(value))
                for inner, _ in unpacked(target, ()) if roots else ():
                    if isinstance(inner, ast.Name):
                        for root in roots:
                            sources.setdefault(root, set()).add(inner.id)
        found, queue = set(self.given), [*self.given]
        while queue:
            more = sources.get(queue.pop(), set()) - found
            found |= more
            queue += more
        return frozenset(found)

    def _meets(self, alias: _Alias, own: frozenset[_Test], others: list[_Alias]) -> bool:
        """Whether a store under tests of its `own` is known to meet an alias, and not only others.

        What the batch holds does not depend on how the engine is set up; but a copy of the very
        tensor may have been made for the stores that follow.
        """
        if not own:
            return True
        assert alias.path is not None
        if any(self._is_copy(other.value, alias.path) for other in others):
            return False
        return all(map(self._is_count, own)) and all(map(self._is_setting, alias.tests))

    def _of(
        self,
        node: Node,
        value: ast.expr,
        conditions: Conditions,
        tests: frozenset[_Test],
        depth: int,
        element: Path = (),
    ) -> Iterator[_Alias]:
        """What `value` is before `node`, or is a view of."""
        key = (node, value, conditions, tests, element)
        if key in self._seen:
            return
        self._seen.add(key)
        if isinstance(value, ast.IfExp):
            for side, holds in ((value.body, True), (value.orelse, False)):
                known = self._given(conditions, value.test, holds)
                if known is not None and not _is_none(side):
                    yield from self._of(node, side, known, tests, depth, element)
            return
        if isinstance(value, (ast.Tuple, ast.List)) and element:
            parts = _elements(value, element[0])
            for part in parts:
                yield from self._of(node, part, conditions, tests, depth, element[1:])
            if not parts:
                yield _Alias(None, tests)
            return
        if isinstance(value, ast.NamedExpr):
            yield from self._of(node, value.value, conditions, tests, depth, element)
            return
        if element and isinstance(value, ast.Call) and _is_method(value, _PARTS):
            assert isinstance(value.func, ast.Attribute)
            value, element = value.func.value, element[1:]
        path = _viewed(value) if not element else None
        if path is None or depth == 0:
            yield _Alias(None, tests, value)
            return
        for alias in self._variable(node, str(path[0]), conditions, tests, depth):
            if alias.path is None:
                yield replace(alias, value=alias.value or value)
            else:
                yield replace(alias, path=(*alias.path, *path[1:]))

    def _variable(
        self,
        node: Node,
        name: str,
        conditions: Conditions,
        tests: frozenset[_Test],
        depth: int,
    ) -> Iterator[_Alias]:
        """What a variable is, by each way that its last assignment comes to `node`."""
        if name in self.function.parameters and not self.function.rebinds(name):
            yield _Alias((name,) if name in self.given else None, tests)
            return
        seen: set[tuple[Node, Conditions]] = set()
        queue = [(node, conditions)]
        while queue:
            here, held = queue.pop()
            for edge in here.before:
                known = held if edge.test is None else self._given(held, edge.test, edge.holds)
                source = edge.source
                if known is None or (source, known) in seen:
                    continue
                seen.add((source, known))
                self._work += 1
                if self._work > _WORK:
                    raise _TooMuchError
                before = _before(source, known)
                if before is None:
                    continue
                if source.role is Role.ENTRY:
                    if name in self.function.parameters or name not in self.function.local_names:
                        yield _Alias((name,) if name in self.given else None, tests)
                    continue
                definitions = list(definitions_at(source, name))
                for value, at, element in definitions:
                    if value is None:
                        yield _Alias(None, tests)
                    elif not _is_none(value):
                        under = tests | self._tests(source.statement)
                        yield from self._of(at, value, before, under, depth - 1, element)
                if not definitions:
                    queue.append((source, before))

    def _given(self, conditions: Conditions, test: ast.expr, holds: bool) -> Conditions | None:
        """The conditions with one more; None where that cannot be, with DCP on."""
        truth = self.scenario.truth(self.function, test, conditions.known)
        if truth is not None:
            return conditions if truth is holds else None
        return conditions.given(test, holds) if self._exact else conditions

    # Tests around a statement

    def _tests(self, statement: object) -> frozenset[_Test]:
        """The tests around a statement that decide whether it runs, but for what DCP decides."""
        found: set[_Test] = set()
        for around, holds in (
            _enclosing(self.function, statement) if isinstance(statement, ast.stmt) else ()
        ):
            for part in conjuncts(around.test) if holds else (around.test,):
                if self.scenario.truth(self.function, part) is None:
                    found.add(self._test(around, part, holds))
        return frozenset(found)

    def _test(self, statement: ast.If, test: ast.expr, holds: bool) -> _Test:
        """A test; where a variable in it is given several values, it says so only there."""
        meant = self._meant(test)
        bound = [binding.name for binding in self.function.bindings]
        changing = any(bound.count(name) > 1 for name in names(meant))
        return _Test((dumped(meant), holds, statement if changing else None), meant)

    def _meant(self, test: ast.expr) -> ast.expr:
        """What a variable that is given one value stands for."""
        if isinstance(test, ast.Name):
            values = [v for _, v in self.scenario.meanings(self.function, test)]
            if len(values) == 1:
                return values[0]
        return test

    def _is_count(self, test: _Test) -> bool:
        """Whether a test compares a number of the batch's with one that is written there."""
        node = test.node
        if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], _COUNTED):
            return False
        sides = (node.left, *node.comparators)
        counts = [path_of(side) for side in sides if not isinstance(side, ast.Constant)]
        return len(counts) == 1 and counts[0] is not None and not self._is_own(counts[0])

    def _is_setting(self, test: _Test) -> bool:
        """Whether a test is of what the object holds, or of whether something is there."""
        if null_test(test.node) is not None:
            return True
        read = [n for n in walk(test.node) if isinstance(n, ast.Name)]
        return bool(read) and all(self._is_own((name.id,)) for name in read)

    def _is_own(self, path: Path) -> bool:
        function = self.function
        return function.is_method and path[0] == function.parameters[0]

    def _is_copy(self, value: ast.expr | None, path: Path) -> bool:
        """Whether a value may be a copy of what lies at `path`, made to be stored into."""
        if value is None:
            return True
        words = {word for n in walk(value) for word in (getattr(n, "attr", None),) if word}
        return bool(words & _COPIES) or path[-1] in words


def _before(node: Node, conditions: Conditions) -> Conditions | None:
    """What held before a node bound what it binds; None where that cannot have been."""
    known: Conditions | None = conditions
    for name, value in bindings(node):
        known = known.before_binding(name, value) if known is not None else None
    return known


def _handed_on(
    statement: ast.stmt, nodes: Iterable[ast.AST]
) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The targets that a statement binds, with what they are given or unpacked from."""
    if isinstance(statement, ast.Assign):
        yield from ((target, statement.value) for target in statement.targets)
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        yield statement.target, statement.value
    elif isinstance(statement, (ast.For, ast.AsyncFor)):
        yield statement.target, statement.iter
    yield from ((node.target, node.value) for node in nodes if isinstance(node, ast.NamedExpr))


def _roots(value: ast.expr) -> Iterator[str]:
    """The variables that `value` may be, or be a view or an element of."""
    if isinstance(value, ast.IfExp):
        yield from _roots(value.body)
        yield from _roots(value.orelse)
    elif isinstance(value, (ast.Tuple, ast.List)):
        for element in value.elts:
            yield from _roots(element)
    elif isinstance(value, ast.NamedExpr):
        yield from _roots(value.value)
    elif isinstance(value, ast.Call) and _is_method(value, _PARTS):
        assert isinstance(value.func, ast.Attribute)
        yield from _roots(value.func.value)
    elif (path := _viewed(value)) is not None:
        yield str(path[0])


def _viewed(value: ast.expr) -> Path | None:
    """The path that `value` is, or is a view of: what an index tensor picks is a copy."""
    while True:
        if isinstance(value, ast.Subscript):
            parts = value.value
            if isinstance(parts, ast.Call) and _is_method(parts, _PARTS):
                assert isinstance(parts.func, ast.Attribute)
                value = parts.func.value
                continue
            if not _is_basic(value.slice):
                return None
            value = parts
        elif isinstance(value, ast.Call) and _is_method(value, _VIEWS):
            assert isinstance(value.func, ast.Attribute)
            value = value.func.value
        else:
            return path_of(value)


def _is_method(call: ast.Call, names: frozenset[str]) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in names


def _is_basic(index: ast.expr) -> bool:
    """Whether an index is made of slices and numbers."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return all(isinstance(part, (ast.Slice, ast.Constant, ast.UnaryOp)) for part in parts)


def _elements(value: ast.Tuple | ast.List, index: str | int) -> list[ast.expr]:
    """The elements that `index` may pick, `*` any of them; none where that cannot be told."""
    if any(isinstance(element, ast.Starred) for element in value.elts):
        return []
    if isinstance(index, int):
        return value.elts[index : index + 1 or None]
    return value.elts if index == "*" else []


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
