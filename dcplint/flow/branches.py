"""What runs only with DCP on, and what runs in its place without it.

A method is looked at twice, with DCP on and off (`sides`).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from dcplint.flow.calls import Call
from dcplint.flow.dispatch import Dispatch, receiver_name
from dcplint.flow.functions import Function
from dcplint.flow.graph import Edge, Node
from dcplint.flow.origins import Frame
from dcplint.flow.scenario import Scenario
from dcplint.flow.sides import Side


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch that only DCP takes.

    inside: the calls that only it makes. along: what runs with DCP on wherever the branch does.
    beside: the calls in its place. mentions: the names in all that runs with the branch.
    """

    inside: tuple[Call, ...]
    along: tuple[Call, ...]
    beside: tuple[Call, ...]
    mentions: frozenset[str]


@dataclass
class Branches:
    """Finds the branches of methods of one class. words: the arguments that are followed."""

    dispatch: Dispatch
    on: Scenario
    off: Scenario
    words: frozenset[str]

    def of(self, function: Function) -> Iterator[Branch]:
        """The branches of a method that only DCP takes."""
        if self._is_alike(function):
            return
        on, off = (Side(self.dispatch, side, self.words) for side in (self.on, self.off))
        yield from _Method(Frame(function), on, off).branches()

    def _is_alike(self, function: Function) -> bool:
        """Whether a method plainly does the same with DCP and without."""
        if self.on.reachable(function) != self.off.reachable(function):
            return False
        own = receiver_name(function)
        for nodes in function.own_nodes.values():
            for node in nodes:
                if isinstance(node, (ast.IfExp, ast.BoolOp)):
                    tests = [node.test] if isinstance(node, ast.IfExp) else node.values
                    if any(self._is_decided(function, test) for test in tests):
                        return False
                elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    is_own = isinstance(node.func.value, ast.Name) and node.func.value.id == own
                    if is_own and self.dispatch.method(node.func.attr) is None:
                        if any(
                            self._is_decided(where, value.test)
                            for where, value in self.on.meanings(function, node.func)
                            if isinstance(value, ast.IfExp)
                        ):
                            return False
        return True

    def _is_decided(self, function: Function, test: ast.expr) -> bool:
        return self.on.truth(function, test) is not self.off.truth(function, test)


@dataclass
class _Method:
    """One method, looked at from both sides."""

    frame: Frame
    on: Side
    off: Side
    _after: dict[Node, list[tuple[Node, Edge]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for node in self.frame.function.graph.nodes:
            for edge in node.before:
                self._after.setdefault(edge.source, []).append((node, edge))

    def branches(self) -> Iterator[Branch]:
        function = self.frame.function
        on, off = (side.scenario.reachable(function) for side in (self.on, self.off))
        instead = [n for n in function.graph.nodes if n in off and n not in on]
        for source in (node for node in function.graph.nodes if node in on):
            for node, edge in self._after.get(source, ()):
                if edge.test is not None and self._opens(edge):
                    yield from self._branch(source, node, edge, instead)
        for node in function.graph.nodes:
            if node in on and node in off and self.on.makes_calls(self.frame, node):
                # The same statement, which does one thing with DCP on and another without.
                beside = self._telling(self._only(node, self.off, self.on))
                inside = self._only(node, self.on, self.off) if beside else []
                if inside:
                    beyond = self._beyond([node], self.on.takes)
                    yield self._between(inside, beside, [node], beyond)

    def _opens(self, edge: Edge) -> bool:
        function = self.frame.function
        return not self.off.takes(function, edge) and self.on.takes(function, edge)

    def _branch(
        self, source: Node, start: Node, way: Edge, instead: list[Node]
    ) -> Iterator[Branch]:
        others = [n for n, e in self._after[source] if e.test is way.test and e is not way]
        later = self._beyond([start], lambda *_: True)
        instead_here = [n for n in self._beyond(others, self.off.takes) if n not in later]
        beyond = self._beyond([start], self.on.takes)
        beside = self._made(instead_here)
        beside += [call for node in beyond for call in self._only(node, self.off, self.on)]
        # What DCP does here, another test may leave out without it.
        telling = self._telling(beside or self._made(instead))
        if telling:
            shared = self._beyond(others, lambda *_: True)
            own = [node for node in beyond if node not in shared]
            inside = [call for node in own for call in self._only(node, self.on, self.off)]
            if inside:
                yield self._between(inside, telling, own, beyond)

    def _made(self, nodes: Iterable[Node]) -> list[Call]:
        """The calls that nodes make without DCP."""
        return [c for node in nodes for c in self.off.seen(self.frame, node).calls]

    def _telling(self, calls: list[Call]) -> list[Call]:
        """The calls that pass something that is followed."""
        return [call for call in calls if call.given.keys() & self.on.words]

    def _between(
        self, inside: list[Call], beside: list[Call], own: list[Node], beyond: Iterable[Node]
    ) -> Branch:
        sure = [n for n in beyond if n not in own and self._is_passed(own[0], n)]
        after = [self.on.seen(self.frame, node) for node in sure]
        within = [self.on.seen(self.frame, node) for node in own]
        mentions = frozenset(name for seen in (*within, *after) for name in seen.mentions)
        along = tuple(call for seen in (*within, *after) for call in seen.calls)
        return Branch(tuple(inside), along, tuple(beside), mentions)

    def _only(self, node: Node, side: Side, other: Side) -> list[Call]:
        """The calls that `node` makes on one side alone."""
        runs = node in other.scenario.reachable(self.frame.function)
        theirs = other.made(self.frame, node) if runs else {}
        only = (key for key in side.made(self.frame, node) if key not in theirs)
        return [call for key in only for call in side.within(self.frame, node, key)]

    def _beyond(
        self,
        starts: Iterable[Node],
        takes: Callable[[Function, Edge], bool],
        without: Node | None = None,
    ) -> dict[Node, None]:
        """The nodes that control can come to from `starts`, these included, in order."""
        found = dict.fromkeys(starts)
        queue = list(found)
        while queue:
            for node, edge in self._after.get(queue.pop(), ()):
                if node not in found and node is not without:
                    if takes(self.frame.function, edge):
                        found[node] = None
                        queue.append(node)
        return found

    def _is_passed(self, start: Node, node: Node) -> bool:
        """Whether control passes `node` on every way from `start` out of the function."""
        around = self._beyond([start], self.on.takes, without=node)
        return self.frame.function.graph.end not in around
