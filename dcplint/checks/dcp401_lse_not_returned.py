"""An impl promises the LSE of its decode output, and on some path under DCP returns None.

## What it flags
A concrete class whose LSE capability is true and whose compute method owes the LSE, where a return
that can run with DCP on gives None in its place, through helpers and inherited methods. Returns
under the flag that asks for the LSE are judged with the flag set. Impls that merge inside
`forward` owe none.

## Why it breaks
The layer asserts that there is an LSE, so the first decode step under DCP fails on every rank; or,
where nothing asserts, the merge weighs a shard by garbage.

## Bad
```python
class MyImpl(MLACommonImpl):
    can_return_lse_for_decode = True

    def forward_mqa(self, q, kv_c_and_k_pe_cache, attn_metadata, layer):
        return decode(q, kv_c_and_k_pe_cache, attn_metadata), None
```

## Good
```python
class MyImpl(MLACommonImpl):
    can_return_lse_for_decode = True

    def forward_mqa(self, q, kv_c_and_k_pe_cache, attn_metadata, layer):
        out, lse = decode(q, kv_c_and_k_pe_cache, attn_metadata, return_lse=True)
        return out, lse
```

## How it is confirmed
The impl decodes one shard: no LSE comes back.

## Known limits
What a kernel returns is not known here; a call into another package counts as returning an LSE.
"""

from __future__ import annotations

from collections.abc import Iterator

from dcplint.checks import capability_evidence
from dcplint.checks.base import Context, Rule
from dcplint.findings.model import Evidence, Finding, Role, Severity, Tree
from dcplint.flow.outputs import Owed, OutputFlow
from dcplint.flow.trace import Outcome, State
from dcplint.program.dcp_use import refusal
from dcplint.program.reach import refusing_impls

RULE = Rule(
    code="DCP401",
    name="lse-not-returned",
    summary="flags impls that promise an LSE and return None on a path under DCP",
    severity=Severity.ERROR,
    since="0.1.0",
    probe="the LSE of each shard: is there one?",
)


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding per class and place that returns None for the LSE."""
    if not context.contract.outputs:
        return
    flow = OutputFlow(context.program)
    for owed in flow.owed():
        program = context.program
        if refusal(program, owed.symbol) is not None or refusing_impls(program, owed.symbol):
            continue
        for outcome in flow.outcomes(owed):
            if outcome.state is State.NONE and outcome.origin is not None:
                yield _finding(context, owed, outcome)


def _finding(context: Context, owed: Owed, outcome: Outcome) -> Finding:
    program, origin = context.program, outcome.origin
    assert origin is not None
    steps = [
        Evidence(
            f"{origin.symbol} gives None here", program.location(origin.module, origin.position), Role.ORIGIN
        )
    ]
    steps += (
        Evidence(f"which {step.text}", program.location(step.module, step.position))
        for step in reversed(outcome.steps[:-1])
    )
    promise = context.contract.capability(owed.output.role, owed.output.capability)
    assert promise is not None
    said = program.promise(owed.symbol, promise)
    steps += capability_evidence.origin(context, promise.name, said)
    place = program.location(origin.module, origin.position)
    return RULE.finding(
        f"`{owed.symbol}` promises {owed.output.capability}, but `{origin.symbol}` returns None "
        f"for {owed.output.summary}",
        place if place.tree is Tree.PROJECT else program.location_of(owed.symbol),
        symbol=origin.symbol,
        evidence=tuple(steps),
    )
