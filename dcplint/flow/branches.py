"""What runs only with DCP on, and what runs in its place without it: calls, followed into helpers.

A method is looked at twice, with DCP on and off. Calls are named by what they run in the end
(an alias, a `partial`, a method chosen by an expression) and hold what they pass in the end: what
stands in a mapping, and what a helper was given for its parameter.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from dcplint.facts.expressions import dotted_name
from dcplint.flow.definitions import definitions
from dcplint.flow.dispatch import Dispatch, receiver_name
from dcplint.flow.functions import Function, argument, callee_name, default, expressions
from dcplint.flow.graph import Edge, Node, Role
from dcplint.flow.mappings import arguments
from dcplint.flow.origins import Frame
from dcplint.flow.scenario import Scenario
from dcplint.source.tree import children

_HELPERS = 3  # calls into calls
_STEPS = 6  # names in terms of names
_SHARED = 0.7  # of the arguments, by which two calls are of the same kernel under two names
_ENOUGH = 8
_PLAIN = (ast.Name, ast.Attribute, ast.Constant, ast.IfExp)


@dataclass(frozen=True, eq=False, slots=True)
class Call:
    """A call, by what it runs.

    runs, scope: the expression that names it, and the function that says so. name: its last
    name, wherever it is imported under another. given: what is passed by keyword, that of a
    mapping too; None for a value that is no one expression. is_open: it may pass more.
    is_function: it runs what its module imports or defines, not a method of some object. callee:
    that function or method, where the program has it.
    """

    frame: Frame
    node: ast.Call
    runs: ast.expr
    scope: Function
    name: str
    is_function: bool
    callee: Function | None
    given: Mapping[str, ast.expr | None]
    is_open: bool

    @property
    def function(self) -> Function:
        """The function that makes it."""
        return self.frame.function


def is_same_kernel(call: Call, sibling: Call) -> bool:
    """Whether two calls run one kernel: by name, or by most of their arguments."""
    mine, other = call.given.keys(), sibling.given.keys()
    if call.name == sibling.name and call.callee is sibling.callee:
        return bool(mine) or (call.is_function and sibling.is_function)
    shared = mine & other
    return len(shared) >= _ENOUGH and len(shared) >= _SHARED * len(mine)


def given_names(value: ast.expr | None) -> frozenset[str]:
    """The last names of what an argument may be: `x` of `a.x`; none where it is anything else."""
    if isinstance(value, ast.IfExp):
        sides = [side for side in (value.body, value.orelse) if not isinstance(side, ast.Constant)]
        found = [given_names(side) for side in sides]
        return frozenset().union(*found) if all(found) else frozenset()
    dotted = dotted_name(value) if value is not None else None
    return frozenset({dotted.rpartition(".")[2]}) if dotted else frozenset()


_Key = tuple[object, ...]
_Made = tuple[Call, "Frame | None"]


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
        frame = Frame(function)
        found = _Method(frame, _Side(self.dispatch, self.on, self.words),
                        _Side(self.dispatch, self.off, self.words))  # fmt: skip
        yield from found.branches()

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
    on: _Side
    off: _Side
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

    def _only(self, node: Node, side: _Side, other: _Side) -> list[Call]:
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


@dataclass(frozen=True, slots=True)
class _Seen:
    """What running one node does: the calls, those of helpers included, and the names in it."""

    calls: tuple[Call, ...]
    mentions: frozenset[str]


@dataclass
class _Side:
    """What runs with DCP on, or off."""

    dispatch: Dispatch
    scenario: Scenario
    words: frozenset[str]
    _seen: dict[tuple[Frame, Node], _Seen] = field(default_factory=dict)
    _made: dict[tuple[Frame, Node], dict[_Key, _Made]] = field(default_factory=dict)
    _names: dict[tuple[Frame, Node], frozenset[str]] = field(default_factory=dict)

    def takes(self, function: Function, edge: Edge) -> bool:
        """Whether control may take an edge."""
        if edge.test is None:
            return True
        return self.scenario.truth(function, edge.test) is not (not edge.holds)

    def seen(self, frame: Frame, place: Node) -> _Seen:
        """What running `place` does, in the helpers that it calls too."""
        key = (frame, place)
        if key not in self._seen:
            self._seen[key] = self._look(frame, place)
        return self._seen[key]

    def _look(self, frame: Frame, place: Node) -> _Seen:
        made = self.made(frame, place)
        calls = [call for key in made for call in self.within(frame, place, key)]
        mentions = set(self._names[(frame, place)])
        for _, inner in made.values():
            mentions.update(*(seen.mentions for seen in self._inside(inner)))
        return _Seen(tuple(calls), frozenset(mentions))

    def makes_calls(self, frame: Frame, place: Node) -> bool:
        """Whether a node makes any call itself."""
        statement = place.statement
        return isinstance(statement, ast.stmt) and statement in frame.function.calls

    def made(self, frame: Frame, place: Node) -> Mapping[_Key, _Made]:
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
                    call, inner = self._call(frame, place, node)
                    key = (node, call.name, call.callee, frozenset(call.given))
                    self._made[at][key] = (call, inner)
            self._names[at] = frozenset(names)
        return self._made[at]

    def within(self, frame: Frame, place: Node, key: _Key) -> Iterator[Call]:
        """One call of a node, and those that the helper makes that it runs."""
        call, inner = self.made(frame, place)[key]
        yield call
        for seen in self._inside(inner):
            yield from seen.calls

    def _inside(self, frame: Frame | None) -> Iterator[_Seen]:
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
                if k.arg in self.words and self._is_left_out(frame, place, k.value)
            ]
            parts = [p for p in (node.func, *node.args) if p not in dropped]
            parts += [k.value for k in node.keywords if k.value not in dropped]
        else:
            for child in children(node):
                yield from self._live(frame, place, child)
            return
        for part in parts:
            yield from self._live(frame, place, part)

    # One call

    def _call(self, frame: Frame, place: Node, call: ast.Call) -> _Made:
        """A call, and the helper that it runs, where that is followed."""
        runs, scope, full = self._resolved(frame, place, call)
        dotted = dotted_name(runs)
        absolute = self.dispatch.kernels.names(scope, dotted) if dotted else frozenset()
        last = {name.rpartition(".")[2] for name in absolute if "." in name}
        name = last.pop() if len(last) == 1 else callee_name(full) or callee_name(call)
        lookup = self.scenario.lookup
        given = arguments(lookup, frame.function, full, self.scenario.can_run)
        known = given if given is not None else _written(full)
        passed = {
            key: self._value(frame, place, value) if key in self.words and value else value
            for key, value in known.items()
            if key not in self.words or not self._is_left_out(frame, place, value)
        }
        callee = self._callee(scope, full, place)
        if isinstance(runs, ast.Name) and (hasattr(builtins, runs.id) or name == "partial"):
            passed = {}  # `dict(softcap=…)` makes what a kernel is given
        made = Call(
            frame, call, runs, scope, name, bool(absolute), callee, passed, is_open=given is None
        )
        if callee is None or callee.yields or frame.depth >= _HELPERS or _is_in(frame, callee):
            return made, None
        return made, Frame(callee, full, place, frame)

    def _callee(self, function: Function, call: ast.Call, place: Node) -> Function | None:
        """The one function that a call runs, where that is known."""
        if self.dispatch.is_of_it(function) or isinstance(call.func, ast.Name):
            found = self.dispatch.callee(function, call)
            if found is not None:
                return found
        statement = place.statement
        if not isinstance(statement, ast.stmt):
            return None
        return self.dispatch.method_of_another(function, call, statement)

    def _resolved(
        self, frame: Frame, place: Node, call: ast.Call
    ) -> tuple[ast.expr, Function, ast.Call]:
        """What a call runs in the end, the function that says so, and the call put that way."""
        function, at, full = frame.function, place, call
        for _ in range(_STEPS):
            runs = full.func
            if isinstance(runs, ast.IfExp):
                truth = self.scenario.truth(function, runs.test)
                if truth is None:
                    break
                full = ast.Call(runs.body if truth else runs.orelse, full.args, full.keywords)
            elif isinstance(runs, ast.Call) and callee_name(runs) == "partial" and runs.args:
                first, *more = runs.args
                keywords = [*runs.keywords, *full.keywords]
                full = ast.Call(first, [*more, *full.args], keywords)
            else:
                meant = self._meant(function, at, runs)
                if meant is None:
                    break
                value, function, at = meant
                full = ast.Call(value, full.args, full.keywords)
        return full.func, function, full

    def _meant(
        self, function: Function, place: Node, node: ast.expr
    ) -> tuple[ast.expr, Function, Node] | None:
        """The one thing that a variable, or an attribute of the instance, stands for."""
        if isinstance(node, ast.Name):
            given = self._given(function, place, node.id)
            if given is not None and given[0] is not None:
                return given[0], function, given[1]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            is_own = node.value.id == receiver_name(function) and self.dispatch.is_of_it(function)
            if is_own and self.dispatch.method(node.attr) is None:
                found = [m for m in self.scenario.meanings(function, node) if self._is_set(*m)]
                if len(found) == 1:
                    where, value = found[0]
                    return value, where, where.graph.end
        return None

    def _is_set(self, function: Function, value: ast.expr) -> bool:
        """Whether the statement runs that sets something to `value`."""
        at = next((s for s in function.homes if getattr(s, "value", None) is value), None)
        return at is None or self.scenario.can_run(function, at)

    def _given(
        self, function: Function, place: Node, name: str
    ) -> tuple[ast.expr | None, Node] | None:
        """The one thing that a variable is given, and where; no expression for a parameter."""
        reachable = self.scenario.reachable(function)
        found = [d for d in definitions(function, place, name) if d[1] in reachable]
        if len(found) != 1 or found[0][2]:
            return None
        value, at, _ = found[0]
        return (value, at) if value is not None or at.role is Role.ENTRY else None

    # One argument

    def _is_left_out(self, frame: Frame, place: Node, node: ast.expr | None) -> bool:
        """Whether an argument that is written comes to nothing on this side."""
        if node is None or _is_none(node):
            return False  # what says None means it
        return _is_none(self._value(frame, place, node))

    def _value(self, frame: Frame, place: Node, node: ast.expr) -> ast.expr:
        """What an argument is in the end."""
        here: Frame = frame
        for _ in range(_STEPS):
            further: ast.expr | None = None
            if isinstance(node, ast.IfExp):
                truth = self.scenario.truth(here.function, node.test)
                if truth is not None:
                    further = node.body if truth else node.orelse
            elif isinstance(node, ast.Name):
                given = self._given(here.function, place, node.id)
                if given is None:
                    return node
                further, at = given
                if further is not None:
                    place = at
                elif (outer := _outer(here)) is not None:
                    call, caller, at = outer
                    further = argument(here.function, call, node.id)
                    if further is None or further is default(here.function, node.id):
                        return further or node
                    here, place = caller, at
            if further is None or not isinstance(further, _PLAIN):
                return node
            node = further
        return node


def _is_in(frame: Frame | None, function: Function) -> bool:
    """Whether a frame, or one around it, is about `function`."""
    while frame is not None and frame.function is not function:
        frame = frame.caller
    return frame is not None


def _outer(frame: Frame) -> tuple[ast.Call, Frame, Node] | None:
    """The call that a frame is about, and where it is made."""
    if frame.call is None or frame.caller is None or frame.place is None:
        return None
    return frame.call, frame.caller, frame.place


def _written(call: ast.Call) -> dict[str, ast.expr | None]:
    return {k.arg: k.value for k in call.keywords if k.arg is not None}


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
