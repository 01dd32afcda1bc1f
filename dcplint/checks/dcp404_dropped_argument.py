"""The kernel call of the DCP branch leaves out an argument that its sibling passes.

## What it flags
An impl whose method does one thing with DCP and another without (by a branch, by an early return,
by an expression that chooses a call, a method or an argument), where the former, or a helper that
it calls, runs the same kernel and leaves out an argument that changes the result: attention sinks,
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
Only keyword arguments are compared, those of mappings that can be read included, and three levels
of calls. An argument that any kernel call of the DCP branch passes counts as passed, but for a call
after which the method returns before it comes to the others, all of which pass it; and so does one
whose value that code mentions at all, or code that it comes to on every way. A function that
branches on DCP and is no method of the impl is not looked at by itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from dcplint.checks.argument_fix import pass_on
from dcplint.checks.base import Context, Rule
from dcplint.facts.expressions import shorten
from dcplint.facts.positions import position
from dcplint.findings.model import Evidence, Finding, Role, Severity
from dcplint.flow.branches import Branch
from dcplint.flow.calls import Call, given_names, is_same_kernel
from dcplint.flow.functions import Function
from dcplint.flow.origins import Frame
from dcplint.flow.outputs import OutputFlow
from dcplint.program.symbols import ClassSymbol

RULE = Rule(
    code="DCP404",
    name="dropped-argument",
    summary="flags DCP branches whose kernel call leaves out an argument that its sibling passes",
    severity=Severity.ERROR,
    since="0.1.0",
    probe="the impl with the argument set to something that matters, with DCP and without",
    follows=False,
)


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding per kernel call and argument that the DCP branch leaves out."""
    program = context.program
    told: set[object] = set()
    semantic = frozenset(context.contract.vocabulary.semantics)
    for symbol in program.classes("impl"):
        for branch in context.outputs.branches(symbol):
            for call, sibling, name, value in _dropped(branch, semantic):
                key = (call.function.module, position(call.node), name)
                if key in told:
                    continue
                told.add(key)
                if not _is_refused(context.outputs, symbol, value):
                    yield _finding(context, call, sibling, name, value)


def _dropped(
    branch: Branch, semantic: frozenset[str]
) -> Iterator[tuple[Call, Call, str, ast.expr]]:
    """(call, sibling, argument, value) for what no kernel call of the branch passes."""
    for sibling in branch.beside:
        wanted = semantic & sibling.given.keys()
        same = [call for call in branch.inside if is_same_kernel(call, sibling)]
        same.sort(key=lambda call: (call.frame.depth, position(call.node)))
        if not wanted or not same or any(call.is_open for call in same):
            continue
        passed = {name for call in branch.along for name in call.given}
        for name in sorted(wanted - passed):
            value = sibling.given[name]
            names = given_names(value)
            if value is not None and names and not names & branch.mentions:
                yield same[0], sibling, name, value
        for call in same:
            others = [other for other in same if other is not call]
            if others and _is_alone(call, others):
                given = frozenset.intersection(*(frozenset(other.given) for other in others))
                for name in sorted(wanted & given - call.given.keys()):
                    value = sibling.given[name]
                    if value is not None:
                        yield call, sibling, name, value


def _is_alone(call: Call, others: Iterable[Call]) -> bool:
    """Whether a call's own block leaves the function, and the others stand behind it."""
    function = call.function
    statement = next((s for s, made in function.calls.items() if call.node in made), None)
    if statement is None or not isinstance(function.homes[statement].block[-1], ast.Return):
        return False
    last = function.homes[statement].block[-1].end_lineno or 0
    return all(_line_in(function, other) > last for other in others)


def _line_in(function: Function, call: Call) -> int:
    """The line of a function in which a call is made, or a helper run that makes it; else 0."""
    frame: Frame | None = call.frame
    node: ast.Call | None = call.node
    while frame is not None and node is not None:
        if frame.function is function:
            return node.lineno
        node, frame = frame.call, frame.caller
    return 0


def _is_refused(flow: OutputFlow, symbol: ClassSymbol, value: ast.expr) -> bool:
    """Whether the class cannot run under DCP, or not with this argument."""
    if not flow.may_run(symbol):
        return True
    names = given_names(value)
    refused = {said for name in names for said in ((f"{name} is None", True), (name, False))}
    return any(len(clause) == 1 and clause <= refused for clause in flow.refused.of(symbol))


def _finding(context: Context, call: Call, sibling: Call, name: str, value: ast.expr) -> Finding:
    program = context.program
    mine, other = (c.function.qualname for c in (call, sibling))
    where = program.location(sibling.function.module, position(sibling.node))
    return RULE.finding(
        f"`{mine}` runs `{call.name}` under DCP without `{name}`, which `{other}` passes without "
        f"DCP ({name}={shorten(value)})",
        program.location(call.function.module, position(call.node.func)),
        symbol=mine,
        evidence=(Evidence(f"{other} passes {name} here", where, Role.ORIGIN),),
        fix=pass_on(context, call.function, call.node, name, value),
    )
