"""An engine base makes a promise for every class that says nothing.

## What it flags
A base class of the engine that declares an opt-in capability as true, in an engine in which that
role's capability is read by somebody, now or in another release.

## Why it breaks
Every present and future subclass, out-of-tree ones included, claims what nobody has checked. A
gate that reads the claim lets all of them through.

## Bad
```python
class AttentionImplBase(ABC):
    supports_dcp: bool = True
```

## Good
```python
class AttentionImplBase(ABC):
    supports_dcp: bool = False  # an impl that does DCP says so
```

## How it is confirmed
Nothing is run for the base itself; each class that falls through to the default is a DCP101 of its
own, and those are.

## Known limits
Defaults set by a metaclass or at run time are not seen.
"""

from __future__ import annotations

from collections.abc import Iterator

from dcplint.checks import capability_evidence as evidence
from dcplint.checks.base import Context, Rule
from dcplint.contracts.model import Capability
from dcplint.findings.model import Evidence, Finding, Role, Severity, Tree
from dcplint.program.attributes import Kind
from dcplint.program.symbols import ClassSymbol

RULE = Rule(
    code="DCP102",
    name="permissive-default",
    summary="flags engine bases that declare an opt-in capability on by default",
    severity=Severity.WARNING,
    since="0.1.0",
    probe="none: each class that falls through to the default is confirmed as DCP101",
    follows=False,
)


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each engine base of the checked tree whose own default is true."""
    for capability in context.contract.capabilities:
        if not capability.opt_in or not capability.readers or capability.delegates is not None:
            continue
        for symbol in context.program.classes(capability.role):
            if context.program.is_engine_base(symbol):
                yield from _finding(context, symbol, capability)


def _finding(context: Context, symbol: ClassSymbol, capability: Capability) -> Iterator[Finding]:
    program = context.program
    said = program.resolve(symbol, capability.name)
    if said.kind is not Kind.EXPLICIT or not said.holds() or said.place is None:
        return
    place = program.location(said.place.module, said.place.fact.position)
    if place.tree is not Tree.PROJECT:
        return
    heirs = [
        c
        for c in program.classes(capability.role)
        if _falls_through(context, c, symbol, capability)
    ]
    steps = [
        Evidence(
            f"{heir} says nothing and becomes {said.value}",
            program.location_of(heir),
            Role.CONSUMER,
        )
        for heir in heirs
    ]
    steps += evidence.gates(context, capability, None)
    yield RULE.finding(
        f"`{symbol}` declares `{capability.name} = {said.value}` for every class that says nothing"
        f" ({len(heirs)} in this tree)",
        place,
        symbol=f"{symbol.facts.qualname}.{capability.name}",
        evidence=tuple(steps),
    )


def _falls_through(
    context: Context, heir: ClassSymbol, base: ClassSymbol, capability: Capability
) -> bool:
    program = context.program
    if heir is base or program.is_engine_base(heir) or program.abstract_methods(heir):
        return False
    place = program.resolve(heir, capability.name).place
    return place is not None and place.owner is base
