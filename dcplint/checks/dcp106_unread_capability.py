"""A capability that nobody reads: stating it, or not, changes nothing.

## What it flags
A capability declared on an engine base where no code of this engine release reads it from that
kind of class, and, in a plugin, a class that states one which no later release reads either. With
an engine's own tree, also a capability whose reader, as the contract pack has it, is there and no
longer asks: a warning, for then a gate has gone.

## Why it breaks
It looks like a contract and is none. Authors rely on a flag that refuses nothing, and the day
somebody starts reading it, every wrong answer becomes a bug at once.

## Bad
```python
class AttentionLayerBase(ABC):
    supports_dcp: bool = True  # no code asks a layer
```

## Good
```python
class AttentionLayerBase(ABC):  # whether a layer can do DCP is its impl's to say
    @abstractmethod
    def get_attn_backend(self): ...
```

## How it is confirmed
Nothing is run: that no reader exists is the finding.

## Known limits
A read whose receiver cannot be told (`x.supports_dcp`) counts as a reader of every role, unless
the contract pack knows what that code asks. Reads by computed names are not seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.version import Version

from dcplint.checks.base import Context, Rule
from dcplint.checks.capability_evidence import pack_location
from dcplint.contracts.model import Capability
from dcplint.facts.model import FunctionFacts
from dcplint.findings.model import Evidence, Finding, Location, Role, Severity, Tree
from dcplint.program.attributes import Kind
from dcplint.program.program import Program, Read
from dcplint.program.symbols import ClassSymbol, FunctionSymbol, Module

RULE = Rule(
    code="DCP106",
    name="unread-capability",
    summary="flags capabilities that nothing in this engine release reads",
    severity=Severity.NOTE,
    since="0.1.0",
    probe="none: the absence of a reader is a fact of the source",
    follows=False,
)


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each declaration of a capability that nobody asks for."""
    contract, program = context.contract, context.program
    for capability in contract.capabilities:
        if capability.readers_at(contract.effective):
            yield from _no_longer(context, capability)
            continue
        if capability.encoding != "attribute":
            continue
        reads = list(program.reads(capability.name))
        if any(_asks(context, read, capability) for read in reads):
            continue
        later = [
            v for v in contract.pack.known if v > contract.effective and capability.readers_at(v)
        ]
        owner = program.linker.absolute(capability.owner)
        in_tree = isinstance(owner, ClassSymbol) and owner.module.tree is Tree.PROJECT
        if later and not in_tree:
            continue  # a plugin that states it is ready for the release that asks
        for symbol in program.classes(capability.role):
            if (symbol is owner) if in_tree else not program.is_engine_base(symbol):
                yield from _finding(context, symbol, capability, reads, later)


def _no_longer(context: Context, capability: Capability) -> Iterator[Finding]:
    """What readers of the pack asked, where they stand in the checked tree and ask no more."""
    program, contract = context.program, context.contract
    owner = program.linker.absolute(capability.owner)
    readers = capability.readers_at(contract.effective)
    if not isinstance(owner, ClassSymbol) or owner.module.tree is not Tree.PROJECT:
        return
    silent = [_silent(program, site.function, capability.name) for site in readers]
    declared = _declaration(program, owner, capability.name)
    if declared is None or None in silent:
        return
    # A method of that name only hands the question on to another class: it is no gate.
    handing = capability.name if capability.encoding == "method" else None
    for read in program.reads(capability.name):
        if read.fact.scope.rpartition(".")[2] != handing and _asks(context, read, capability):
            return
    steps = [
        Evidence(
            f"{facts.qualname}() asks no more", program.location(module, facts.position), Role.GATE
        )
        for module, facts in filter(None, silent)
    ]
    steps.append(Evidence("as the contract pack has it, it asks", pack_location(readers[0].source)))
    yield RULE.finding(
        f"nothing in this tree reads `{capability.name}` of {_a(capability.role)} any more, which "
        f"`{readers[0].function.rpartition('.')[2]}` asks in "
        f"{contract.pack.engine} {contract.version}",
        declared,
        symbol=f"{owner.facts.qualname}.{capability.name}",
        severity=Severity.WARNING,
        evidence=tuple(steps),
    )


def _silent(program: Program, dotted: str, name: str) -> tuple[Module, FunctionFacts] | None:
    """The function of the checked tree that is called so, if it does not mention `name`."""
    outer, _, last = dotted.rpartition(".")
    holder, found = program.linker.absolute(outer), program.linker.absolute(dotted)
    if isinstance(holder, ClassSymbol):
        module, facts = (
            holder.module,
            next((m for m in holder.facts.methods if m.name == last), None),
        )
    elif isinstance(found, FunctionSymbol):
        module, facts = found.module, found.facts
    else:
        return None
    if facts is None or module.tree is not Tree.PROJECT:
        return None
    is_mentioned = re.search(rf"\b{name}\b", program.modules.source(module, facts))
    return None if is_mentioned else (module, facts)


def _declaration(program: Program, owner: ClassSymbol, name: str) -> Location | None:
    """Where a class itself states a capability, as a method or as an attribute."""
    for method in owner.facts.methods:
        if method.name == name:
            return program.location(owner.module, method.position)
    said = program.resolve(owner, name).place
    if said is None or said.owner is not owner:
        return None
    return program.location(owner.module, said.fact.position)


def _asks(context: Context, read: Read, capability: Capability) -> bool:
    """Whether a read may be one of this capability, rather than of its namesake on another role."""
    program, fact = context.program, read.fact
    if fact.called is (capability.encoding == "attribute"):
        return False
    asked = program.linker.accessors.get(fact.accessor)
    if asked is None and fact.receiver in ("self", "cls"):
        holder = fact.scope.rpartition(".")[0]
        owner = next((c for c in read.module.classes if c.facts.qualname == holder), None)
        roles = program.roles(owner) if owner is not None else frozenset()
        return not roles or capability.role in roles
    if asked is not None:
        return asked == capability.role
    function = f"{read.module.facts.name}.{fact.scope}"
    explained = {
        site.function
        for other in context.contract.capabilities
        if other.name == capability.name and other is not capability
        for site in other.readers_at(context.contract.effective)
    }
    return function not in explained


def _finding(
    context: Context,
    symbol: ClassSymbol,
    capability: Capability,
    reads: list[Read],
    later: list[Version],
) -> Iterator[Finding]:
    program, contract = context.program, context.contract
    said = program.resolve(symbol, capability.name)
    if said.kind is not Kind.EXPLICIT or said.place is None or said.place.owner is not symbol:
        return
    engine = f"{contract.pack.engine} {contract.version}"
    steps = [
        Evidence(
            f"reads `{read.fact.receiver}.{read.fact.name}`: another role's capability",
            program.location(read.module, read.fact.position),
            Role.GATE,
        )
        for read in reads
    ]
    if later:
        told = f"it is read from {contract.pack.engine} {later[0]} on"
        source = capability.readers_at(later[0])[0].source
    else:
        told = f"no release up to {contract.pack.engine} {contract.pack.known[-1]} reads it either"
        source = capability.source
    steps.append(Evidence(told, pack_location(source)))
    yield RULE.finding(
        f"nothing in {engine} reads `{capability.name}` of {_a(capability.role)}: "
        f"what `{symbol}` states has no effect",
        program.location(said.place.module, said.place.fact.position),
        symbol=f"{symbol.facts.qualname}.{capability.name}",
        evidence=tuple(steps),
    )


def _a(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"
