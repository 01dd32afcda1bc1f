"""A function as it is run, and the question that what follows units asks of expressions in it."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from dcplint.flow.functions import Function
from dcplint.flow.graph import Node
from dcplint.units.lattice import Abstract


@dataclass(frozen=True)
class Frame:
    """A function as it is run: with the arguments of one call, or (None) of any.

    calls: how many calls into each other have led here.
    """

    function: Function
    arguments: tuple[tuple[str, Abstract], ...] | None = None
    calls: int = 0

    def entered(
        self, function: Function, arguments: tuple[tuple[str, Abstract], ...] | None = None
    ) -> Frame:
        """Another function, one call further away."""
        return Frame(function, arguments, self.calls + 1)


Evaluate = Callable[[Frame, Node, ast.expr], Abstract]
"""What an expression is, evaluated by a node of the function's control flow.

What gives an expression its unit may lie in other expressions: those are asked for by this.
"""
