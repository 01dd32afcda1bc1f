"""Which unit a value has at a place, followed backwards to what the pack knows.

A variable is what its assignments that can be in force gave it, with DCP on; an attribute of a
record is what the pack says, or what every construction gives it; a parameter is what every caller
passes; a call is what the function returns. Slices, moves between devices and elementwise
operations keep a unit; a localizer of the pack makes a global length a local one. Where two ways
disagree, and where work runs out, nothing is known.

Each of these is a module of its own (`paths`, `attributes`, `parameters`, `calls`, `arithmetic`),
which is handed the means to ask on for other expressions. Here is what they hang together by.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from dcplint.facts.expressions import dotted_name, shorten
from dcplint.flow.functions import Function
from dcplint.flow.graph import Node
from dcplint.flow.scenario import Scenario
from dcplint.flow.universe import Universe
from dcplint.units.arithmetic import Arithmetic
from dcplint.units.attributes import Attributes
from dcplint.units.backwards import Backwards
from dcplint.units.calls import Calls
from dcplint.units.effort import Effort
from dcplint.units.frames import Frame
from dcplint.units.lattice import NEUTRAL, Abstract, Mark, Several, Space, Value, item, joined
from dcplint.units.localizers import Localizers
from dcplint.units.parameters import Parameters
from dcplint.units.paths import Paths
from dcplint.units.ranks import Ranks
from dcplint.units.restated import Restated


@dataclass
class UnitFlow:
    """Evaluates expressions to units when DCP is on."""

    universe: Universe
    scenario: Scenario
    _memo: dict[object, Abstract] = field(default_factory=dict)
    _active: set[object] = field(default_factory=set)
    _effort: Effort = field(default_factory=Effort)

    def __post_init__(self) -> None:
        universe, scenario, ask = self.universe, self.scenario, self._evaluate
        self.localizers = Localizers(universe)
        self._backwards = back = Backwards(scenario, self._effort)
        restated = Restated(self.localizers)
        self._arithmetic = Arithmetic(scenario, back, ask)
        self._calls = Calls(universe, scenario, self.localizers, restated, self._arithmetic, ask)
        self._attributes = Attributes(universe, scenario.lookup, ask)
        parameters = Parameters(universe, scenario, ask)
        self._paths = Paths(
            scenario, self._effort, back, restated, parameters, self._attributes, ask
        )

    @cached_property
    def ranks(self) -> Ranks:
        """Which expressions are the rank or the size here."""
        return Ranks(self.scenario)

    # Questions

    def value(self, function: Function, statement: ast.stmt, node: ast.expr) -> Abstract:
        """What `node`, an expression of `statement`, is with DCP on."""
        places = function.graph.at(statement)
        return self._asked(function, ((place, node) for place in places))

    def before_node(self, function: Function, node: Node, expression: ast.expr) -> Abstract:
        """What an expression is, evaluated by a node of the function's control flow."""
        return self._asked(function, [(node, expression)])

    def _asked(self, function: Function, asked: Iterable[tuple[Node, ast.expr]]) -> Abstract:
        with self._effort.on(function):
            return joined(self._evaluate(Frame(function), place, node) for place, node in asked)

    def returned(self, function: Function, parameter: str, value: Value) -> Abstract:
        """What `function` returns where `parameter` is `value`, and nothing else is known."""
        arguments = ((name, value if name == parameter else None) for name in function.parameters)
        with self._effort.on(function):
            return self._calls.result(Frame(function, tuple(arguments)))

    def before(self, function: Function, node: Node) -> tuple[Node, ...]:
        """The nodes from which control can come to `node` with DCP on."""
        return self._backwards.before(function, node)

    def given(self, function: Function, at: Node, name: str) -> Iterator[tuple[Node, ast.expr]]:
        """What can have been assigned to a variable before `at`, with DCP on."""
        return self._backwards.given(function, at, name)

    def meaning(self, function: Function, at: Node, node: ast.expr) -> ast.expr:
        """An expression with what its variables hold put in, where that is one thing."""
        return self._backwards.meaning(function, at, node)

    # Expressions

    def _evaluate(self, frame: Frame, at: Node, node: ast.expr) -> Abstract:
        effort = self._effort
        effort.work += 1
        key = (frame, at, node)
        if key in self._memo:
            return self._memo[key]
        if key in self._active:
            effort.cuts += 1
            return NEUTRAL  # what a loop brings round adds nothing to where it started
        if not effort.expression(len(self._active)):
            return None
        cuts = effort.cuts
        self._active.add(key)
        try:
            found = self._of(frame, at, node)
        finally:
            self._active.discard(key)
        if cuts == effort.cuts or not self._active:
            self._memo[key] = found
        return found

    def _of(self, frame: Frame, at: Node, node: ast.expr) -> Abstract:
        if isinstance(node, ast.Constant):
            return NEUTRAL
        if isinstance(node, ast.Name):
            return self._paths.before(frame, at, node.id)
        if isinstance(node, ast.Attribute):
            return self._attribute(frame, at, node)
        if isinstance(node, ast.Subscript):
            return self._subscript(frame, at, node)
        if isinstance(node, ast.BinOp):
            return self._arithmetic.of(frame, at, node)
        if isinstance(node, ast.UnaryOp):
            return self._evaluate(frame, at, node.operand)
        if isinstance(node, ast.IfExp):
            truth = self.scenario.truth(frame.function, node.test)
            sides = [node.body, node.orelse] if truth is None else []
            sides = sides or [node.body if truth else node.orelse]
            return joined(self._evaluate(frame, at, side) for side in sides)
        if isinstance(node, ast.NamedExpr):
            return self._evaluate(frame, at, node.value)
        if isinstance(node, (ast.Tuple, ast.List)):
            return Several(tuple(self._evaluate(frame, at, e) for e in node.elts))
        if isinstance(node, ast.Call):
            return self._calls.of(frame, at, node)
        return None

    def _attribute(self, frame: Frame, at: Node, node: ast.Attribute) -> Abstract:
        if node.attr == "T":
            return None
        dotted = dotted_name(node)
        if dotted is not None:
            found = self._paths.before(frame, at, dotted)
        else:
            found = self._attributes.of(frame, node)
        if isinstance(found, Value) and not found.trail:
            return found.at(Mark(frame.function, node, shorten(node)))
        return found

    def _subscript(self, frame: Frame, at: Node, node: ast.Subscript) -> Abstract:
        whole = self._evaluate(frame, at, node.value)
        if isinstance(whole, Several):
            return item(whole, node.slice.value if isinstance(node.slice, ast.Constant) else None)
        if not isinstance(whole, Value):
            return None
        # Of a column per rank, rows are known to be taken, and the column of this rank.
        if whole.unit.space is Space.ALL_RANKS and not isinstance(node.slice, ast.Slice):
            index = node.slice.elts if isinstance(node.slice, ast.Tuple) else ()
            if not index or not self.scenario.is_rank(frame.function, index[-1]):
                return None
            return replace(whole, unit=replace(whole.unit, space=Space.LOCAL))
        return whole
