"""In which base an LSE is: what its kernel gives, and what constants make of it."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dcplint.facts.expressions import dotted_name, shorten
from dcplint.flow.functions import Function
from dcplint.flow.kernels import Kernels
from dcplint.flow.lookup import Lookup
from dcplint.flow.mappings import keywords
from dcplint.flow.origins import KEEPING, Done, Origin
from dcplint.program.symbols import Literal
from dcplint.source.tree import walk

_LN_2 = math.log(2)
_FUNCTIONS = {
    "math.log": math.log,
    "math.log2": math.log2,
    "np.log": math.log,
    "np.log2": math.log2,
}


@dataclass(frozen=True, slots=True)
class Based:
    """An LSE whose base is known. kernel: what makes it, as called there.

    how: what is done to it on the way that changes the base, in words that follow its own.
    """

    origin: Origin
    node: ast.Call
    kernel: str
    natural: bool
    how: str = ""


@dataclass(frozen=True)
class Bases:
    """Tells the base of an LSE by its origins."""

    kernels: Kernels
    lookup: Lookup

    def of(self, origins: Iterable[Origin] | None) -> Iterator[Based]:
        """Those of the origins whose base is known."""
        for origin in origins or ():
            call = origin.node
            if not isinstance(call, ast.Call):
                continue
            kernel = self.kernels.kernel(origin.function, call.func)
            if kernel is None or kernel.lse is None or origin.element != (kernel.lse,):
                continue
            given = keywords(self.lookup, origin.function, call)
            if given is None or given & set(kernel.unless):
                continue
            natural: bool | None = kernel.base == "e"
            how = ""
            for operation in origin.done:
                if isinstance(operation, (ast.BinOp, ast.AugAssign)):
                    natural = self._converted(origin.function, operation, natural)
                    how = f" after `{shorten(_shown(operation))}`"
            if natural is not None and not is_changed(origin.function, call, kernel.lse):
                yield Based(origin, call, kernel.called, natural, how)

    def _converted(
        self, function: Function, operation: ast.BinOp | ast.AugAssign, natural: bool | None
    ) -> bool | None:
        """What a multiplication makes of a base; None where that is no logarithm any more."""
        factor = self._factor(function, operation)
        if factor is not None and natural is False and math.isclose(factor, _LN_2, rel_tol=1e-4):
            return True
        if factor is not None and natural and math.isclose(factor, 1 / _LN_2, rel_tol=1e-4):
            return False
        return None

    def _factor(self, function: Function, operation: ast.BinOp | ast.AugAssign) -> float | None:
        if isinstance(operation, ast.AugAssign):
            numbers = [self._number(function, operation.value)]
        else:
            sides = (operation.right, operation.left)
            numbers = [self._number(function, side) for side in sides]
        if isinstance(operation.op, ast.Mult):
            return next((number for number in numbers if number is not None), None)
        if isinstance(operation.op, ast.Div) and numbers[0]:
            return 1 / numbers[0]
        return None

    def _number(self, function: Function, node: ast.expr) -> float | None:
        if isinstance(node, ast.Constant):
            return float(node.value) if isinstance(node.value, (int, float)) else None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            above, below = self._number(function, node.left), self._number(function, node.right)
            return above / below if above is not None and below else None
        dotted = dotted_name(node.func if isinstance(node, ast.Call) else node) or ""
        if isinstance(node, ast.Call):
            inner = self._number(function, node.args[0]) if len(node.args) == 1 else None
            if dotted in _FUNCTIONS and inner is not None and inner > 0:
                return _FUNCTIONS[dotted](inner)
            return None
        if dotted == "math.e":
            return math.e
        found = function.named(self.kernels.program.linker, dotted)
        if isinstance(found, Literal) and isinstance(found.value, (int, float)):
            return float(found.value)
        return None


def is_changed(function: Function, call: ast.Call, element: int) -> bool:
    """Whether a method changes a variable that was given the LSE of `call`: `lse.mul_(…)`."""
    made = (n for n in function.homes if isinstance(n, ast.Assign) and n.value is call)
    targets = (_element(target, element) for node in made for target in node.targets)
    names = {inner.id for node in targets for inner in walk(node) if isinstance(inner, ast.Name)}
    return any(
        isinstance(inner.func, ast.Attribute)
        and inner.func.attr.endswith("_")
        and inner.func.attr not in KEEPING
        and dotted_name(inner.func.value) in names
        for calls in function.calls.values()
        for inner in calls
    )


def _element(target: ast.expr, element: int) -> ast.expr:
    """What of a target gets an element of what is assigned; all of it, where that is not clear."""
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
    clear = len(parts) > element and not any(
        isinstance(part, ast.Starred) for part in parts[: element + 1]
    )
    return parts[element] if clear else target


def is_scaled(done: Done) -> bool:
    """Whether arithmetic is done to a value on its way."""
    return any(isinstance(operation, (ast.BinOp, ast.AugAssign)) for operation in done)


def _shown(operation: ast.BinOp | ast.AugAssign) -> ast.expr:
    if isinstance(operation, ast.BinOp):
        return operation
    left = ast.Name(dotted_name(operation.target) or "lse")
    return ast.BinOp(left, operation.op, operation.value)
