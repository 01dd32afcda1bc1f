"""What makes a value, found backwards: through variables, tuples, helpers and their arguments.

Statements that cannot run with DCP on take no part, nor do branches that only code on its guard
against a None takes. What is done to the value on its way (`lse.transpose(0, 1)`,
`lse * math.log(2)`) is kept with its origin.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from dcplint.facts.expressions import dotted_name
from dcplint.flow.conditions import null_test
from dcplint.flow.definitions import definitions
from dcplint.flow.dispatch import Dispatch
from dcplint.flow.functions import Function, argument, callee_name, default
from dcplint.flow.graph import Edge, Node, Role
from dcplint.flow.scenario import Scenario

_DEPTH = 6
_WORK = 3_000
_JOINS = frozenset({"cat", "concat", "stack", "vstack", "hstack"})
# Methods of a tensor that give another view, copy or type of what it holds.
KEEPING = frozenset(
    {
        "T", "bfloat16", "clone", "contiguous", "detach", "double", "expand", "flatten", "float",
        "half", "index_select", "masked_fill", "masked_fill_", "mT", "movedim", "narrow",
        "permute", "reshape", "squeeze", "swapaxes", "swapdims", "t", "to", "transpose", "type",
        "type_as", "unflatten", "unsqueeze", "view",
    }
)  # fmt: skip

Element = tuple[int, ...]
Done = tuple["ast.expr | ast.AugAssign", ...]
Within = tuple[list[ast.expr], Element, bool]
"""Parts of an expression, which element of them, and whether the expression changes them."""


@dataclass(frozen=True, eq=False, slots=True)
class Frame:
    """A call that is being looked into. call, place, caller: where it is made; None at the top."""

    function: Function
    call: ast.Call | None = None
    place: Node | None = None
    caller: Frame | None = None

    @property
    def depth(self) -> int:
        """How many calls lead here."""
        return 0 if self.caller is None else self.caller.depth + 1


@dataclass(frozen=True, slots=True)
class Origin:
    """An expression that a value can be; which element of it; and what is done to it later.

    node is None where `statement` leaves the function without a value. place: the step of
    `frame`'s function that evaluates it. done: the operations, innermost first.
    """

    frame: Frame
    place: Node
    node: ast.expr | None
    element: Element = ()
    done: Done = ()

    @property
    def function(self) -> Function:
        """The function that it stands in."""
        return self.frame.function

    @property
    def is_none(self) -> bool:
        """Whether it is None."""
        return self.node is None or _is_none(self.node)


class TooMuch(Exception):
    """A value has more origins than are worth finding."""


@dataclass
class Origins:
    """Finds origins for methods of one class."""

    dispatch: Dispatch
    scenario: Scenario
    _work: int = 0
    _seen: set[object] = field(default_factory=set)
    _frames: dict[tuple[Frame, ast.Call], Frame] = field(default_factory=dict)

    def returned(self, function: Function, element: Element = ()) -> tuple[Origin, ...] | None:
        """What an element of the result of `function` can be; None where that is too much."""
        return self._asked(self._returned(Frame(function), element, ()))

    def before(
        self, frame: Frame, place: Node, node: ast.expr, element: Element = ()
    ) -> tuple[Origin, ...] | None:
        """What `node`, which `place` evaluates, can be; None where that is too much."""
        return self._asked(self._of(frame, place, node, element, ()))

    def _asked(self, found: Iterator[Origin]) -> tuple[Origin, ...] | None:
        self._work, self._seen = 0, set()
        try:
            return tuple(dict.fromkeys(found))
        except TooMuch:
            return None

    def _returned(self, frame: Frame, element: Element, done: Done) -> Iterator[Origin]:
        function = frame.function
        reachable = self.scenario.reachable(function)
        for edge in function.graph.end.before:
            if edge.source not in reachable or not self._takes(function, edge):
                continue
            statement = edge.source.statement
            value = statement.value if isinstance(statement, ast.Return) else None
            if value is None:
                if not self._is_doubtful(frame, statement):
                    yield Origin(frame, edge.source, None, element, done)
            elif not (_is_none(value) and self._is_doubtful(frame, statement)):
                yield from self._of(frame, edge.source, value, element, done)

    def _takes(self, function: Function, edge: Edge) -> bool:
        return edge.test is None or (
            self.scenario.truth(function, edge.test) is not (not edge.holds)
        )

    def _of(
        self, frame: Frame, place: Node, node: ast.expr, element: Element, done: Done
    ) -> Iterator[Origin]:
        self._work += 1
        if self._work > _WORK:
            raise TooMuch
        key = (frame, place, node, element, done)
        if key in self._seen:
            return
        self._seen.add(key)
        inner = self._within(node, element)
        if isinstance(node, ast.Name):
            yield from self._variable(frame, place, node, element, done)
        elif isinstance(node, ast.IfExp):
            for side in self._sides(frame, place, node):
                yield from self._of(frame, place, side, element, done)
        elif isinstance(node, ast.Call) and inner is None:
            yield from self._call(frame, place, node, element, done)
        elif inner is None:
            yield Origin(frame, place, node, element, done)
        else:
            parts, further, operation = inner
            for part in parts:
                after = (*done, node) if operation and node not in done else done
                yield from self._of(frame, place, part, further, after)

    def _within(
        self, node: ast.expr, element: Element
    ) -> tuple[list[ast.expr], Element, bool] | None:
        """The parts that make `node`, their element, and whether `node` does something to them."""
        if isinstance(node, ast.NamedExpr):
            return [node.value], element, False
        if isinstance(node, (ast.Tuple, ast.List)) and element:
            return _picked(node.elts, element)
        if isinstance(node, ast.Subscript):
            index = node.slice.value if isinstance(node.slice, ast.Constant) else None
            if isinstance(index, int) and index >= 0:
                return [node.value], (index, *element), False
            return None if element else ([node.value], (), True)
        if element:
            return None
        if isinstance(node, ast.BinOp):
            operands = [side for side in (node.left, node.right) if not _is_scalar(side)]
            return (operands, (), True) if operands else None
        if isinstance(node, ast.Attribute) and node.attr in KEEPING:
            return [node.value], (), True
        if isinstance(node, ast.Call):
            name = callee_name(node)
            if name in _JOINS and node.args:
                joined = node.args[0]
                parts = joined.elts if isinstance(joined, (ast.Tuple, ast.List)) else [joined]
                return parts, (), True
            if name == "where" and len(node.args) == 3:
                return node.args[1:], (), True
            if name == "cast" and len(node.args) == 2:
                return node.args[1:], (), False
            if name in KEEPING and isinstance(node.func, ast.Attribute):
                return [node.func.value], (), True
        return None

    def _sides(self, frame: Frame, place: Node, node: ast.IfExp) -> Iterator[ast.expr]:
        truth = self.scenario.truth(frame.function, node.test)
        for side, holds in ((node.body, True), (node.orelse, False)):
            if truth is not (not holds) and not (
                _is_none(side) and self._is_guard(frame, place, node.test, holds)
            ):
                yield side

    def _variable(
        self, frame: Frame, place: Node, name: ast.Name, element: Element, done: Done
    ) -> Iterator[Origin]:
        function = frame.function
        reachable = self.scenario.reachable(function)
        for value, at, inside in definitions(function, place, name.id):
            if at.role is Role.ENTRY:
                yield from self._parameter(frame, at, name, element, done)
            elif at not in reachable:
                continue
            elif isinstance(at.statement, ast.AugAssign):
                if at.statement not in done:
                    yield from self._of(frame, at, name, element, (*done, at.statement))
            elif value is None or not all(isinstance(index, int) for index in inside):
                yield Origin(frame, at, name, element, done)
            else:
                indices = tuple(index for index in inside if isinstance(index, int))
                yield from self._of(frame, at, value, (*indices, *element), done)

    def _parameter(
        self, frame: Frame, entry: Node, name: ast.Name, element: Element, done: Done
    ) -> Iterator[Origin]:
        """A parameter is what the call at hand passes for it."""
        given = None
        if frame.call is not None and name.id in frame.function.parameters:
            given = argument(frame.function, frame.call, name.id)
        if given is None or frame.caller is None or frame.place is None:
            yield Origin(frame, entry, name, element, done)
        elif given is default(frame.function, name.id):
            yield Origin(frame, entry, given, element, done)
        else:
            yield from self._of(frame.caller, frame.place, given, element, done)

    def _call(
        self, frame: Frame, place: Node, call: ast.Call, element: Element, done: Done
    ) -> Iterator[Origin]:
        callee = self.dispatch.callee(frame.function, call)
        if callee is None and isinstance(call.func, ast.Name):
            methods = list(self._held(frame, place, call.func))
            if methods and None not in methods:
                for method in filter(None, methods):
                    written = self.dispatch.written_out(call, method)
                    yield from self._call(frame, place, written, element, done)
                return
        opaque = (
            callee is None
            or frame.depth >= _DEPTH
            or callee.yields
            or self.scenario.lookup.is_changed_by_decorator(callee)
        )
        if opaque or callee is None:
            yield Origin(frame, place, call, element, done)
            return
        inside = self._frames.setdefault((frame, call), Frame(callee, call, place, frame))
        yield from self._returned(inside, element, done)

    def _held(self, frame: Frame, place: Node, node: ast.expr) -> Iterator[ast.Attribute | None]:
        """The methods that a variable can hold; None for anything else that it can be."""
        if isinstance(node, ast.IfExp):
            for side in self._sides(frame, place, node):
                yield from self._held(frame, place, side)
        elif isinstance(node, ast.Name):
            reachable = self.scenario.reachable(frame.function)
            for value, at, inside in definitions(frame.function, place, node.id):
                if value is None or inside or isinstance(value, ast.Name):
                    yield None
                elif at in reachable:
                    yield from self._held(frame, at, value)
        else:
            yield self.dispatch.held(frame.function, node)

    # That code is ready for a None does not say that there is one

    def _is_doubtful(self, frame: Frame, statement: object) -> bool:
        """Whether `statement` runs only where a test finds None what nobody sets to it."""
        node = statement if isinstance(statement, ast.stmt) else None
        homes = frame.function.homes
        while node in homes:
            home = homes[node]
            if isinstance(home.parent, ast.If):
                holds = home.block is home.parent.body
                for place in frame.function.graph.at(home.parent):
                    if self._is_guard(frame, place, home.parent.test, holds):
                        return True
            node = home.parent
        return False

    def _is_guard(self, frame: Frame, place: Node, test: ast.expr, holds: bool) -> bool:
        tested = null_test(test)
        if tested is None or tested[1] is not holds or len(tested[0]) != 1:
            return False
        name = ast.Name(str(tested[0][0]))
        seen, self._seen = self._seen, set()
        found = list(self._of(frame, place, name, (), ()))
        self._seen = seen
        return all(isinstance(origin.node, ast.Call) for origin in found)


def _picked(parts: list[ast.expr], element: Element) -> Within | None:
    index = element[0]
    if any(isinstance(part, ast.Starred) for part in parts) or index >= len(parts):
        return None
    return [parts[index]], element[1:], False


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_scalar(node: ast.expr) -> bool:
    """Whether `node` is a number: a literal, a sum or product of such, or one of `math`'s."""
    if isinstance(node, ast.UnaryOp):
        return _is_scalar(node.operand)
    if isinstance(node, ast.BinOp):
        return _is_scalar(node.left) and _is_scalar(node.right)
    if isinstance(node, ast.Call):
        return (dotted_name(node.func) or "").partition(".")[0] in ("math", "float", "int")
    if isinstance(node, ast.Attribute):
        return (dotted_name(node) or "").partition(".")[0] in ("math", "np", "numpy")
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and node.id.isupper())
