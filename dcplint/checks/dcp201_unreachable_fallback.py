"""A branch derives a contract field where it is None, and no producer leaves it None.

## What it flags
Code that makes up a contract field "just in case" (`if x is None: x = derive(…)`, the same as a
conditional expression, or `x or derive(…)`), where every producer that can reach it fills the
field in under a guard that holds whenever the branch can run. The evidence lists each producer
with its guard.

## Why it breaks
The branch never runs, so nobody tests it. The day a runner stops filling the field in, it runs,
and hides the bug: a quantity derived from other inputs (padded, optimistic, global) takes the place
of the one that was owed, and the answer is wrong instead of the step failing.

## Bad
```python
from vllm.distributed.parallel_state import get_dcp_group
from vllm.v1.attention.backend import AttentionMetadataBuilder, CommonAttentionMetadata

from .lengths import get_dcp_local_seq_lens


class MyBuilder(AttentionMetadataBuilder):
    def build(self, prefix_len, common: CommonAttentionMetadata):
        shards = get_dcp_group().world_size
        if shards > 1 and common.dcp_local_seq_lens is None:  # it never is
            return get_dcp_local_seq_lens(common.seq_lens, shards)
        return common.dcp_local_seq_lens


def execute(builder: MyBuilder, batch):
    common = CommonAttentionMetadata(seq_lens=batch.seq_lens)
    if get_dcp_group().world_size > 1:
        common.dcp_local_seq_lens = get_dcp_local_seq_lens(batch.seq_lens)
    return builder.build(0, common)
```

## Good
```python
from vllm.distributed.parallel_state import get_dcp_group
from vllm.v1.attention.backend import AttentionMetadataBuilder, CommonAttentionMetadata

from .lengths import get_dcp_local_seq_lens


class MyBuilder(AttentionMetadataBuilder):
    def build(self, prefix_len, common: CommonAttentionMetadata):
        shards = get_dcp_group().world_size
        assert shards == 1 or common.dcp_local_seq_lens is not None
        return common.dcp_local_seq_lens


def execute(builder: MyBuilder, batch):
    common = CommonAttentionMetadata(seq_lens=batch.seq_lens)
    if get_dcp_group().world_size > 1:
        common.dcp_local_seq_lens = get_dcp_local_seq_lens(batch.seq_lens)
    return builder.build(0, common)
```

## How it is confirmed
The builder runs on batches as the runners make them, with branch events: the branch is never
taken. With the field set to None it then masks the gap where it could have failed.

## Known limits
A producer that cannot be followed (another package's runner, reflection) makes the verdict
unknown, and nothing is reported.
"""

from __future__ import annotations

from collections.abc import Iterator

from dcplint.checks import field_evidence as evidence
from dcplint.checks.base import Context, Rule
from dcplint.checks.field_fix import drop
from dcplint.facts.positions import position
from dcplint.findings.model import Evidence, Finding, Role, Severity
from dcplint.flow.fallbacks import Fallback
from dcplint.flow.fields import producers
from dcplint.flow.trace import State

RULE = Rule(
    code="DCP201",
    name="unreachable-fallback",
    summary="flags fallbacks for contract fields that every producer fills in",
    severity=Severity.WARNING,
    since="0.1.0",
    probe="the builder on runner-shaped batches with branch events; then with the field None",
)


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each fallback that no producer can reach with the field None."""
    flow = context.fields
    for field in flow.fields:
        for fallback in flow.fallbacks(field):
            if evidence.is_producer(context, fallback):
                continue
            outcomes = flow.outcomes(fallback.function, fallback.statement, fallback.path)
            filled = all(outcome.state is State.SET for outcome in outcomes)
            if outcomes and filled and not flow.serves_without_dcp(fallback):
                yield _finding(context, fallback)


def _finding(context: Context, fallback: Fallback) -> Finding:
    flow, field, program = context.fields, fallback.field, context.program
    outcomes = flow.outcomes(fallback.function, fallback.statement, fallback.path)
    found = producers(outcomes, field)
    told = (e for step in found for e in evidence.producer(context, step, field, always=True))
    steps = list(dict.fromkeys(told))
    place = program.location(fallback.function.module, position(fallback.test))
    guard = flow.guard_at(fallback.function, fallback.statement).implied
    where = f"runs only under `{guard}`" if guard else "runs whatever the DCP size"
    steps.append(
        Evidence(
            f"the fallback {where}, and what gets there comes from the producers above: "
            "it never sees None",
            place,
            Role.GUARD,
        )
    )
    return RULE.finding(
        f"`{fallback.function.qualname}` derives {field.name} where it is None, "
        f"but every producer that reaches it fills it in ({len(found)} found)",
        place,
        symbol=fallback.function.qualname,
        evidence=tuple(steps),
        fix=drop(context, fallback),
    )
