"""What a call runs and passes in the end, with DCP on or off.

Calls are named by what they run (an alias, a `partial`, a method chosen by an expression) and hold
what they pass: what stands in a mapping, and what a helper was given for its parameter.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping
from dataclasses import dataclass

from dcplint.facts.expressions import dotted_name
from dcplint.flow.definitions import definitions
from dcplint.flow.dispatch import Dispatch, receiver_name
from dcplint.flow.functions import Function, argument, callee_name, default
from dcplint.flow.graph import Node, Role
from dcplint.flow.mappings import arguments
from dcplint.flow.origins import Frame
from dcplint.flow.scenario import Scenario

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


@dataclass(frozen=True, slots=True)
class Calls:
    """Resolves calls for methods of one class. words: the arguments that are followed."""

    dispatch: Dispatch
    scenario: Scenario
    words: frozenset[str]

    def of(self, frame: Frame, place: Node, call: ast.Call) -> tuple[Call, Frame | None]:
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
            if key not in self.words or not self.is_left_out(frame, place, value)
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

    def is_left_out(self, frame: Frame, place: Node, node: ast.expr | None) -> bool:
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
