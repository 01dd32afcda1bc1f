"""A metadata builder stores into a tensor that the other builders read next.

## What it flags
An in-place store (`x[…] -= v`, `x -= v`, `x.clamp_()`) by a builder or impl into a tensor of the
batch metadata that it was given, or into a view of one, without cloning it first: itself, or by a
function that it hands the tensor or the record to. A copy of the record (`copy.copy`,
`dataclasses.replace`) has the same tensors, and so does an attribute that one is kept in.

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
A variable that is sometimes the record's tensor and sometimes something else counts only where no
test that is not understood can keep the two apart: where the store runs whenever the variable is
set, or where what the batch holds decides about the store, and how the engine is set up about the
variable. A test that compares it with the record's own tensor (`is`, `data_ptr()`) is understood.
Functions that are called are followed, four deep, where a call can run one alone; kernels are not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from dcplint.checks.base import Context, Rule
from dcplint.checks.field_fix import clone
from dcplint.checks.wording import said_of
from dcplint.facts.expressions import shorten
from dcplint.facts.positions import position
from dcplint.findings.model import Evidence, Finding, Severity
from dcplint.flow.functions import callee_name
from dcplint.flow.stores import Store, is_looked_at, shared_stores
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

_IDEMPOTENT = frozenset({"clamp_", "clamp_min_", "clamp_max_"})


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding per function and tensor that a builder or impl stores into."""
    flow, program = context.fields, context.program
    for field in flow.fields:
        for function in flow.universe.matching(lambda text: True, partial(is_looked_at, program)):
            owner = function.owner
            assert owner is not None
            told: set[str | ast.stmt] = set()
            for store in shared_stores(flow, function, field):
                if told & {store.attribute, store.statement}:
                    continue
                if not flow.tracer.can_run(function, store.statement):
                    continue
                told |= {store.attribute, store.statement}
                yield _finding(context, owner, store)


def _finding(context: Context, owner: ClassSymbol, store: Store) -> Finding:
    message = (
        f"`{store.function.qualname}` stores into `{store.record}.{store.attribute}`, "
        "which the builders of other layers share"
    )
    if store.copied:
        message += ", by way of a copy that holds the same tensor"
    if store.by is not None:
        message += f", by way of `{store.by[0].qualname}`"
    severity = None
    refusing = refusing_impls(context.program, owner)
    if refusing:
        severity = Severity.NOTE
        message += f"; not under DCP, which {said_of(refusing, 'refuse')}"
    elif _is_harmless(context, store):
        severity = Severity.NOTE
        message += "; it holds no lengths, and whoever does the same again changes nothing"
    far = store.target.lineno > store.statement.lineno  # one of many arguments
    shown = store.target if far else store.statement
    return RULE.finding(
        message,
        context.program.location(store.function.module, position(shown)),
        symbol=store.function.qualname,
        severity=severity,
        evidence=_evidence(context, store),
        fix=clone(context, store),
    )


def _evidence(context: Context, store: Store) -> tuple[Evidence, ...]:
    """The helper that stores, where one does."""
    if store.by is None:
        return ()
    function, statement = store.by
    text = f"{function.qualname} stores into what it is given: {shorten(statement)}"
    return (Evidence(text, context.program.location(function.module, position(statement))),)


def _is_harmless(context: Context, store: Store) -> bool:
    """Whether a tensor without lengths is cut to fixed bounds, which twice is as good as once."""
    contract = context.contract
    lengths = (*(fact.name for fact in contract.lengths), *(f.name for f in contract.fields))
    if store.attribute in lengths:
        return False
    return any(
        callee_name(call) in _IDEMPOTENT
        and isinstance(call.func, ast.Attribute)
        and call.func.value is store.target
        and all(isinstance(a, ast.Constant) for a in call.args)
        and all(isinstance(k.value, ast.Constant) for k in call.keywords)
        for call in store.function.calls.get(store.statement, ())
    )
