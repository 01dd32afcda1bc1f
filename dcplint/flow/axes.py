"""What the dimensions of an LSE stand for: what its kernel gives, and what turns them about."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from dcplint.contracts.model import Kernel
from dcplint.facts.expressions import number, shorten
from dcplint.flow.bases import is_changed
from dcplint.flow.functions import Function, callee_name
from dcplint.flow.kernels import Kernels
from dcplint.flow.lookup import Lookup
from dcplint.flow.mappings import arguments
from dcplint.flow.origins import Origin

Order = tuple[str, ...]

_ELEMENTWISE = (ast.Add, ast.Sub, ast.Mult, ast.Div)
# What leaves each dimension where it is.
_KEEPING = frozenset(
    {
        "bfloat16", "clone", "contiguous", "detach", "double", "float", "half", "index_select",
        "masked_fill", "masked_fill_", "narrow", "to", "type", "type_as", "where",
    }
)  # fmt: skip
_SWAPS = frozenset({"transpose", "swapaxes", "swapdims"})


@dataclass(frozen=True, slots=True)
class Axed:
    """An LSE whose dimensions are known. kernel: what makes it, as called there."""

    function: Function
    node: ast.Call
    kernel: str
    axes: Order
    how: str = ""


@dataclass(frozen=True)
class Axes:
    """Tells the dimensions of an LSE by its origins."""

    kernels: Kernels
    lookup: Lookup

    def of(self, origins: Iterable[Origin] | None) -> Iterator[Axed]:
        """The LSEs among the origins whose dimensions are known, and alike on every way."""
        ways: dict[object, list[Axed | None]] = {}
        for origin in origins or ():
            ways.setdefault((origin.node, origin.element), []).append(self._axed(origin))
        for found in ways.values():
            if found[0] is not None and {way and way.axes for way in found} == {found[0].axes}:
                yield found[0]

    def _axed(self, origin: Origin) -> Axed | None:
        call = origin.node
        if not isinstance(call, ast.Call):
            return None
        kernel = self.kernels.kernel(origin.function, call.func)
        if kernel is None or kernel.lse is None or origin.element != (kernel.lse,):
            return None
        axes = self._given(kernel, origin.function, call)
        how = ""
        for operation in origin.done:
            turned = _after(operation, axes) if axes else None
            if turned != axes:
                how = f" after `{shorten(operation)}`" if isinstance(operation, ast.expr) else ""
            axes = turned
        if axes is None or is_changed(origin.function, call, kernel.lse):
            return None
        return Axed(origin.function, call, kernel.name.rpartition(".")[2], axes, how)

    def _given(self, kernel: Kernel, function: Function, call: ast.Call) -> Order | None:
        """What the kernel gives with the arguments of that call; None where that is not known."""
        if not kernel.axes:
            return None
        given = arguments(self.lookup, function, call) if kernel.turned else {}
        if given is None:
            return None
        holds = [_holds(given, condition) for condition in kernel.turned]
        if False in holds or not holds:
            return kernel.axes
        return None if None in holds else kernel.axes[::-1]


def _holds(given: Mapping[str, ast.expr | None], condition: str) -> bool | None:
    """Whether a call has an argument, or `name=value`; None where that is not known."""
    name, _, value = condition.partition("=")
    if not value and name not in given:
        return False
    node = given.get(name)
    if not isinstance(node, ast.Constant):
        return None if value or node is None else True
    return str(node.value) == value if value else node.value is not None


def _after(operation: ast.AST, axes: Order) -> Order | None:
    """The dimensions after something is done to them; None where that is not known."""
    if isinstance(operation, (ast.BinOp, ast.AugAssign)):
        return axes if isinstance(operation.op, _ELEMENTWISE) else None
    if isinstance(operation, ast.Subscript):
        index = operation.slice
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        return axes if all(isinstance(part, ast.Slice) for part in parts) else None
    if isinstance(operation, ast.Attribute):
        return _reversed(operation.attr, axes)
    if isinstance(operation, ast.Call):
        name = callee_name(operation)
        if name in _KEEPING:
            return axes
        if name == "t":
            return _reversed("T", axes)
        moves = _numbers(operation)
        if moves is not None and all(-len(axes) <= move < len(axes) for move in moves):
            return _moved(str(name), axes, [move % len(axes) for move in moves])
    return None


def _reversed(name: str, axes: Order) -> Order | None:
    if len(axes) == 2 and name in ("T", "mT"):
        return axes[::-1]
    return None


def _moved(name: str, axes: Order, places: list[int]) -> Order | None:
    if name == "permute" and sorted(places) == list(range(len(axes))):
        return tuple(axes[place] for place in places)
    if len(places) != 2:
        return None
    one, other = places
    if name in _SWAPS:
        turned = {one: axes[other], other: axes[one]}
        return tuple(turned.get(place, axis) for place, axis in enumerate(axes))
    if name == "movedim":
        rest = [axis for place, axis in enumerate(axes) if place != one]
        return (*rest[:other], axes[one], *rest[other:])
    return None


def _numbers(call: ast.Call) -> list[int] | None:
    """The arguments of a call, one sequence or each by itself, where all are whole numbers."""
    if call.keywords:
        return None
    only = call.args[0] if len(call.args) == 1 else None
    given = only.elts if isinstance(only, (ast.Tuple, ast.List)) else call.args
    found = [number(node) for node in given]
    return None if None in found else [move for move in found if move is not None]
