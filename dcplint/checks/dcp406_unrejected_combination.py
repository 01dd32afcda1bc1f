"""The DCP path cannot serve a feature that the class accepts, and nothing refuses the two together.

## What it flags
An impl that may run under DCP and
- whose DCP branch runs a kernel that the contract describes without a feature (attention sinks,
  soft cap, window, slopes, scales) that the code beside it passes to another kernel, and never
  mentions it,
- or whose DCP branch fixes `causal=True` where the code beside it passes what the batch says,
- or which passes the DCP rank to a kernel that takes no interleave size, and states the capability
  of serving several query tokens with an interleave above 1, or whose metadata builder tells its
  base that decodes have several query tokens, while neither looks at the interleave size.

What a constructor of the impl or of its metadata builder refuses is left out.

## Why it breaks
Each of the two works alone. Together the answers are wrong, and no error says so.

## Bad
```python
from vllm.v1.attention.backend import AttentionImpl
from vllm.v1.attention.backends.fa_utils import flash_attn_varlen_func


class MyImpl(AttentionImpl):
    supports_dcp = True
    can_return_lse_for_decode = True

    def __init__(self, *args, **kwargs): ...

    def forward(self, q, k, v, meta):
        if self.dcp_world_size > 1:
            return flash_attn_varlen_func(q=q, k=k, v=v, causal=True)
        return flash_attn_varlen_func(q=q, k=k, v=v, causal=meta.causal)
```

## Good
```python
from vllm.v1.attention.backend import AttentionImpl
from vllm.v1.attention.backends.fa_utils import flash_attn_varlen_func


class MyImpl(AttentionImpl):
    supports_dcp = True
    can_return_lse_for_decode = True

    def __init__(self, *args, **kwargs): ...

    def forward(self, q, k, v, meta):
        if self.dcp_world_size > 1:
            if not meta.causal:
                raise ValueError("no non-causal attention under DCP")
            return flash_attn_varlen_func(q=q, k=k, v=v, causal=True)
        return flash_attn_varlen_func(q=q, k=k, v=v, causal=meta.causal)
```

## How it is confirmed
The impl decodes with the feature on, with DCP and without.

## Known limits
Features are known by the arguments that carry them. What a model, a scheduler or a connector
combines with DCP, and validation that lives in an engine's configuration, is not looked at.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from dcplint.checks import capability_evidence
from dcplint.checks.base import Context, Rule
from dcplint.contracts.model import Kernel
from dcplint.facts.expressions import shorten
from dcplint.facts.positions import position
from dcplint.findings.model import Evidence, Finding, Role, Severity
from dcplint.flow.branches import Branch
from dcplint.flow.calls import Call, given_names, is_same_kernel
from dcplint.flow.clauses import Literal
from dcplint.flow.functions import Function, callee_name
from dcplint.flow.mappings import keywords
from dcplint.program.attributes import Kind
from dcplint.program.symbols import ClassSymbol
from dcplint.units.interleave import Interleaving

RULE = Rule(
    code="DCP406",
    name="unrejected-combination",
    summary="flags features that a DCP path cannot serve and nothing refuses with DCP",
    severity=Severity.WARNING,
    since="0.1.0",
    probe="the impl with the feature on, with DCP and without",
    follows=False,
)

_CAUSAL = "causal"


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding per feature of a branch, and per promise about the interleave."""
    program = context.program
    told: set[object] = set()
    for symbol in program.classes("impl"):
        found = [
            *((call, finding) for branch in context.outputs.branches(symbol)
              for call, finding in _lost(context, symbol, branch)),
            *_interleaved(context, symbol),
        ]  # fmt: skip
        for key, finding in found:
            if key not in told and context.outputs.may_run(symbol):
                told.add(key)
                yield finding


def _lost(
    context: Context, symbol: ClassSymbol, branch: Branch
) -> Iterator[tuple[object, Finding]]:
    kernels = context.outputs.kernels
    inside = [call for call in branch.inside if kernels.kernel(call.scope, call.runs) is not None]
    # One kernel on both sides is DCP404's, and so are the arguments that it tells of.
    same = [s for s in branch.beside if any(is_same_kernel(c, s) for c in branch.inside)]
    dropped = {name for sibling in same for name in sibling.given}
    semantic = frozenset(context.contract.vocabulary.semantics)
    told = [c.given[_CAUSAL] for c in branch.along if _CAUSAL in c.given]
    for sibling in branch.beside:
        fixed = [c for c in inside if is_same_kernel(c, sibling) and _is_true(c.given.get(_CAUSAL))]
        causal = sibling.given.get(_CAUSAL)
        if fixed and causal is not None and all(isinstance(node, ast.Constant) for node in told):
            if _is_lost(context, symbol, branch, causal, lambda name: {(name, True)}):
                yield fixed[0].node, _fixed(context, fixed[0], sibling, causal)
        if not inside or any(c.is_open for c in inside) or sibling in same:
            continue
        passed = {name for call in branch.along for name in call.given} | dropped
        for name in sorted((semantic & sibling.given.keys()) - passed):
            value = sibling.given[name]
            if value is not None and _is_lost(context, symbol, branch, value, _off):
                found = _unserved(context, inside[0], sibling, name, value)
                yield (inside[0].node, name), found


