"""Evidence that the capability rules share: where a value comes from, and who asks for it."""

from __future__ import annotations

from collections.abc import Iterator

from dcplint.checks.base import Context
from dcplint.contracts.model import Capability, Gate, Source
from dcplint.findings.model import Evidence, Location, Role, Tree
from dcplint.program.attributes import Kind, Resolution
from dcplint.program.symbols import ClassSymbol


def spelled(value: object) -> str:
    """A value as Python writes it."""
    return repr(value)


def origin(context: Context, name: str, resolution: Resolution) -> Iterator[Evidence]:
    """The place that gives `name` its value."""
    place = resolution.place
    if place is None:
        return
    says = f"= {spelled(resolution.value)}" if resolution.known else "is set here"
    yield Evidence(
        f"{place.owner}.{name} {says}",
        context.program.location(place.module, place.fact.position),
        Role.ORIGIN,
    )


def walk(
    context: Context, symbol: ClassSymbol, name: str, resolution: Resolution
) -> Iterator[Evidence]:
    """The classes that the lookup passed through, each where a change of it would matter."""
    route = " → ".join(str(c) for c in resolution.walked)
    says = "none of them says it" if resolution.place is None else "only the last says it"
    place = context.program.location_of(symbol)
    yield Evidence(f"lookup of `{name}`: {route}; {says}", place, Role.MRO)
    speaker = resolution.place.owner if resolution.place is not None else None
    for passed in resolution.walked:
        if passed not in (symbol, speaker) and not context.program.is_engine_base(passed):
            where = context.program.location_of(passed)
            yield Evidence(f"{passed} says nothing of `{name}`", where, Role.MRO)


def implied(
    context: Context, symbol: ClassSymbol, capability: Capability
) -> Iterator[tuple[Capability, Resolution]]:
    """What must hold for the promise to be true, with what the class says of it."""
    for name in capability.implies:
        other = context.contract.capability(capability.role, name)
        if other is not None:
            yield other, context.program.promise(symbol, other)


def gates(context: Context, capability: Capability, holds: bool | None) -> Iterator[Evidence]:
    """The engine code that asks for the promise, and what it does where the answer is `holds`."""
    asked = [gate for gate in context.contract.gates if gate.capability == capability.name]
    for gate in asked:
        function, asks = gate.function.rpartition(".")[2], f"`{capability.name}`"
        does = {
            True: f"{function}() finds {asks} true and lets the class pass",
            False: f"{gate.outcome}, because {asks} is false",
            None: f"{gate.outcome}, unless {asks} is true",
        }
        only = f" (asked only for {gate.only_for})" if gate.only_for else ""
        said = f"{gate.stage} gate: {does[holds]}{only}"
        yield Evidence(said, gate_location(context, gate), Role.GATE)
    if not asked:
        release = context.contract.version
        owner = f"{capability.owner.rpartition('.')[2]}.{capability.name}"
        yield Evidence(
            f"no gate of {context.contract.pack.engine} {release} reads {owner}",
            pack_location(capability.source),
            Role.GATE,
        )


def gate_location(context: Context, gate: Gate) -> Location:
    """Where the gate's function is defined; its pack entry where the source is not at hand."""
    module, _, rest = gate.function.rpartition(".")
    program = context.program
    found = program.modules.find(module)
    if found is not None and found.tree is not Tree.PACK:
        facts = next((f for f in found.facts.functions if f.name == rest), None)
        if facts is not None:
            return program.location(found, facts.position)
    owner = program.linker.absolute(module)
    if isinstance(owner, ClassSymbol) and owner.module.tree is not Tree.PACK:
        facts = next((m for m in owner.facts.methods if m.name == rest), None)
        if facts is not None:
            return program.location(owner.module, facts.position)
    return pack_location(gate.source)


def pack_location(source: Source) -> Location:
    """Where a pack states a fact; an heir's facts may stand in the pack it extends."""
    return Location(source.pack, max(source.line, 1), tree=Tree.PACK)


def later_releases(
    context: Context, symbol: ClassSymbol, capability: Capability, resolution: Resolution
) -> Iterator[Evidence]:
    """What the class would resolve to in later releases, where a default decides its value."""
    pack, now = context.contract.pack, context.contract.effective
    if resolution.kind is not Kind.DEFAULT:
        return
    value = resolution.value
    for version in pack.known:
        default = capability.default_at(version)
        if version <= now or default is None or default.value == value:
            continue
        value = default.value
        yield Evidence(
            f"from {pack.engine} {version} the default is {spelled(value)}: "
            f"{symbol} would then resolve to {spelled(value)}",
            pack_location(default.source),
        )
