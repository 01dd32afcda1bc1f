"""A branch derives a contract field where it is None, and hides who left it None.

## What it flags
The same shape as DCP201, where some producer can leave the field None: the finding names it. Where
*every* producer leaves it None the branch is the producer, and nothing is reported.

## Why it breaks
The gap is a bug of its own, in another file, and it stays: the fallback answers with a quantity
derived from other inputs instead of failing where the field was due.

## Bad
```python
from vllm.distributed.parallel_state import get_dcp_group
from vllm.v1.attention.backend import AttentionMetadataBuilder, CommonAttentionMetadata

from .lengths import get_dcp_local_seq_lens


class MyBuilder(AttentionMetadataBuilder):
    def build(self, prefix_len, common: CommonAttentionMetadata):
        shards = get_dcp_group().world_size
        if shards > 1 and common.dcp_local_seq_lens is None:  # which `half` has dropped
            return get_dcp_local_seq_lens(common.seq_lens, shards)
        return common.dcp_local_seq_lens


def half(common: CommonAttentionMetadata):
    return CommonAttentionMetadata(seq_lens=common.seq_lens[::2])


def execute(builder: MyBuilder, batch):
    local = get_dcp_local_seq_lens(batch.seq_lens)
    common = CommonAttentionMetadata(seq_lens=batch.seq_lens, dcp_local_seq_lens=local)
    builder.build(0, half(common))
    builder.build(0, common)
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


def half(common: CommonAttentionMetadata):
    local = common.dcp_local_seq_lens
    return CommonAttentionMetadata(
        seq_lens=common.seq_lens[::2], dcp_local_seq_lens=None if local is None else local[::2]
    )


def execute(builder: MyBuilder, batch):
    local = get_dcp_local_seq_lens(batch.seq_lens)
    common = CommonAttentionMetadata(seq_lens=batch.seq_lens, dcp_local_seq_lens=local)
    builder.build(0, half(common))
    builder.build(0, common)
```

## How it is confirmed
The builder runs on the batch that the named producer makes: the branch is taken, and the metadata
differs from what the field would have given, or is the same and the gap goes unnoticed.

## Known limits
As DCP201.
"""

from __future__ import annotations

from collections.abc import Iterator

from dcplint.checks import field_evidence as evidence
from dcplint.checks.base import Context, Rule
from dcplint.facts.positions import position
from dcplint.findings.model import Finding, Severity
from dcplint.flow.fallbacks import Fallback
from dcplint.flow.fields import gaps, producers
from dcplint.flow.trace import Outcome, State

RULE = Rule(
    code="DCP202",
    name="masking-fallback",
    summary="flags fallbacks that hide a producer which leaves a contract field None",
    severity=Severity.WARNING,
    since="0.1.0",
    probe="the builder on the batch that the named producer makes, with branch events",
)


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each fallback that hides a gap."""
    flow = context.fields
    for field in flow.fields:
        for fallback in flow.fallbacks(field):
            if evidence.is_producer(context, fallback):
                continue
            outcomes = flow.outcomes(fallback.function, fallback.statement, fallback.path)
            filled = any(outcome.state is State.SET for outcome in outcomes)
            if filled and gaps(outcomes):
                yield _finding(context, fallback, outcomes)


def _finding(context: Context, fallback: Fallback, outcomes: tuple[Outcome, ...]) -> Finding:
    field, program = fallback.field, context.program
    missing = gaps(outcomes)
    steps = [step for outcome in missing for step in evidence.gap(context, outcome, field)]
    for step in producers(outcomes, field):
        steps += evidence.producer(context, step, field)
    return RULE.finding(
        f"`{fallback.function.qualname}` derives {field.name} where it is None "
        f"and so hides that it is not filled in by {evidence.names(missing)}",
        program.location(fallback.function.module, position(fallback.test)),
        symbol=fallback.function.qualname,
        evidence=tuple(steps),
    )
