"""Tensors that a method gathers over the ranks itself, and the size that they had before."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from dcplint.flow.functions import Function, callee_name
from dcplint.flow.origins import Frame, Origin, Origins
from dcplint.flow.outputs import OutputFlow
from dcplint.program.symbols import ClassSymbol

_GATHER = "all_gather"
_SHAPING = frozenset({"view", "reshape"})
_SAME_SHAPE = frozenset({"clone", "contiguous", "detach", "double", "float", "half", "to", "type"})


@dataclass(frozen=True, slots=True)
class Gathered:
    """A gather over the DCP ranks. dim: the dimension that grows. size: what that measured before,
    as an expression of `frame`'s function at `before`; None where nothing says it."""

    call: ast.Call
    function: Function
    dim: int
    size: Origin | None


@dataclass(frozen=True)
class Gathers:
    """Tells what methods of one class gather."""

    flow: OutputFlow
    symbol: ClassSymbol

    @property
    def _origins(self) -> Origins:
        return self.flow.origins(self.symbol)

    def made_by(self, method: Function) -> Iterator[Gathered]:
        """The gathers whose result a method keeps in a variable, itself or by a helper's return,
        and of which it is known what they grow from."""
        for statement, calls in method.calls.items():
            if not isinstance(statement, ast.Assign):
                continue
            if any(self._may(method, call) for call in calls):
                for place in method.graph.at(statement):
                    found = self._origins.before(Frame(method), place, statement.value) or ()
                    for gathered in filter(None, map(self.of, found)):
                        if gathered.size is not None:
                            yield gathered

    def _may(self, function: Function, call: ast.Call) -> bool:
        if callee_name(call) == _GATHER:
            return True
        callee = self._origins.dispatch.callee(function, call)
        return callee is not None and any(
            callee_name(inner) == _GATHER for made in callee.calls.values() for inner in made
        )

    def of(self, origin: Origin) -> Gathered | None:
        """The gather that a value comes from as it is; None where it is none, or reshaped since."""
        call = origin.node
        if not isinstance(call, ast.Call) or callee_name(call) != _GATHER or origin.element:
            return None
        if not all(_keeps_shape(operation) for operation in origin.done):
            return None
        group = call.func.value if isinstance(call.func, ast.Attribute) else None
        if group is None or not self.flow.scenario.is_group(origin.function, group):
            return None
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        dim = given.get("dim") or (call.args[1] if len(call.args) > 1 else None)
        index = self._number(origin, dim) if dim is not None else None
        if index is None or index < 0 or not call.args:
            return None
        return Gathered(call, origin.function, index, self._size(origin, call.args[0], index))

    def _number(self, origin: Origin, node: ast.expr) -> int | None:
        found = self._origins.before(origin.frame, origin.place, node) or ()
        values = {o.node.value if isinstance(o.node, ast.Constant) else None for o in found}
        value = values.pop() if len(values) == 1 else None
        return value if isinstance(value, int) else None

    def _size(self, origin: Origin, operand: ast.expr, dim: int) -> Origin | None:
        """What the operand's dimension measured, where it was given a shape on its only way."""
        sources = self._origins.before(origin.frame, origin.place, operand) or ()
        return next(self._stated(sources[0], dim), None) if len(sources) == 1 else None

    def _stated(self, source: Origin, dim: int) -> Iterator[Origin]:
        for operation in source.done:  # the last that was done comes first
            if isinstance(operation, ast.Call) and callee_name(operation) in _SHAPING:
                sizes = operation.args
                if len(sizes) > dim and not any(isinstance(s, ast.Starred) for s in sizes):
                    yield from self._meanings(source, operation, sizes[dim])
                return
            if not _keeps_shape(operation):
                return

    def _meanings(self, source: Origin, operation: ast.Call, size: ast.expr) -> Iterator[Origin]:
        function = next(
            (f for f in _frames(source.frame) if _stands_in(f.function, operation)), None
        )
        if function is None:
            return
        for statement, nodes in function.function.own_nodes.items():
            if operation in nodes:
                for place in function.function.graph.at(statement):
                    found = self._origins.before(function, place, size) or ()
                    if len(found) == 1 and not found[0].done:
                        yield found[0]


def _keeps_shape(operation: ast.expr | ast.AugAssign) -> bool:
    return isinstance(operation, ast.Call) and callee_name(operation) in _SAME_SHAPE


def _frames(frame: Frame | None) -> Iterator[Frame]:
    while frame is not None:
        yield frame
        frame = frame.caller


def _stands_in(function: Function, node: ast.Call) -> bool:
    return any(node in nodes for nodes in function.own_nodes.values())
