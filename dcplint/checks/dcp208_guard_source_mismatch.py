"""One decision that is guarded by two different sources of the DCP size.

## What it flags
An attribute that a builder or impl sets only under a test of the DCP size from one source (the
process group, or a field of the configuration), and uses under a test of the size from another.

## Why it breaks
The two sources agree until somebody changes one of them: a draft model that runs without DCP gets a
configuration that says so, while the process group stays what it is. Then the attribute is used
where it was never set, or is set and never used.

## Bad
```python
from vllm.distributed.parallel_state import get_dcp_group
from vllm.v1.attention.backend import AttentionMetadataBuilder


class MyBuilder(AttentionMetadataBuilder):
    def __init__(self, kv_cache_spec, layer_names, vllm_config, device):
        self.dcp_world_size = get_dcp_group().world_size
        if vllm_config.parallel_config.decode_context_parallel_size > 1:
            self.local_lens = make_buffer(device)

    def build(self, prefix_len, common):
        if self.dcp_world_size > 1:
            return self.local_lens
        return common.seq_lens
```

## Good
```python
from vllm.distributed.parallel_state import get_dcp_group
from vllm.v1.attention.backend import AttentionMetadataBuilder


class MyBuilder(AttentionMetadataBuilder):
    def __init__(self, kv_cache_spec, layer_names, vllm_config, device):
        self.dcp_world_size = get_dcp_group().world_size
        if self.dcp_world_size > 1:
            self.local_lens = make_buffer(device)

    def build(self, prefix_len, common):
        if self.dcp_world_size > 1:
            return self.local_lens
        return common.seq_lens
```

## How it is confirmed
The builder is made under a configuration without DCP while the process group has two ranks, as for
a draft model, and builds a batch.

## Known limits
A class is judged by itself: what a base sets and an heir uses is not compared.
"""

from __future__ import annotations

from collections.abc import Iterator

from dcplint.checks.base import Context, Rule
from dcplint.facts.positions import position
from dcplint.findings.model import Evidence, Finding, Role, Severity
from dcplint.flow.sources import Guarded, Mismatch, mismatches

RULE = Rule(
    code="DCP208",
    name="guard-source-mismatch",
    summary="flags decisions guarded by two different sources of the DCP size",
    severity=Severity.NOTE,
    since="0.1.0",
    probe="the builder under a configuration without DCP and a process group of two",
)


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding per attribute that is set under one source and used under another."""
    for role in ("builder", "impl"):
        for symbol in context.program.classes(role):
            for mismatch in mismatches(context.fields, symbol):
                yield _finding(context, mismatch)


def _finding(context: Context, mismatch: Mismatch) -> Finding:
    set_at, used_at, name = mismatch.set_at, mismatch.used_at, mismatch.attribute
    return RULE.finding(
        f"`{used_at.function.qualname}` uses `self.{name}` where {used_at.source} says that DCP is "
        f"on, and it is set only where {set_at.source} says so",
        context.program.location(used_at.function.module, position(used_at.statement)),
        symbol=used_at.function.qualname,
        evidence=(
            _evidence(context, set_at, f"`self.{name}` is set"),
            _evidence(context, used_at, f"`self.{name}` is used"),
        ),
    )


def _evidence(context: Context, place: Guarded, what: str) -> Evidence:
    text = f"{what} under a test of {place.source}"
    where = context.program.location(place.function.module, position(place.test))
    return Evidence(text, where, Role.GUARD)
