"""Two places state one capability, and they state it differently.

## What it flags
A backend whose own method answers otherwise than the impl it returns would, and a class whose
constructor sets a capability to another constant than its class body does.

## Why it breaks
Different gates ask different places: selection asks the backend's class method, loading asks the
instance. Whichever is wrong, one of them lets through what the other refuses.

## Bad
```python
class MyBackend(AttentionBackend):
    @classmethod
    def supports_dcp(cls) -> bool:
        return True  # MyImpl.supports_dcp is False

    @staticmethod
    def get_impl_cls():
        return MyImpl
```

## Good
```python
class MyBackend(AttentionBackend):
    @staticmethod
    def get_impl_cls():
        return MyImpl  # the inherited supports_dcp() asks it
```

## How it is confirmed
The impl is run under DCP; whichever source disagrees with what it does is the wrong one.

## Known limits
Answers that depend on a condition are unknown and not compared.
"""

from __future__ import annotations

from collections.abc import Iterator

from dcplint.checks import capability_evidence as evidence
from dcplint.checks.base import Context, Rule
from dcplint.contracts.model import Capability
from dcplint.findings.model import Finding, Severity
from dcplint.program.attributes import Kind, Resolution
from dcplint.program.symbols import ClassSymbol

RULE = Rule(
    code="DCP109",
    name="disagreeing-sources",
    summary="flags places that state one DCP capability differently",
    severity=Severity.WARNING,
    since="0.1.0",
    probe="merge of N shards against the whole sequence: what the impl does decides",
    follows=False,
)


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding per pair of places that cannot both be right."""
    for capability in context.contract.capabilities:
        if capability.delegates is not None:
            yield from _backends(context, capability, capability.delegates)
        elif capability.opt_in:
            yield from _constructors(context, capability)


def _backends(context: Context, capability: Capability, accessor: str) -> Iterator[Finding]:
    """Backends that answer for themselves, against the class that they return."""
    program = context.program
    for symbol in program.classes(capability.role):
        said = program.resolve(symbol, capability.name)
        if said.kind is not Kind.EXPLICIT or program.is_engine_base(symbol):
            continue
        impl = program.result(symbol, accessor)
        if impl is None:
            continue
        answer = program.resolve(impl, capability.name)
        if answer.known and answer.holds() is not said.holds():
            yield _finding(
                context,
                symbol,
                capability,
                f"`{symbol}.{capability.name}()` returns {said.value}, "
                f"but `{impl}`, which it runs, says {answer.value}",
                (said, answer),
            )


def _constructors(context: Context, capability: Capability) -> Iterator[Finding]:
    """Classes whose instances say something else than they do."""
    program = context.program
    for symbol in program.classes(capability.role):
        on_class = program.attributes.resolve_on_class(symbol, capability.name)
        on_instance = program.attributes.resolve_on_instance(symbol, capability.name)
        if on_instance is None or not (on_class.known and on_instance.known):
            continue
        own = on_instance.kind is Kind.EXPLICIT or on_class.kind is Kind.EXPLICIT
        if (
            own
            and on_class.kind is not Kind.DEFAULT
            and on_class.holds() is not on_instance.holds()
        ):
            yield _finding(
                context,
                symbol,
                capability,
                f"`{symbol}` says `{capability.name} = {on_class.value}` on the class and "
                f"{on_instance.value} on its instances",
                (on_class, on_instance),
            )


def _finding(
    context: Context,
    symbol: ClassSymbol,
    capability: Capability,
    message: str,
    sources: tuple[Resolution, Resolution],
) -> Finding:
    """The finding stands at the first source; the other is evidence."""
    first, other = sources
    steps = [
        *evidence.origin(context, capability.name, other),
        *evidence.gates(context, capability, first.holds()),
    ]
    place = first.place
    assert place is not None
    return RULE.finding(
        message,
        context.program.location(place.module, place.fact.position),
        symbol=f"{symbol.facts.qualname}.{capability.name}",
        evidence=tuple(steps),
    )
