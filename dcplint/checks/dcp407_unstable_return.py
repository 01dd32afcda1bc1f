"""With DCP on, a method returns one value where its caller takes two, or reads a variable unset.

## What it flags
A method that owes the LSE and returns it beside the output on some ways, but on a way that can run
with DCP on returns one value alone, through helpers and inherited methods. And, in any method of an
impl, a variable that gets its value only under a DCP guard and is read where that guard does not
hold, or the reverse.

## Why it breaks
The layer unpacks what it gets: one tensor is taken apart along its first dimension, which fails, or
with two rows goes through and gives nonsense. A variable without a value is an UnboundLocalError.
Either shows only in the mode that nobody tried.

## Bad
```python
class MyImpl(MLACommonImpl):
    supports_dcp = True
    can_return_lse_for_decode = True

    def forward_mqa(self, q, kv_c_and_k_pe_cache, attn_metadata, layer):
        out, lse = kernel(q, kv_c_and_k_pe_cache, attn_metadata)
        if self.dcp_world_size > 1:
            return out
        return out, lse
```

## Good
```python
class MyImpl(MLACommonImpl):
    supports_dcp = True
    can_return_lse_for_decode = True

    def forward_mqa(self, q, kv_c_and_k_pe_cache, attn_metadata, layer):
        out, lse = kernel(q, kv_c_and_k_pe_cache, attn_metadata)
        return out, lse
```

## How it is confirmed
The impl decodes one shard: no LSE comes back, or it raises.

## Known limits
What a kernel returns is not known here, and nothing is said of it, nor where a caller asks with
`isinstance` what it got. A method that never returns two values is stable, and left to whoever runs
it. A variable is reported only where nothing but DCP lies between its guard and its reading.
"""

from __future__ import annotations

from collections.abc import Iterator

from dcplint.checks.base import Context, Rule
from dcplint.facts.expressions import shorten
from dcplint.facts.positions import position
from dcplint.findings.model import Evidence, Finding, Role, Severity
from dcplint.flow.outputs import Missing, Owed
from dcplint.flow.unbound import Unbound
from dcplint.source.location import Tree

RULE = Rule(
    code="DCP407",
    name="unstable-return",
    summary="flags methods whose number of results, or whose variables' being set, hangs on DCP",
    severity=Severity.WARNING,
    since="0.1.0",
    probe="the output and the LSE of each shard: do both come back?",
    follows=False,
)


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding per return, with every class that it fails, and per variable."""
    places: dict[object, list[tuple[Owed, Missing]]] = {}
    for owed in context.outputs.owed:
        for missing in context.outputs.alone(owed):
            key = (missing.origin.module, missing.origin.position)
            places.setdefault(key, []).append((owed, missing))
    for found in places.values():
        yield _returned(context, found)
    for unbound in context.outputs.unbound:
        yield _unbound(context, unbound)


def _returned(context: Context, found: list[tuple[Owed, Missing]]) -> Finding:
    program, (owed, missing) = context.program, found[0]
    origin = missing.origin
    place = program.location(origin.module, origin.position)
    steps = [Evidence(origin.text, place, Role.ORIGIN)]
    steps += (
        Evidence(f"{other.symbol} runs this code", program.location_of(other.symbol))
        for other, _ in found
    )
    where = f" where {' and '.join(missing.tests)}" if missing.tests else " under DCP"
    return RULE.finding(
        f"`{origin.symbol}` returns one value{where}, elsewhere a tuple: the caller of "
        f"`{owed.output.method}` takes {owed.output.summary} from it",
        place if place.tree is Tree.PROJECT else program.location_of(owed.symbol),
        symbol=origin.symbol,
        evidence=tuple(steps),
    )


def _unbound(context: Context, unbound: Unbound) -> Finding:
    program, function = context.program, unbound.function
    guard = program.location(function.module, position(unbound.guard.test))
    given = program.location(function.module, position(unbound.binding))
    name, state = unbound.use.id, "on" if unbound.sharded else "off"
    return RULE.finding(
        f"`{name}` has no value here with DCP {state}: `{function.qualname}` gives it one only on "
        f"the other side of `{shorten(unbound.guard.test)}`",
        program.location(function.module, position(unbound.use)),
        symbol=function.qualname,
        evidence=(
            Evidence("the test that DCP decides", guard, Role.GUARD),
            Evidence(f"`{name}` gets its value here", given, Role.ORIGIN),
        ),
    )
