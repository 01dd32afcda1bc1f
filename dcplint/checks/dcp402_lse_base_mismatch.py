"""The LSE is a natural logarithm where its merge takes base 2, or the other way round.

## What it flags
An impl that owes an LSE, whose class says that it is a natural logarithm (or keeps the engine's
default, which says so) while the kernel that it comes from gives base 2, or the reverse; and a
merge that is told one base while its LSE comes from a kernel that gives the other, or while the
class states the other. A multiplication by ln 2 or log2 e on the way counts. And a function that is
told the base and merges by another one without passing it on.

## Why it breaks
A merge weighs each shard by `exp(lse_r - lse)`. With the wrong base every weight is raised to a
power of 0.69 or 1.44: no error, and an answer that is off by a little, more so the more the shards
differ.

## Bad
```python
from flashinfer.decode import trtllm_batch_decode_with_kv_cache_mla
from vllm.model_executor.layers.attention.mla_attention import MLACommonImpl


class MyImpl(MLACommonImpl):
    supports_dcp = True
    can_return_lse_for_decode = True

    def __init__(self, *args, **kwargs): ...

    def forward_mha(self, *args): ...

    def forward_mqa(self, q, kv_c_and_k_pe_cache, attn_metadata, layer):
        return trtllm_batch_decode_with_kv_cache_mla(
            query=q, kv_cache=kv_c_and_k_pe_cache, return_lse=True
        )
```

## Good
```python
from flashinfer.decode import trtllm_batch_decode_with_kv_cache_mla
from vllm.model_executor.layers.attention.mla_attention import MLACommonImpl


class MyImpl(MLACommonImpl):
    supports_dcp = True
    can_return_lse_for_decode = True
    lse_base_on_e = False

    def __init__(self, *args, **kwargs): ...

    def forward_mha(self, *args): ...

    def forward_mqa(self, q, kv_c_and_k_pe_cache, attn_metadata, layer):
        return trtllm_batch_decode_with_kv_cache_mla(
            query=q, kv_cache=kv_c_and_k_pe_cache, return_lse=True
        )
```

## How it is confirmed
The LSE of each shard is compared with the oracle's, in both bases.

## Known limits
Only kernels that the contract describes have a known base, and not where an argument that changes
it is passed or may be (`**kwargs` that cannot be read). A conversion by anything but a
multiplication or division by a constant is not followed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dcplint.checks import capability_evidence
from dcplint.checks.base import Context, Rule
from dcplint.contracts.model import Capability
from dcplint.facts.expressions import shorten
from dcplint.facts.positions import position
from dcplint.findings.model import Evidence, Finding, Role, Severity
from dcplint.flow.bases import Based, Bases
from dcplint.flow.merging import Merge, merges, untold
from dcplint.flow.outputs import Owed
from dcplint.program.attributes import Kind, Resolution
from dcplint.program.symbols import ClassSymbol
from dcplint.source.location import Tree

RULE = Rule(
    code="DCP402",
    name="lse-base-mismatch",
    summary="flags LSEs of one base that are merged, or declared, as if of the other",
    severity=Severity.ERROR,
    since="0.1.0",
    probe="the LSE of each shard against the oracle's, in base e and in base 2",
)

_SPOKEN = {True: "a natural logarithm", False: "base 2"}


@dataclass(frozen=True, slots=True)
class _Declared:
    """What a class says of the base: natural or not, and where."""

    natural: bool
    capability: Capability
    said: Resolution


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding per kernel whose base a class denies, then per merge that is told wrong."""
    told: set[object] = set()
    bases = Bases(context.outputs.kernels, context.outputs.scenario.lookup)
    for owed in context.outputs.owed:
        declared = _declared(context, owed.symbol, owed.output.base)
        if declared is None:
            continue
        for based in bases.of(context.outputs.made_of(owed)):
            key = (declared.said.place, declared.natural, based.node)
            if based.natural is not declared.natural and key not in told:
                told.add(key)
                yield _denied(context, owed, declared, based)
    for symbol in context.program.classes("impl"):
        for merge in merges(context.outputs, symbol):
            if merge.stated not in told:
                for finding in _told_wrong(context, symbol, merge):
                    told.add(merge.stated)
                    yield finding
    merging = context.outputs.kernels.described("merges")
    for name in sorted({term.base for term in merging if term.base}):
        yield from _not_passed_on(context, name)


def _not_passed_on(context: Context, name: str) -> Iterator[Finding]:
    for found in untold(context.fields.universe, name):
        function = found.function
        if function.module.tree is Tree.PROJECT:
            yield RULE.finding(
                f"`{function.qualname}` is told `{name}` and does not pass it on to "
                f"`{found.callee.qualname}`, which merges by its default, {shorten(found.default)}",
                context.program.location(function.module, position(found.call)),
                symbol=function.qualname,
            )


def _declared(context: Context, symbol: ClassSymbol, name: str | None) -> _Declared | None:
    capability = context.contract.capability("impl", name) if name else None
    if capability is None:
        return None
    said = context.program.promise(symbol, capability)
    natural = said.holds()
    return None if natural is None else _Declared(natural, capability, said)


def _denied(context: Context, owed: Owed, declared: _Declared, based: Based) -> Finding:
    program, said, symbol = context.program, declared.said, owed.symbol
    call = program.location(based.origin.function.module, position(based.node))
    place = program.location_of(symbol)
    if said.kind is Kind.EXPLICIT and said.place is not None:
        place = program.location(said.place.module, said.place.fact.position)
    default = " by default" if said.kind is Kind.DEFAULT else ""
    says = f"says{default} that {owed.output.base} is {said.value}"
    return RULE.finding(
        f"`{symbol}` {says}, but its LSE comes from `{based.kernel}`, which gives "
        f"{_SPOKEN[based.natural]}{based.how}",
        place,
        symbol=str(symbol),
        evidence=(
            Evidence(f"`{based.kernel}` makes the LSE here", call, Role.ORIGIN),
            *capability_evidence.origin(context, declared.capability.name, said),
        ),
    )


def _told_wrong(context: Context, symbol: ClassSymbol, merge: Merge) -> Iterator[Finding]:
    """The merge against the kernel its LSE is from; else against what the class states."""
    program = context.program
    place = program.location(merge.function.module, position(merge.stated))
    function = merge.function.qualname
    found = [based for based in merge.operands if based.natural is not merge.natural]
    if found:
        based = found[0]
        where = program.location(based.origin.function.module, position(based.node))
        yield RULE.finding(
            f"`{shorten(merge.stated)}` in `{function}` merges as {_SPOKEN[merge.natural]}, but "
            f"the LSE comes from `{based.kernel}`, which gives {_SPOKEN[based.natural]}{based.how}",
            place,
            symbol=function,
            evidence=(Evidence(f"`{based.kernel}` makes the LSE here", where, Role.ORIGIN),),
        )
        return
    names = {output.base for output in context.contract.outputs if output.base}
    for name in sorted(names):
        declared = _declared(context, symbol, name)
        if declared is None or declared.said.kind is Kind.DEFAULT or merge.is_converted:
            continue
        if declared.natural is not merge.natural and not merge.operands:
            yield RULE.finding(
                f"`{shorten(merge.stated)}` in `{function}` merges as {_SPOKEN[merge.natural]}, "
                f"but `{symbol}` says that {name} is {declared.said.value}",
                place,
                symbol=function,
                evidence=tuple(capability_evidence.origin(context, name, declared.said)),
            )
