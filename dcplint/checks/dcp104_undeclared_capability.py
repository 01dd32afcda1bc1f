"""A class does DCP and never says so, so every gate that asks refuses it.

## What it flags
A concrete class with a DCP path of its own (it merges over ranks, exchanges tensors over the DCP
group, computes with its rank, asks whether it must return the LSE, or computes something only where
DCP is on), or one that states what only DCP has a use for (that it can return the LSE), whose
capability resolves to false by the engine's default, in a release where a gate reads it.

## Why it breaks
The selection gate refuses the backend under DCP, and the work in it is lost. It happens to plugins
when the engine turns its default off: what was implied must now be stated.

## Bad
```python
class MyImpl(AttentionImpl):
    def forward(self, layer, query, key, value, kv_cache, attn_metadata, output):
        out, lse = kernel(query, kv_cache, attn_metadata.dcp_local_seq_lens)
        return cp_lse_ag_out_rs(out, lse, get_dcp_group())
```

## Good
```python
class MyImpl(AttentionImpl):
    supports_dcp = True
    can_return_lse_for_decode = True

    def forward(self, layer, query, key, value, kv_cache, attn_metadata, output):
        out, lse = kernel(query, kv_cache, attn_metadata.dcp_local_seq_lens)
        return cp_lse_ag_out_rs(out, lse, get_dcp_group())
```

## How it is confirmed
The class is run under DCP with the capability forced on: a merged output equal to the whole
sequence's confirms that it should say True.

## Known limits
Only the class's own methods count, not helpers it calls in other modules. A gate that asks only
about some models does not count: whether the class serves them is not known. Where the only sign is
the stated LSE, that statement may be the wrong one: the confidence is then medium.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dcplint.checks import capability_evidence as evidence
from dcplint.checks.base import Context, Rule
from dcplint.checks.wording import said_of
from dcplint.contracts.model import Capability
from dcplint.findings.model import Confidence, Evidence, Finding, Role, Severity
from dcplint.program.attributes import Kind
from dcplint.program.dcp_use import refusal, service
from dcplint.program.gates.overrides import Override, overrides
from dcplint.program.symbols import ClassSymbol

RULE = Rule(
    code="DCP104",
    name="undeclared-capability",
    summary="flags classes with a DCP path whose capability is false by default",
    severity=Severity.WARNING,
    since="0.1.0",
    probe="merge of N shards against the whole sequence, with the capability forced on",
    follows=False,
)


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each concrete class whose DCP path no gate will ever let run."""
    found = list(_undeclared(context))
    bypasses = [o for o in overrides(context.program) if not o.asks] if found else []
    for symbol, capability, signs in found:
        yield _finding(context, symbol, capability, signs, bypasses)


def _undeclared(context: Context) -> Iterator[tuple[ClassSymbol, Capability, _Found]]:
    program, contract = context.program, context.contract
    gated = {gate.capability for gate in contract.gates if gate.only_for is None}
    told: set[ClassSymbol] = set()
    for capability in contract.capabilities:
        if not (capability.opt_in and capability.methods and capability.name in gated):
            continue
        for symbol in program.classes(capability.role):
            if symbol in told or program.is_engine_base(symbol):
                continue
            if program.abstract_methods(symbol) != frozenset():
                continue
            said = program.promise(symbol, capability)
            if said.kind is not Kind.DEFAULT or said.holds() is not False:
                continue
            if refusal(program, symbol) is not None:
                continue
            found = _path(context, symbol, capability) or _statement(context, symbol, capability)
            if found is not None:
                told.add(symbol)
                yield symbol, capability, found


def _finding(
    context: Context,
    symbol: ClassSymbol,
    capability: Capability,
    found: _Found,
    bypasses: list[Override],
) -> Finding:
    program = context.program
    said = program.promise(symbol, capability)
    gates = {g.function for g in context.contract.gates if g.capability == capability.name}
    past = [override for override in bypasses if override.gate.function in gates]
    silent = [f"`{override.method.qualname}`" for override in past]
    asks = f"; {said_of(silent, 'ask')} no gate" if past else ""
    return RULE.finding(
        found.message + asks,
        program.location_of(symbol),
        symbol=symbol.facts.qualname,
        confidence=found.confidence,
        evidence=(
            *found.proof,
            *evidence.origin(context, capability.name, said),
            *evidence.walk(context, symbol, capability.name, said),
            *evidence.gates(context, capability, False),
            *(_bypass(context, override) for override in past),
        ),
    )


def _bypass(context: Context, override: Override) -> Evidence:
    gate, method = override.gate.function.rpartition(".")[2], override.method
    return Evidence(
        f"{method.qualname} does not ask {gate}(): there the class is let through",
        context.program.location(override.symbol.module, method.position),
        Role.GATE,
    )


@dataclass(frozen=True, slots=True)
class _Found:
    message: str
    proof: tuple[Evidence, ...]
    confidence: Confidence


def _path(context: Context, symbol: ClassSymbol, capability: Capability) -> _Found | None:
    """A DCP path in the class's own code."""
    use = service(context.program, symbol)
    if use is None:
        return None
    where = context.program.location(use.method.owner.module, use.position)
    return _Found(
        f"`{symbol}` {use.what.split(' (')[0]} but never states `{capability.name}`: "
        "by the default it is False, and every gate that asks refuses it under DCP",
        (Evidence(f"{use.method.facts.qualname} {use.what}", where, Role.GUARD),),
        Confidence.HIGH,
    )


def _statement(context: Context, symbol: ClassSymbol, capability: Capability) -> _Found | None:
    """A statement, by the class or its own lineage, that nothing but DCP has a use for."""
    for other, said in evidence.implied(context, symbol, capability):
        if said.kind not in (Kind.EXPLICIT, Kind.INHERITED) or not said.holds():
            continue
        return _Found(
            f"`{symbol}` says `{other.name} = {said.value}`, which only DCP asks for, but "
            f"leaves `{capability.name}` at its default, False: one of the two is wrong",
            (*evidence.origin(context, other.name, said), *evidence.gates(context, other, True)),
            Confidence.MEDIUM,
        )
    return None
