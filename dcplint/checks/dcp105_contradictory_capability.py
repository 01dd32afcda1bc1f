"""A class states a capability that another of its statements denies.

## What it flags
A class that states (itself, or through a concrete ancestor) a DCP capability as true, while a
capability that this one depends on, returning the LSE, is false. Where the constructor refuses DCP
anyway it is a note.

## Why it breaks
Two gates ask two questions. Selection believes the first answer and loads the weights; the load
gate reads the second and asserts, minutes later, on every rank.

## Bad
```python
class MyImpl(MLACommonImpl):
    supports_dcp = True  # can_return_lse_for_decode stays False
```

## Good
```python
class MyImpl(MLACommonImpl):
    supports_dcp = True
    can_return_lse_for_decode = True
```

## How it is confirmed
The class is run under DCP: no LSE from a backend that owes one confirms it.

## Known limits
Implicit values are DCP101's.
"""

from __future__ import annotations

from collections.abc import Iterator

from dcplint.checks import capability_evidence as evidence
from dcplint.checks.base import Context, Rule
from dcplint.contracts.model import Capability
from dcplint.findings.model import Evidence, Finding, Severity
from dcplint.program.attributes import Kind
from dcplint.program.dcp_use import refusal
from dcplint.program.symbols import ClassSymbol

RULE = Rule(
    code="DCP105",
    name="contradictory-capability",
    summary="flags classes whose stated DCP and LSE capabilities disagree",
    severity=Severity.WARNING,
    since="0.1.0",
    probe="the LSE of each shard: absent, or not the oracle's",
    follows=False,
)


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding where a stated promise rests on one that is false."""
    program = context.program
    for capability in context.contract.capabilities:
        if not capability.opt_in or capability.delegates is not None:
            continue
        for symbol in program.classes(capability.role):
            denied = _denied(context, symbol, capability)
            if denied is None or program.is_engine_base(symbol):
                continue
            parents = program.mro(symbol).classes[1:]
            if not any(_denied(context, parent, capability) for parent in parents):
                yield _finding(context, symbol, capability, denied)


def _denied(context: Context, symbol: ClassSymbol, capability: Capability) -> Capability | None:
    """The capability that makes the stated promise of `symbol` impossible."""
    said = context.program.promise(symbol, capability)
    if said.kind not in (Kind.EXPLICIT, Kind.INHERITED) or not said.holds():
        return None
    implied = evidence.implied(context, symbol, capability)
    return next((other for other, answer in implied if answer.holds() is False), None)


def _finding(
    context: Context, symbol: ClassSymbol, capability: Capability, denied: Capability
) -> Finding:
    program = context.program
    said, denial = program.promise(symbol, capability), program.promise(symbol, denied)
    assert said.place is not None
    own = said.place.owner is symbol
    steps = [
        *([] if own else evidence.origin(context, capability.name, said)),
        *evidence.origin(context, denied.name, denial),
        *evidence.gates(context, capability, True),
        *evidence.gates(context, denied, False),
    ]
    message = (
        f"`{symbol}` states `{capability.name} = {said.value}` while its `{denied.name}` is False"
    )
    severity = None
    refused = refusal(program, symbol)
    if refused is not None:
        severity = Severity.NOTE
        message += "; it is never used, because the constructor refuses DCP"
        where = program.location(refused.method.owner.module, refused.position)
        steps.append(Evidence(refused.what, where))
    return RULE.finding(
        message,
        program.location(symbol.module, said.place.fact.position)
        if own
        else program.location_of(symbol),
        symbol=symbol.facts.qualname,
        severity=severity,
        evidence=tuple(steps),
    )
