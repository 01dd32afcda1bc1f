"""Which calls make the lengths of one rank's shard, by the pack's localizers."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from dcplint.contracts.model import Localizer
from dcplint.flow.functions import Function, callee_name
from dcplint.flow.universe import Universe


@dataclass
class Localizers:
    """The localizers of the pack, in the functions of a universe.

    spellings: the last names by which they are called.
    """

    universe: Universe

    def __post_init__(self) -> None:
        contract = self.universe.program.contract
        self._by_name = {z.function: z for z in contract.localizers}
        names = frozenset(name.rpartition(".")[2] for name in self._by_name)
        self.spellings = sorted(self.universe.program.spellings(names))

    def run_by(self, function: Function, call: ast.Call) -> Localizer | None:
        """The localizer that `call` runs."""
        if callee_name(call) not in self.spellings:
            return None
        return self._by_name.get(self.universe.called(function, call))

    def localised(self, function: Function, call: ast.Call) -> ast.expr | None:
        """The lengths that `call` localises, where it calls a localizer."""
        localizer = self.run_by(function, call)
        return passed(call, localizer, localizer.length) if localizer is not None else None

    def sharded(self, function: Function, call: ast.Call) -> ast.expr | None:
        """The lengths of which `call` gives this rank's share; None where it gives other things."""
        localizer = self.run_by(function, call)
        if localizer is None or localizer.every_rank:
            return None
        if localizer.rank is None:
            return self.localised(function, call)
        rank = passed(call, localizer, localizer.rank)
        return None if isinstance(rank, ast.Constant | None) else self.localised(function, call)


def passed(call: ast.Call, localizer: Localizer, name: str) -> ast.expr | None:
    """What a call of a localizer passes for one of its parameters."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    if name not in localizer.parameters:
        return None
    given = call.args[: localizer.parameters.index(name) + 1]
    whole = len(given) == localizer.parameters.index(name) + 1
    return given[-1] if whole and not any(isinstance(a, ast.Starred) for a in given) else None
