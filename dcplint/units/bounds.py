"""What a number is at least, which decides some comparisons of it: no length is negative."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from dcplint.facts.expressions import number
from dcplint.flow.definitions import definitions
from dcplint.flow.functions import Function, callee_name
from dcplint.flow.graph import Node
from dcplint.program.guards import compare, mirrored
from dcplint.units.flow import UnitFlow
from dcplint.units.lattice import LENGTHS, Value
from dcplint.units.operations import KEEPING, MOVING, READING, operands

_STEPS = 4  # variables in terms of variables
_FAR = 1 << 40
_LARGEST = frozenset({"max", "maximum"})
_SMALLEST = frozenset({"min", "minimum"})
_CLAMPS = frozenset({"clamp", "clip", "clamp_min"})
_ELEMENTS = KEEPING | READING | MOVING | _LARGEST | _SMALLEST | {"amax", "amin", "sum"}


@dataclass(frozen=True)
class Bounds:
    """Finds lower bounds of what functions compute."""

    units: UnitFlow

    def is_decided(self, function: Function, at: Node, test: ast.expr) -> bool:
        """Whether a test comes out one way whatever the numbers are: `max(n, 1) > 0`."""
        if not isinstance(test, ast.Compare):
            return (self.least(function, at, test) or 0) > 0
        if len(test.ops) != 1:
            return False
        left, operator, right = test.left, test.ops[0], test.comparators[0]
        if number(right) is None:
            left, operator, right = right, mirrored(operator), left
        limit, least = number(right), self.least(function, at, left)
        if limit is None or least is None:
            return False
        outcomes = {compare(n, operator, limit) for n in (*range(least, limit + 2), _FAR)}
        return len(outcomes) == 1 and None not in outcomes

    def least(
        self, function: Function, at: Node, node: ast.expr, steps: int = _STEPS
    ) -> int | None:
        """A number that `node` is never below; None where none is known."""
        known = number(node)
        if known is not None:
            return known
        if isinstance(node, ast.Name) and steps:
            found = list(definitions(function, at, node.id))
            if any(value is not None for value, _, _ in found):
                each = [
                    self.least(function, place, value, steps - 1) if value and not inside else None
                    for value, place, inside in found
                ]
                return _smallest(each)
        if isinstance(node, ast.Call):
            return self._of_call(function, at, node, steps)
        if isinstance(node, ast.BinOp):
            return self._of_operation(function, at, node, steps)
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            value = self.units.before_node(function, at, node)
            return 0 if isinstance(value, Value) and value.unit.counts in LENGTHS else None
        return None

    def _of_call(self, function: Function, at: Node, call: ast.Call, steps: int) -> int | None:
        name, parts = callee_name(call), operands(call)
        if name in _CLAMPS:
            parts = parts[:2] + [k.value for k in call.keywords if k.arg == "min"]
        each = [self.least(function, at, part, steps) for part in parts]
        if len(parts) > 1 and name in _LARGEST | _CLAMPS:
            return max((one for one in each if one is not None), default=None)
        if len(parts) > 1 and name in _SMALLEST:
            return _smallest(each)
        if name not in _ELEMENTS or not each or each[0] is None:
            return None
        if name == "sum":
            return 0 if each[0] >= 0 else None
        return each[0]

    def _of_operation(
        self, function: Function, at: Node, node: ast.BinOp, steps: int
    ) -> int | None:
        left = self.least(function, at, node.left, steps)
        right = self.least(function, at, node.right, steps)
        if left is None or right is None:
            return None
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, (ast.Mult, ast.FloorDiv)) and left >= 0 and right >= 0:
            return left * right if isinstance(node.op, ast.Mult) else 0
        return None


def _smallest(each: list[int | None]) -> int | None:
    known = [one for one in each if one is not None]
    return min(known) if known and len(known) == len(each) else None
