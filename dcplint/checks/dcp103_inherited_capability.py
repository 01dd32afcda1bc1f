"""A class inherits a promise and replaces the code that the promise is about.

## What it flags
A concrete class whose DCP capability is true only because a concrete ancestor states it, while the
class overrides a compute method of that ancestor (`forward`, `forward_mqa`, …). Where the override
serves DCP itself, or hands the work to the method it overrides, it is a note: the promise probably
holds, but it was made for other code.

## Why it breaks
The ancestor's author checked the ancestor's kernel. The override runs another one, which may not
return an LSE or may read global lengths; the engine believes the inherited promise.

## Bad
```python
class PaddedImpl(FlashAttentionImpl):  # FlashAttentionImpl says supports_dcp = True
    def forward(self, layer, query, key, value, kv_cache, attn_metadata, output):
        return padded_attention(query, kv_cache, attn_metadata.seq_lens)
```

## Good
```python
class PaddedImpl(FlashAttentionImpl):
    supports_dcp = False

    def forward(self, layer, query, key, value, kv_cache, attn_metadata, output):
        return padded_attention(query, kv_cache, attn_metadata.seq_lens)
```

## How it is confirmed
As DCP101: the class's own kernel is run over the shards of one sequence and merged.

## Known limits
An override that delegates through a helper is not followed and counts as new code.
"""

from __future__ import annotations

from collections.abc import Iterator

from dcplint.checks import capability_evidence as evidence
from dcplint.checks.base import Context, Rule
from dcplint.contracts.model import Capability
from dcplint.findings.model import Evidence, Finding, Role, Severity
from dcplint.program.abstractness import is_abstract
from dcplint.program.attributes import Kind, Resolution
from dcplint.program.dcp_use import delegates_to_parent, refusal, service
from dcplint.program.program import Method
from dcplint.program.symbols import ClassSymbol

RULE = Rule(
    code="DCP103",
    name="inherited-capability",
    summary="flags classes that inherit a DCP capability and override the code it is about",
    severity=Severity.WARNING,
    since="0.1.0",
    probe="merge of N shards against the whole sequence, with the LSE checked per shard",
    follows=False,
)


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each concrete class that overrides what its inherited promise covers."""
    program = context.program
    told: set[ClassSymbol] = set()
    for capability in context.contract.capabilities:
        if not capability.opt_in or not capability.methods:
            continue
        for symbol in program.classes(capability.role):
            if symbol in told or program.is_engine_base(symbol):
                continue
            said = program.promise(symbol, capability)
            if said.kind is not Kind.INHERITED or not said.holds() or said.place is None:
                continue
            override = _override(context, symbol, said.place.owner, capability)
            if override is None or program.abstract_methods(symbol) != frozenset():
                continue
            if refusal(program, symbol) is None and not _is_moot(context, symbol, capability):
                told.add(symbol)
                yield _finding(context, capability, override, said)


def _is_moot(context: Context, symbol: ClassSymbol, capability: Capability) -> bool:
    """Whether a gate refuses the class for another reason before the promise is ever relied on."""
    gated = {gate.capability for gate in context.contract.gates}
    return any(
        context.program.promise(symbol, other).holds() is False
        for other in context.contract.capabilities
        if other.role == capability.role
        and other.name in gated
        and capability.name in other.implies
    )


def _override(
    context: Context, symbol: ClassSymbol, speaker: ClassSymbol, capability: Capability
) -> Method | None:
    """The compute method that `symbol` puts in place of the one its promise was made for.

    A mixin, or a base that leaves the method abstract, spoke for no code of its own.
    """
    if symbol is speaker:
        return None
    for method in symbol.facts.methods:
        if method.name in capability.methods:
            replaced = context.program.method(speaker, method.name)
            if replaced is not None and not is_abstract(replaced.facts):
                return Method(symbol, method)
    return None


def _finding(
    context: Context, capability: Capability, override: Method, said: Resolution
) -> Finding:
    program, symbol = context.program, override.owner
    assert said.place is not None
    speaker = said.place.owner
    steps = list(evidence.origin(context, capability.name, said))
    steps += evidence.walk(context, symbol, capability.name, said)
    steps.append(
        Evidence(
            f"{symbol}.{override.facts.name} replaces the method that {speaker} spoke for",
            program.location(symbol.module, override.facts.position),
        )
    )
    message = (
        f"`{symbol}` inherits `{capability.name} = {said.value}` from {speaker} "
        f"but overrides `{override.facts.name}`"
    )
    severity = None
    use = service(program, symbol)
    if use is not None:
        severity = Severity.NOTE
        message += "; it serves DCP itself, so the claim should be its own"
        steps.append(
            Evidence(
                f"{use.method.facts.qualname} {use.what}",
                program.location(use.method.owner.module, use.position),
                Role.GUARD,
            )
        )
    elif delegates_to_parent(program, override):
        severity = Severity.NOTE
        message += f"; it hands the work on to {speaker}'s, so the claim probably holds"
    steps += evidence.gates(context, capability, True)
    return RULE.finding(
        message,
        program.location_of(symbol),
        symbol=symbol.facts.qualname,
        severity=severity,
        evidence=tuple(steps),
    )
