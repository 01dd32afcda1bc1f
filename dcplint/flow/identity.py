"""Which objects a name stands for: whether two names are one object."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from dcplint.flow.conditions import Path, path_of
from dcplint.flow.dataclasses import constructor_argument, is_record
from dcplint.flow.definitions import definitions
from dcplint.flow.functions import Function, argument
from dcplint.flow.graph import Node
from dcplint.flow.lookup import Lookup
from dcplint.flow.universe import Universe

GIVEN = "@"  # `x@` is the object that parameter `x` was given, where `x` is bound anew
_ALIASES = 8

Objects = frozenset[object]


@dataclass
class Identity:
    """Follows names to where their objects come from, each once."""

    universe: Universe
    lookup: Lookup
    _objects: dict[object, Objects | None] = field(default_factory=dict)
    _asked: set[object] = field(default_factory=set)
    _circular: bool = False

    def same(self, function: Function, node: Node, owner: str, other: Path) -> bool | None:
        """Whether two paths stand for one object: True, False for maybe, None where they do not."""
        first = self.objects(function, node, tuple(owner.split(".")))
        second = self.objects(function, node, other)
        if first is None or second is None or not first & second:
            return None
        return len(first) == 1 and len(second) == 1

    def objects(
        self, function: Function, node: Node, path: Path, depth: int = _ALIASES
    ) -> Objects | None:
        """What identifies the objects `path` can be before `node`; None where it is not known."""
        root = str(path[0])
        if root.endswith(GIVEN):
            return frozenset({(function, root[:-1], function.graph.entry, path[1:])})
        key = (function, node, path)
        if key in self._objects:
            return self._objects[key]
        if key in self._asked:
            self._circular = True
            return frozenset()  # in a loop, one name may stand for another's earlier object
        self._asked.add(key)
        outer, self._circular = self._circular, False
        found: Objects | None = frozenset()
        for value, at, element in definitions(function, node, root):
            tail = (*element, *path[1:])
            inner = self._object(function, value, at, tail, root, depth)
            found = None if inner is None or found is None else found | inner
        self._asked.discard(key)
        if not self._circular or not self._asked:
            self._objects[key] = found
        self._circular = self._circular or outer
        return found

    def _object(
        self, function: Function, value: object, at: Node, tail: Path, root: str, depth: int
    ) -> Objects | None:
        if depth == 0:
            return None
        if value is None:
            return frozenset({(function, root, at, tail)})
        assert isinstance(value, ast.expr)
        dotted = path_of(value)
        if dotted is not None:
            return self.objects(function, at, (*dotted, *tail), depth - 1)
        if tail and isinstance(value, (ast.Tuple, ast.List)) and isinstance(tail[0], int):
            if tail[0] < len(value.elts):
                element = value.elts[tail[0]]
                return self._object(function, element, at, tail[1:], root, depth - 1)
        if isinstance(value, ast.Call) and (same_ := self._handed_back(function, value)):
            found = [self._object(function, v, at, tail, root, depth - 1) for v in same_]
            others = frozenset({(value, tail)})
            return others.union(*(f for f in found if f is not None))
        if tail and isinstance(value, ast.Call):
            built = self.lookup.built(function, value)
            if built is not None and is_record(self.universe, built):
                passed = constructor_argument(self.universe, value, built, str(tail[0]))
                if passed is not None:
                    return self._object(function, passed, at, tail[1:], root, depth - 1)
        return frozenset({(value, tail)})

    def _handed_back(self, function: Function, call: ast.Call) -> list[ast.expr]:
        """The arguments that a call may return as they are."""
        found: list[ast.expr] = []
        for callee in self.universe.callees(function, call):
            for edge in callee.graph.end.before:
                statement = edge.source.statement
                value = statement.value if isinstance(statement, ast.Return) else None
                if isinstance(value, ast.Name) and value.id in callee.parameters:
                    passed = argument(callee, call, value.id)
                    if passed is not None:
                        found.append(passed)
        return found
