"""The global lengths of a record change, and its local lengths stay what they were.

## What it flags
Metadata in which the quantity that a contract field localises (`seq_lens`) is changed or replaced
while the field itself (`dcp_local_seq_lens`) is carried along: in a rebuilt record, in a
`replace()`, or by an assignment to a record. Taking the same slice of both is fine.

## Why it breaks
`local(L − k)` is not `local(L) − k`, and not `local(L)`: each rank attends over a number of tokens
that belongs to another length. Nothing crashes; drafts are rejected and answers drift.

## Bad
```python
from vllm.distributed.parallel_state import get_dcp_group
from vllm.v1.attention.backend import AttentionMetadataBuilder, CommonAttentionMetadata

from .lengths import get_dcp_local_seq_lens


class MyBuilder(AttentionMetadataBuilder):
    def build(self, prefix_len, common: CommonAttentionMetadata):
        return common.dcp_local_seq_lens


def drop_rejected(common: CommonAttentionMetadata, rejected):
    common.seq_lens -= rejected  # dcp_local_seq_lens still counts the rejected tokens
    return common


def execute(builder: MyBuilder, batch, rejected):
    local = get_dcp_local_seq_lens(batch.seq_lens, get_dcp_group().world_size)
    common = CommonAttentionMetadata(seq_lens=batch.seq_lens, dcp_local_seq_lens=local)
    return builder.build(0, drop_rejected(common, rejected))
```

## Good
```python
from vllm.distributed.parallel_state import get_dcp_group
from vllm.v1.attention.backend import AttentionMetadataBuilder, CommonAttentionMetadata

from .lengths import get_dcp_local_seq_lens


class MyBuilder(AttentionMetadataBuilder):
    def build(self, prefix_len, common: CommonAttentionMetadata):
        return common.dcp_local_seq_lens


def drop_rejected(common: CommonAttentionMetadata, rejected):
    common.seq_lens -= rejected
    shards = get_dcp_group().world_size
    common.dcp_local_seq_lens = get_dcp_local_seq_lens(common.seq_lens, shards)
    return common


def execute(builder: MyBuilder, batch, rejected):
    local = get_dcp_local_seq_lens(batch.seq_lens, get_dcp_group().world_size)
    common = CommonAttentionMetadata(seq_lens=batch.seq_lens, dcp_local_seq_lens=local)
    return builder.build(0, drop_rejected(common, rejected))
```

## How it is confirmed
The engine's own function runs on a batch with both lengths; what comes out is compared with the
local lengths of the new ones.

## Known limits
Whether a length that is replaced happens to be the same is not proved. Only records whose local
lengths are seen to be filled in are judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from dcplint.checks.base import Context, Rule
from dcplint.checks.wording import said_of
from dcplint.facts.positions import position
from dcplint.findings.model import Evidence, Finding, Role, Severity
from dcplint.flow.functions import Function
from dcplint.flow.records import Change, stale_pairs
from dcplint.program.reach import refusing_impls

RULE = Rule(
    code="DCP205",
    name="stale-pair",
    summary="flags metadata whose global lengths change while the local ones are kept",
    severity=Severity.ERROR,
    since="0.1.0",
    probe="the engine's own function on a batch with both lengths",
)


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding per function and record whose pair is broken."""
    flow = context.fields
    for field in flow.fields:
        told: set[tuple[Function, str]] = set()
        for change in stale_pairs(flow, field):
            if (change.function, change.record) not in told:
                told.add((change.function, change.record))
                yield _finding(context, change)


def _finding(context: Context, change: Change) -> Finding:
    program, field = context.program, change.field
    module = change.function.module
    steps = [
        Evidence(
            f"new {field.localises}: {change.what}; {change.kept}",
            program.location(module, position(change.statement)),
            Role.PRODUCER,
        )
    ]
    steps += (
        Evidence(
            f"{read.function.qualname} reads {field.name}",
            program.location(read.function.module, position(read.node)),
            Role.CONSUMER,
        )
        for read in context.fields.consumers(field)
    )
    message = (
        f"`{change.function.qualname}` gives {field.record.rpartition('.')[2]} a new "
        f"{field.localises} and keeps the old {field.name} of `{change.record}`"
    )
    severity = None
    owner = change.function.owner
    refusing = refusing_impls(program, owner) if owner is not None else ()
    if refusing:
        severity = Severity.NOTE
        message += f"; not under DCP, which {said_of(refusing, 'refuse')}"
    return RULE.finding(
        message,
        program.location(module, position(change.node)),
        symbol=change.function.qualname,
        severity=severity,
        evidence=tuple(steps),
    )
