"""`extends`: the facts of one pack under the names and release numbers of another engine.

A fork copies an engine at some release, renames its packages and numbers its own releases. Its
pack says which names changed (`rewrite`) and which release of the parent each of its releases is
`based-on`; a fact stated in both packs is the fork's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from dcplint.contracts.contract import Pack
from dcplint.contracts.model import (
    Accessor,
    BlockFact,
    Capability,
    ContractField,
    Dated,
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
    Releases,
    Site,
    Source,
    Term,
    Vocabulary,
)

D = TypeVar("D", bound=Dated)


@dataclass(frozen=True, slots=True)
class Heritage:
    """What a pack takes over from another.

    based_on: ranges of the heir's releases, each with the parent's release it was made from;
    empty where the two count alike.
    rewrite: what a name starts with (`vllm.`), or one of its components (`VllmConfig`), and what
    replaces it.
    lacks: role and name of the parent's capabilities that the heir doesn't have, and where that was
    read.
    """

    parent: Pack
    based_on: tuple[tuple[SpecifierSet, Version], ...]
    rewrite: Mapping[str, str]
    lacks: Mapping[tuple[str, str], Source]

    def parent_release(self, version: Version) -> Version | None:
        """The parent's release that the heir's `version` was made from, if the pack says."""
        if not self.based_on:
            return version
        bases = (base for spec, base in self.based_on if spec.contains(version, prereleases=True))
        return next(bases, None)

    def name(self, name: str) -> str:
        """The heir's name for the parent's `name`."""
        for old, new in self.rewrite.items():
            if old.endswith("."):
                if f"{name}.".startswith(old):
                    name = f"{new}{f'{name}.'[len(old) :]}".rstrip(".")
            else:
                parts = name.split(".")
                name = ".".join(new if part == old else part for part in parts)
        return name

    def releases(self, releases: Releases) -> Releases:
        """The heir's releases for the parent's."""
        if not self.based_on:
            return releases
        return Releases(tuple(spec for spec, base in self.based_on if base in releases))


def inherit(own: Pack, heritage: Heritage) -> Pack:
    """`own` with every fact of the parent that it doesn't state itself."""
    parent, heir = heritage.parent, _Heir(heritage)
    terms = _merge(own.terms, map(heir.term, parent.terms), lambda t: (t.kind, t.name))
    return replace(
        own,
        classes=_merge(own.classes, map(heir.engine_class, parent.classes), lambda c: c.name),
        implementations=_merge(
            own.implementations,
            map(heir.engine_class, parent.implementations),
            lambda c: c.name,
        ),
        moved=_merge(own.moved, heir.all_moved(parent.moved), lambda m: m.name),
        capabilities=_merge(
            own.capabilities, map(heir.capability, parent.capabilities), lambda c: (c.role, c.name)
        ),
        gates=_merge(
            own.gates,
            map(heir.gate, parent.gates),
            lambda g: (g.function, g.role, g.capability),
        ),
        accessors=_merge(
            own.accessors, map(heir.accessor, parent.accessors), lambda a: (a.role, a.name)
        ),
        derived=_merge(own.derived, map(heir.derived, parent.derived), lambda d: (d.role, d.name)),
        fields=_merge(own.fields, map(heir.field, parent.fields), lambda f: (f.record, f.name)),
        refusals=_merge(own.refusals, map(heir.refusal, parent.refusals), lambda r: r.function),
        outputs=_merge(
            own.outputs,
            map(heir.output, parent.outputs),
            lambda o: (o.role, o.method, o.element),
        ),
        lengths=_merge(own.lengths, map(heir.length, parent.lengths), lambda n: (n.record, n.name)),
        localizers=_merge(
            own.localizers, map(heir.localizer, parent.localizers), lambda z: z.function
        ),
        arguments=_merge(
            own.arguments, map(heir.argument, parent.arguments), lambda a: (a.function, a.argument)
        ),
        blocks=_merge(
            own.blocks,
            map(heir.block, parent.blocks),
            lambda b: (b.record, b.name, b.method, b.argument),
        ),
        kernels=_merge(own.kernels, map(heir.kernel, parent.kernels), lambda k: k.name),
        terms=terms,
        vocabulary=Vocabulary.of(terms, own.vocabulary.neutral or parent.vocabulary.neutral),
        files={**parent.files, **own.files},
    )


def _merge(own: tuple[D, ...], inherited: Iterator[D], key: Callable[[D], object]) -> tuple[D, ...]:
    stated = {key(fact) for fact in own}
    # A fact that held in none of the releases the heir was made from is no fact of the heir.
    kept = (f for f in inherited if f.releases.specs or isinstance(f, (Moved, Capability)))
    return own + tuple(fact for fact in kept if key(fact) not in stated)


