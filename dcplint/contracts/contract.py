"""A pack, which states an engine's facts for a span of releases, and the contract of one release.

`Pack.at(version)` gives the `Contract`, which is what rules work with.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from packaging.version import Version

from dcplint.contracts.model import (
    Accessor,
    BlockFact,
    Capability,
    ContractField,
    Derived,
    EngineClass,
    Gate,
    Kernel,
    KernelArgument,
    Length,
    Localizer,
    Moved,
    Output,
    Refusal,
    Term,
    Vocabulary,
    holding,
)

_FIRST = Version("0")  # stands for every release before the oldest known one


class Coverage(enum.Enum):
    """How the facts of a contract relate to the release asked for."""

    EXACT = "exact"  # the facts were read in this release
    BETWEEN = "between"  # not read, but releases on both sides of it were
    NEWER = "newer"  # newer than the pack, or a development version: other facts stand in
    OLDER = "older"  # older than the pack: names only, values come from the engine's source


@dataclass(frozen=True, slots=True)
class Pack:
    """Everything one YAML file states, for all the releases it covers.

    A pack that extends another holds the inherited facts too, under its own names and releases.
    One that joins another describes a plugin: its facts stand beside those of the engine `joins`.

    package: the import package of the engine; distribution: its name on the package registry.
    path: the file, as messages call it. files: where the files that its facts come from lie, by
    what `Source.pack` calls them.
    known: the releases the facts were read in, ascending; the last is the newest known.
    classes: base classes, from which a role is inherited. implementations: concrete classes of
    the engine that others build on; their entries say what a subclass gets from them.
    terms: the vocabulary with the release and source of each word.
    """

    engine: str
    package: str
    distribution: str
    path: str
    known: tuple[Version, ...]
    classes: tuple[EngineClass, ...]
    moved: tuple[Moved, ...]
    capabilities: tuple[Capability, ...]
    gates: tuple[Gate, ...]
    accessors: tuple[Accessor, ...]
    vocabulary: Vocabulary
    derived: tuple[Derived, ...] = ()
    terms: tuple[Term, ...] = ()
    fields: tuple[ContractField, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    outputs: tuple[Output, ...] = ()
    lengths: tuple[Length, ...] = ()
    localizers: tuple[Localizer, ...] = ()
    arguments: tuple[KernelArgument, ...] = ()
    blocks: tuple[BlockFact, ...] = ()
    kernels: tuple[Kernel, ...] = ()
    implementations: tuple[EngineClass, ...] = ()
    joins: str | None = None
    files: Mapping[str, Path] = field(default_factory=dict, compare=False)

    @property
    def file(self) -> Path:
        """Where the pack's own file lies."""
        return self.files[self.path]

    def at(self, version: Version) -> Contract:
        """The facts of one release. A release outside `known` gets the nearest known one's.

        For one older than the pack the capabilities keep their names but lose their values: what
        a later release defaults to says nothing about an earlier one.
        """
        coverage, effective = self._nearest(version)
        capabilities = tuple(holding(self.capabilities, effective))
        had = effective
        if coverage is Coverage.OLDER:
            capabilities = tuple(replace(c, defaults=(), overrides=()) for c in capabilities)
            had = version  # where a name went is known further back than anything else
        return Contract(
            pack=self,
            version=version,
            effective=effective,
            classes=tuple(holding(self.classes, effective)),
            moved=tuple(m for m in self.moved if self.has_lost(m, had)),
            capabilities=capabilities,
            gates=tuple(holding(self.gates, effective)),
            accessors=tuple(holding(self.accessors, effective)),
            vocabulary=self.vocabulary,
            coverage=coverage,
            derived=tuple(holding(self.derived, effective)),
            implementations=tuple(holding(self.implementations, effective)),
            fields=tuple(holding(self.fields, effective)),
            refusals=tuple(holding(self.refusals, effective)),
            outputs=tuple(holding(self.outputs, effective)),
            lengths=tuple(holding(self.lengths, effective)),
            localizers=tuple(holding(self.localizers, effective)),
            arguments=tuple(holding(self.arguments, effective)),
            blocks=tuple(holding(self.blocks, effective)),
            kernels=tuple(holding(self.kernels, effective)),
        )

    def has_lost(self, moved: Moved, version: Version) -> bool:
        """Whether `version` lacks a name that a release before it had."""
        if version in moved.releases:
            return False
        before = (_FIRST, *(known for known in self.known if known < version))
        return not moved.releases.specs or any(known in moved.releases for known in before)

    def _nearest(self, version: Version) -> tuple[Coverage, Version]:
        oldest, newest = self.known[0], self.known[-1]
        if version in self.known:  # a release candidate itself, where no more is there yet
            return Coverage.EXACT, version
        # A development version is on its way to the next release (0.29.1.dev3 to 0.30.0). Where it
        # says less (untagged checkouts call themselves 0.1.dev1), it is most often the newest.
        if version.is_devrelease:
            ahead = (known for known in self.known if version > oldest and known > version)
            return Coverage.NEWER, next(ahead, newest)
        # Release candidates and local builds (0.29.0rc1, 0.29.0+cu128) hold what the release does.
        release = Version(version.base_version if version.is_prerelease else version.public)
        if release < oldest:
            return Coverage.OLDER, oldest
        if release > newest:
            return Coverage.NEWER, newest
        return (Coverage.EXACT if release in self.known else Coverage.BETWEEN), release


@dataclass(frozen=True, slots=True)
class Contract:
    """What one engine release promises.

    `effective` is the release whose facts apply and `coverage` says how it relates to `version`.
    `moved` are the names that this release lacks and an earlier one had.
    """

    pack: Pack
    version: Version
    effective: Version
    classes: tuple[EngineClass, ...]
    moved: tuple[Moved, ...]
    capabilities: tuple[Capability, ...]
    gates: tuple[Gate, ...]
    accessors: tuple[Accessor, ...]
    vocabulary: Vocabulary
    coverage: Coverage = Coverage.EXACT
    derived: tuple[Derived, ...] = ()
    implementations: tuple[EngineClass, ...] = ()
    fields: tuple[ContractField, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    outputs: tuple[Output, ...] = ()
    lengths: tuple[Length, ...] = ()
    localizers: tuple[Localizer, ...] = ()
    arguments: tuple[KernelArgument, ...] = ()
    blocks: tuple[BlockFact, ...] = ()
    kernels: tuple[Kernel, ...] = ()

    def capability(self, role: str, name: str) -> Capability | None:
        """The capability of that role and name, or None where this release has none."""
        return next((c for c in self.capabilities if (c.role, c.name) == (role, name)), None)

    def missing(self, name: str) -> tuple[Moved, str | None] | None:
        """The entry that says this release lacks the dotted `name`, and its successor.

        A module's entry covers every name below it, and the longest entry wins.
        """
        found: Moved | None = None
        for moved in self.moved:
            covers = moved.name == name or (
                moved.kind == "module" and name.startswith(f"{moved.name}.")
            )
            if covers and (found is None or len(moved.name) > len(found.name)):
                found = moved
        if found is None:
            return None
        if found.successor is None:
            return found, None
        successor = found.successor + name[len(found.name) :]
        # What a module's successor is expected to hold may have moved on from there.
        others = replace(self, moved=tuple(m for m in self.moved if m is not found))
        further = others.missing(successor)
        return found, further[1] if further else successor
