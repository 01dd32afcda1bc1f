"""What a call passes by keyword, that of its `**mappings` included.

A mapping is followed to where it is made: displays and `dict(…)`, variables with all that is done
to them, parameters with what the callers pass, and what the functions called return. Unreadable
are computed keys, attributes, globals, code outside the program, and mappings that are handed to
anybody who might add to them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from dcplint.flow.functions import Function, argument, written_keywords
from dcplint.flow.lookup import Lookup
from dcplint.flow.types import classes_of

_WORK = 32  # variables and functions followed for one call
_READING = frozenset({"clear", "copy", "get", "items", "keys", "pop", "popitem", "values"})
_PLAIN = frozenset({"abstractmethod", "classmethod", "override", "staticmethod"})

Passed = tuple[str, "ast.expr | None"]
"""A keyword argument, and its value where an expression is that."""

Runs = Callable[[Function, ast.stmt], bool]


class _UnreadableError(Exception):
    """Raised where a mapping may hold anything."""


def keywords(lookup: Lookup, function: Function, call: ast.Call) -> frozenset[str] | None:
    """The names of all that `call`, made in `function`, may pass by keyword.

    None where that cannot be read.
    """
    found = arguments(lookup, function, call)
    return None if found is None else frozenset(found)


def arguments(
    lookup: Lookup, function: Function, call: ast.Call, runs: Runs = lambda *_: True
) -> Mapping[str, ast.expr | None] | None:
    """What `keywords` names, each with its value, or None where several are possible or unknown.

    runs: whether a statement runs at all; what the others add to a mapping is left out.
    """
    found: dict[str, ast.expr | None] = {}
    try:
        for name, value in _Reader(lookup, runs).passed(function, call):
            found[name] = value if found.get(name, value) is value else None
    except _UnreadableError:
        return None
    return found


def may_pass(lookup: Lookup, function: Function, call: ast.Call, name: str) -> bool:
    """Whether `call` may pass `name` by keyword, as far as its `**mappings` can be read."""
    found = keywords(lookup, function, call)
    return found is None or name in found


@dataclass
class _Reader:
    """Reads the mappings of one call. What is followed already adds nothing a second time."""

    lookup: Lookup
    runs: Runs
    _followed: set[tuple[Function, str]] = field(default_factory=set)

    def passed(self, function: Function, call: ast.Call) -> Iterator[Passed]:
        for keyword in written_keywords(call):
            if keyword.arg is not None:
                yield keyword.arg, keyword.value
            else:
                yield from self._keys(function, keyword.value)

    def _keys(self, function: Function, node: ast.expr) -> Iterator[Passed]:
        """The keys that a mapping may hold."""
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                yield from self._keys(function, value) if key is None else ((_text(key), value),)
        elif isinstance(node, ast.Call):
            yield from self._made(function, node)
        elif isinstance(node, ast.Name):
            yield from self._variable(function, node.id)
        elif not (isinstance(node, ast.Constant) and node.value is None):
            parts = _parts(node)
            if not parts:
                raise _UnreadableError
            for part in parts:
                yield from self._keys(function, part)

    def _made(self, function: Function, call: ast.Call) -> Iterator[Passed]:
        """The keys of what a call returns."""
        callee = call.func
        if isinstance(callee, ast.Name) and callee.id == "dict":
            yield from self._added(function, call)
        elif isinstance(callee, ast.Attribute) and callee.attr == "copy" and not call.args:
            yield from self._keys(function, callee.value)
        else:
            for target in self._targets(function, call):
                returned = [s.value for s in target.homes if isinstance(s, ast.Return)]
                if target.decorators - _PLAIN or target.yields or not returned:
                    raise _UnreadableError
                if self._is_new(target, "return"):
                    for value in filter(None, returned):
                        yield from self._keys(target, value)

    def _targets(self, function: Function, call: ast.Call) -> tuple[Function, ...]:
        """The functions that a call runs, where they are known by more than a name."""
        universe, callee = self.lookup.universe, call.func
        if isinstance(callee, ast.Attribute):
            if not classes_of(universe, function, callee.value):
                raise _UnreadableError
        found = universe.callees(function, call)
        if not found:
            raise _UnreadableError
        return found

    def _added(self, function: Function, call: ast.Call) -> Iterator[Passed]:
        """The keys that `dict(…)` or `mapping.update(…)` is given."""
        for given in call.args:
            yield from self._keys(function, given)
        yield from self.passed(function, call)

    def _variable(self, function: Function, name: str) -> Iterator[Passed]:
        """The keys of what a variable holds, wherever in its function."""
        if not self._is_new(function, name):
            return
        if name in function.parameters:
            yield from self._handed(function, name)
        elif name not in function.local_names:
            raise _UnreadableError
        if any(name in inner.mentions for inner in function.nested):
            raise _UnreadableError
        for statement in function.mentions.get(name, ()):
            if self.runs(function, statement):
                yield from self._stated(function, statement, name)

    def _handed(self, function: Function, name: str) -> Iterator[Passed]:
        """The keys of what callers pass for a parameter; `**rest` takes what has no other."""
        sites = self.lookup.universe.callers(function)
        if not sites or self.lookup.escapes(function):
            raise _UnreadableError
        rest = function.node.args.kwarg
        for site in sites:
            if rest is not None and rest.arg == name:
                taken = set(function.parameters) - {name}
                yield from (p for p in self.passed(site.function, site.call) if p[0] not in taken)
                continue
            given = argument(function, site.call, name)
            if given is None:
                raise _UnreadableError
            yield from self._keys(site.function, given)

    def _stated(self, function: Function, statement: ast.stmt, name: str) -> Iterator[Passed]:
        """The keys that one statement gives `name`; what it else does with it must be harmless."""
        nodes = function.own_nodes[statement]
        known: set[int] = set()
        for user in (statement, *nodes):
            for mention, given in self._used(function, user, name):
                if id(mention) not in known:
                    known.add(id(mention))
                    yield from given
        mentions = (node for node in nodes if _is_named(node, name))
        if any(id(mention) not in known for mention in mentions):
            raise _UnreadableError

    def _used(
        self, function: Function, node: ast.AST, name: str
    ) -> Iterator[tuple[ast.expr, Iterable[Passed]]]:
        """What a node that holds `name` directly adds to it, with the place that names it."""
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if _is_named(target, name):
                    yield target, self._keys(function, node.value) if node.value else ()
                elif isinstance(target, ast.Subscript) and _is_named(target.value, name):
                    yield target.value, ((_text(target.slice), node.value),)
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.BitOr):
            if _is_named(node.target, name):
                yield node.target, self._keys(function, node.value)
        elif isinstance(node, ast.Subscript) and _is_named(node.value, name):
            yield (
                node.value,
                ((_text(node.slice), None),) if isinstance(node.ctx, ast.Store) else (),
            )
        elif isinstance(node, ast.Call):
            callee = node.func
            if isinstance(callee, ast.Attribute) and _is_named(callee.value, name):
                yield callee.value, self._called(function, callee.attr, node)
            elif isinstance(callee, ast.Name) and callee.id == "dict":
                yield from ((given, ()) for given in node.args if _is_named(given, name))
        elif isinstance(node, ast.keyword) and node.arg is None and _is_named(node.value, name):
            yield node.value, ()
        elif isinstance(node, (ast.Dict, ast.BinOp, ast.Compare, ast.Return, ast.If)):
            for value in _harmless(node):
                if _is_named(value, name):
                    yield value, ()

    def _called(self, function: Function, method: str, call: ast.Call) -> Iterable[Passed]:
        """The keys that a method of a mapping adds to it."""
        if method == "update":
            return self._added(function, call)
        if method == "setdefault" and call.args:
            return ((_text(call.args[0]), None),)
        if method not in _READING:
            raise _UnreadableError
        return ()

    def _is_new(self, function: Function, what: str) -> bool:
        key = (function, what)
        if key in self._followed:
            return False
        if len(self._followed) >= _WORK:
            raise _UnreadableError
        self._followed.add(key)
        return True


def _parts(node: ast.expr) -> list[ast.expr]:
    """The mappings that an expression is one of, or a union of."""
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, ast.BoolOp):
        return node.values
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return [node.left, node.right]
    return []


def _harmless(
    node: ast.Dict | ast.BinOp | ast.Compare | ast.Return | ast.If,
) -> Iterator[ast.expr]:
    """The places where a node only looks at a mapping, or copies its items."""
    if isinstance(node, ast.Dict):
        yield from (v for k, v in zip(node.keys, node.values, strict=True) if k is None)
    elif isinstance(node, ast.BinOp):
        yield from (node.left, node.right)
    elif isinstance(node, ast.Compare):
        yield from (node.left, *node.comparators)
    elif isinstance(node, ast.If):
        yield node.test
    elif node.value is not None:
        yield node.value


def _text(key: ast.expr) -> str:
    if isinstance(key, ast.Constant) and isinstance(key.value, str):
        return key.value
    raise _UnreadableError


def _is_named(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
