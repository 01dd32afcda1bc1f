"""What belongs to what a function was given, behind its variables and views, with DCP on."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from dcplint.flow.conditions import (
    Conditions,
    Path,
    atoms,
    conjuncts,
    dumped,
    names,
    null_test,
    path_of,
)
from dcplint.flow.definitions import bindings, definitions_at
from dcplint.flow.functions import Function
from dcplint.flow.graph import Node, Role
from dcplint.flow.scenario import Scenario
from dcplint.flow.values import unpacked
from dcplint.source.tree import walk

_VIEWS = frozenset(
    {"view", "reshape", "narrow", "squeeze", "unsqueeze", "detach", "numpy", "expand"}
    | {"contiguous", "ravel", "flatten", "view_as", "transpose", "permute", "t"}
)
_ADDRESSES = frozenset({"data_ptr", "untyped_storage", "storage"})
_PARTS = frozenset({"split", "chunk", "tensor_split", "unbind", "split_with_sizes"})
_COPIES = frozenset({"clone", "copy", "deepcopy"})
_COPYING = frozenset({"copy.copy", "copy.replace", "dataclasses.replace"})
_COPYING_METHODS = frozenset({"replace", "_replace"})
_COUNTED = (ast.Gt, ast.GtE, ast.Lt, ast.LtE, ast.Eq, ast.NotEq)
_ALIASES = 6  # names of names
_WORK = 4_000  # places and conditions that are looked at for one store
_ALL = 30_000  # and for all stores of a function; the most that an engine's needs is far less


@dataclass(frozen=True)
class _Alias:
    """What an expression can be: a path from a parameter on, or (None) something else.

    tests: those under which it is that. value: what it is, where it is something else. is_view:
    whether it only shares the storage of what lies at the path. is_copy: whether it is a copy of
    what lies there, or comes out of one, with the same parts. is_part: whether it is the attribute
    that was asked for, rather than what has it.
    """

    path: Path | None
    tests: frozenset[_Test]
    value: ast.expr | None = None
    is_view: bool = False
    is_copy: bool = False
    is_part: bool = False


_Apart = frozenset[tuple[Path, bool]]
"""The paths at which something does not lie, and (True) does not lie a view of it either."""


class _TooMuchError(Exception):
    """What a variable can be is more than is worth finding."""


@dataclass(frozen=True)
class _Since:
    """What became of a variable's attribute since the variable was given its value.

    bound: where it was last given another, and what. is_open: whether something was handed the
    variable meanwhile, which may have done so.
    """

    bound: tuple[Node, ast.expr | None] | None = None
    is_open: bool = False


@dataclass(frozen=True)
class _Test:
    """A test that decides whether a statement runs; compared by what it says."""

    said: object
    node: ast.expr = field(compare=False)


@dataclass
class Aliases:
    """Finds what belongs to a function's parameters behind variables and views, with DCP on."""

    function: Function
    scenario: Scenario
    given: frozenset[str]
    _seen: set[object] = field(default_factory=set)
    _exact: bool = False
    _work: int = 0
    _spent: int = 0

    def stored(self, statement: ast.stmt, base: ast.expr) -> tuple[tuple[Path, bool], ...]:
        """What a store into `base` goes into, on some way at least: paths from a parameter on.

        True: what holds it is a copy of what was given, with the same parts.

        A store under a test of its own may be one that only copies come to; that is not known.
        """
        if not self.may_be_given(base):
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
            (alias.path, alias.is_copy)
            for alias in found
            if alias.path is not None and self._meets(alias, own - alias.tests, others)
        )
        return tuple(dict.fromkeys(paths))

    def may_be_given(self, value: ast.expr) -> bool:
        """Whether `value` may belong to what was given, whichever of its values a variable has."""
        return not self._holding.isdisjoint(self._roots(value))

    @cached_property
    def _holding(self) -> frozenset[str]:
        sources: dict[str, set[str]] = {}
        for statement, nodes in self.function.own_nodes.items():
            for target, value in _handed_on(statement, nodes):
                given = set(self._roots(value))
                for inner, _ in unpacked(target, ()) if given else ():
                    if isinstance(inner, (ast.Name, ast.Attribute)) and (path := path_of(inner)):
                        for root in given:
                            sources.setdefault(root, set()).add(".".join(map(str, path)))
        found, queue = set(self.given), [*self.given]
        while queue:
            more = sources.get(queue.pop(), set()) - found
            found |= more
            queue += more
        return frozenset(found)

    def _roots(self, value: ast.expr) -> Iterator[str]:
        """The variables, and their attributes, that `value` may be, or be a view or a part of."""
        if isinstance(value, ast.IfExp):
            yield from self._roots(value.body)
            yield from self._roots(value.orelse)
        elif isinstance(value, (ast.Tuple, ast.List)):
            for element in value.elts:
                yield from self._roots(element)
        elif isinstance(value, ast.NamedExpr):
            yield from self._roots(value.value)
        elif isinstance(value, ast.Call) and _is_method(value, _PARTS):
            assert isinstance(value.func, ast.Attribute)
            yield from self._roots(value.func.value)
        elif isinstance(value, ast.Call) and value in self._copied:
            yield from self._roots(self._copied[value])
            for keyword in value.keywords:
                yield from self._roots(keyword.value)
        elif (path := _viewed(value)) is not None:
            yield str(path[0])
            if len(path) > 1:
                yield f"{path[0]}.{path[1]}"

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
        attribute: str = "",
    ) -> Iterator[_Alias]:
        """What `value` is before `node`, or is a view of.

        attribute: the one that is taken of it, where the value may be a record.
        """
        key = (node, value, conditions, tests, element, attribute)
        if key in self._seen:
            return
        self._seen.add(key)
        if isinstance(value, ast.IfExp):
            for side, holds in ((value.body, True), (value.orelse, False)):
                known = self._given(conditions, value.test, holds)
                if known is not None and not _is_none(side):
                    found = self._of(node, side, known, tests, depth, element, attribute)
                    name = side.id if isinstance(side, ast.Name) else ""
                    apart = frozenset(self._apart(node, value.test, holds, name))
                    yield from (alias for alias in found if _may_be(alias, apart))
            return
        if isinstance(value, (ast.Tuple, ast.List)) and element:
            parts = _elements(value, element[0])
            for part in parts:
                yield from self._of(node, part, conditions, tests, depth, element[1:], attribute)
            if not parts:
                yield _Alias(None, tests)
            return
        if isinstance(value, ast.NamedExpr):
            yield from self._of(node, value.value, conditions, tests, depth, element, attribute)
            return
        if isinstance(value, ast.Call) and value in self._copied and depth and not element:
            yield from self._of_copy(node, value, conditions, tests, depth, attribute)
            return
        if element and isinstance(value, ast.Call) and _is_method(value, _PARTS):
            assert isinstance(value.func, ast.Attribute)
            value, element = value.func.value, element[1:]
        path = _viewed(value) if not element else None
        if path is None or depth == 0:
            yield _Alias(None, tests, value)
            return
        name, *rest = map(str, path)
        taken = rest[0] if rest else attribute
        for alias in self._variable(node, name, taken, conditions, tests, depth):
            if alias.path is None:
                yield replace(alias, value=alias.value or value)
            else:
                more = rest[1:] if alias.is_part else rest
                yield replace(
                    alias,
                    path=(*alias.path, *more),
                    is_view=alias.is_view or path_of(value) is None,
                    is_part=alias.is_part and not rest,
                )

    def _of_copy(
        self,
        node: Node,
        call: ast.Call,
        conditions: Conditions,
        tests: frozenset[_Test],
        depth: int,
        attribute: str,
    ) -> Iterator[_Alias]:
        """What a copy of a record is, of which `attribute` is taken."""
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        if attribute in given:
            for alias in self._of(node, given[attribute], conditions, tests, depth):
                yield replace(alias, is_part=True)
        elif None in given:
            yield _Alias(None, tests, call)
        else:
            record = self._copied[call]
            for alias in self._of(node, record, conditions, tests, depth, (), attribute):
                yield replace(alias, is_copy=True)

    @cached_property
    def _copied(self) -> Mapping[ast.Call, ast.expr]:
        """The calls that copy a record, whose parts both then hold, with the record."""
        universe = self.scenario.universe
        found: dict[ast.Call, ast.expr] = {}
        for call in (call for calls in self.function.calls.values() for call in calls):
            if isinstance(call.func, ast.Attribute) and call.func.attr in _COPYING_METHODS:
                if not call.args and call.keywords:
                    found[call] = call.func.value
            if len(call.args) == 1 and isinstance(call.args[0], ast.Name):
                if universe.called(self.function, call) in _COPYING:
                    found[call] = call.args[0]
        return found

    def _variable(
        self,
        node: Node,
        name: str,
        attribute: str,
        conditions: Conditions,
        tests: frozenset[_Test],
        depth: int,
    ) -> Iterator[_Alias]:
        """What a variable is, or its attribute, by each way that its last value comes to `node`."""
        own = f"{name}.{attribute}" in self._bound
        if name in self.function.parameters and not self.function.rebinds(name):
            if name in self.given or not own:
                yield _Alias((name,) if name in self.given else None, tests)
                return
        watched = own or bool(self._copied)
        seen: set[tuple[Node, Conditions, _Apart, _Since]] = set()
        queue: list[tuple[Node, Conditions, _Apart, _Since]] = [
            (node, conditions, frozenset(), _Since())
        ]
        ways: dict[tuple[ast.expr, Node, Path, Conditions, _Since], list[_Apart]] = {}
        ends: list[_Since] = []
        while queue:
            here, held, others, then = queue.pop()
            for edge in here.before:
                known, apart, since, source = held, others, then, edge.source
                if edge.test is not None:
                    more = self._given(held, edge.test, edge.holds)
                    if more is None:
                        continue
                    known = more
                    apart = others.union(self._apart(source, edge.test, edge.holds, name))
                if watched and since.bound is None:
                    since = self._since(source, name, attribute, since)
                if (source, known, apart, since) in seen:
                    continue
                seen.add((source, known, apart, since))
                self._work += 1
                self._spent += 1
                if self._work > _WORK or self._spent > _ALL:
                    raise _TooMuchError
                before = _before(source, known)
                if before is None:
                    continue
                if source.role is Role.ENTRY:
                    if name in self.function.parameters or name not in self.function.local_names:
                        ends.append(since)
                    continue
                definitions = list(definitions_at(source, name))
                for value, at, element in definitions:
                    if value is None:
                        yield _Alias(None, tests)
                    elif not _is_none(value):
                        ways.setdefault((value, at, element, before, since), []).append(apart)
                if not definitions:
                    queue.append((source, before, apart, since))
        for (value, at, element, before, since), all_apart in ways.items():
            under = tests | self._tests(at.statement)
            for alias in self._of(at, value, before, under, depth - 1, element, attribute):
                if not any(_may_be(alias, apart) for apart in all_apart):
                    continue
                if alias.path is None or (alias.is_copy and not alias.is_part):
                    yield from self._changed(alias, since, conditions, depth)
                else:
                    yield alias
        for since in ends:
            if name in self.given:
                yield _Alias((name,), tests)
            else:
                yield from self._changed(_Alias(None, tests), since, conditions, depth)

    @cached_property
    def _bound(self) -> frozenset[str]:
        """The attributes that the function itself binds, with their variables."""
        return frozenset(
            dotted
            for node in self.function.graph.nodes
            for dotted, _ in bindings(node)
            if "." in dotted
        )

    def _since(self, node: Node, name: str, attribute: str, since: _Since) -> _Since:
        """What became of an attribute of a variable, where `node` runs in between too."""
        for dotted, value in bindings(node):
            if dotted == f"{name}.{attribute}" and not _is_in_place(node.statement):
                return replace(since, bound=(node, value))
        if since.is_open or not isinstance(node.statement, ast.stmt):
            return since
        for call in self.function.calls.get(node.statement, ()):
            receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
            handed = (receiver, *call.args, *(k.value for k in call.keywords))
            if call not in self._copied and any(
                isinstance(value, ast.Name) and value.id == name for value in handed
            ):
                return replace(since, is_open=True)
        return since

    def _changed(
        self, alias: _Alias, since: _Since, conditions: Conditions, depth: int
    ) -> Iterator[_Alias]:
        """What an attribute of something is that is not itself what was given."""
        if since.is_open or since.bound is None:
            yield replace(alias, path=None) if since.is_open else alias
            return
        at, value = since.bound
        under = alias.tests | self._tests(at.statement)
        if value is None:
            yield _Alias(None, under)
        elif not _is_none(value):
            for found in self._of(at, value, conditions, under, depth - 1):
                yield replace(found, is_part=True)

    def _apart(
        self, at: Node, test: ast.expr, holds: bool, name: str
    ) -> Iterator[tuple[Path, bool]]:
        """What a test, which came out as `holds`, says that a variable is not."""
        said = atoms(self._meant(test), holds, lambda _: None)
        parts = (p for atom, value in said for p in _told_apart(self._meant(atom), value))
        for one, other, with_views in parts:
            if isinstance(one, ast.Name) and one.id == name:
                others = Aliases(self.function, self.scenario, self.given)
                for alias in others._of(at, other, Conditions(), frozenset(), _ALIASES):
                    if alias.path is not None and not alias.is_view:
                        yield alias.path, with_views

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
            enclosing(self.function, statement) if isinstance(statement, ast.stmt) else ()
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


