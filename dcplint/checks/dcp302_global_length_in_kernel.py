"""A kernel gets the length of another space than the one it indexes.

## What it flags
A kernel argument that counts the tokens in this rank's cache and is given global lengths with DCP
on; or one that counts global tokens (for a causal bound) and is given local ones. The pack names
the arguments and what they want; what is passed is followed through locals, slices, buffers,
records, parameters and calls, and to each caller of a helper that hands it on. Also a call that
passes this rank for the mask and leaves the global lengths out, and lengths of every rank, a column
each, that stand where this rank's are due, in an argument or in the contract field. Code that never
runs under DCP, and backends that a gate refuses, may pass what they like.

## Why it breaks
A rank holds about L/N tokens of a sequence. With the global length the kernel reads slots of its
block table that were never written, or belong to other requests; with a local length where a global
one is due, multi-token queries see too little. Nothing crashes.

## Bad
```python
from vllm.v1.attention.backend import AttentionImpl, CommonAttentionMetadata
from vllm.v1.attention.backends.fa_utils import flash_attn_varlen_func

class MyImpl(AttentionImpl):
    supports_dcp = True
    can_return_lse_for_decode = True

    def decode(self, q, cache, meta: CommonAttentionMetadata):
        return flash_attn_varlen_func(
            q, *cache, seqused_k=meta.seq_lens, block_table=meta.block_table_tensor
        )
```

## Good
```python
from vllm.v1.attention.backend import AttentionImpl, CommonAttentionMetadata
from vllm.v1.attention.backends.fa_utils import flash_attn_varlen_func

class MyImpl(AttentionImpl):
    supports_dcp = True
    can_return_lse_for_decode = True

    def decode(self, q, cache, meta: CommonAttentionMetadata):
        lens = meta.dcp_local_seq_lens if self.dcp_world_size > 1 else meta.seq_lens
        return flash_attn_varlen_func(
            q, *cache, seqused_k=lens, block_table=meta.block_table_tensor
        )
```

## How it is confirmed
The backend decodes with poison in every slot that a rank does not own.

## Known limits
Only arguments that the pack names. Where two ways give different units, or a value comes from code
that cannot be read, nothing is said.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import chain
from typing import TypeGuard

from dcplint.checks.base import Context, Rule
from dcplint.checks.length_evidence import runs_under_dcp, trail, wanted
from dcplint.facts.expressions import shorten
from dcplint.facts.positions import position
from dcplint.findings.model import Evidence, Finding, Location, Severity
from dcplint.flow.functions import callee_name
from dcplint.source.location import Tree
from dcplint.units.lattice import LENGTHS, UNITS, Abstract, Space, Value
from dcplint.units.sinks import (
    Sink,
    Unbound,
    argument_sinks,
    field_sinks,
    handed_in,
    unbound_calls,
)

RULE = Rule(
    code="DCP302",
    name="global-length-in-kernel",
    summary="flags kernel arguments that get lengths of another space than they index",
    severity=Severity.ERROR,
    since="0.1.0",
    probe="the backend, with poison in every slot that a rank does not own",
)

_SPACES = {Space.GLOBAL, Space.LOCAL}


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding per argument that gets a length of the other space."""
    fields = (sink for sink in field_sinks(context.units) if sink.unit.space is Space.LOCAL)
    told: set[ast.expr] = set()
    for sink in chain(argument_sinks(context.units), fields):
        if sink.unit.bound:
            continue  # what bounds the whole bounds a part of it
        for place, value in _filled(context, sink):
            if place.node not in told and runs_under_dcp(context, place.function, place.statement):
                told.add(place.node)
                yield _finding(context, place, value)
    for sink in chain(argument_sinks(context.units), field_sinks(context.units)):
        if sink.unit.space is Space.LOCAL:
            given = context.units.value(sink.function, sink.statement, sink.node)
            if isinstance(given, Value) and given.unit.space is Space.ALL_RANKS:
                if context.fields.tracer.can_run(sink.function, sink.statement):
                    yield _finding(context, sink, given)
    for unbound in unbound_calls(context.units):
        if runs_under_dcp(context, unbound.function, unbound.statement):
            yield _left_out(context, unbound)


def _filled(context: Context, sink: Sink) -> Iterator[tuple[Sink, Value]]:
    """Where a sink gets a length of the other space: itself, or where its function is called.

    What callers pass to a helper is asked one by one where they do not all pass the same.
    """
    value = context.units.value(sink.function, sink.statement, sink.node)
    if value is not None:
        if _is_of_the_other(value, sink):
            yield sink, value
        return
    handed = [
        (passed, context.units.value(passed.function, passed.statement, passed.node))
        for passed in handed_in(context.units, sink)
        if runs_under_dcp(context, passed.function, passed.statement)
    ]
    wrong = [(passed, given) for passed, given in handed if _is_of_the_other(given, sink)]
    if wrong and runs_under_dcp(context, sink.function, sink.statement):
        # That nobody passes what is due is the helper's fault.
        spaces = {given.unit.space for _, given in handed if isinstance(given, Value)}
        yield from wrong if sink.unit.space in spaces else ((sink, wrong[0][1]),)


def _is_of_the_other(value: Abstract, sink: Sink) -> TypeGuard[Value]:
    return (
        isinstance(value, Value)
        and value.unit.counts in LENGTHS
        and {value.unit.space, sink.unit.space} == _SPACES
    )


def _finding(context: Context, sink: Sink, value: Value) -> Finding:
    shown, due = shorten(sink.node), sink.unit
    if value.unit.space is Space.ALL_RANKS:
        said = f"gives {sink.taker} `{shown}`, the lengths of every rank, where the {due} is due"
    else:
        asked = f"{sink.taker}, which wants the {due} under DCP"
        said = f"passes the {value.unit} `{shown}` for {asked}"
    return RULE.finding(
        f"`{sink.function.qualname}` {said}",
        context.program.location(sink.function.module, position(sink.node)),
        symbol=sink.function.qualname,
        evidence=(*trail(context, value), wanted(sink)),
    )


def _left_out(context: Context, unbound: Unbound) -> Finding:
    fact, function = unbound.fact, unbound.function
    place = Location(fact.source.pack, fact.source.line, tree=Tree.PACK)
    taker = f"`{callee_name(unbound.call)}({fact.argument}=…)`"
    return RULE.finding(
        f"`{function.qualname}` passes `{unbound.rank}` and no `{fact.argument}`: the kernel masks "
        "each query row by this rank's own length, which says nothing of where the row ends",
        context.program.location(function.module, position(unbound.call.func)),
        symbol=function.qualname,
        evidence=(Evidence(f"{taker} wants the {UNITS[fact.unit]} ({fact.source.text})", place),),
    )
