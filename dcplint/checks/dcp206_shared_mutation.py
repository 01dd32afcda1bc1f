"""A metadata builder stores into a tensor that the other builders read next.

## What it flags
An in-place store (`x[…] -= v`, `x -= v`, `x.clamp_()`) by a builder or impl into a tensor of the
batch metadata that it was given, or into a view of one, without cloning it first.

## Why it breaks
All KV cache groups and layers build from one record. Whoever builds after this one sees lengths
that are already reduced, and localises them a second time.

## Bad
```python
from vllm.v1.attention.backend import AttentionMetadataBuilder, CommonAttentionMetadata


class MyBuilder(AttentionMetadataBuilder):
    def build(self, prefix_len, common: CommonAttentionMetadata):
        lens = common.seq_lens
        lens[common.num_decodes :] -= common.query_lens
        return lens
```

## Good
```python
from vllm.v1.attention.backend import AttentionMetadataBuilder, CommonAttentionMetadata


class MyBuilder(AttentionMetadataBuilder):
    def build(self, prefix_len, common: CommonAttentionMetadata):
        lens = common.seq_lens.clone()
        lens[common.num_decodes :] -= common.query_lens
        return lens
```

## How it is confirmed
The builder runs on a batch; the batch is compared byte by byte before and after.

## Known limits
A store inside a called helper is not followed. A variable that is sometimes the record's tensor and
sometimes a copy counts only where the store runs whenever the variable is set, so that no test that
is not understood can keep the two apart.
"""

from __future__ import annotations

from collections.abc import Iterator

from dcplint.checks.base import Context, Rule
from dcplint.checks.field_fix import clone
from dcplint.checks.wording import said_of
from dcplint.facts.positions import position
from dcplint.findings.model import Finding, Severity
from dcplint.flow.records import Store, shared_stores
from dcplint.program.reach import refusing_impls
from dcplint.program.symbols import ClassSymbol

RULE = Rule(
    code="DCP206",
    name="shared-mutation",
    summary="flags builders that store into batch metadata which others share",
    severity=Severity.ERROR,
    since="0.1.0",
    probe="the batch metadata, byte by byte, before and after the builder runs",
)

_READERS = frozenset({"builder", "impl"})


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding per function and tensor that a builder or impl stores into."""
    flow, program = context.fields, context.program
    for field in flow.fields:
        for function in flow.universe.mentioning(field.record.rpartition(".")[2]):
            owner = function.owner
            if owner is None or not program.roles(owner) & _READERS:
                continue
            told: set[str] = set()
            for store in shared_stores(flow, function, field):
                if store.attribute in told or not flow.tracer.can_run(function, store.statement):
                    continue
                told.add(store.attribute)
                yield _finding(context, owner, store)


def _finding(context: Context, owner: ClassSymbol, store: Store) -> Finding:
    message = (
        f"`{store.function.qualname}` stores into `{store.record}.{store.attribute}`, "
        "which the builders of other layers share"
    )
    severity = None
    refusing = refusing_impls(context.program, owner)
    if refusing:
        severity = Severity.NOTE
        message += f"; not under DCP, which {said_of(refusing, 'refuse')}"
    return RULE.finding(
        message,
        context.program.location(store.function.module, position(store.statement)),
        symbol=store.function.qualname,
        severity=severity,
        fix=clone(context, store),
    )