def _may_be(alias: _Alias, apart: _Apart) -> bool:
    """Whether an alias agrees with what it is known not to be."""
    return not any(
        alias.path == path and (with_views or not alias.is_view) for path, with_views in apart
    )


def _told_apart(test: ast.expr, holds: bool) -> Iterator[tuple[ast.expr, ast.expr, bool]]:
    """The two things that a test tells apart, either way round; whether views are told apart too.

    `x is y`, `x.data_ptr() == y.data_ptr()`.
    """
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return
    one, other = test.left, test.comparators[0]
    if isinstance(test.ops[0], ast.IsNot if holds else ast.Is):
        yield one, other, False
        yield other, one, False
    elif isinstance(test.ops[0], ast.NotEq if holds else ast.Eq):
        here, there = _stored_in(one), _stored_in(other)
        if here is not None and there is not None:
            yield here, there, True
            yield there, here, True


def _stored_in(node: ast.expr) -> ast.expr | None:
    """Of which tensor `node` is the storage's address: `x` for `x.data_ptr()`."""
    if not isinstance(node, ast.Call) or not _is_method(node, _ADDRESSES):
        return None
    assert isinstance(node.func, ast.Attribute)
    return _stored_in(node.func.value) or node.func.value


def _is_in_place(statement: object) -> bool:
    """Whether what a statement binds is what was there, changed: `x += v` of a tensor."""
    return isinstance(statement, ast.AugAssign)


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


def enclosing(function: Function, statement: ast.stmt) -> Iterator[tuple[ast.If, bool]]:
    """The `if` statements around one, and whether it stands under the test."""
    node: ast.stmt | None = statement
    while node is not None:
        home = function.homes[node]
        node = home.parent
        if isinstance(node, ast.If):
            yield node, home.block is node.body
