"""The LSE is kept in the query's half precision.

## What it flags
An impl that owes an LSE and makes it, or turns it, into a tensor of half precision: of the query's
own type, or of a half type written out.

## Why it breaks
LSEs of long sequences are numbers around 10. A bfloat16 keeps them to within 1/32, so the weight
`exp(lse_r - lse)` of a shard is off by up to 3 %, in every layer, and only under DCP. Kernels give
a float32, and the merge reads one.

## Bad
```python
class MyImpl(MLACommonImpl):
    supports_dcp = True
    can_return_lse_for_decode = True

    def forward_mqa(self, q, kv_c_and_k_pe_cache, attn_metadata, layer):
        out = torch.empty_like(q)
        lse = torch.zeros(q.shape[0], q.shape[1], dtype=q.dtype, device=q.device)
        kernel(q, kv_c_and_k_pe_cache, attn_metadata, out, lse)
        return out, lse
```

## Good
```python
class MyImpl(MLACommonImpl):
    supports_dcp = True
    can_return_lse_for_decode = True

    def forward_mqa(self, q, kv_c_and_k_pe_cache, attn_metadata, layer):
        out = torch.empty_like(q)
        lse = torch.zeros(q.shape[0], q.shape[1], dtype=torch.float32, device=q.device)
        kernel(q, kv_c_and_k_pe_cache, attn_metadata, out, lse)
        return out, lse
```

## How it is confirmed
The type of the LSE that comes back, and the merged output against the oracle's.

## Known limits
A model that runs in float32 loses nothing. What type a kernel allocates is not known here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from dcplint.checks.base import Context, Rule
from dcplint.facts.expressions import shorten
from dcplint.facts.positions import position
from dcplint.findings.model import Evidence, Finding, Severity
from dcplint.flow.origins import Origin
from dcplint.flow.outputs import Owed
from dcplint.flow.tensors import dtype, holds_nothing, is_half, is_made
from dcplint.source.location import Tree

RULE = Rule(
    code="DCP403",
    name="lse-low-precision",
    summary="flags LSEs that are kept in the query's half precision",
    severity=Severity.NOTE,
    since="0.1.0",
    probe="the type of the LSE of each shard",
    follows=False,
)


@dataclass(frozen=True, slots=True)
class _Low:
    """The expression that makes an LSE one of half precision, and the type as it is written."""

    owed: Owed
    origin: Origin
    node: ast.expr
    stated: ast.expr


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding per expression, with every class whose LSE it makes."""
    found: dict[ast.expr, list[_Low]] = {}
    for owed in context.outputs.owed:
        for origin in context.outputs.made_of(owed) or ():
            for low in _low(context, owed, origin):
                found.setdefault(low.node, []).append(low)
    for lows in found.values():
        yield _finding(context, lows)


def _low(context: Context, owed: Owed, origin: Origin) -> Iterator[_Low]:
    if origin.element and is_made(origin.node):
        return  # a tensor that is returned alone: DCP401 or DCP407 speaks of it
    for node in (origin.node, *origin.done):
        if not isinstance(node, ast.expr):
            continue
        stated = dtype(node)
        if stated is None or holds_nothing(node):
            continue
        if is_half(stated) or _is_query(context, owed, origin, stated):
            yield _Low(owed, origin, node, stated)


def _is_query(context: Context, owed: Owed, origin: Origin, stated: ast.expr) -> bool:
    """Whether a type is that of the method's query: `q.dtype`, or `q` as the pattern."""
    if owed.output.query is None:
        return False
    tensor = stated.value if isinstance(stated, ast.Attribute) else stated
    if isinstance(stated, ast.Attribute) and stated.attr != "dtype":
        return False
    query = owed.method.parameters[1:][owed.output.query]
    found = context.outputs.origins(owed.symbol).before(origin.frame, origin.place, tensor)
    return bool(found) and all(
        isinstance(source.node, ast.Name)
        and source.function is owed.method
        and source.node.id == query
        for source in found or ()
    )


def _finding(context: Context, lows: list[_Low]) -> Finding:
    program, low = context.program, lows[0]
    place = program.location(low.origin.function.module, position(low.node))
    heirs = dict.fromkeys(other.owed.symbol for other in lows)
    outside = place.tree is not Tree.PROJECT
    steps = (Evidence(f"{heir} returns it", program.location_of(heir)) for heir in heirs)
    return RULE.finding(
        f"the LSE of `{low.owed.symbol}` takes the type of `{shorten(low.stated)}`, half precision "
        f"where the model runs in it: `{shorten(low.node)}`",
        program.location_of(low.owed.symbol) if outside else place,
        symbol=low.origin.function.qualname,
        evidence=tuple(steps),
    )
