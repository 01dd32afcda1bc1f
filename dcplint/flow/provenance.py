"""Whether a value is a contract field, whatever the variables on its way are called."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dcplint.flow.conditions import Path, path_of
from dcplint.flow.dataclasses import constructor_argument, is_record
from dcplint.flow.definitions import definitions
from dcplint.flow.functions import Function, argument
from dcplint.flow.graph import Node, Role
from dcplint.flow.scenario import Scenario
from dcplint.flow.types import attribute_settings

_DEPTH = 5

IsField = Callable[[Function, ast.expr, str], bool]
"""Whether an expression of a function is a record, and the attribute the field of it."""


@dataclass(frozen=True, slots=True)
class _Entered:
    """The call by which a helper was entered: what its parameters hold stands there alone."""

    function: Function
    at: Node | None
    call: ast.Call
    outer: _Entered | None


class Provenance:
    """Follows copies: variables, slices, choices, parameters, helpers, small records.

    Many callers lead to the same place, so what was found out of one is kept.
    """

    def __init__(self, scenario: Scenario, is_field: IsField) -> None:
        self.universe = scenario.universe
        self.lookup = scenario.lookup
        self.is_field = is_field
        self._known: dict[tuple[Function, Node, Path, int, _Entered | None], bool] = {}

    def is_from_field(self, function: Function, node: Node, path: Path) -> bool:
        """Whether `path`, just before `node`, holds the field of some record."""
        return self._before(function, node, path, _DEPTH, None)

    def _before(
        self, function: Function, node: Node, path: Path, depth: int, entered: _Entered | None
    ) -> bool:
        if depth == 0 or not all(isinstance(part, str) for part in path):
            return False
        key = (function, node, path, depth, entered)
        if key not in self._known:
            self._known[key] = self._find_before(*key)
        return self._known[key]

    def _find_before(
        self, function: Function, node: Node, path: Path, depth: int, entered: _Entered | None
    ) -> bool:
        root, *rest = map(str, path)
        if rest and self.is_field(function, _expression(path[:-1]), rest[-1]):
            return True
        first = function.parameters[0] if function.is_method and function.parameters else None
        if root == first and rest and function.owner is not None:
            settings = attribute_settings(self.universe, function.owner, rest[0])
            return any(
                self._is(method, None, value, tuple(rest[1:]), depth - 1)
                for method, value, _ in settings
                if value is not None
            )
        return any(
            self._is_passed(function, root, tuple(rest), depth, entered)
            if at.role is Role.ENTRY
            else self._is(function, at, value, (*element, *rest), depth - 1, entered)
            for value, at, element in definitions(function, node, root)
        )

    def _is_passed(
        self, function: Function, name: str, rest: Path, depth: int, entered: _Entered | None
    ) -> bool:
        if entered is not None:
            passed = argument(function, entered.call, name)
            return self._is(entered.function, entered.at, passed, rest, depth - 1, entered.outer)
        return any(
            self._is(site.function, node, argument(function, site.call, name), rest, depth - 1)
            for site in self.universe.callers(function)
            for node in site.nodes[:1]
        )

    def _is(
        self,
        function: Function,
        at: Node | None,
        value: ast.expr | None,
        rest: Path,
        depth: int,
        entered: _Entered | None = None,
    ) -> bool:
        if value is None or depth == 0:
            return False
        path = path_of(value)
        if path is not None:
            if at is None:
                at = function.graph.end
            return self._before(function, at, (*path, *rest), depth, entered)
        if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice) and not rest:
            return self._is(function, at, value.value, rest, depth, entered)
        if isinstance(value, (ast.Tuple, ast.List)) and rest and isinstance(rest[0], int):
            inner = value.elts[rest[0]] if rest[0] < len(value.elts) else None
            return self._is(function, at, inner, rest[1:], depth, entered)
        if isinstance(value, ast.Call):
            return self._is_made(function, at, value, rest, depth, entered)
        return any(self._is(function, at, x, rest, depth, entered) for x in _choices(value))

    def _is_made(
        self,
        function: Function,
        at: Node | None,
        call: ast.Call,
        rest: Path,
        depth: int,
        entered: _Entered | None,
    ) -> bool:
        """A field of a small record, an attribute by name, or what a helper returns."""
        if isinstance(call.func, ast.Name) and call.func.id == "getattr" and len(call.args) > 1:
            name = call.args[1]
            said = name.value if isinstance(name, ast.Constant) else ""
            return not rest and self.is_field(function, call.args[0], str(said))
        built = self.lookup.built(function, call)
        if built is not None:
            if not rest or not is_record(self.universe, built):
                return False
            passed = constructor_argument(self.universe, call, built, str(rest[0]))
            return self._is(function, at, passed, rest[1:], depth - 1, entered)
        inside = _Entered(function, at, call, entered)
        return any(
            self._is(callee, edge.source, edge.source.statement.value, rest, depth - 1, inside)
            for callee in self.universe.callees(function, call)
            for edge in callee.graph.end.before
            if isinstance(edge.source.statement, ast.Return)
        )


def _choices(value: ast.expr) -> Sequence[ast.expr]:
    """What an expression that is one of several, or another's value, may be."""
    if isinstance(value, ast.IfExp):
        return (value.body, value.orelse)
    if isinstance(value, ast.BoolOp):
        return value.values
    return (value.value,) if isinstance(value, ast.NamedExpr) else ()


def _expression(path: Path) -> ast.expr:
    """`a.b.c` again, from its path."""
    root, *rest = map(str, path)
    node: ast.expr = ast.Name(root)
    for part in rest:
        node = ast.Attribute(node, part)
    return node
