"""What each node of a function does with DCP on, or off: the calls, followed into helpers."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from dcplint.flow.calls import Call, Calls
from dcplint.flow.dispatch import Dispatch
from dcplint.flow.functions import Function, expressions
from dcplint.flow.graph import Edge, Node, Role
from dcplint.flow.origins import Frame
from dcplint.flow.scenario import Scenario
from dcplint.source.tree import children

Key = tuple[object, ...]
"""What tells the calls of a node apart, the same on both sides."""

_Made = tuple[Call, Frame | None]


@dataclass(frozen=True, slots=True)
class Seen:
    """What running one node does: the calls, those of helpers included, and the names in it."""

    calls: tuple[Call, ...]
    mentions: frozenset[str]


@dataclass
class Side:
    """What runs with DCP on, or off."""

    dispatch: Dispatch
    scenario: Scenario
    words: frozenset[str]
    _seen: dict[tuple[Frame, Node], Seen] = field(default_factory=dict)
    _made: dict[tuple[Frame, Node], dict[Key, _Made]] = field(default_factory=dict)
    _names: dict[tuple[Frame, Node], frozenset[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._calls = Calls(self.dispatch, self.scenario, self.words)

    def takes(self, function: Function, edge: Edge) -> bool:
        """Whether control may take an edge."""
        if edge.test is None:
            return True
        return self.scenario.truth(function, edge.test) is not (not edge.holds)

    def seen(self, frame: Frame, place: Node) -> Seen:
        """What running `place` does, in the helpers that it calls too."""
        key = (frame, place)
        if key not in self._seen:
            self._seen[key] = self._look(frame, place)
        return self._seen[key]

    def _look(self, frame: Frame, place: Node) -> Seen:
        made = self.made(frame, place)
        calls = [call for key in made for call in self.within(frame, place, key)]
        mentions = set(self._names[(frame, place)])
        for _, inner in made.values():
            mentions.update(*(seen.mentions for seen in self._inside(inner)))
        return Seen(tuple(calls), frozenset(mentions))

    def makes_calls(self, frame: Frame, place: Node) -> bool:
        """Whether a node makes any call itself."""
        statement = place.statement
        return isinstance(statement, ast.stmt) and statement in frame.function.calls

    def made(self, frame: Frame, place: Node) -> Mapping[Key, _Made]:
        """The calls that a node makes itself, and the helpers that these run, where followed."""
        at = (frame, place)
        if at not in self._made:
            self._made[at], names = {}, set()
            for node in self._evaluated(frame, place):
                if isinstance(node, ast.Attribute):
                    names.add(node.attr)
                elif isinstance(node, ast.Name):
                    names.add(node.id)
                elif isinstance(node, ast.Call):
                    call, inner = self._calls.of(frame, place, node)
                    key = (node, call.name, call.callee, frozenset(call.given))
                    self._made[at][key] = (call, inner)
            self._names[at] = frozenset(names)
        return self._made[at]

    def within(self, frame: Frame, place: Node, key: Key) -> Iterator[Call]:
        """One call of a node, and those that the helper makes that it runs."""
        call, inner = self.made(frame, place)[key]
        yield call
        for seen in self._inside(inner):
            yield from seen.calls

    def _inside(self, frame: Frame | None) -> Iterator[Seen]:
        if frame is not None:
            reachable = self.scenario.reachable(frame.function)
            yield from (self.seen(frame, n) for n in frame.function.graph.nodes if n in reachable)

    def _evaluated(self, frame: Frame, place: Node) -> Iterator[ast.AST]:
        """The parts of a node's own expressions that are evaluated on this side."""
        statement = place.statement
        nested = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        if isinstance(statement, ast.stmt) and place.role is Role.PLAIN:
            if not isinstance(statement, nested):
                for expression in expressions(statement):
                    yield from self._live(frame, place, expression)

    def _live(self, frame: Frame, place: Node, node: ast.AST) -> Iterator[ast.AST]:
        """The parts of an expression that are evaluated on this side."""
        yield node
        if isinstance(node, ast.IfExp):
            truth = self.scenario.truth(frame.function, node.test)
            sides = ((node.body, True), (node.orelse, False))
            parts = [node.test, *(side for side, holds in sides if truth is not (not holds))]
        elif isinstance(node, ast.BoolOp):
            parts = []
            for value in node.values:
                parts.append(value)
                if self.scenario.truth(frame.function, value) is isinstance(node.op, ast.Or):
                    break
        elif isinstance(node, ast.Call):
            dropped = [
                k.value
                for k in node.keywords
                if k.arg in self.words and self._calls.is_left_out(frame, place, k.value)
            ]
            parts = [p for p in (node.func, *node.args) if p not in dropped]
            parts += [k.value for k in node.keywords if k.value not in dropped]
        else:
            for child in children(node):
                yield from self._live(frame, place, child)
            return
        for part in parts:
            yield from self._live(frame, place, part)
