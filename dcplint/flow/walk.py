"""One walk backwards through a function: every place that can have given a path its value."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dcplint.facts.expressions import dotted_name, shorten
from dcplint.flow.conditions import Conditions, Path, speaks_of
from dcplint.flow.definitions import bindings
from dcplint.flow.functions import callee_name
from dcplint.flow.graph import Edge, Node, Role
from dcplint.flow.values import Outcome, Point, State, is_made, step, through, unpacked

if TYPE_CHECKING:
    from dcplint.flow.trace import Tracer

_STATES = 600  # beyond these a walk no longer tells paths apart by their tests
_ADDERS = {"append": 0, "appendleft": 0, "add": 0, "insert": 1, "setdefault": 1}
_EXTENDERS = frozenset({"extend", "update", "extendleft"})

_Key = tuple[Node, Path, Conditions]


@dataclass
class Walk:
    """Collects what a path can be just before control takes some edges.

    exact: tell ways apart by the tests on them; otherwise only what tests say of the path counts.
    """

    tracer: Tracer
    point: Point
    exact: bool = True
    found: list[Outcome] = field(default_factory=list)
    _seen: set[_Key] = field(default_factory=set)
    _queue: list[_Key] = field(default_factory=list)

    def result(self, edges: Iterable[Edge], path: Path) -> tuple[Outcome, ...]:
        """The outcomes of `path`, each once."""
        self._cross(edges, path, self.point.conditions)
        while self._queue:
            if not self.tracer.is_worth_it():
                self.found.append(Outcome(State.UNKNOWN))
                break
            self._node(*self._queue.pop())
        return tuple(dict.fromkeys(self.found))

    def _cross(self, edges: Iterable[Edge], path: Path, conditions: Conditions) -> None:
        function, scenario = self.point.function, self.tracer.scenario
        for edge in edges:
            known: Conditions | None = conditions
            if edge.test is not None:
                truth = scenario.truth(function, edge.test, conditions.known)
                if truth is not None and truth is not edge.holds:
                    continue
                telling: frozenset[str] | None = function.telling if self.exact else frozenset()
                if speaks_of(edge.test, path):
                    telling = None
                known = conditions.given(
                    edge.test, edge.holds, telling, lambda test: scenario.truth(function, test)
                )
                if known is None:
                    continue
            if edge.raised:
                self._cross(edge.source.before, path, known or Conditions())
            else:
                self._visit(edge.source, path, known or Conditions())

    def _visit(self, node: Node, path: Path, conditions: Conditions) -> None:
        if node not in self.tracer.scenario.reachable(self.point.function):
            return
        if len(self._seen) > _STATES:
            conditions = Conditions()
        key = (node, path, conditions)
        if key not in self._seen:
            self._seen.add(key)
            self._queue.append(key)

    def _take(self, outcomes: Iterable[Outcome], path: Path, conditions: Conditions) -> None:
        """Collect outcomes that agree with what the tests passed say of the value."""
        says = conditions.says(path)
        for outcome in outcomes:
            if says is True and outcome.state is State.NONE:
                continue
            if says is False and outcome.state is State.SET:
                continue
            if says is True and outcome.state is State.UNKNOWN:
                self.found.append(replace(outcome, state=State.SET))
            else:
                self.found.append(outcome)

    # Nodes

    def _node(self, node: Node, path: Path, conditions: Conditions) -> None:
        if node.role is Role.ENTRY:
            self._take(self.tracer.at_entry(self._point(node, conditions), path), path, conditions)
            return
        if node.role is Role.EXIT:
            self._after_loop(node, path, conditions)
            return
        if node.role is Role.HEADER:
            self._cross(node.before, path, conditions)
            return
        assert node.statement is not None
        before = self._conditions_before(node, conditions)
        if before is None:
            return
        taken, self.found = self.found, []
        if node.role is Role.BIND:
            assert isinstance(node.statement, (ast.For, ast.AsyncFor))
            targets = unpacked(node.statement.target, ("*",))
            ended = self._bound(node, targets, node.statement.iter, path, before, conditions)
        elif isinstance(node.statement, ast.stmt):
            ended = self._statement(node, node.statement, path, before, conditions)
        else:
            ended = any(name == path[0] for name, _ in bindings(node))
            if ended:
                self.found.append(Outcome(State.UNKNOWN))
        if self.found and not self._is_feasible(node, before):
            self.found, ended = [], True
        self.found = taken + self.found
        if not ended:
            self._cross(node.before, path, before)

    def _is_feasible(self, node: Node, conditions: Conditions) -> bool:
        """Whether control can come to `node` from the start so that the conditions hold."""
        key = (node, conditions)
        if not self.exact:
            return True
        if key not in self.tracer.feasible:
            self.tracer.feasible[key] = self._comes_to(node, conditions)
        return self.tracer.feasible[key]

    def _comes_to(self, node: Node, conditions: Conditions) -> bool:
        inner = Walk(self.tracer, self.point)
        inner._cross(node.before, (), conditions)
        while inner._queue:
            source, _, known = inner._queue.pop()
            before = inner._conditions_before(source, known)
            if before is not None and source.role is Role.ENTRY:
                return True
            if before is not None:
                inner._cross(source.before, (), before)
        return False

    def _after_loop(self, node: Node, path: Path, conditions: Conditions) -> None:
        """After `for x in xs`, an element of `xs` is what the body made of `x`."""
        loop = node.statement
        assert isinstance(loop, (ast.For, ast.AsyncFor))
        over = dotted_name(loop.iter)
        parts: Path = tuple(over.split(".")) if over else ()
        own = isinstance(loop.target, ast.Name) and bool(parts)
        if own and path[: len(parts)] == parts and path[len(parts) : len(parts) + 1] == ("*",):
            assert isinstance(loop.target, ast.Name)
            inner = (loop.target.id, *path[len(parts) + 1 :])
            if len(inner) > 1:
                self._cross(node.rounds, inner, Conditions())
                return
        self._cross(node.before, path, conditions)

    def _statement(
        self,
        node: Node,
        statement: ast.stmt,
        path: Path,
        before: Conditions,
        after: Conditions,
    ) -> bool:
        """Take in a statement; whether it gives `path` its value for certain."""
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
            one = [statement.target] if isinstance(statement, ast.AnnAssign) else statement.targets
            for target in one:
                pairs = unpacked(target, ())
                if self._bound(node, pairs, statement.value, path, before, after):
                    return True
        elif isinstance(statement, ast.AugAssign):
            if self._augmented(node, statement, path, before):
                return True
        elif isinstance(statement, (ast.With, ast.AsyncWith)):
            for item in statement.items:
                if item.optional_vars is not None:
                    pairs = unpacked(item.optional_vars, ())
                    if self._bound(
                        node, pairs, item.context_expr, path, before, after, managed=True
                    ):
                        return True
        elif isinstance(statement, ast.Delete):
            if any(self._rest(target, path) is not None for target in statement.targets):
                self.found.append(Outcome(State.UNKNOWN))
                return True
        elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if statement.name == path[0]:
                self.found.append(Outcome(State.UNKNOWN if len(path) > 1 else State.SET))
                return True
            return False
        function = self.point.function
        for call in function.calls.get(statement, ()):
            self._added(node, statement, call, path, before)
            if self._set_by_name(node, call, path, before, after):
                return True
        for inner in function.own_nodes[statement]:
            if (
                isinstance(inner, ast.NamedExpr)
                and (rest := self._rest(inner.target, path)) is not None
            ):
                point = self._point(node, before)
                self._take(self.tracer.evaluation.of(point, inner.value, rest), path, after)
                return True
        return len(path) > 1 and self._by_call(node, statement, path, before, after)

    def _bound(
        self,
        node: Node,
        targets: Iterable[tuple[ast.expr, Path]],
        value: ast.expr,
        path: Path,
        before: Conditions,
        after: Conditions,
        managed: bool = False,
    ) -> bool:
        """Whether one of `targets` is a prefix of `path`: then `value` gives it its value."""
        point = self._point(node, before)
        for target, element in targets:
            if isinstance(target, ast.Subscript):
                self._stored(point, target, element, value, path)
                continue
            certain, rest = self._assigned(node, target, path)
            if rest is None:
                continue
            if managed:
                self.found.append(Outcome(State.SET if not rest else State.UNKNOWN))
                return True
            outcomes = self.tracer.evaluation.of(point, value, (*element, *rest))
            if not rest and (len(path) > 1 or is_made(value)):
                written = step(point, node.statement, f"{shorten(target)} = {shorten(value)}")
                given = replace(written, name=str(path[-1]), made=is_made(value))
                outcomes = through(given, outcomes)
            self._take(outcomes, path, after)
            if certain:
                return True
        return False

    def _augmented(
        self, node: Node, statement: ast.AugAssign, path: Path, before: Conditions
    ) -> bool:
        rest = self._rest(statement.target, path)
        if rest is None:
            return False
        if rest[:1] == ("*",):
            self.found += self.tracer.evaluation.of(
                self._point(node, before), statement.value, rest
            )
            return False
        self.found.append(Outcome(State.SET if not rest else State.UNKNOWN))
        return True

    def _stored(
        self, point: Point, target: ast.Subscript, element: Path, value: ast.expr, path: Path
    ) -> None:
        """`container[key] = value`: an element may be that."""
        rest = self._rest(target.value, path)
        if rest and not isinstance(target.slice, ast.Slice) and (rest[0] == "*" or _is_index(rest)):
            index = target.slice.value if isinstance(target.slice, ast.Constant) else None
            if isinstance(rest[0], int) and isinstance(index, int) and index != rest[0]:
                return
            self.found += self.tracer.evaluation.of(point, value, (*element, *rest[1:]))

    def _added(
        self, node: Node, statement: ast.stmt, call: ast.Call, path: Path, before: Conditions
    ) -> None:
        """`list.append(value)` and its kin add an element."""
        name = callee_name(call)
        if not isinstance(call.func, ast.Attribute) or not isinstance(statement, ast.Expr):
            return
        index = _ADDERS.get(name, 0)
        if (name not in _ADDERS and name not in _EXTENDERS) or index >= len(call.args):
            return
        rest = self._rest(call.func.value, path)
        if rest and (rest[0] == "*" or _is_index(rest)):
            tail: Path = ("*", *rest[1:]) if name in _EXTENDERS else rest[1:]
            self.found += self.tracer.evaluation.of(
                self._point(node, before), call.args[index], tail
            )

    def _set_by_name(
        self, node: Node, call: ast.Call, path: Path, before: Conditions, after: Conditions
    ) -> bool:
        """`setattr(x, "name", value)` sets `x.name`; of a name that is computed, maybe."""
        if callee_name(call) != "setattr" or len(call.args) != 3:
            return False
        rest = self._rest(call.args[0], path)
        if not rest:
            return False
        name = call.args[1]
        if not isinstance(name, ast.Constant):
            self.found.append(Outcome(State.UNKNOWN))
            return False
        if name.value != rest[0]:
            return False
        outcomes = self.tracer.evaluation.of(self._point(node, before), call.args[2], rest[1:])
        self._take(outcomes, path, after)
        return True

    def _by_call(
        self,
        node: Node,
        statement: ast.stmt,
        path: Path,
        before: Conditions,
        after: Conditions,
    ) -> bool:
        outcomes = self.tracer.changed_by_calls(self._point(node, before), statement, path)
        if outcomes is None:
            return False
        self._take((o for o in outcomes if o.state is not State.ENTRY), path, after)
        return all(o.state is not State.ENTRY for o in outcomes)

    # Names

    def _point(self, node: Node, conditions: Conditions) -> Point:
        return replace(self.point, node=node, conditions=conditions if self.exact else Conditions())

    def _rest(self, target: ast.expr, path: Path) -> Path | None:
        """What is left of the path behind `target`, where `target` is a prefix of it."""
        dotted = dotted_name(target)
        if dotted is None:
            return None
        parts = tuple(dotted.split("."))
        return path[len(parts) :] if path[: len(parts)] == parts else None

    def _assigned(self, node: Node, target: ast.expr, path: Path) -> tuple[bool, Path | None]:
        """(for certain, what is left of the path), where assigning to `target` changes it.

        `n.x = …` changes `m.x` too where both names stand for one object.
        """
        rest = self._rest(target, path)
        if rest is not None or not isinstance(target, ast.Attribute):
            return True, rest
        owner = dotted_name(target.value)
        if owner is None:
            return True, None
        for index in range(1, len(path)):
            if path[index] == target.attr and path[:index] != tuple(owner.split(".")):
                is_same = self.tracer.identity.same(self.point.function, node, owner, path[:index])
                if is_same is not None:
                    return is_same, path[index + 1 :]
        return True, None

    def _conditions_before(self, node: Node, conditions: Conditions) -> Conditions | None:
        """What held before a node ran; None where that contradicts itself."""
        if not conditions.tests or node.role is Role.HEADER:
            return conditions
        found: Conditions | None = conditions
        for name, value in bindings(node):
            found = found.before_binding(name, value) if found is not None else None
        if found is not None and found.tests and isinstance(node.statement, ast.stmt):
            for attribute in self.tracer.attributes_set_by(self.point.function, node.statement):
                found = found.without(attribute)
        if found is None:
            return None
        for test, holds in [(test, holds) for _, test, holds in found.tests]:
            if conditions.value(test) is None:
                truth = self.tracer.scenario.truth(self.point.function, test)
                if truth is not None and truth is not holds:
                    return None
        return found


def _is_index(rest: Path) -> bool:
    return isinstance(rest[0], int)
