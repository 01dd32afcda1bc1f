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
from dcplint.checks.missing_field import Join, joins
from dcplint.checks.wording import said_of
from dcplint.findings.model import Evidence, Finding, Severity

RULE = Rule(
    code="DCP203",
    name="missing-producer",
    summary="flags batch metadata built without a contract field that a consumer reads",
    severity=Severity.ERROR,
    since="0.1.0",
    probe="the runner's own function that builds the batch: is the field there?",
)


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each place that builds metadata which lacks the field at a reader.

    Where several meet before anything fills the field in, that is the one place which owes it.
    """
    for join in joins(context):
        first, field = join.missing[0], join.missing[0].field
        filled = any(missing.filled for missing in join.missing)
        readers = dict.fromkeys(name for missing in join.missing for name in missing.readers)
        if len(join.missing) == 1:
            fills = "it is not always filled in" if filled else "nothing fills it in"
            said = (
                f"`{first.origin.symbol}` leaves {field.name} of {first.record} None, "
                f"{fills} on the way"
            )
        else:
            makers = dict.fromkeys(f"`{missing.origin.symbol}`" for missing in join.missing)
            fills = "some ways only fill in" if filled else "nothing fills in"
            said = (
                f"`{join.step.symbol}` hands on batches without {field.name}: {fills} what "
                f"{said_of(makers, 'leave')} None"
            )
        yield RULE.finding(
            f"{said}, and {said_of(readers, 'read')} it under DCP",
            join.location,
            symbol=join.step.symbol,
            evidence=tuple(_evidence(join)),
        )


def _evidence(join: Join) -> Iterator[Evidence]:
    """What is each maker's own, then what all have in common."""
    shared = [e for e in join.missing[0].evidence if all(e in m.evidence for m in join.missing)]
    own = (e for missing in join.missing for e in missing.evidence if e not in shared)
    yield from dict.fromkeys(own)
    yield from shared
