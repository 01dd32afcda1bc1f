"""Which names hold a length, or a token's place, whatever they are called: by what they are given.

What a length or a place is called often says so. What a helper is handed is known by what every
caller passes, an attribute by all that it is set to. A sum with a length in it is a length, unless
the layout goes into it: then it is a part of a formula.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from dcplint.facts.expressions import dotted_name
from dcplint.flow.conditions import dumped
from dcplint.flow.definitions import definitions
from dcplint.flow.functions import Function, argument, callee_name
from dcplint.flow.graph import Node
from dcplint.flow.graph import Role as Place
from dcplint.flow.scenario import Scenario
from dcplint.source.tree import walk
from dcplint.units.operations import DIVIDING, KEEPING, MOVING, READING, operands
from dcplint.units.roles import Role, role

_LINKS = 8  # names in terms of names
_WORK = 400  # expressions for one question
_STEPS = 3  # variables in terms of variables, in what is added
_QUOTIENTS = DIVIDING | {"divmod", "remainder", "mod"}
_NAMES = {Role.LENGTH: "len", Role.INDEX: "pos"}
_LAYOUT = frozenset({Role.SIZE, Role.RANK, Role.INTERLEAVE})

Named = tuple[ast.expr, str]
"""What the code calls a length or a place, and a name that says what it is."""


@dataclass
class Dealt:
    """Answers for the functions of a universe."""

    scenario: Scenario
    _named: dict[Function, tuple[Named, ...]] = field(default_factory=dict)
    _active: list[tuple[Function, Node | None, str]] = field(default_factory=list)
    _work: int = 0

    def named(self, function: Function) -> tuple[Named, ...]:
        """What only its origin tells of what goes into the divisions of a function."""
        if function not in self._named:
            self._named[function] = tuple(self._find(function))
        return self._named[function]

    def _find(self, function: Function) -> Iterator[Named]:
        inside = function.local_names - {*function.parameters}  # these are known by their values
        interleaved = any(role(ast.Name(name)) is Role.INTERLEAVE for name in function.mentions)
        for index, node in enumerate(_dividends(function).values()):
            name = dotted_name(node)
            if name is None or name.partition(".")[0] in inside or role(node) is not None:
                continue
            self._work = 0
            found = {*self._parts(function, function.graph.entry, node)}
            if interleaved:
                found -= {None}  # nothing but tokens is dealt out in chunks
            part = found.pop() if len(found) == 1 else None
            if part is not None:
                said = f"{name.rpartition('.')[2]}_{_NAMES[part]}"
                yield node, said if role(ast.Name(said)) is part else f"{_NAMES[part]}_{index}"

    def _parts(self, function: Function, at: Node | None, node: ast.expr) -> Iterator[Role | None]:
        """What each of the things is that `node` can be before `at`; None for what is neither."""
        self._work += 1
        known = role(node)
        if known is not None or self._work > _WORK:
            yield known if known in _NAMES else None
        elif isinstance(node, (ast.Subscript, ast.NamedExpr)):
            yield from self._parts(function, at, node.value)
        elif isinstance(node, ast.IfExp):
            yield from self._parts(function, at, node.body)
            yield from self._parts(function, at, node.orelse)
        elif isinstance(node, ast.BinOp):
            yield from self._sum(function, at, node)
        elif isinstance(node, ast.Call) and callee_name(node) in KEEPING | READING | MOVING:
            for whole in operands(node)[:1]:
                yield from self._parts(function, at, whole)
        else:
            yield from self._followed(function, at, node)

    def _sum(self, function: Function, at: Node | None, node: ast.BinOp) -> Iterator[Role | None]:
        for side, other in ((node.left, node.right), (node.right, node.left)):
            found = {*self._parts(function, at, side)}
            if found <= {Role.LENGTH} and isinstance(node.op, (ast.Add, ast.Sub)):
                if self._is_apart(function, other, _STEPS):
                    yield from found
                    return
        yield None

    def _is_apart(self, function: Function, node: ast.expr, steps: int) -> bool:
        """Whether nothing of the layout is known to go into `node`."""
        for inner in walk(node):
            if not isinstance(inner, (ast.Name, ast.Attribute)):
                continue
            if role(inner) in _LAYOUT or self.scenario.is_rank(function, inner):
                return False
            if self.scenario.is_size(function, inner):
                return False
            values = self.scenario.meanings(function, inner) if steps else []
            if not all(self._is_apart(*value, steps - 1) for value in values):
                return False
        return True

    def _followed(
        self, function: Function, at: Node | None, node: ast.expr
    ) -> Iterator[Role | None]:
        key = (function, at, dumped(node))
        if key in self._active:
            return  # what it is in terms of itself adds nothing
        values = list(self._values(function, at, node)) if len(self._active) < _LINKS else []
        if not values:
            yield None
        self._active.append(key)
        for value in values:
            yield from self._parts(*value) if value is not None else (None,)
        self._active.pop()

    def _values(
        self, function: Function, at: Node | None, node: ast.expr
    ) -> Iterator[tuple[Function, Node | None, ast.expr] | None]:
        """What `node` can stand for, and before which node of which function; None for unknown."""
        if at is None or not isinstance(node, ast.Name) or node.id not in function.local_names:
            yield from ((where, None, n) for where, n in self.scenario.meanings(function, node))
            return
        if at.role is Place.ENTRY:
            yield from self._passed(function, node.id)
        for value, place, element in definitions(function, at, node.id):
            if place.role is Place.ENTRY:
                yield from self._passed(function, node.id)
            else:
                yield (function, place, value) if value is not None and not element else None

    def _passed(
        self, function: Function, name: str
    ) -> Iterator[tuple[Function, Node | None, ast.expr] | None]:
        """What every caller passes for a parameter."""
        sites = self.scenario.universe.callers(function)
        if self.scenario.lookup.escapes(function) or not sites:
            yield None
        for site in sites:
            passed = argument(function, site.call, name)
            for at in site.nodes:
                yield (site.function, at, passed) if passed is not None else None


def _dividends(function: Function) -> dict[str, ast.expr]:
    """The names that go into what a function divides, by dump."""
    found: dict[str, ast.expr] = {}
    divided: list[ast.expr] = []
    for nodes in function.own_nodes.values():
        for node in nodes:
            if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.FloorDiv, ast.Mod)):
                divided.append(node.left)
            elif isinstance(node, ast.Call) and callee_name(node) in _QUOTIENTS:
                divided += operands(node)[:1]
    asked: set[str] = set()
    for node in divided:  # grows as it is read
        for inner in walk(node):
            if isinstance(inner, (ast.Name, ast.Attribute)):
                found.setdefault(dumped(inner), inner)
                if isinstance(inner, ast.Name) and inner.id not in asked:
                    asked.add(inner.id)
                    divided += _given(function, inner.id)
    return found


def _given(function: Function, name: str) -> Iterator[ast.expr]:
    for statement in function.mentions.get(name, ()):
        if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and statement.value:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if any(dotted_name(target) == name for target in targets):
                yield statement.value
