"""A class claims a capability that nobody in its own lineage has ever stated.

## What it flags
A concrete attention class whose DCP capability resolves to true, where the value comes from the
engine base's default: neither the class nor any concrete ancestor says it. It is an error where
the class's LSE capability shows the claim to be false, and nothing in its code serves DCP; a note
where the backend hands out another class as soon as DCP is on.

## Why it breaks
The engine believes the claim. Where a gate reads another capability (the LSE one), the class is
refused after the weights are loaded; where no gate reads anything, it answers with one shard's
attention as if it were the whole. When the engine turns its default off, the class silently loses
DCP in that release.

## Bad
```python
class MyImpl(AttentionImpl):  # the base says supports_dcp = True
    def forward(self, layer, query, key, value, kv_cache, attn_metadata, output): ...
```

## Good
```python
class MyImpl(AttentionImpl):
    supports_dcp = False

    def forward(self, layer, query, key, value, kv_cache, attn_metadata, output): ...
```

## How it is confirmed
The backend's kernel is run over the shards of one sequence and merged: wrong or missing LSE, or a
merged output that differs from the whole sequence's, confirms it. A backend that really does DCP
refutes it, and the fix becomes the explicit `True`.

## Known limits
Values set from another object at run time, and classes whose base is decided at run time, are
unknown and not reported; `dcplint capabilities` lists them.
"""

from __future__ import annotations

from collections.abc import Iterator

from dcplint.checks import capability_evidence as evidence
from dcplint.checks.base import Context, Rule
from dcplint.checks.capability_fix import denial, statement
from dcplint.contracts.model import Capability
from dcplint.facts.positions import position
from dcplint.findings.model import Applicability, Evidence, Finding, Severity
from dcplint.program.attributes import Kind, Resolution
from dcplint.program.dcp_use import Use, service
from dcplint.program.symbols import ClassSymbol

RULE = Rule(
    code="DCP101",
    name="implicit-capability",
    summary="flags classes whose DCP capability is an engine default that nobody stated",
    severity=Severity.WARNING,
    since="0.1.0",
    probe="merge of N shards against the whole sequence, with the LSE checked per shard",
    follows=False,
)


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each concrete class that inherits the claim from an engine default."""
    program = context.program
    for capability in context.contract.capabilities:
        if not capability.opt_in or capability.delegates is not None:
            continue
        for symbol in program.classes(capability.role):
            if program.is_engine_base(symbol) or program.abstract_methods(symbol) != frozenset():
                continue
            resolution = program.promise(symbol, capability)
            if resolution.kind is Kind.DEFAULT and resolution.holds():
                yield _finding(context, symbol, capability, resolution)


def _finding(
    context: Context, symbol: ClassSymbol, capability: Capability, resolution: Resolution
) -> Finding:
    steps = [
        *evidence.origin(context, capability.name, resolution),
        *evidence.walk(context, symbol, capability.name, resolution),
    ]
    steps += evidence.gates(context, capability, True)
    denied: Capability | None = None
    use: Use | None = None  # of DCP, where nobody denies it
    for other, said in evidence.implied(context, symbol, capability):
        if said.holds() is False:
            denied = other
            use = _use(context, symbol) if said.kind is Kind.DEFAULT else None
        steps += _support(context, symbol, other, said, use)
        steps += evidence.gates(context, other, said.holds())
    steps += evidence.later_releases(context, symbol, capability, resolution)
    exchange = context.exchanged.of(symbol, capability.role)
    base = resolution.place.owner if resolution.place else "the engine"
    message = f"`{symbol}` never states `{capability.name}`: it inherits True from {base}'s default"
    if denied is not None:
        message += f", while its `{denied.name}` is False"
        message += f" and it {use.what.split(' (')[0]}" if use is not None else ""
    severity = Severity.ERROR if denied is not None and use is None else None
    if exchange is not None:
        accessor = exchange.accessor
        others = " or ".join(f"`{one}`" for one in exchange.instead)
        message += f"; where DCP is on, `{accessor.qualname}` takes {others} in its place"
        severity = Severity.NOTE
        place = context.program.location(accessor.module, position(exchange.statement))
        steps.append(Evidence("not reached where DCP is on", place))
    return RULE.finding(
        message,
        context.program.location_of(symbol),
        symbol=symbol.facts.qualname,
        severity=severity,
        evidence=tuple(steps),
        fix=denial(context, symbol, capability),
        affirmation=statement(context, symbol, capability, True, Applicability.SAFE),
    )


def _use(context: Context, symbol: ClassSymbol) -> Use | None:
    """Where a class does DCP's work, or one that it derives from."""
    program = context.program
    lineage = (c for c in program.mro(symbol).classes if not program.is_engine_base(c))
    return next(filter(None, (service(program, c) for c in lineage)), None)


def _support(
    context: Context, symbol: ClassSymbol, other: Capability, said: Resolution, use: Use | None
) -> Iterator[Evidence]:
    """Whether the capability that the claim depends on bears it out."""
    holds = said.holds()
    if holds is None:
        verdict = f"`{other.name}` is unknown ({said.reason}): the claim cannot be judged"
    elif holds:
        verdict = f"`{other.name}` is True: the claim may well be right, but nobody made it"
    elif use is None:
        verdict = f"`{other.name}` is False: {symbol} cannot do what it claims"
    else:
        verdict = f"`{other.name}` is False: one of the two is wrong"
    place = said.place
    location = (
        context.program.location(place.module, place.fact.position)
        if place is not None
        else context.program.location_of(symbol)
    )
    yield Evidence(verdict, location)
