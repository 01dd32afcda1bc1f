"""A path on which the engine's DCP gate is never asked.

## What it flags
A class that overrides a method by which the engine reaches a gate (a platform's choice of backend,
a runner's set-up of backends) and does not reach the gate itself: it calls neither the gate nor the
method it overrides, on any path or on some; an override of the gate itself that decides without
looking at DCP, in a class not known to do it. A runner of a plugin's own, built on the same mixins
as the engine's, counts too. Also a call of the gate without the argument that tells it of DCP, or
an override of the gate that does not hand it on, a record built without it whose fields are all
that the gate is told (`**config._asdict()`), and a backend that is handed to a layer by name, which
then selects none; an object that is made an impl of another class once the gates have asked (these
are notes where the class says that it can do DCP); and a DCP size that is set to 1 while a gate is
asked. What always raises under DCP lets nothing through, and is not flagged; nor is a class with
another method that refuses DCP, or code that asks for the capability itself.

## Why it breaks
The gate is the only place that refuses a backend which cannot do DCP. Where it is not asked, such a
backend runs under DCP and answers from one shard, or crashes in the first decode step.

## Bad
```python
from vllm.platforms.interface import Platform


class MyPlatform(Platform):
    @classmethod
    def get_attn_backend_cls(cls, selected_backend, attn_selector_config, num_heads=None):
        return "my_plugin.attention.MyBackend"
```

## Good
```python
from vllm.platforms.interface import Platform

from .attention import MyBackend


class MyPlatform(Platform):
    @classmethod
    def get_attn_backend_cls(cls, selected_backend, attn_selector_config, num_heads=None):
        reasons = MyBackend.validate_configuration(
            device_capability=cls.get_device_capability(), **attn_selector_config._asdict()
        )
        if reasons:
            raise ValueError(f"MyBackend cannot serve this configuration: {reasons}")
        return "my_plugin.attention.MyBackend"
```

## How it is confirmed
Nothing is run: that no call leads to the gate is a fact of the source. Whether a backend that is
let through can do DCP is DCP101's and the harness's question.

## Known limits
Calls are followed through the class's own methods and through functions, not through objects held
in attributes. Records are looked for in the module that defines them and in those with backends,
impls or gates; what is copied with the argument anywhere there is not judged.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from dcplint.checks.base import Context, Rule
from dcplint.checks.capability_evidence import gate_location, origin
from dcplint.contracts.model import Gate
from dcplint.facts.expressions import shorten
from dcplint.facts.positions import position
from dcplint.findings.model import Evidence, Finding, Location, Role, Severity
from dcplint.program.gates.disarmed import Disarmed, disarmed
from dcplint.program.gates.handed import Handed, handed
from dcplint.program.gates.masked import Masked, masked
from dcplint.program.gates.overrides import Override, overrides
from dcplint.program.gates.replaced import Replaced, replaced
from dcplint.program.gates.untold import Untold, untold
from dcplint.source.location import Tree

RULE = Rule(
    code="DCP107",
    name="bypassed-gate",
    summary="flags paths on which the engine's DCP gate is never asked",
    severity=Severity.WARNING,
    since="0.1.0",
    probe="none: that no call leads to the gate is a fact of the source",
    follows=False,
)


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each override that does not ask, and each call that cannot."""
    for override in overrides(context.program):
        if not _concerns_dcp(context, override.gate):
            continue
        if not override.asks:
            yield _finding(context, override, ())
        elif override.gate.stage == "selection" and override.silent:
            yield _finding(context, override, override.silent)
    for call in untold(context.program):
        if _concerns_dcp(context, call.gate):
            yield _untold(context, call)
    for record in disarmed(context.program):
        if _concerns_dcp(context, record.gate):
            yield _disarmed(context, record)
    for passed in handed(context.program):
        if _concerns_dcp(context, passed.gate) and passed.gate.argument is not None:
            yield _handed(context, passed)
    hidden: set[object] = set()
    for gate in filter(partial(_concerns_dcp, context), context.contract.gates):
        for mask in masked(context.program, gate):
            if mask.hidden not in hidden:
                hidden.add(mask.hidden)
                yield _masked(context, mask)
    gates = [g for g in context.contract.gates if g.role == "impl" and _concerns_dcp(context, g)]
    for replacement in replaced(context.program, "impl") if gates else ():
        yield _replaced(context, replacement, gates[0])


def _concerns_dcp(context: Context, asked: Gate) -> bool:
    """Whether what the gate refuses is a class that cannot do DCP."""
    promises = {
        capability.name
        for capability in context.contract.capabilities
        if capability.opt_in and capability.methods
    }
    return any(
        gate.capability in promises
        for gate in context.contract.gates
        if (gate.function, gate.argument) == (asked.function, asked.argument)
    )


