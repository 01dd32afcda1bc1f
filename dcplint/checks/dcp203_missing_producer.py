"""A runner builds batch metadata without a contract field that its consumers read.

## What it flags
A record built from scratch with a contract field absent or None, on a path that can run with DCP
on, reaches a consumer that reads the field, and nothing fills it in on the way.

## Why it breaks
The consumer gets None where it needs this rank's lengths. Dummy and capture batches are the usual
place: the model crashes when graphs are captured, or captures a graph that reads the wrong tensor.

## Bad
```python
from vllm.distributed.parallel_state import get_dcp_group
from vllm.v1.attention.backend import AttentionMetadataBuilder, CommonAttentionMetadata

from .lengths import get_dcp_local_seq_lens


class MyBuilder(AttentionMetadataBuilder):
    def build(self, prefix_len, common: CommonAttentionMetadata):
        return common.dcp_local_seq_lens[:common.num_reqs]


def warm_up(builder: MyBuilder, seq_lens):
    common = CommonAttentionMetadata(seq_lens=seq_lens, num_reqs=1)
    return builder.build(0, common)
```

## Good
```python
from vllm.distributed.parallel_state import get_dcp_group
from vllm.v1.attention.backend import AttentionMetadataBuilder, CommonAttentionMetadata

from .lengths import get_dcp_local_seq_lens


class MyBuilder(AttentionMetadataBuilder):
    def build(self, prefix_len, common: CommonAttentionMetadata):
        return common.dcp_local_seq_lens[:common.num_reqs]


def warm_up(builder: MyBuilder, seq_lens):
    common = CommonAttentionMetadata(seq_lens=seq_lens, num_reqs=1)
    if get_dcp_group().world_size > 1:
        common.dcp_local_seq_lens = get_dcp_local_seq_lens(seq_lens)
    return builder.build(0, common)
```

## How it is confirmed
The runner's own function builds the batch; the field is None where the contract owes it.

## Known limits
Runners whose calls cannot be followed are not judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from dcplint.checks.base import Context, Rule
from dcplint.checks.missing_field import missing_fields
from dcplint.checks.wording import said_of
from dcplint.findings.model import Finding, Severity

RULE = Rule(
    code="DCP203",
    name="missing-producer",
    summary="flags batch metadata built without a contract field that a consumer reads",
    severity=Severity.ERROR,
    since="0.1.0",
    probe="the runner's own function that builds the batch: is the field there?",
)


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each place that builds metadata which lacks the field at a reader."""
    for missing in missing_fields(context):
        if not missing.rebuilt_from:
            fills = "it is not always filled in" if missing.filled else "nothing fills it in"
            yield RULE.finding(
                f"`{missing.origin.symbol}` leaves {missing.field.name} of {missing.record} None, "
                f"{fills} on the way, and {said_of(missing.readers, 'read')} it "
                "under DCP",
                missing.location,
                symbol=missing.origin.symbol,
                evidence=missing.evidence,
            )
