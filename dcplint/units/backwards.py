"""The ways that lead to a place with DCP on, and what is assigned to variables on them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from dcplint.flow.conditions import substituted
from dcplint.flow.definitions import bindings
from dcplint.flow.functions import Function
from dcplint.flow.graph import Node
from dcplint.flow.scenario import Scenario
from dcplint.source.tree import walk
from dcplint.units.effort import Effort

_NAMES = 3  # variables in terms of variables, in a formula


@dataclass
class Backwards:
    """Goes back through the control flow of functions."""

    scenario: Scenario
    effort: Effort
    _before: dict[Node, tuple[Node, ...]] = field(default_factory=dict)

    def before(self, function: Function, node: Node) -> tuple[Node, ...]:
        """The nodes from which control can come to `node`."""
        if node not in self._before:
            truth = self.scenario.truth
            self._before[node] = tuple(
                edge.source
                for edge in node.before
                if edge.test is None or truth(function, edge.test) is not (not edge.holds)
            )
        return self._before[node]

    def given(self, function: Function, at: Node, name: str) -> Iterator[tuple[Node, ast.expr]]:
        """What can have been assigned to a variable before `at`."""
        seen: set[Node] = set()
        queue = list(self.before(function, at))
        while queue:
            place = queue.pop()
            if place in seen:
                continue
            if not self.effort.step():
                return
            seen.add(place)
            bound = [value for target, value in bindings(place) if target == name]
            yield from ((place, value) for value in bound if value is not None)
            if not bound:
                queue += self.before(function, place)

    def meaning(
        self, function: Function, at: Node, node: ast.expr, steps: int = _NAMES
    ) -> ast.expr:
        """An expression with what its variables hold put in, where that is one thing."""
        values: dict[str, ast.expr] = {}
        for inner in walk(node) if steps else ():
            if not isinstance(inner, ast.Name) or inner.id in values:
                continue
            given = list(self.given(function, at, inner.id))
            # What is merely fetched keeps its name, by which its part is known.
            if len(given) == 1 and isinstance(given[0][1], (ast.BinOp, ast.UnaryOp)):
                values[inner.id] = self.meaning(function, *given[0], steps - 1)
        return substituted(node, values) if values else node
