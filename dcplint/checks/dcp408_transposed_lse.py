"""An LSE whose heads and rows stand the other way round than its merge takes them.

## What it flags
An impl that owes an LSE of one order of dimensions, such as rows by heads, and returns what its
kernel gives in another; and a merge, over ranks or of two parts on one, that takes one order and
gets the other. What turns the dimensions on the way (`transpose`, `permute`, `.T`) counts, through
helpers and tuples.

## Why it breaks
The merge then weighs one head's output by another's LSE. Where there are as many rows as heads, or
where only strides are looked at, nothing raises and the answer is wrong; elsewhere it fails over
sizes, at the first batch that is not square.

## Bad
```python
from vllm.model_executor.layers.attention.mla_attention import MLACommonImpl
from vllm.v1.attention.backends.fa_utils import flash_attn_varlen_func


class MyImpl(MLACommonImpl):
    supports_dcp = True
    can_return_lse_for_decode = True

    def __init__(self, *args, **kwargs): ...

    def forward_mha(self, *args): ...

    def forward_mqa(self, q, kv_c_and_k_pe_cache, attn_metadata, layer):
        out, lse = flash_attn_varlen_func(q=q, k=kv_c_and_k_pe_cache, return_softmax_lse=True)
        return out, lse
```

## Good
```python
from vllm.model_executor.layers.attention.mla_attention import MLACommonImpl
from vllm.v1.attention.backends.fa_utils import flash_attn_varlen_func


class MyImpl(MLACommonImpl):
    supports_dcp = True
    can_return_lse_for_decode = True

    def __init__(self, *args, **kwargs): ...

    def forward_mha(self, *args): ...

    def forward_mqa(self, q, kv_c_and_k_pe_cache, attn_metadata, layer):
        out, lse = flash_attn_varlen_func(q=q, k=kv_c_and_k_pe_cache, return_softmax_lse=True)
        return out, lse.transpose(0, 1)
```

## How it is confirmed
The LSE of each shard is compared with the oracle's, row by row and head by head.

## Known limits
Only kernels and merges that the contract describes have a known order. What reshapes, squeezes or
joins an LSE is not followed, and a turn that only some ways take, by a test of the shape say, is
taken to be right.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dcplint.checks.base import Context, Rule
from dcplint.contracts.model import Term
from dcplint.facts.expressions import shorten
from dcplint.facts.positions import position
from dcplint.findings.model import Evidence, Finding, Role, Severity
from dcplint.flow.axes import Axed, Axes
from dcplint.flow.kernels import MERGES
from dcplint.flow.merging import Use, mergings, operands
from dcplint.flow.outputs import Owed

RULE = Rule(
    code="DCP408",
    name="transposed-lse",
    summary="flags LSEs that are returned, or merged, heads by rows where rows by heads is due",
    severity=Severity.ERROR,
    since="0.1.0",
    probe="the LSE of each shard against the oracle's, row by row and head by head",
    follows=False,
)


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding per kernel whose LSE is owed the other way, then per merge that gets one."""
    flow = context.outputs
    axes = Axes(flow.kernels, flow.scenario.lookup)
    told: set[object] = set()
    for owed in (owed for owed in flow.owed if owed.output.axes):
        for found in axes.of(flow.made_of(owed)):
            if found.axes != owed.output.axes and found.node not in told:
                told.add(found.node)
                yield _owed(context, owed, found)
    terms = tuple(t for kind in MERGES for t in flow.kernels.described(kind) if t.axes)
    for symbol in context.program.classes("impl"):
        for merging in mergings(flow, symbol, terms):
            for use in merging.uses:
                for found in axes.of(operands(flow, symbol, use)):
                    key = (use[2], found.node)
                    if found.axes != merging.term.axes and key not in told:
                        told.add(key)
                        yield _merged(context, merging.term, use, found)


def _owed(context: Context, owed: Owed, found: Axed) -> Finding:
    program = context.program
    made = program.location(found.function.module, position(found.node))
    return RULE.finding(
        f"`{owed.symbol}` owes its LSE as {_listed(owed.output.axes)}, and returns "
        f"{_listed(found.axes)} from `{owed.method.qualname}`: what `{found.kernel}` "
        f"gives{found.how}",
        made,
        symbol=found.function.qualname,
        evidence=(
            Evidence(
                f"`{owed.symbol}` owes the LSE", program.location_of(owed.symbol), Role.CONTEXT
            ),
        ),
    )


def _merged(context: Context, term: Term, use: Use, found: Axed) -> Finding:
    program, (function, _, call) = context.program, use
    made = program.location(found.function.module, position(found.node))
    return RULE.finding(
        f"`{shorten(call.func)}` in `{function.qualname}` merges LSEs of {_listed(term.axes)}, and "
        f"gets {_listed(found.axes)}: what `{found.kernel}` gives{found.how}",
        program.location(function.module, position(call)),
        symbol=function.qualname,
        evidence=(Evidence(f"`{found.kernel}` makes the LSE here", made, Role.ORIGIN),),
    )


def _listed(axes: Iterable[str]) -> str:
    return f"[{', '.join(axes)}]"
