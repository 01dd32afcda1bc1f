"""Whether capabilities have the values, readers and gates that the pack says."""

from __future__ import annotations

from collections.abc import Iterator

from dcplint.contracts.checking.comparison import Comparison, Disagreement
from dcplint.contracts.model import Capability, Gate, Source


def capabilities(comparison: Comparison) -> Iterator[Disagreement]:
    """What classes promise: the value where nobody states it, who states another, who reads it."""
    for capability in comparison.contract.capabilities:
        yield from _capability(comparison, capability)
    yield from _absent(comparison)


def _capability(comparison: Comparison, capability: Capability) -> Iterator[Disagreement]:
    missing = list(comparison.defined(capability.owner, capability.source))
    if missing:
        yield from missing
        return
    if capability.encoding == "method":
        yield from _method(comparison, capability)
    else:
        default = capability.default_at(comparison.contract.effective)
        if default is not None:
            yield from _value(
                comparison, capability.owner, capability.name, default.value, default.source
            )
    for override in capability.overrides:
        if comparison.contract.effective in override.releases:
            missing = list(comparison.defined(override.owner, override.source))
            yield from missing or _value(
                comparison, override.owner, capability.name, override.value, override.source
            )
    name = capability.name
    # The same function may read the capability of that name of another role.
    others = {
        site.function
        for other in comparison.contract.capabilities
        if other.name == name
        for site in other.readers_at(comparison.contract.effective)
    }
    readers = [
        site
        for site in capability.readers
        if comparison.contract.effective in site.releases or site.function not in others
    ]
    yield from comparison.sites(readers, name, f"reads {name}", "reader")
    known = {
        method
        for stated in comparison.described()
        if stated.role == capability.role and comparison.is_defined(stated.name)
        for method in comparison.engine.methods(stated.name)
    }
    for method in capability.methods:
        if method not in known:
            yield Disagreement(
                f"no class of role {capability.role} has a method {method}", capability.source
            )


def _method(comparison: Comparison, capability: Capability) -> Iterator[Disagreement]:
    method = f"{capability.owner}.{capability.name}"
    if capability.name not in comparison.engine.methods(capability.owner):
        yield comparison.here(f"{method} is no method", capability.source, capability.owner)
    elif capability.delegates and not comparison.engine.mentions(method, capability.delegates):
        yield comparison.here(
            f"{method} does not ask {capability.delegates}()", capability.source, method
        )


def _value(
    comparison: Comparison, owner: str, name: str, value: bool, source: Source
) -> Iterator[Disagreement]:
    found = comparison.engine.class_value(owner, name)
    if found is not value:
        says = "has no literal value" if found is None else f"is {found}"
        yield comparison.here(f"{owner}.{name} {says}, where the pack says {value}", source, owner)


def _absent(comparison: Comparison) -> Iterator[Disagreement]:
    """A capability whose releases leave this one out must not be there."""
    present = {(c.role, c.name) for c in comparison.contract.capabilities}
    for capability in comparison.contract.pack.capabilities:
        owner, name = capability.owner, capability.name
        if (capability.role, name) in present or not comparison.is_defined(owner):
            continue
        stated = comparison.engine.class_value(owner, name) is not None
        if stated or name in comparison.engine.methods(owner):
            message = f"{owner}.{name} exists, where the pack has it in {capability.releases} only"
            yield comparison.here(message, capability.source, owner)


def derived_values(comparison: Comparison) -> Iterator[Disagreement]:
    """What the engine computes from capabilities."""
    for derived in comparison.contract.derived:
        missing = list(comparison.defined(derived.function, derived.source))
        yield from missing
        for name in () if missing else (derived.name, derived.capability):
            if not comparison.engine.mentions(derived.function, name):
                yield comparison.here(
                    f"{derived.function} does not mention {name}",
                    derived.source,
                    derived.function,
                )


def gates(comparison: Comparison) -> Iterator[Disagreement]:
    """Code that refuses, what it reads, and how it is come to."""
    for gate in comparison.contract.gates:
        missing = list(comparison.defined(gate.function, gate.source))
        yield from missing or _gate(comparison, gate)
    asked = {(gate.function, gate.reads) for gate in comparison.contract.gates}
    for gate in comparison.contract.pack.gates:
        key = (gate.function, gate.reads)
        if key not in asked and comparison.does(gate.function, gate.reads):
            yield comparison.here(
                f"{gate.function} reads {gate.reads}, where the pack has it in "
                f"{gate.releases} only",
                gate.source,
                gate.function,
            )


def _gate(comparison: Comparison, gate: Gate) -> Iterator[Disagreement]:
    if not comparison.engine.mentions(gate.function, gate.reads):
        message = f"{gate.function} does not read {gate.reads}"
        yield comparison.here(message, gate.source, gate.function)
    if gate.argument and gate.argument not in comparison.engine.parameters(gate.function):
        message = f"{gate.function} has no parameter {gate.argument}"
        yield comparison.here(message, gate.source, gate.function)
    name = gate.function.rpartition(".")[2]
    yield from comparison.sites(gate.callers, name, f"calls {name}", "caller")
    for hook in gate.hooks:
        if comparison.contract.effective in hook.releases:
            yield from comparison.defined(hook.function, hook.source)
    for way in gate.bypasses:
        if comparison.contract.effective in way.releases:
            yield from comparison.defined(way.function, way.source)
            if way.argument not in comparison.engine.parameters(way.function):
                message = f"{way.function} has no parameter {way.argument}"
                yield comparison.here(message, way.source, way.function)


def accessors(comparison: Comparison) -> Iterator[Disagreement]:
    """Methods that return a class of another role."""
    for accessor in comparison.contract.accessors:
        missing = list(comparison.defined(accessor.owner, accessor.source))
        yield from missing
        if not missing and accessor.name not in comparison.engine.methods(accessor.owner):
            message = f"{accessor.owner} has no method {accessor.name}"
            yield comparison.here(message, accessor.source, accessor.owner)
