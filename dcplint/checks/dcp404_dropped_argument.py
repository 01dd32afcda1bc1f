"""The kernel call of the DCP branch leaves out an argument that its sibling passes.

## What it flags
An impl whose method branches on DCP, where the branch (or the method that it calls) runs the same
kernel as the code beside it and leaves out an argument that changes the result: attention sinks,
the soft cap, the window, slopes, scales of quantized tensors, the number of splits. Lengths, block
tables, causal flags and schedules differ between the branches on purpose.

## Why it breaks
Under DCP the model computes other attention than without: no error, other answers. Where the
argument sizes what the metadata was planned for, the kernel crashes.

## Bad
```python
class MyImpl(AttentionImpl):
    supports_dcp = True
    can_return_lse_for_decode = True

    def forward(self, q, k, v, meta):
        if self.dcp_world_size > 1:
            return self.forward_with_dcp(q, k, v, meta)
        return kernel(q=q, k=k, v=v, lens=meta.seq_lens, softcap=self.cap, s_aux=self.sinks)

    def forward_with_dcp(self, q, k, v, meta):
        return kernel(q=q, k=k, v=v, lens=meta.dcp_local_seq_lens, softcap=self.cap)
```

## Good
```python
class MyImpl(AttentionImpl):
    supports_dcp = True
    can_return_lse_for_decode = True

    def forward(self, q, k, v, meta):
        if self.dcp_world_size > 1:
            return self.forward_with_dcp(q, k, v, meta)
        return kernel(q=q, k=k, v=v, lens=meta.seq_lens, softcap=self.cap, s_aux=self.sinks)

    def forward_with_dcp(self, q, k, v, meta):
        sinks = self.sinks if self.dcp_rank == 0 else None
        return kernel(
            q=q, k=k, v=v, lens=meta.dcp_local_seq_lens, softcap=self.cap, s_aux=sinks
        )
```

## How it is confirmed
The impl decodes with the argument set to something that matters, with DCP and without.

## Known limits
Only keyword arguments are compared, and one level of calls. An argument that any kernel call of the
DCP branch passes counts as passed, and so does one whose value that code mentions at all.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dcplint.checks.argument_fix import pass_on
from dcplint.checks.base import Context, Rule
from dcplint.checks.branch_calls import Branch, Call, branches, is_same_kernel
from dcplint.facts.expressions import dotted_name, shorten
from dcplint.facts.positions import position
from dcplint.findings.model import Evidence, Finding, Role, Severity
from dcplint.flow.functions import callee_name
from dcplint.flow.outputs import OutputFlow
from dcplint.program.symbols import ClassSymbol

RULE = Rule(
    code="DCP404",
    name="dropped-argument",
    summary="flags DCP branches whose kernel call leaves out an argument that its sibling passes",
    severity=Severity.ERROR,
    since="0.1.0",
    probe="the impl with the argument set to something that matters, with DCP and without",
)


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding per kernel call and argument that the DCP branch leaves out."""
    program = context.program
    told: set[object] = set()
    semantic = frozenset(context.contract.vocabulary.semantics)
    for symbol in program.classes("impl"):
        for branch in branches(program, symbol):
            for call, sibling, name in _dropped(branch, semantic):
                key = (call.method.owner.module, position(call.node), name)
                if key in told:
                    continue
                told.add(key)
                if _is_refused(context.outputs, symbol, sibling.given[name]):
                    continue
                yield _finding(context, call, sibling, name)


def _dropped(branch: Branch, semantic: frozenset[str]) -> Iterator[tuple[Call, Call, str]]:
    """(call, sibling, argument) for what no kernel call of the branch passes."""
    for sibling in branch.beside:
        wanted = semantic & sibling.given.keys()
        same = [call for call in branch.inside if is_same_kernel(call, sibling)]
        same.sort(key=lambda call: position(call.node))
        if not wanted or not same or any(call.is_open for call in same):
            continue
        passed = {name for call in branch.inside for name in call.given}
        for name in sorted(wanted - passed):
            value = dotted_name(sibling.given[name])
            if value is not None and value.rpartition(".")[2] not in branch.mentions:
                yield same[0], sibling, name


def _is_refused(flow: OutputFlow, symbol: ClassSymbol, value: ast.expr) -> bool:
    """Whether the class cannot run under DCP, or not with this argument."""
    if not flow.may_run(symbol):
        return True
    name = (dotted_name(value) or "").rpartition(".")[2]
    refused = {(f"{name} is None", True), (name, False)}
    return any(len(clause) == 1 and clause <= refused for clause in flow.refused.of(symbol))


def _finding(context: Context, call: Call, sibling: Call, name: str) -> Finding:
    program = context.program
    kernel = callee_name(call.node)
    mine, other = (c.method.facts.qualname for c in (call, sibling))
    where = program.location(sibling.method.owner.module, position(sibling.node))
    return RULE.finding(
        f"`{mine}` runs `{kernel}` under DCP without `{name}`, which `{other}` passes without DCP "
        f"({name}={shorten(sibling.given[name])})",
        program.location(call.method.owner.module, position(call.node.func)),
        symbol=mine,
        evidence=(Evidence(f"{other} passes {name} here", where, Role.ORIGIN),),
        fix=pass_on(context, call.method, call.node, name, sibling.given[name]),
    )
