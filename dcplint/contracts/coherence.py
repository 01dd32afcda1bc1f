"""What no single entry of a pack can show: that its facts fit together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

from packaging.version import Version

from dcplint.contracts.contract import Pack
from dcplint.contracts.document import PackError
from dcplint.contracts.model import Dated, Moved, Source


def check(pack: Pack) -> None:
    """Raise PackError where the facts of a pack do not fit together."""
    _check_spans(pack)
    _check_defaults(pack)
    capabilities = {(c.role, c.name) for c in pack.capabilities}
    derived = {(d.role, d.name): d.capability for d in pack.derived}
    accessors = {(a.role, a.name): a.returns for a in pack.accessors}
    for capability in pack.capabilities:
        for implied in capability.implies:
            if (capability.role, implied) not in capabilities:
                dangling(capability.source, "implies", implied, capability.role)
        if capability.delegates:
            returned = accessors.get((capability.role, capability.delegates))
            if returned is None:
                _at(
                    capability.source,
                    f"'delegates: {capability.delegates}' names no accessor of role "
                    f"{capability.role}; add it under 'accessors'",
                )
            if (returned, capability.name) not in capabilities:
                dangling(capability.source, "name", capability.name, returned)
    for value in pack.derived:
        if (value.role, value.capability) not in capabilities:
            dangling(value.source, "capability", value.capability, value.role)
    for gate in pack.gates:
        if (gate.role, gate.capability) not in capabilities:
            dangling(gate.source, "capability", gate.capability, gate.role)
        if gate.reads != gate.capability and (
            derived.get((gate.role, gate.reads)) != gate.capability
        ):
            _at(
                gate.source,
                f"'reads: {gate.reads}' is neither the capability nor a value derived from "
                f"it; add it under 'derived'",
            )


def _check_defaults(pack: Pack) -> None:
    """An attribute has a default in just those releases that have the capability."""
    for capability in pack.capabilities:
        for version in pack.known:
            has = version in capability.releases
            if not capability.delegates and has != bool(capability.default_at(version)):
                _at(
                    capability.source,
                    f"capability {capability.name} has no default in {version}; add it or "
                    "correct 'releases'"
                    if has
                    else f"capability {capability.name} has a default in {version}, where its "
                    "'releases' do not hold; correct one of them",
                )


def _check_spans(pack: Pack) -> None:
    """Each fact holds in some known release, and no two of one name hold in the same."""
    seen: dict[tuple[object, Version], Source] = {}
    for group, fact, source in _statements(pack):
        held = [version for version in pack.known if version in fact.releases]
        if not held and fact.releases.specs and not isinstance(fact, Moved):
            _at(
                source,
                f"'releases: {fact.releases}' holds in none of the pack's releases "
                f"({pack.known[0]} to {pack.known[-1]}); correct the range",
            )
        for version in held:
            first = seen.setdefault((group, version), source)
            if first is not source:
                _at(
                    source,
                    f"says the same as line {first.line} of {first.pack} about {version}; "
                    "give the two different 'releases'",
                )


def dangling(source: Source, key: str, name: str, role: str | None) -> NoReturn:
    """Raise PackError for the name of a capability that there is not."""
    _at(source, f"'{key}: {name}' names no capability of role {role}; add or correct it")


def _at(source: Source, problem: str) -> NoReturn:
    raise PackError(f"{source.pack}:{source.line}: {problem}")


def _statements(pack: Pack) -> Iterator[tuple[object, Dated, Source]]:
    """Every dated statement of a pack, with what it is about."""
    for c in (*pack.classes, *pack.implementations):
        yield ("class", c.name), c, c.source
    for m in pack.moved:
        yield ("moved", m.name), m, m.source
    for a in pack.accessors:
        yield ("accessor", a.role, a.name), a, a.source
    for f in pack.fields:
        yield ("field", f.record, f.name), f, f.source
    for o in pack.outputs:
        yield ("output", o.role, o.method, o.element), o, o.source
    for h in pack.kernels:
        yield ("kernel", h.name), h, h.source
    for r in pack.refusals:
        yield ("refusal", r.function), r, r.source
    for n in pack.lengths:
        yield ("length", n.record, n.name), n, n.source
    for z in pack.localizers:
        yield ("localizer", z.function), z, z.source
    for p in pack.arguments:
        yield ("argument", p.function, p.argument), p, p.source
    for b in pack.blocks:
        yield ("block", b.record, b.name, b.method, b.argument), b, b.source
    for d in pack.derived:
        yield ("derived", d.role, d.name), d, d.source
    for t in pack.terms:
        yield ("term", t.kind, t.name), t, t.source
    for g in pack.gates:
        yield ("gate", g.function, g.role, g.capability), g, g.source
    for function, gate in {g.function: g for g in pack.gates}.items():
        for caller in gate.callers:
            yield ("caller", function, caller.function), caller, caller.source
        for hook in gate.hooks:
            yield ("hook", function, hook.function), hook, hook.source
        for way in gate.bypasses:
            yield ("bypass", function, way.function, way.argument), way, way.source
    for k in pack.capabilities:
        key = (k.role, k.name)
        yield ("capability", key), k, k.source
        for default in k.defaults:
            yield ("default", key), default, default.source
        for override in k.overrides:
            yield ("override", key, override.owner), override, override.source
        for reader in k.readers:
            yield ("reader", key, reader.function), reader, reader.source
