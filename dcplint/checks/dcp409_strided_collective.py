"""A collective of the DCP ranks gets a view whose dimensions are turned about.

## What it flags
A tensor that `transpose`, `permute`, `movedim`, `.T` and their kin have just turned about, given
to one of torch's own collectives (`torch.distributed.all_to_all_single`, `all_gather_into_tensor`,
`reduce_scatter_tensor`, …) among the DCP ranks without `contiguous()`. Variables and conversions
of the dtype in between are followed.

## Why it breaks
A collective sends what lies in memory, and a turned view lies there in its old order. NCCL's
process group refuses it ("Tensors must be contiguous"); a communicator that only takes the address
sends one head's values for another's, and every rank's answer is wrong.

## Bad
```python
import torch
import torch.distributed as dist

from vllm.distributed.parallel_state import get_dcp_group
from vllm.v1.attention.backend import AttentionImpl


class MyImpl(AttentionImpl):
    def exchange(self, out_lse: torch.Tensor):
        send = out_lse.permute(1, 2, 0)
        received = torch.empty(send.shape, dtype=send.dtype, device=send.device)
        dist.all_to_all_single(received, send, group=get_dcp_group().device_group)
        return received
```

## Good
```python
import torch
import torch.distributed as dist

from vllm.distributed.parallel_state import get_dcp_group
from vllm.v1.attention.backend import AttentionImpl


class MyImpl(AttentionImpl):
    def exchange(self, out_lse: torch.Tensor):
        send = out_lse.permute(1, 2, 0).contiguous()
        received = torch.empty_like(send)
        dist.all_to_all_single(received, send, group=get_dcp_group().device_group)
        return received
```

## How it is confirmed
Nothing is run: what becomes of such a view is up to the collective's backend, and the harness has
none of a GPU's.

## Known limits
Collectives of an engine's own group are left out: some of its communicators make their operand
contiguous, and which one runs is decided at run time. So is what is cut, expanded or turned twice,
and what may have a dimension of one element, which can be turned freely.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dcplint.checks.base import Context, Rule
from dcplint.facts.expressions import shorten
from dcplint.facts.positions import position
from dcplint.findings.model import Evidence, Finding, Role, Severity
from dcplint.source.location import Tree
from dcplint.units.strides import Turned

RULE = Rule(
    code="DCP409",
    name="strided-collective",
    summary="flags collectives on tensors whose dimensions were turned about and not copied",
    severity=Severity.ERROR,
    since="0.1.0",
    probe="none: what a collective does with such a view is its backend's, and a GPU's is not run",
)

# The parameter that holds what is sent, and its place.
_SENT = {
    "all_gather": ("tensor", 1),
    "all_gather_into_tensor": ("input_tensor", 1),
    "all_reduce": ("tensor", 0),
    "all_to_all_single": ("input", 1),
    "broadcast": ("tensor", 0),
    "reduce_scatter_tensor": ("input", 1),
}


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding per collective of the DCP ranks that is given a turned view."""
    variance, turned = context.variance, Turned(context.units)
    tracer = context.fields.tracer
    for function in variance.runners:
        if function.module.tree is not Tree.PROJECT:
            continue
        for statement, call, collective in variance.torch_exchanges(function):
            sent = _sent(call, collective)
            if sent is None or not tracer.can_run(function, statement):
                continue
            turns = [turned.by(function, at, sent) for at in function.graph.at(statement)]
            turn = turns[0] if turns and None not in turns else None
            if turn is None:
                continue
            made = context.program.location(function.module, position(turn))
            yield RULE.finding(
                f"`{function.qualname}` gives `{shorten(call.func)}` a view that `{shorten(turn)}` "
                "turned about: it does not lie in memory as it reads, and the collective sends "
                "what lies there; call `contiguous()` first",
                context.program.location(function.module, position(sent)),
                symbol=function.qualname,
                evidence=(Evidence(f"turned about by {shorten(turn)}", made, Role.ORIGIN),),
            )


def _sent(call: ast.Call, collective: str) -> ast.expr | None:
    """What a collective is given to send."""
    name, place = _SENT.get(collective, ("", 0))
    if not name or any(isinstance(given, ast.Starred) for given in call.args):
        return None
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    if name in given:
        return given[name]
    return call.args[place] if place < len(call.args) else None