def _off(name: str) -> set[Literal]:
    return {(f"{name} is None", True), (name, False)}


def _is_lost(
    context: Context,
    symbol: ClassSymbol,
    branch: Branch,
    value: ast.expr,
    harmless: Callable[[str], set[Literal]],
) -> bool:
    """Whether a branch has nothing of `value`, and constructors don't see to it that none is due.

    harmless: what they would have to see to.
    """
    names = given_names(value)
    said = context.outputs.refused.of(symbol)
    return (
        bool(names)
        and not names & branch.mentions
        and not any(frozenset({literal}) in said for n in names for literal in harmless(n))
    )


def _is_true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _interleaved(context: Context, symbol: ClassSymbol) -> Iterator[tuple[object, Finding]]:
    """What is said of several query tokens that the class's own kernel call cannot keep."""
    interleaving = Interleaving(context.outputs.universe)
    for function, call, kernel in _without_interleave(context, symbol):
        if interleaving.is_tested_by(symbol):
            return
        for said, evidence in _several_rows(context, symbol, kernel, interleaving):
            yield (
                call,
                RULE.finding(
                    f"{said}, but `{function.qualname}` passes `{kernel.rank}` to "
                    f"`{callee_name(call)}`, which masks as if the interleave were 1",
                    context.program.location(symbol.module, position(call.func)),
                    symbol=function.qualname,
                    evidence=evidence,
                ),
            )


def _without_interleave(
    context: Context, symbol: ClassSymbol
) -> Iterator[tuple[Function, ast.Call, Kernel]]:
    """The calls that pass a kernel the rank and no interleave size."""
    outputs = context.outputs
    described = {k for k in context.contract.kernels if k.rank and (k.promise or k.varlen)}
    words = {name for k in described for name in (k.rank, *k.unless) if name}
    for facts in symbol.facts.methods if words else ():
        text = outputs.universe.text(symbol.module, facts)
        if "**" not in text and not any(word in text for word in words):
            continue
        function = outputs.universe.function(symbol.module, facts)
        for call in (c for made in function.calls.values() for c in made) if function else ():
            assert function is not None
            kernel = outputs.kernels.kernel(function, call.func)
            if kernel is None or kernel not in described:
                continue
            given = keywords(outputs.scenario.lookup, function, call)
            if given is None or kernel.rank not in given:
                continue
            if not kernel.interleave or kernel.interleave not in given:
                yield function, call, kernel


def _several_rows(
    context: Context, symbol: ClassSymbol, kernel: Kernel, interleaving: Interleaving
) -> Iterator[tuple[str, tuple[Evidence, ...]]]:
    """Who says that decodes of several query tokens are served whatever the interleave size is."""
    program, refused = context.program, context.outputs.refused
    capability = context.contract.capability("impl", kernel.promise or "")
    said = program.promise(symbol, capability) if capability is not None else None
    if capability is not None and said is not None and said.holds():
        if said.kind in (Kind.EXPLICIT, Kind.INHERITED):
            origin = tuple(capability_evidence.origin(context, capability.name, said))
            yield f"`{symbol}` states {capability.name}", origin
            return
    for builder in refused.builders(symbol) if kernel.varlen else ():
        for constructor in refused.constructors(builder):
            for call in (c for made in constructor.calls.values() for c in made):
                value = next((k.value for k in call.keywords if k.arg == kernel.varlen), None)
                if _is_true(value) and not interleaving.is_tested_by(builder):
                    place = program.location(constructor.module, position(call))
                    told = Evidence(f"`{builder}` says so here", place, Role.ORIGIN)
                    yield f"`{builder}` tells its base {kernel.varlen}", (told,)


def _fixed(context: Context, call: Call, sibling: Call, causal: ast.expr) -> Finding:
    return _finding(
        context, call, sibling,
        f"`{call.function.qualname}` runs `{call.name}` with causal=True under "
        f"DCP, where `{sibling.function.qualname}` passes {shorten(causal)}; nothing refuses DCP "
        "for batches that are not causal",
    )  # fmt: skip


def _unserved(context: Context, call: Call, sibling: Call, name: str, value: ast.expr) -> Finding:
    return _finding(
        context, call, sibling,
        f"`{call.function.qualname}` runs `{call.name}` under DCP, which gets "
        f"nothing of {shorten(value)}; without DCP `{sibling.name}` "
        f"takes it as `{name}`, and nothing refuses it with DCP",
    )  # fmt: skip


def _finding(context: Context, call: Call, sibling: Call, message: str) -> Finding:
    program = context.program
    beside = program.location(sibling.function.module, position(sibling.node))
    return RULE.finding(
        message,
        program.location(call.function.module, position(call.node.func)),
        symbol=call.function.qualname,
        evidence=(Evidence("without DCP this runs", beside, Role.ORIGIN),),
    )
