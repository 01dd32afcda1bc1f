"""Only some ranks reach a collective, and the others wait for ever.

## What it flags
A collective of the DCP group, or a merge over ranks, that runs on one side only of a test that
comes out differently on some ranks: by the rank itself, in this group or in one around it, or by
this rank's own lengths, however they were derived, in whatever field, argument or helper, and by
what such a test has chosen. Early returns, loops as often as this rank has chunks, and collectives
inside helpers count as well.

## Why it breaks
Every rank must enter a collective. One that holds no token of a short sequence, or is not rank 0,
goes on without; the others hang until the watchdog ends the job.

## Bad
```python
from vllm.distributed.parallel_state import get_dcp_group
from vllm.v1.attention.backend import AttentionImpl, CommonAttentionMetadata

class MyImpl(AttentionImpl):
    def gather(self, kv, meta: CommonAttentionMetadata):
        if int(meta.dcp_local_seq_lens.max()) == 0:
            return kv
        return get_dcp_group().all_gather(kv, dim=0)
```

## Good
```python
from vllm.distributed.parallel_state import get_dcp_group
from vllm.v1.attention.backend import AttentionImpl, CommonAttentionMetadata

class MyImpl(AttentionImpl):
    def gather(self, kv, meta: CommonAttentionMetadata):
        if int(meta.seq_lens.max()) == 0:
            return kv
        return get_dcp_group().all_gather(kv, dim=0)
```

## How it is confirmed
The backend runs as one process per rank, with a sequence so short that some ranks hold nothing; a
run that does not end in time is a hang.

## Known limits
A test that some other value decides is taken to come out alike on every rank. Sides that both run a
collective of one name are taken to match, and a side that always raises is taken for a refusal.
"""

from __future__ import annotations

from collections.abc import Iterator

from dcplint.checks.base import Context, Rule
from dcplint.facts.expressions import shorten
from dcplint.facts.positions import position
from dcplint.findings.model import Evidence, Finding, Role, Severity
from dcplint.source.location import Tree
from dcplint.units.variance import Split

RULE = Rule(
    code="DCP307",
    name="rank-variant-collective",
    summary="flags collectives that only some ranks reach",
    severity=Severity.ERROR,
    since="0.1.0",
    probe="one process per rank, with a sequence so short that some ranks hold nothing",
)


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding per test that parts the ranks before a collective."""
    variance = context.variance
    tracer = context.fields.tracer
    for function in variance.runners:
        if function.module.tree is Tree.PROJECT:
            for split in variance.splits(function):
                if tracer.can_run(function, split.statement) and tracer.is_live(function):
                    yield _finding(context, split)


def _finding(context: Context, split: Split) -> Finding:
    program, function = context.program, split.function
    collective = program.location(function.module, position(split.collective))
    source = program.location(split.source.function.module, position(split.source.node))
    return RULE.finding(
        f"`{function.qualname}` runs `{shorten(split.collective.func)}` on one side only of "
        f"`{shorten(split.test)}`, which is not the same on every rank: the others wait",
        program.location(function.module, position(split.test)),
        symbol=function.qualname,
        evidence=(
            Evidence(split.source.text, source, Role.ORIGIN),
            Evidence("every rank must reach this call", collective, Role.CONSUMER),
        ),
    )
