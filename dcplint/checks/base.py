"""What a rule is: one declaration, one docstring, one function.

A rule's file is named after its code (`dcp101_implicit_capability.py`). Its module docstring is
its documentation, with the sections of `DOC_SECTIONS`; `RULE` declares it; `check(context)` yields
its findings. Nothing is registered anywhere else.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from types import ModuleType
from typing import TYPE_CHECKING

from dcplint.findings.model import Confidence, Evidence, Finding, Fix, Location, Severity

if TYPE_CHECKING:
    from dcplint.contracts.contract import Contract
    from dcplint.flow.exchanged import Exchanged
    from dcplint.flow.fields import FieldFlow
    from dcplint.flow.functions import Function
    from dcplint.flow.outputs import OutputFlow
    from dcplint.program.program import Program
    from dcplint.program.symbols import ClassSymbol
    from dcplint.units.blocks import Blocks
    from dcplint.units.expressions import Written
    from dcplint.units.flow import UnitFlow
    from dcplint.units.interleave import Interleaving
    from dcplint.units.localising import Localisation
    from dcplint.units.ranks import Ranks
    from dcplint.units.spread import Spread
    from dcplint.units.variance import Variance

DOC_SECTIONS = (
    "What it flags",
    "Why it breaks",
    "Bad",
    "Good",
    "How it is confirmed",
    "Known limits",
)


@dataclass(frozen=True, slots=True)
class Rule:
    """The declaration of one rule.

    summary: one line, lower case, reading as "flags …". probe: what the harness runs to confirm
    a finding, or the reason why nothing can be run. default: whether it is on without `select`.
    follows: whether it follows contract fields (`Context.fields` and what rests on it), so that it
    shares most of its work with the others that do.
    """

    code: str
    name: str
    summary: str
    severity: Severity
    since: str
    probe: str
    default: bool = True
    follows: bool = True

    def finding(
        self,
        message: str,
        location: Location,
        *,
        symbol: str = "",
        severity: Severity | None = None,
        confidence: Confidence = Confidence.HIGH,
        evidence: tuple[Evidence, ...] = (),
        fix: Fix | None = None,
        affirmation: Fix | None = None,
    ) -> Finding:
        """A finding of this rule at `location`."""
        return Finding(
            code=self.code,
            name=self.name,
            severity=severity or self.severity,
            confidence=confidence,
            message=message,
            location=location,
            symbol=symbol,
            evidence=evidence,
            fix=fix,
            affirmation=affirmation,
        )


@dataclass(frozen=True)
class Context:
    """What a rule may look at: the linked program and the engine's contract."""

    program: Program
    contract: Contract
    _written: dict[Function, tuple[Written, ...]] = field(default_factory=dict)
    _serving: dict[ClassSymbol, bool] = field(default_factory=dict)

    def serves_dcp(self, symbol: ClassSymbol) -> bool:
        """Whether an impl that `symbol` works for is let through by every gate; see `reach`."""
        from dcplint.program.reach import serves_dcp

        if symbol not in self._serving:
            self._serving[symbol] = serves_dcp(self.program, symbol)
        return self._serving[symbol]

    @cached_property
    def fields(self) -> FieldFlow:
        """Where the contract's fields come from and who reads them; worked out when first asked."""
        from dcplint.flow.fields import FieldFlow

        return FieldFlow(self.program)

    @cached_property
    def units(self) -> UnitFlow:
        """What lengths count, in the modules that contract fields pass through."""
        from dcplint.units.flow import UnitFlow

        return UnitFlow(self.fields.universe, self.fields.tracer.scenario)

    @cached_property
    def localisations(self) -> tuple[Localisation, ...]:
        """The calls that localise lengths, in the modules that contract fields pass through."""
        from dcplint.units.localising import Localising

        return Localising(self.units).places

    @cached_property
    def spread(self) -> Spread:
        """What local lengths may go into, in the modules that contract fields pass through."""
        from dcplint.units.spread import Spread

        lengths = self.contract.lengths
        local = {length.name for length in lengths if length.unit == "local"}
        around = {p.site.function.node.name for p in self.localisations if p.is_around}
        words = frozenset({*local, *around, *self.units.localizers.spellings})
        others = frozenset(length.name for length in lengths if length.unit != "local")
        return Spread(self.fields.universe, words, others)

    @cached_property
    def ranks(self) -> Ranks:
        """Who computes with the rank, in the modules that do; worked out when first asked for."""
        from dcplint.flow.scenario import Scenario
        from dcplint.flow.universe import Universe
        from dcplint.units.ranks import Ranks

        modules = self.program.with_helpers(self.program.find_ranked())
        return Ranks(Scenario(Universe(self.program, modules)))

    def written(self, function: Function) -> tuple[Written, ...]:
        """The expressions of a function that compute with the rank, with its variables put in."""
        from dcplint.units.expressions import written

        if function not in self._written:
            self._written[function] = tuple(written(function, self.ranks))
        return self._written[function]

    @cached_property
    def variance(self) -> Variance:
        """What differs between ranks, and where they exchange tensors."""
        from dcplint.units.variance import Variance

        return Variance(self.units)

    @cached_property
    def interleaving(self) -> Interleaving:
        """Who looks at the interleave size, in the modules that compute with the rank."""
        from dcplint.units.interleave import Interleaving

        return Interleaving(self.ranks.universe)

    @cached_property
    def blocks(self) -> Blocks:
        """What numbers have to do with blocks, in the modules that compute with their size."""
        from dcplint.flow.scenario import Scenario
        from dcplint.flow.universe import Universe
        from dcplint.units.blocks import Blocks

        return Blocks(Scenario(Universe(self.program, self.program.find_blocked())))

    @cached_property
    def exchanged(self) -> Exchanged:
        """Which classes backends hand out without DCP only; worked out when first asked."""
        from dcplint.flow.exchanged import Exchanged

        return Exchanged(self.program)

    @cached_property
    def outputs(self) -> OutputFlow:
        """What impls owe under DCP and what it is made of; worked out when first asked for."""
        from dcplint.flow.outputs import OutputFlow

        return OutputFlow(self.program)


Check = Callable[[Context], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class Registered:
    """A rule as found on disk. `check` is None for tool rules, which the run itself reports."""

    rule: Rule
    module: str
    documentation: str
    check: Check | None


@cache
def all_rules() -> tuple[Registered, ...]:
    """Every rule of this package, by code."""
    package = importlib.import_module("dcplint.checks")
    names = (m.name for m in pkgutil.iter_modules(package.__path__) if m.name.startswith("dcp"))
    modules = (importlib.import_module(f"dcplint.checks.{name}") for name in names)
    return tuple(sorted((_registered(m) for m in modules), key=lambda r: r.rule.code))


def _registered(module: ModuleType) -> Registered:
    return Registered(
        rule=module.RULE,
        module=module.__name__,
        documentation=module.__doc__ or "",
        check=getattr(module, "check", None),
    )
