"""Whether classes and other names are where the pack says, with the bases and methods it says."""

from __future__ import annotations

from collections.abc import Iterator

from dcplint.contracts.checking.comparison import Comparison, Disagreement, listed
from dcplint.contracts.model import EngineClass, Moved


def classes(comparison: Comparison) -> Iterator[Disagreement]:
    """Base classes and implementations, each described as it is, and only where it is."""
    described = comparison.described()
    for stated in described:
        missing = list(comparison.defined(stated.name, stated.source))
        yield from missing or _class(comparison, stated)
    names = {stated.name for stated in described}
    pack = comparison.contract.pack
    for stated in (*pack.classes, *pack.implementations):
        if stated.name not in names and comparison.is_defined(stated.name):
            message = f"{stated.name} exists, where the pack has it in {stated.releases} only"
            yield comparison.here(message, stated.source, stated.name)


def _class(comparison: Comparison, stated: EngineClass) -> Iterator[Disagreement]:
    engine, name = comparison.engine, stated.name
    bases = tuple(base for base in engine.bases(name) if comparison.is_own(base))
    if bases != stated.bases:
        yield comparison.here(
            f"{name} has the bases {listed(bases)}, where the pack says {listed(stated.bases)}",
            stated.source,
            name,
        )
    abstract = engine.abstract_methods(name)
    inherited = frozenset().union(*map(engine.abstract_methods, _ancestors(comparison, name)))
    defines = (engine.methods(name) - abstract) & inherited
    for what, found, said in (
        ("declares abstract", abstract, stated.abstract),
        ("implements of its bases' abstract methods", defines, stated.defines),
    ):
        if found != set(said):
            yield comparison.here(
                f"{name} {what} {listed(sorted(found))}, where the pack says {listed(said)}",
                stated.source,
                name,
            )
    for alias in stated.aliases:
        if engine.resolve(alias) != name:
            yield Disagreement(f"{alias} is not {name}", stated.source)
    yield from _unlisted_bases(comparison, stated, bases)
    yield from _unlisted_values(comparison, stated)


def _ancestors(comparison: Comparison, name: str) -> Iterator[str]:
    for base in comparison.engine.bases(name):
        if comparison.is_defined(base):
            yield base
            yield from _ancestors(comparison, base)


def _unlisted_bases(
    comparison: Comparison, stated: EngineClass, bases: tuple[str, ...]
) -> Iterator[Disagreement]:
    """A base that the pack does not describe may have nothing that the pack is about."""
    described = {other.name for other in comparison.described()}
    for base in bases:
        if base in described or not comparison.is_defined(base):
            continue
        has = set(comparison.engine.abstract_methods(base))
        has |= {
            capability.name
            for capability in comparison.contract.capabilities
            if comparison.engine.class_value(base, capability.name) is not None
        }
        if has:
            yield comparison.here(
                f"base {base} of {stated.name} has {listed(sorted(has))} and no entry",
                stated.source,
                base,
            )


def _unlisted_values(comparison: Comparison, stated: EngineClass) -> Iterator[Disagreement]:
    """A class that the pack describes may state no value that the pack leaves out."""
    for capability in comparison.contract.capabilities:
        if capability.role != stated.role or capability.owner == stated.name:
            continue
        value = comparison.engine.class_value(stated.name, capability.name)
        override = capability.override_at(stated.name, comparison.contract.effective)
        if value is not None and override is None:
            yield comparison.here(
                f"{stated.name}.{capability.name} is {value}, where the pack lists no override",
                capability.source,
                stated.name,
            )


def moved_names(comparison: Comparison) -> Iterator[Disagreement]:
    """Names that later releases lack: each there as long as the pack says, its successor after."""
    for moved in comparison.contract.pack.moved:
        canonical = comparison.engine.resolve(moved.name)
        if comparison.contract.effective in moved.releases:
            if canonical is None:
                yield Disagreement(f"{moved.name} does not exist", moved.source)
        elif canonical is not None:
            message = f"{moved.name} exists, where the pack has it in {moved.releases} only"
            yield comparison.here(message, moved.source, canonical)
        elif moved in comparison.contract.moved:
            yield from _successor(comparison, moved)


def _successor(comparison: Comparison, moved: Moved) -> Iterator[Disagreement]:
    found = comparison.contract.missing(moved.name)
    successor = found[1] if found else None
    if successor is not None and comparison.engine.resolve(successor) is None:
        yield Disagreement(
            f"{successor}, the successor of {moved.name}, does not exist", moved.source
        )
