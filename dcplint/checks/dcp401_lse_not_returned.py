"""An impl promises the LSE of its decode output, and on some path under DCP returns none.

## What it flags
A concrete class whose LSE capability is true and whose compute method owes the LSE, where a return
that can run with DCP on gives None in its place, through helpers and inherited methods; or where
every return gives the output alone (if only some do, that is DCP407's). Returns
under the flag that asks for the LSE are judged with the flag set; what a constructor of the impl or
of its metadata builder refuses under DCP, and flags that can only be false then, are left out.
Impls that merge inside `forward` owe none. The finding stands where the None is; classes that
inherit the code are listed.

## Why it breaks
The layer asserts that there is an LSE, so the first decode step under DCP fails on every rank; or,
where nothing asserts, the merge weighs a shard by garbage.

## Bad
```python
class MyImpl(MLACommonImpl):
    supports_dcp = True
    can_return_lse_for_decode = True

    def forward_mqa(self, q, kv_c_and_k_pe_cache, attn_metadata, layer):
        return decode(q, kv_c_and_k_pe_cache, attn_metadata), None
```

## Good
```python
class MyImpl(MLACommonImpl):
    supports_dcp = True
    can_return_lse_for_decode = True

    def forward_mqa(self, q, kv_c_and_k_pe_cache, attn_metadata, layer):
        out, lse = decode(q, kv_c_and_k_pe_cache, attn_metadata, return_lse=True)
        return out, lse
```

## How it is confirmed
The impl decodes one shard: no LSE comes back.

## Known limits
What a kernel returns is not known here, and nothing is said of it, nor of what only a test of it,
or of an argument handed on by `*` or `**`, decides. Loops are not followed.
"""

from __future__ import annotations

from collections.abc import Iterator

from dcplint.checks import capability_evidence
from dcplint.checks.base import Context, Rule
from dcplint.findings.model import Evidence, Finding, Role, Severity
from dcplint.flow.outputs import Missing, Owed
from dcplint.source.location import Tree

RULE = Rule(
    code="DCP401",
    name="lse-not-returned",
    summary="flags impls that promise an LSE and return none on a path under DCP",
    severity=Severity.ERROR,
    since="0.1.0",
    probe="the LSE of each shard: is there one?",
    follows=False,
)


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding per place that returns no LSE, with every class that it fails."""
    if not context.contract.outputs:
        return
    places: dict[object, list[tuple[Owed, Missing]]] = {}
    lone: set[Missing] = set()
    for owed in context.outputs.owed:
        single = context.outputs.lone(owed)
        lone.update(single)
        for missing in (*context.outputs.missing(owed), *single):
            key = (missing.origin.module, missing.origin.position)
            places.setdefault(key, []).append((owed, missing))
    for found in places.values():
        # The class that defines the code speaks for those that inherit it.
        found.sort(
            key=lambda f: not f[1].origin.symbol.startswith(f"{f[0].symbol.facts.qualname}.")
        )
        yield _finding(context, found, found[0][1] in lone)


def _defines(owed: Owed, missing: Missing) -> bool:
    return missing.origin.symbol.startswith(f"{owed.symbol.facts.qualname}.")


def _finding(context: Context, found: list[tuple[Owed, Missing]], lone: bool) -> Finding:
    program, (owed, missing) = context.program, found[0]
    origin = missing.origin
    place = program.location(origin.module, origin.position)
    gives, what = "None", "None for"
    if lone:
        gives, what = "one value alone", "one value alone, without"
    steps = [Evidence(f"{origin.symbol} gives {gives} here", place, Role.ORIGIN)]
    promise = context.contract.capability(owed.output.role, owed.output.capability)
    assert promise is not None
    said = program.promise(owed.symbol, promise)
    steps += capability_evidence.origin(context, promise.name, said)
    steps += (
        Evidence(f"{heir.symbol} runs the same code", program.location_of(heir.symbol))
        for heir, _ in found[1:]
    )
    where = f" where {' and '.join(missing.tests)}" if missing.tests else ""
    return RULE.finding(
        f"`{owed.symbol}` promises {owed.output.capability}, but `{origin.symbol}` returns {what} "
        f"{owed.output.summary}{where}",
        place if place.tree is Tree.PROJECT else program.location_of(owed.symbol),
        symbol=origin.symbol,
        evidence=tuple(steps),
    )
