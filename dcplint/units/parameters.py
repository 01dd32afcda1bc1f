"""What a parameter holds: what the engine hands an override, or what every caller passes."""

from __future__ import annotations

from dataclasses import dataclass

from dcplint.flow.functions import Function, argument
from dcplint.flow.scenario import Scenario
from dcplint.flow.universe import Universe
from dcplint.units.effort import MOST_CALLS, MOST_SITES
from dcplint.units.frames import Evaluate, Frame
from dcplint.units.lattice import UNITS, Abstract, Mark, Value, joined


@dataclass
class Parameters:
    """Follows parameters to where their values come from."""

    universe: Universe
    scenario: Scenario
    evaluate: Evaluate

    def __post_init__(self) -> None:
        arguments = self.universe.program.contract.arguments
        self._given = {(a.function, a.argument): a for a in arguments if a.given is None}

    def of(self, frame: Frame, name: str) -> Abstract:
        """What a parameter holds when its function starts."""
        if frame.arguments is not None:
            return dict(frame.arguments).get(name)
        owed = self._owed(frame.function, name)
        return owed if owed is not None else self._passed(frame, name)

    def _owed(self, function: Function, parameter: str) -> Value | None:
        """What the engine hands an override of a method that the pack speaks of."""
        if function.owner is None or function.outer is not None:
            return None
        for entry in self.universe.program.mro(function.owner).classes:
            method = f"{entry.dotted}.{function.node.name}"
            fact = self._given.get((method, parameter))
            if fact is not None:
                spec = function.node.args
                taken = (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)
                place = next(a for a in taken if a.arg == parameter)
                mark = Mark(function, place, f"`{parameter}` of {method}")
                return Value(UNITS[fact.unit], fact.on_device).at(mark)
        return None

    def _passed(self, frame: Frame, parameter: str) -> Abstract:
        """What every caller passes."""
        function = frame.function
        if frame.calls >= MOST_CALLS or self.scenario.lookup.escapes(function):
            return None
        sites = self.universe.callers(function)
        if not 0 < len(sites) <= MOST_SITES:
            return None
        found: list[Abstract] = []
        for site in sites:
            passed = argument(function, site.call, parameter)
            if passed is None:
                return None
            caller = frame.entered(site.function)
            reachable = self.scenario.reachable(site.function)
            places = [place for place in site.nodes if place in reachable]
            found += [self.evaluate(caller, place, passed) for place in places]
        return joined(found) if found else None