@dataclass(frozen=True, slots=True)
class _Heir:
    """Rewrites the facts of the parent one by one."""

    heritage: Heritage

    def _names(self, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(self.heritage.name, names))

    def _dated(self, facts: tuple[D, ...]) -> Iterator[tuple[D, Releases]]:
        for fact in facts:
            releases = self.heritage.releases(fact.releases)
            if releases.specs:
                yield fact, releases

    def engine_class(self, fact: EngineClass) -> EngineClass:
        return replace(
            fact,
            name=self.heritage.name(fact.name),
            bases=self._names(fact.bases),
            abstract=self._names(fact.abstract),
            defines=self._names(fact.defines),
            aliases=self._names(fact.aliases),
            releases=self.heritage.releases(fact.releases),
        )

    def all_moved(self, facts: tuple[Moved, ...]) -> Iterator[Moved]:
        name = self.heritage.name
        for fact in facts:
            releases = self.heritage.releases(fact.releases)
            # A name that was gone before the fork is one a plugin may still import; one that came
            # later is not.
            parent, based_on = self.heritage.parent, self.heritage.based_on
            if releases.specs or any(parent.has_lost(fact, base) for _, base in based_on):
                successor = fact.successor and name(fact.successor)
                yield replace(fact, name=name(fact.name), successor=successor, releases=releases)

    def capability(self, fact: Capability) -> Capability:
        name = self.heritage.name
        lacking = self.heritage.lacks.get((fact.role, name(fact.name)))
        if lacking is not None:
            # It stays, with no release that has it, so that the claim can be compared with one.
            fact = replace(fact, releases=Releases(()), source=lacking)
            fact = replace(fact, defaults=(), overrides=(), readers=())
        return replace(
            fact,
            name=name(fact.name),
            owner=name(fact.owner),
            methods=self._names(fact.methods),
            implies=self._names(fact.implies),
            delegates=fact.delegates and name(fact.delegates),
            releases=fact.releases if lacking else self.heritage.releases(fact.releases),
            defaults=tuple(replace(d, releases=r) for d, r in self._dated(fact.defaults)),
            overrides=tuple(
                replace(o, owner=name(o.owner), releases=r) for o, r in self._dated(fact.overrides)
            ),
            readers=self._sites(fact.readers),
        )

    def _sites(self, sites: tuple[Site, ...]) -> tuple[Site, ...]:
        name = self.heritage.name
        return tuple(
            replace(s, function=name(s.function), releases=r) for s, r in self._dated(sites)
        )

    def derived(self, fact: Derived) -> Derived:
        return replace(
            fact,
            name=self.heritage.name(fact.name),
            capability=self.heritage.name(fact.capability),
            function=self.heritage.name(fact.function),
            releases=self.heritage.releases(fact.releases),
        )

    def gate(self, fact: Gate) -> Gate:
        name = self.heritage.name
        return replace(
            fact,
            function=name(fact.function),
            reads=name(fact.reads),
            capability=name(fact.capability),
            argument=fact.argument and name(fact.argument),
            callers=self._sites(fact.callers),
            hooks=self._sites(fact.hooks),
            bypasses=tuple(
                replace(way, function=name(way.function), argument=name(way.argument), releases=r)
                for way, r in self._dated(fact.bypasses)
            ),
            releases=self.heritage.releases(fact.releases),
        )

    def accessor(self, fact: Accessor) -> Accessor:
        return replace(
            fact,
            name=self.heritage.name(fact.name),
            owner=self.heritage.name(fact.owner),
            releases=self.heritage.releases(fact.releases),
        )

    def field(self, fact: ContractField) -> ContractField:
        return replace(
            fact,
            name=self.heritage.name(fact.name),
            record=self.heritage.name(fact.record),
            localises=fact.localises and self.heritage.name(fact.localises),
            releases=self.heritage.releases(fact.releases),
        )

    def output(self, fact: Output) -> Output:
        return replace(
            fact,
            method=self.heritage.name(fact.method),
            capability=self.heritage.name(fact.capability),
            base=fact.base and self.heritage.name(fact.base),
            releases=self.heritage.releases(fact.releases),
        )

    def kernel(self, fact: Kernel) -> Kernel:
        return replace(
            fact,
            name=self.heritage.name(fact.name),
            aliases=self._names(fact.aliases),
            releases=self.heritage.releases(fact.releases),
        )

    def refusal(self, fact: Refusal) -> Refusal:
        return replace(
            fact,
            function=self.heritage.name(fact.function),
            releases=self.heritage.releases(fact.releases),
        )

    def length(self, fact: Length) -> Length:
        return replace(
            fact,
            name=self.heritage.name(fact.name),
            record=self.heritage.name(fact.record),
            releases=self.heritage.releases(fact.releases),
        )

    def localizer(self, fact: Localizer) -> Localizer:
        return replace(
            fact,
            function=self.heritage.name(fact.function),
            parameters=self._names(fact.parameters),
            length=self.heritage.name(fact.length),
            rank=fact.rank and self.heritage.name(fact.rank),
            out=fact.out and self.heritage.name(fact.out),
            releases=self.heritage.releases(fact.releases),
        )

    def argument(self, fact: KernelArgument) -> KernelArgument:
        return replace(
            fact,
            function=self.heritage.name(fact.function),
            argument=self.heritage.name(fact.argument),
            given=fact.given and self.heritage.name(fact.given),
            releases=self.heritage.releases(fact.releases),
        )

    def block(self, fact: BlockFact) -> BlockFact:
        name = self.heritage.name
        return replace(
            fact,
            record=name(fact.record),
            aliases=self._names(fact.aliases),
            name=fact.name and name(fact.name),
            method=fact.method and name(fact.method),
            argument=fact.argument and name(fact.argument),
            holds=fact.holds and name(fact.holds),
            kinds=self._names(fact.kinds),
            whole=self._names(fact.whole),
            unless=self._names(fact.unless),
            releases=self.heritage.releases(fact.releases),
        )

    def term(self, fact: Term) -> Term:
        return replace(
            fact,
            name=self.heritage.name(fact.name),
            releases=self.heritage.releases(fact.releases),
        )
