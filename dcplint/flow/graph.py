"""The control flow of one function: which statements can run just before which.

Loops, `try` with its handlers, `finally` (one copy per way of leaving), `with suppress(…)`,
`match`, and ways out of the function are followed. Edges carry the test that must have come out
one way for control to take them.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from dcplint.source.tree import is_try, own_nodes

_RAISING = frozenset({ast.Call, ast.Await, ast.Subscript})
_BROAD = frozenset({"Exception", "BaseException"})


class Role(enum.Enum):
    """What running a node does."""

    PLAIN = enum.auto()  # the statement's own expressions are evaluated and its targets bound
    HEADER = enum.auto()  # a loop decides whether to go on: nothing is bound
    BIND = enum.auto()  # a loop binds its target to the next element
    EXIT = enum.auto()  # a loop is over
    ENTRY = enum.auto()
    END = enum.auto()


@dataclass(frozen=True, slots=True)
class Edge:
    """Control comes from `source`, where `test` (if any) came out as `holds`.

    raised: the source raised an exception, so what it was to bind is not bound.
    """

    source: Node
    test: ast.expr | None = None
    holds: bool = True
    raised: bool = False


@dataclass(eq=False, slots=True)
class Node:
    """One step of control.

    rounds: for the exit of a loop, where a round of it ends. walruses: the assignments inside the
    statement's own expressions. bindings: see `definitions.bindings`.
    """

    statement: ast.stmt | ast.ExceptHandler | ast.match_case | None
    role: Role = Role.PLAIN
    before: list[Edge] = field(default_factory=list)
    rounds: list[Edge] = field(default_factory=list)
    walruses: tuple[ast.NamedExpr, ...] = ()
    bindings: tuple[tuple[str, ast.expr | None], ...] | None = None


@dataclass(slots=True)
class _Frame:
    """A statement around the one at hand that catches ways out of it."""

    kind: str  # "loop", "try" or "finally"
    broad: bool = False
    breaks: list[Edge] = field(default_factory=list)
    continues: list[Edge] = field(default_factory=list)
    raised: list[Edge] = field(default_factory=list)
    left: dict[str, list[Edge]] = field(default_factory=dict)


class Graph:
    """The control flow of a function's body.

    own: the nodes of each statement's own expressions.
    """

    def __init__(self, body: list[ast.stmt], own: Mapping[ast.stmt, Sequence[ast.AST]]) -> None:
        self._own = own
        self.entry = Node(None, Role.ENTRY)
        self.end = Node(None, Role.END)
        self.nodes: list[Node] = [self.entry]
        self._of: dict[ast.AST, list[Node]] = {}
        self._frames: list[_Frame] = []
        self.end.before += self._block(body, [Edge(self.entry)])
        self.nodes.append(self.end)

    def at(self, statement: ast.AST) -> list[Node]:
        """The nodes that evaluate a statement; several for one in a `finally` block."""
        return self._of.get(statement, [])

    def reachable(self, takes: Callable[[Edge], bool]) -> set[Node]:
        """The nodes that control can reach over edges that `takes` accepts."""
        after: dict[Node, list[tuple[Node, Edge]]] = {}
        for node in self.nodes:
            for edge in node.before:
                after.setdefault(edge.source, []).append((node, edge))
        found, queue = {self.entry}, [self.entry]
        while queue:
            for node, edge in after.get(queue.pop(), ()):
                if node not in found and takes(edge):
                    found.add(node)
                    queue.append(node)
        return found

    # Building

    def _node(
        self,
        statement: ast.stmt | ast.ExceptHandler | ast.match_case,
        before: Iterable[Edge],
        role: Role = Role.PLAIN,
    ) -> Node:
        node = Node(statement, role, list(before))
        self.nodes.append(node)
        if role is Role.PLAIN:
            self._of.setdefault(statement, []).append(node)
        inner = self._own[statement] if isinstance(statement, ast.stmt) else own_nodes(statement)
        node.walruses = tuple([n for n in inner if isinstance(n, ast.NamedExpr)])
        return node

    def _can_raise(self, node: ast.stmt) -> bool:
        if isinstance(node, (ast.Import, ast.ImportFrom, ast.Assert)):
            return True
        return not _RAISING.isdisjoint([inner.__class__ for inner in self._own[node]])

    def _block(self, body: list[ast.stmt], ways: list[Edge]) -> list[Edge]:
        for statement in body:
            ways = self._statement(statement, ways)
        return ways

    def _statement(self, node: ast.stmt, ways: list[Edge]) -> list[Edge]:
        if is_try(node):
            return self._try(node, ways)
        here = self._node(node, ways)
        if isinstance(node, ast.Raise):
            self._leave("raise", Edge(here))
            return []
        if self._can_raise(node):
            self._leave("raise", Edge(here, raised=True))
        if isinstance(node, ast.If):
            taken = self._block(node.body, [Edge(here, node.test, True)])
            return taken + self._block(node.orelse, [Edge(here, node.test, False)])
        if isinstance(node, (ast.For, ast.AsyncFor)):
            return self._for(node, here)
        if isinstance(node, ast.While):
            return self._while(node, here)
        if isinstance(node, (ast.With, ast.AsyncWith)):
            return self._with(node, here)
        if isinstance(node, ast.Match):
            return self._match(node, here)
        if isinstance(node, ast.Assert):
            return [Edge(here, node.test, True)]
        if isinstance(node, ast.Return):
            self._leave("return", Edge(here))
            return []
        if isinstance(node, ast.Break):
            self._leave("break", Edge(here))
            return []
        if isinstance(node, ast.Continue):
            self._leave("continue", Edge(here))
            return []
        return [Edge(here)]

    def _leave(self, how: str, edge: Edge) -> None:
        """Control leaves what stands around it; the frames say where it goes."""
        for frame in reversed(self._frames):
            if frame.kind == "finally":
                frame.left.setdefault(how, []).append(edge)
                return
            if frame.kind == "loop" and how == "break":
                frame.breaks.append(edge)
                return
            if frame.kind == "loop" and how == "continue":
                frame.continues.append(edge)
                return
            if frame.kind == "try" and how == "raise":
                frame.raised.append(edge)
                if frame.broad:
                    return
        if how == "return":
            self.end.before.append(edge)

    def _inside(self, frame: _Frame, body: list[ast.stmt], ways: list[Edge]) -> list[Edge]:
        self._frames.append(frame)
        ends = self._block(body, ways)
        self._frames.pop()
        return ends

    def _for(self, node: ast.For | ast.AsyncFor, here: Node) -> list[Edge]:
        header = self._node(node, [Edge(here)], Role.HEADER)
        again = header
        if _has_elements(node.iter):
            again = self._node(node, (), Role.HEADER)
        starts = [Edge(header)] if again is header else [Edge(header), Edge(again)]
        bind = self._node(node, starts, Role.BIND)
        frame = _Frame("loop")
        ends = self._inside(frame, node.body, [Edge(bind)]) + frame.continues
        again.before += ends
        over = self._node(node, [Edge(again)], Role.EXIT)
        over.rounds = ends
        return self._block(node.orelse, [Edge(over)]) + frame.breaks

    def _while(self, node: ast.While, here: Node) -> list[Edge]:
        frame = _Frame("loop")
        ends = self._inside(frame, node.body, [Edge(here, node.test, True)])
        here.before += ends + frame.continues
        return self._block(node.orelse, [Edge(here, node.test, False)]) + frame.breaks

    def _with(self, node: ast.With | ast.AsyncWith, here: Node) -> list[Edge]:
        if not any(_suppresses(item.context_expr) for item in node.items):
            return self._block(node.body, [Edge(here)])
        frame = _Frame("try")
        return self._inside(frame, node.body, [Edge(here)]) + frame.raised

    def _match(self, node: ast.Match, here: Node) -> list[Edge]:
        ends: list[Edge] = []
        way = Edge(here)
        for case in node.cases:
            test = _comparison(node.subject, case.pattern) if case.guard is None else None
            if test is not None:
                inside, way = Edge(here, test, True), Edge(here, test, False)
            else:
                inside = way
            start = self._node(case, [inside])
            into = Edge(start, case.guard, True) if case.guard is not None else Edge(start)
            ends += self._block(case.body, [into])
            if case.guard is None and always_matches(case.pattern):
                return ends
        return [*ends, way]

    def _try(self, node: ast.Try, ways: list[Edge]) -> list[Edge]:
        final = _Frame("finally")
        if node.finalbody:
            self._frames.append(final)
        frame = _Frame("try", broad=any(map(_catches_all, node.handlers)))
        ends = (
            self._inside(frame, node.body, ways) if node.handlers else self._block(node.body, ways)
        )
        ends = self._block(node.orelse, ends)
        for handler in node.handlers:
            caught = self._node(handler, frame.raised)
            ends += self._block(handler.body, [Edge(caught)])
        if not node.finalbody:
            return ends
        self._frames.pop()
        for how, edges in final.left.items():
            for edge in self._block(node.finalbody, edges):
                self._leave(how, edge)
        return self._block(node.finalbody, ends)


def _has_elements(iterable: ast.expr) -> bool:
    """Whether a loop over `iterable` is sure to have a round."""
    if isinstance(iterable, (ast.Tuple, ast.List)):
        return any(not isinstance(element, ast.Starred) for element in iterable.elts)
    if isinstance(iterable, ast.Call) and isinstance(iterable.func, ast.Name):
        last = iterable.args[0] if len(iterable.args) == 1 else None
        if iterable.func.id == "range" and isinstance(last, ast.Constant):
            return isinstance(last.value, int) and last.value > 0
    return False


def _suppresses(context: ast.expr) -> bool:
    callee = context.func if isinstance(context, ast.Call) else None
    return getattr(callee, "id", getattr(callee, "attr", "")) == "suppress"


def _catches_all(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or getattr(handler.type, "id", "") in _BROAD


def _comparison(subject: ast.expr, pattern: ast.pattern) -> ast.Compare | None:
    """What a pattern that is one value asks, as a comparison."""
    if isinstance(pattern, ast.MatchValue):
        return ast.copy_location(ast.Compare(subject, [ast.Eq()], [pattern.value]), pattern)
    if isinstance(pattern, ast.MatchSingleton):
        value = ast.Constant(pattern.value)
        return ast.copy_location(ast.Compare(subject, [ast.Is()], [value]), pattern)
    return None


def always_matches(pattern: ast.pattern) -> bool:
    """Whether a pattern takes whatever there is."""
    if isinstance(pattern, ast.MatchOr):
        return any(map(always_matches, pattern.patterns))
    return isinstance(pattern, ast.MatchAs) and (
        pattern.pattern is None or always_matches(pattern.pattern)
    )
