"""A buffer has room for this rank's heads, and the query has those of every rank.

## What it flags
An impl whose query arrives gathered over the heads of all ranks, and which under DCP
- returns an output or LSE from a buffer that is sized by its own number of heads,
- hands such a buffer to the same call as the query,
- gives the query a shape by its own number of heads, or keeps only that many heads of a result.

An impl that merges over ranks itself, where what it merges is sized by its own number of heads.
And one that gathers a tensor over the DCP ranks itself, and hands what it gathered to a call beside
a buffer that has room for what it had before, or gives it that shape.

And, anywhere, a number of heads that is multiplied by the DCP size though it has been before.

## Why it breaks
The kernel writes past the buffer, or the merge gets the heads of one rank in place of all. A view
of the gathered query by local heads has more rows than requests, and no error says so. A kernel
that is planned for N times the heads there are takes N times the memory, and may not start.

## Bad
```python
class MyImpl(MLACommonImpl):
    supports_dcp = True
    can_return_lse_for_decode = True

    def forward_mqa(self, q, kv_c_and_k_pe_cache, attn_metadata, layer):
        out = torch.empty(q.shape[0], self.num_heads, self.kv_lora_rank, dtype=q.dtype)
        lse = kernel(q, kv_c_and_k_pe_cache, attn_metadata, out)
        return out, lse
```

## Good
```python
class MyImpl(MLACommonImpl):
    supports_dcp = True
    can_return_lse_for_decode = True

    def forward_mqa(self, q, kv_c_and_k_pe_cache, attn_metadata, layer):
        out = torch.empty(q.shape[0], q.shape[1], self.kv_lora_rank, dtype=q.dtype)
        lse = kernel(q, kv_c_and_k_pe_cache, attn_metadata, out)
        return out, lse
```

## How it is confirmed
The impl decodes with two heads per rank: the shapes of what comes back.

## Known limits
Sizes are compared by the names that they come from, not by arithmetic: a number of heads that is
computed from local ones (padded, rounded) is unknown. Head sizes of K and V are not told apart.
Queries are known to be gathered where the engine does it, or the impl by a group's `all_gather`; of
the latter, what they measured before is known where they were given a shape.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dcplint.checks.base import Context, Rule
from dcplint.checks.local_heads import Fault, local_heads
from dcplint.checks.multiplied_heads import Product, multiplied_twice
from dcplint.facts.expressions import shorten
from dcplint.facts.positions import position
from dcplint.findings.model import Evidence, Finding, Role, Severity
from dcplint.source.location import Tree

RULE = Rule(
    code="DCP405",
    name="local-vs-gathered-heads",
    summary="flags buffers sized by this rank's heads that meet a query with every rank's",
    severity=Severity.ERROR,
    since="0.1.0",
    probe="the shapes of output and LSE, with two heads per rank",
)


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding per expression that counts local heads where all are due."""
    told: set[ast.expr] = set()
    for fault in local_heads(context):
        if fault.node not in told:
            told.add(fault.node)
            yield _finding(context, fault)
    for product in multiplied_twice(context):
        yield _twice(context, product)


def _finding(context: Context, fault: Fault) -> Finding:
    program, function = context.program, fault.frame.function
    place = program.location(function.module, position(fault.node))
    if place.tree is not Tree.PROJECT:
        place = program.location_of(fault.symbol)
    return RULE.finding(
        f"`{shorten(fault.node)}` counts only {fault.query.part} (`{shorten(fault.size)}`) "
        f"{fault.meets}; under DCP {fault.query.whole}",
        place,
        symbol=function.qualname,
        evidence=(fault.query.gathered,),
    )


def _twice(context: Context, product: Product) -> Finding:
    program, function = context.program, product.function
    return RULE.finding(
        f"`{shorten(product.node)}` multiplies a number of heads by the DCP size that has been "
        f"multiplied before: `{shorten(product.heads)}` is `{shorten(product.before[0][1])}`",
        program.location(function.module, position(product.node)),
        symbol=function.qualname,
        severity=Severity.WARNING,
        evidence=tuple(
            Evidence(
                f"{where.qualname}: {shorten(value)}",
                program.location(where.module, position(value)),
                Role.ORIGIN if index == 0 else Role.CONTEXT,
            )
            for index, (where, value) in enumerate(product.before)
        ),
    )
