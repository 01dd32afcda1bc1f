"""Which tensors do not lie packed in memory: views whose dimensions have been turned about."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from dcplint.facts.expressions import number
from dcplint.flow.functions import Function, callee_name
from dcplint.flow.graph import Node
from dcplint.units.flow import UnitFlow

_STEPS = 4  # variables in terms of variables
# What leaves the order of the storage as it is.
_KEEPING = frozenset({"bfloat16", "detach", "double", "float", "half", "to", "type", "type_as"})
_SWAPS = frozenset({"transpose", "swapaxes", "swapdims"})
_TURNS = _SWAPS | {"permute", "movedim", "moveaxis", "t"}
# What a turn of says nothing: a dimension of one element may be turned about freely.
_SINGLE = frozenset({"unsqueeze", "squeeze", "expand", "expand_as", "as_strided", "view_as"})
_SHAPING = frozenset({"view", "reshape", "unflatten", "empty", "zeros", "ones", "new_empty"})


@dataclass(frozen=True, slots=True)
class Turned:
    """Finds what turned a tensor about, where it still lies so."""

    units: UnitFlow

    def by(
        self, function: Function, at: Node, node: ast.expr, steps: int = _STEPS
    ) -> ast.expr | None:
        """The expression that turned `node` about on every way to it; None where none is known."""
        turn = _turn(node)
        if turn is not None:
            return node if self._may_be_turned(function, at, turn, steps) else None
        if isinstance(node, ast.Call) and callee_name(node) in _KEEPING:
            if isinstance(node.func, ast.Attribute):
                return self.by(function, at, node.func.value, steps)
        if isinstance(node, ast.Name) and steps and node.id not in function.parameters:
            found = [
                self.by(function, place, value, steps - 1)
                for place, value in self.units.given(function, at, node.id)
            ]
            return found[0] if found and None not in found else None
        return None

    def _may_be_turned(self, function: Function, at: Node, base: ast.expr, steps: int) -> bool:
        """Whether nothing speaks for it that a turn of `base` lies packed after all."""
        if isinstance(base, ast.Name):
            values = list(self.units.given(function, at, base.id)) if steps else []
            return all(self._may_be_turned(function, p, v, steps - 1) for p, v in values)
        if _turn(base) is not None:
            return False  # turned twice may be turned back
        if isinstance(base, ast.Subscript):
            return not any(_is_new_axis(part) for part in _parts(base.slice)) and (
                self._may_be_turned(function, at, base.value, steps)
            )
        if not isinstance(base, ast.Call):
            return True
        name = callee_name(base)
        if name in _SINGLE or (name in _SHAPING and any(map(_is_one, _sizes(base)))):
            return False
        if isinstance(base.func, ast.Attribute) and (name in _SHAPING or name in _KEEPING):
            return self._may_be_turned(function, at, base.func.value, steps)
        return True


def _turn(node: ast.expr) -> ast.expr | None:
    """What `node` turns about, where it certainly does: `x` of `x.transpose(0, 1)` or `x.T`."""
    if isinstance(node, ast.Attribute):
        return node.value if node.attr in ("T", "mT") else None
    if not isinstance(node, ast.Call) or node.keywords or callee_name(node) not in _TURNS:
        return None
    assert isinstance(node.func, (ast.Attribute, ast.Name))
    if isinstance(node.func, ast.Name):
        return None
    base, given = node.func.value, node.args
    if isinstance(base, ast.Name) and base.id == "torch" and given:
        base, given = given[0], given[1:]
    return base if _moves(callee_name(node) or "", given) else None


def _moves(name: str, given: list[ast.expr]) -> bool:
    if name == "t":
        return not given
    only = given[0] if len(given) == 1 else None
    listed = only.elts if isinstance(only, (ast.Tuple, ast.List)) else given
    places = [number(node) for node in listed]
    if None in places or len(places) < 2:
        return False
    if name == "permute":
        return places != sorted(places, key=lambda place: place or 0)
    return len(places) == 2 and places[0] != places[1]


def _sizes(call: ast.Call) -> Iterator[ast.expr]:
    for given in call.args:
        yield from given.elts if isinstance(given, (ast.Tuple, ast.List)) else [given]


def _parts(index: ast.expr) -> list[ast.expr]:
    return index.elts if isinstance(index, ast.Tuple) else [index]


def _is_new_axis(index: ast.expr) -> bool:
    """Whether an index adds a dimension of one element, or leaves one."""
    if isinstance(index, ast.Slice):
        return isinstance(index.upper, ast.Constant) and index.upper.value == 1
    return isinstance(index, ast.Constant) and index.value is None


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1