def _finding(context: Context, override: Override, silent: tuple[ast.Return, ...]) -> Finding:
    program, module = context.program, override.symbol.module
    gate = override.gate.function.rpartition(".")[2]
    is_gate = override.hook.function == override.gate.function
    does = "stands in for" if override.stands_in else "replaces"
    reached = "" if is_gate else ", which reaches it"
    steps = [
        Evidence(
            f"the gate: {override.gate.outcome}", gate_location(context, override.gate), Role.GATE
        ),
        Evidence(
            f"{override.method.qualname} {does} {override.hook.function}{reached}",
            program.location(module, override.method.position),
        ),
    ]
    for node in silent or override.silent:
        value = shorten(node.value) if node.value is not None else "None"
        place = program.location(module, position(node))
        steps.append(Evidence(f"returns {value} unasked", place))
    some = f" before {len(silent)} of its answers" if silent else ""
    asked = f"`{override.gate.capability}`" if is_gate else f"{gate}()"
    return RULE.finding(
        f"`{override.method.qualname}` does not ask {asked}{some}: "
        "what cannot do DCP is not refused there",
        program.location(module, override.method.position),
        symbol=override.method.qualname,
        evidence=tuple(steps),
    )


def _untold(context: Context, untold: Untold) -> Finding:
    gate = untold.gate
    name = gate.function.rpartition(".")[2]
    step = Evidence(
        f"the gate asks only where it is told `{gate.argument}`: {gate.outcome}",
        gate_location(context, gate),
        Role.GATE,
    )
    return RULE.finding(
        f"`{untold.symbol}` asks {name}() of {untold.backend} without `{gate.argument}`: "
        "it is not refused where it cannot do DCP",
        context.program.location(untold.module, position(untold.call)),
        symbol=untold.symbol,
        evidence=(step,),
    )


def _disarmed(context: Context, built: Disarmed) -> Finding:
    program, gate = context.program, built.gate
    name = gate.function.rpartition(".")[2]
    steps = [
        Evidence(
            f"the gate asks only where it is told `{gate.argument}`: {gate.outcome}",
            gate_location(context, gate),
            Role.GATE,
        )
    ]
    for module, call in built.told:
        place = program.location(module, position(call))
        steps.append(Evidence(f"{name}() is told what {built.record} holds", place))
    return RULE.finding(
        f"`{built.symbol}` builds {built.record} without `{gate.argument}`, and {name}() is told "
        "nothing else: what cannot do DCP is not refused",
        program.location(built.module, position(built.call)),
        symbol=built.symbol,
        evidence=tuple(steps),
    )


def _handed(context: Context, passed: Handed) -> Finding:
    program, gate = context.program, passed.gate
    name, taker = (dotted.split(".") for dotted in (gate.function, passed.way.function))
    capability = context.contract.capability(gate.role, gate.capability)
    said = program.promise(passed.handed, capability) if capability is not None else None
    can = said is not None and said.holds() is True
    ends = "the class says that it can do DCP" if can else "what cannot do DCP is not refused"
    source = passed.way.source
    way = Location(source.pack, source.line, tree=Tree.PACK)
    return RULE.finding(
        f"`{passed.symbol}` hands {passed.handed} to {taker[-2]}, which then does not ask "
        f"{name[-1]}(): {ends}",
        program.location(passed.module, position(passed.call)),
        symbol=passed.symbol,
        severity=Severity.NOTE if can else None,
        evidence=(
            Evidence(f"the gate: {gate.outcome}", gate_location(context, gate), Role.GATE),
            Evidence(f"{taker[-2]} selects a backend only where it gets none ({source.text})", way),
            *(origin(context, gate.capability, said) if said is not None else ()),
        ),
    )


def _masked(context: Context, mask: Masked) -> Finding:
    program, module = context.program, mask.module
    steps = (
        (f"{shorten(mask.call.func)}() is asked meanwhile", mask.call),
        (f"and then {shorten(mask.restored)}", mask.restored),
    )
    gate = Evidence(f"the gate: {mask.gate.outcome}", gate_location(context, mask.gate), Role.GATE)
    return RULE.finding(
        f"`{mask.symbol}` sets `{mask.size}` to 1 while "
        f"{mask.gate.function.rpartition('.')[2]}() is asked, and back afterwards: what cannot do "
        "DCP is not refused",
        program.location(module, position(mask.hidden)),
        symbol=mask.symbol,
        evidence=(
            gate,
            *(Evidence(text, program.location(module, position(node))) for text, node in steps),
        ),
    )


def _replaced(context: Context, replacement: Replaced, gate: Gate) -> Finding:
    program, impl = context.program, replacement.by
    capability = context.contract.capability(gate.role, gate.capability)
    said = program.promise(impl, capability) if capability is not None else None
    can = said is not None and said.holds() is True
    ends = "the class says that it can do DCP" if can else "what cannot do DCP is not refused"
    return RULE.finding(
        f"`{replacement.symbol}` makes an impl that was judged before an instance of {impl}, of "
        f"which nobody asks: {ends}",
        program.location(replacement.module, position(replacement.node)),
        symbol=replacement.symbol,
        severity=Severity.NOTE if can else None,
        evidence=(
            Evidence(f"the gate: {gate.outcome}", gate_location(context, gate), Role.GATE),
            *(origin(context, gate.capability, said) if said is not None else ()),
        ),
    )
