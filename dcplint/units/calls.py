"""What a call gives: by what its operation does to a length, or by what its function returns."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from dcplint.contracts.model import Localizer
from dcplint.facts.expressions import shorten
from dcplint.flow.functions import Function, argument, callee_name, default
from dcplint.flow.graph import Node
from dcplint.flow.scenario import Scenario
from dcplint.flow.universe import Universe
from dcplint.units.arithmetic import Arithmetic
from dcplint.units.effort import MOST_CALLS
from dcplint.units.frames import Evaluate, Frame
from dcplint.units.lattice import (
    UNITS,
    Abstract,
    Counts,
    Mark,
    Neutral,
    Space,
    Unit,
    Value,
    joined,
)
from dcplint.units.localizers import Localizers, passed
from dcplint.units.operations import (
    ADDING,
    CHOOSING,
    COUNTING,
    DIVIDING,
    KEEPING,
    MOVING,
    READING,
    ROUNDING,
    may_move,
    operands,
)
from dcplint.units.restated import Restated

_CALLEES = 2  # functions that one call may run, looked into


@dataclass(frozen=True)
class Calls:
    """Evaluates calls."""

    universe: Universe
    scenario: Scenario
    localizers: Localizers
    restated: Restated
    arithmetic: Arithmetic
    evaluate: Evaluate

    def of(self, frame: Frame, at: Node, call: ast.Call) -> Abstract:
        """What `call` gives."""
        localizer = self.localizers.run_by(frame.function, call)
        if localizer is not None:
            return self._localised(frame, at, call, localizer)
        name, parts = callee_name(call), operands(call)
        if name in READING or name in MOVING:
            found = self.evaluate(frame, at, parts[0]) if parts else None
            return replace(found, on_device=False) if isinstance(found, Value) else found
        if name == "copy_" and len(parts) > 1:
            return self.evaluate(frame, at, parts[1])
        if name in COUNTING:
            return Value(Unit(Space.GLOBAL, Counts.OFFSETS))
        if name.rstrip("_") in KEEPING and parts:
            found = self.evaluate(frame, at, parts[0])
            if isinstance(found, Value) and found.on_device and may_move(call):
                return replace(found, on_device=False)
            return found
        if name in ("min", "max") and len(parts) == 1:
            return self._extreme(name, self.evaluate(frame, at, parts[0]))
        if name in CHOOSING and len(parts) > 1:
            chosen = parts[1:] if name == "where" else parts
            return joined(self.evaluate(frame, at, operand) for operand in chosen)
        if name in ADDING and len(parts) == 2:
            operator = ast.Add() if name == "add" else ast.Sub()
            return self.evaluate(frame, at, self.restated.sum(call, parts[0], operator, parts[1]))
        if name == "diff" and len(parts) == 1:
            found = self.evaluate(frame, at, parts[0])
            if isinstance(found, Value) and found.unit.counts is Counts.OFFSETS:
                return replace(found, unit=UNITS["queries"])
            return None
        if name in DIVIDING and len(parts) == 2:
            mark = Mark(frame.function, call, shorten(call))
            rounded = name in ROUNDING or isinstance(parts[0], (ast.BinOp, ast.UnaryOp))
            return self.arithmetic.divided(frame, at, parts[0], parts[1], rounded, mark)
        if isinstance(call.func, ast.Name):
            inlined = self.restated.inlined(frame.function, call)
            if inlined is not None:
                return self.evaluate(frame, at, inlined)
        return self._returned(frame, at, call)

    def _extreme(self, name: str, found: Abstract) -> Abstract:
        """The largest of lengths bounds them; the smallest says nothing of the others."""
        if name == "min" or not isinstance(found, Value):
            return None
        # Of what differs between ranks the largest differs too, and is no common bound.
        bound = True if found.unit.space is Space.GLOBAL or found.unit.bound else None
        return replace(found, unit=replace(found.unit, bound=bound))

    # Localizers

    def _localised(self, frame: Frame, at: Node, call: ast.Call, localizer: Localizer) -> Abstract:
        length = passed(call, localizer, localizer.length)
        rank = passed(call, localizer, localizer.rank) if localizer.rank else None
        if localizer.rank and rank is None:
            rank = self._default(frame.function, call, localizer.rank)
        found = self.evaluate(frame, at, length) if length is not None else None
        unit = Unit(Space.LOCAL, Counts.OTHER, None)
        if isinstance(found, Value) and found.unit.space is Space.GLOBAL:
            unit = replace(found.unit, space=Space.LOCAL)
        if localizer.every_rank:
            unit = replace(unit, space=Space.ALL_RANKS)
        elif isinstance(rank, ast.Constant):
            # Every rank's share, or the largest share, which rank 0 has.
            if rank.value is None:
                unit = replace(unit, space=Space.ALL_RANKS)
            else:
                unit = replace(unit, bound=True)
        elif localizer.rank and (
            rank is None or isinstance(self.evaluate(frame, at, rank), Neutral)
        ):
            return None  # a default that is not known, or a number that is told elsewhere
        device = isinstance(found, Value) and found.on_device
        trail = found.trail if isinstance(found, Value) else ()
        return Value(unit, device, trail).at(Mark(frame.function, call, shorten(call)))

    def _default(self, function: Function, call: ast.Call, parameter: str) -> ast.expr | None:
        """What a call that leaves a parameter out gets for it."""
        if any(k.arg is None for k in call.keywords):
            return None
        if any(isinstance(passed, ast.Starred) for passed in call.args):
            return None
        callees = self.universe.callees(function, call)
        return default(callees[0], parameter) if len(callees) == 1 else None

    # Functions

    def _returned(self, frame: Frame, at: Node, call: ast.Call) -> Abstract:
        """What the functions that a call may run return for these arguments."""
        if frame.calls >= MOST_CALLS:
            return None
        statement = at.statement if isinstance(at.statement, ast.stmt) else None
        callees = self.universe.callees(frame.function, call, statement)
        if not 0 < len(callees) <= _CALLEES:
            return None
        found = []
        for callee in callees:
            if callee.yields or callee.is_property:
                return None
            arguments = []
            for name in callee.parameters:
                passed = argument(callee, call, name)
                known = self.evaluate(frame, at, passed) if passed is not None else None
                arguments.append((name, known))
            found.append(self.result(frame.entered(callee, tuple(arguments))))
        result = joined(found)
        return None if isinstance(result, Neutral) else result

    def result(self, frame: Frame) -> Abstract:
        """What a function returns."""
        return joined(self._returns(frame))

    def _returns(self, frame: Frame) -> Iterator[Abstract]:
        reachable = self.scenario.reachable(frame.function)
        for node in frame.function.graph.nodes:
            statement = node.statement
            if node in reachable and isinstance(statement, ast.Return):
                if statement.value is not None:
                    yield self.evaluate(frame, node, statement.value)
