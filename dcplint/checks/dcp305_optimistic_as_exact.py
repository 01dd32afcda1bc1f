"""An upper bound stands where the exact length is due.

## What it flags
A value that may be larger than the length (lengths that count every draft token as accepted, the
largest share of any rank, `ceil(L / (N*I)) * I`) given to a kernel argument, or stored in a field,
that the pack says is exact. Sizing launches and workspaces by a bound is what bounds are for.

## Why it breaks
The rank attends over tokens that are not there: rejected drafts, or slots another rank owns.

## Bad
```python
from vllm.v1.attention.backend import CommonAttentionMetadata
from vllm.v1.attention.backends.utils import get_dcp_local_seq_lens
from vllm.v1.worker.gpu_model_runner import GPUModelRunner

class MyRunner(GPUModelRunner):
    def localise(self, meta: CommonAttentionMetadata):
        meta.dcp_local_seq_lens = get_dcp_local_seq_lens(
            meta.seq_lens_cpu_upper_bound, self.dcp_world_size, self.dcp_rank
        )
```

## Good
```python
from vllm.v1.attention.backend import CommonAttentionMetadata
from vllm.v1.attention.backends.utils import get_dcp_local_seq_lens
from vllm.v1.worker.gpu_model_runner import GPUModelRunner

class MyRunner(GPUModelRunner):
    def localise(self, meta: CommonAttentionMetadata):
        meta.dcp_local_seq_lens = get_dcp_local_seq_lens(
            meta.seq_lens, self.dcp_world_size, self.dcp_rank
        )
```

## How it is confirmed
The backend decodes with poison in every slot that a rank does not own.

## Known limits
A bound that is exact for the rows at hand, as the pack's source may say, looks like any other;
where only one of several ways brings a bound, nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from dcplint.checks.base import Context, Rule
from dcplint.checks.length_evidence import trail, wanted
from dcplint.facts.expressions import shorten
from dcplint.facts.positions import position
from dcplint.findings.model import Finding, Severity
from dcplint.units.lattice import LENGTHS, Value
from dcplint.units.sinks import Sink, argument_sinks, field_sinks

RULE = Rule(
    code="DCP305",
    name="optimistic-as-exact",
    summary="flags upper bounds that stand where an exact length is due",
    severity=Severity.WARNING,
    since="0.1.0",
    probe="the backend, with poison in every slot that a rank does not own",
)


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding per bound that is taken for the exact length of the same space."""
    units = context.units
    for sink in chain(argument_sinks(units), field_sinks(units)):
        if sink.unit.bound or sink.unit.counts not in LENGTHS:
            continue
        value = units.value(sink.function, sink.statement, sink.node)
        if not isinstance(value, Value) or value.unit.bound is not True:
            continue
        if value.unit.space is sink.unit.space and value.unit.counts in LENGTHS:
            if context.fields.tracer.can_run(sink.function, sink.statement):
                yield _finding(context, sink, value)


def _finding(context: Context, sink: Sink, value: Value) -> Finding:
    return RULE.finding(
        f"`{sink.function.qualname}` gives {sink.taker} `{shorten(sink.node)}`, the {value.unit}, "
        "where the exact one is due",
        context.program.location(sink.function.module, position(sink.node)),
        symbol=sink.function.qualname,
        evidence=(*trail(context, value), wanted(sink)),
    )
