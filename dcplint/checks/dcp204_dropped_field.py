"""Metadata is rebuilt from other metadata, and a contract field does not come along.

## What it flags
A record that carries a contract field, built from the fields of another record of its kind but
without this one, where the result reaches a consumer that reads it under DCP. Places that the
engine keeps away from DCP are left alone.

## Why it breaks
The consumer gets None where it needs this rank's lengths: it crashes on the first such batch, or,
where it has a fallback, computes from something else. The paths on which metadata is rebuilt
(micro-batches, drafting, prefill splits) are the ones no simple test takes.

## Bad
```python
from vllm.v1.attention.backend import AttentionMetadataBuilder, CommonAttentionMetadata


class MyBuilder(AttentionMetadataBuilder):
    def build(self, prefix_len, common: CommonAttentionMetadata):
        return common.dcp_local_seq_lens[:common.num_reqs]


def slice_requests(builder: MyBuilder, common: CommonAttentionMetadata, part):
    part = CommonAttentionMetadata(
        seq_lens=common.seq_lens[part], block_table_tensor=common.block_table_tensor[part]
    )
    return builder.build(0, part)
```

## Good
```python
from vllm.v1.attention.backend import AttentionMetadataBuilder, CommonAttentionMetadata


class MyBuilder(AttentionMetadataBuilder):
    def build(self, prefix_len, common: CommonAttentionMetadata):
        return common.dcp_local_seq_lens[:common.num_reqs]


def slice_requests(builder: MyBuilder, common: CommonAttentionMetadata, part):
    local = common.dcp_local_seq_lens
    part = CommonAttentionMetadata(
        seq_lens=common.seq_lens[part],
        block_table_tensor=common.block_table_tensor[part],
        dcp_local_seq_lens=None if local is None else local[part],
    )
    return builder.build(0, part)
```

## How it is confirmed
The engine's own rebuilding function runs on a batch that has the field; what comes out lacks it.

## Known limits
A record rebuilt through a mapping (`**fields`) is judged where all keys of the mapping can be read,
and none is the field.
"""

from __future__ import annotations

from collections.abc import Iterator

from dcplint.checks.base import Context, Rule
from dcplint.checks.field_fix import carry
from dcplint.checks.missing_field import missing_fields
from dcplint.checks.wording import said_of
from dcplint.findings.model import Finding, Severity

RULE = Rule(
    code="DCP204",
    name="dropped-field",
    summary="flags metadata rebuilt without a contract field that a consumer reads",
    severity=Severity.ERROR,
    since="0.1.0",
    probe="the engine's own rebuilding function on a batch that has the field",
)


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each place that rebuilds metadata without the field."""
    for missing in missing_fields(context):
        if missing.rebuilt_from:
            yield RULE.finding(
                f"`{missing.origin.symbol}` rebuilds {missing.record} from "
                f"`{missing.rebuilt_from}` without {missing.field.name}, "
                f"which {said_of(missing.readers, 'read')} under DCP",
                missing.location,
                symbol=missing.origin.symbol,
                evidence=missing.evidence,
                fix=carry(context, missing),
            )
