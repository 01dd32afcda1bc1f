"""What sums, products and quotients of lengths are."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from dcplint.facts.expressions import shorten
from dcplint.flow.graph import Node
from dcplint.flow.scenario import Scenario
from dcplint.source.tree import walk
from dcplint.units.backwards import Backwards
from dcplint.units.frames import Evaluate, Frame
from dcplint.units.lattice import (
    NEUTRAL,
    UNITS,
    Abstract,
    Counts,
    Mark,
    Neutral,
    Value,
    added,
)
from dcplint.units.operations import summands, unpadded
from dcplint.units.proof import is_cap


@dataclass(frozen=True)
class Arithmetic:
    """Computes with units."""

    scenario: Scenario
    backwards: Backwards
    evaluate: Evaluate

    def of(self, frame: Frame, at: Node, node: ast.BinOp) -> Abstract:
        """What an operation on two operands gives."""
        filled = unpadded(node)
        if filled is not node:
            return self.evaluate(frame, at, filled)
        left = self.evaluate(frame, at, node.left)
        right = self.evaluate(frame, at, node.right)
        if isinstance(left, Neutral) and isinstance(right, Neutral):
            return NEUTRAL
        mark = Mark(frame.function, node, shorten(node))
        if isinstance(node.op, (ast.Add, ast.Sub)):
            lengths = self._query_lengths(frame, at, node)
            if lengths is not None:
                return lengths
            unit = added(left, right, isinstance(node.op, ast.Sub))
            if unit is None:
                return None
            source = left if isinstance(left, Value) and left.unit.space is unit.space else right
            assert isinstance(source, Value)
            return replace(source, unit=unit).at(mark)
        if isinstance(node.op, ast.Mult):
            if is_cap(self.backwards.meaning(frame.function, at, node)):
                return Value(UNITS["local-upper-bound"], trail=(mark,))
            return None
        if isinstance(node.op, ast.FloorDiv):
            rounded = isinstance(node.left, (ast.BinOp, ast.UnaryOp))
            return self.divided(frame, at, node.left, node.right, rounded, mark)
        return None

    def _query_lengths(self, frame: Frame, at: Node, node: ast.BinOp) -> Abstract:
        """`start[1:] - start[:-1]` of the query offsets: how many tokens each request has new."""
        if not isinstance(node.op, ast.Sub):
            return None
        offsets = []
        for side in (node.left, node.right):
            if not isinstance(side, ast.Subscript) or not isinstance(side.slice, ast.Slice):
                return None
            found = self.evaluate(frame, at, side.value)
            if isinstance(found, Value) and found.unit.counts is Counts.OFFSETS:
                offsets.append(found)
        return replace(offsets[0], unit=UNITS["queries"]) if len(offsets) == 2 else None

    def divided(
        self,
        frame: Frame,
        at: Node,
        length: ast.expr,
        page: ast.expr,
        rounded: bool,
        mark: Mark,
    ) -> Abstract:
        """A length divided; by the DCP size it would be another thing. Rounded up: pages."""
        sizes = [n for n in walk(page) if isinstance(n, (ast.Name, ast.Attribute))]
        if any(self.scenario.is_size(frame.function, size) for size in sizes):
            return None
        for part in summands(length):
            found = self.evaluate(frame, at, part)
            if isinstance(found, Value) and found.unit.counts is not Counts.QUERIES:
                counts = Counts.PAGES if rounded else Counts.OTHER
                return replace(found, unit=replace(found.unit, counts=counts)).at(mark)
        return None
