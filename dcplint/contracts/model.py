"""The facts that a contract pack states of an engine, one class for each kind.

Every fact says in which releases it holds and where it was read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from packaging.specifiers import SpecifierSet
from packaging.version import Version

ROLES = ("impl", "backend", "builder", "layer", "metadata", "runner", "drafter", "platform")


@dataclass(frozen=True, slots=True)
class Source:
    """Where a fact was read, and where the pack states it.

    `text` is `file:line@release` or `repo#number`, several joined by `, `; `pack`/`line` locate
    the entry in the YAML.
    """

    text: str
    pack: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Releases:
    """The releases in which a fact holds: those that any of the PEP 440 specifier sets contains.

    No set at all means in none: so a fork's pack has it for a name that was gone before the fork.
    """

    specs: tuple[SpecifierSet, ...] = (SpecifierSet(),)

    def __contains__(self, version: Version) -> bool:
        return any(spec.contains(version, prereleases=True) for spec in self.specs)

    def __str__(self) -> str:
        return " or ".join(str(spec) or "every release" for spec in self.specs) or "no release"


class Dated(Protocol):
    """Any fact that says in which releases it holds."""

    @property
    def releases(self) -> Releases:
        """Those releases."""


D = TypeVar("D", bound=Dated)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EngineClass:
    """A class of the engine that plays a role.

    `role` is the part it plays: one of `ROLES`. `bases` are dotted names, those outside the
    engine's own package left out. `abstract` lists methods that this class itself declares
    abstract; `defines` those of its bases' abstract methods that it implements. `aliases` are
    other dotted names under which the engine exports it. dcp_only: the engine takes it, and what
    derives from it, where DCP is on, and nowhere else.
    """

    name: str
    role: str
    bases: tuple[str, ...]
    abstract: tuple[str, ...]
    releases: Releases
    source: Source
    defines: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    dcp_only: bool = False


@dataclass(frozen=True, slots=True)
class Moved:
    """A public name that later releases no longer have. `releases` are those that have it.

    kind: `name` for one class or function, `module` for a module and everything below it.
    successor: where releases without it have the same thing, if anywhere.
    """

    name: str
    successor: str | None
    releases: Releases
    source: Source
    kind: str = "name"


@dataclass(frozen=True, slots=True)
class Default(Generic[T]):
    """The value a capability has where nobody states it, in some releases."""

    value: T
    releases: Releases
    source: Source


@dataclass(frozen=True, slots=True)
class Override:
    """The value that an engine class other than the capability's owner states for its subclasses.

    `owner` is the dotted name of that class.
    """

    owner: str
    value: bool
    releases: Releases
    source: Source


@dataclass(frozen=True, slots=True)
class Site:
    """An engine function (dotted name) that does something with a name: reads it, or calls it."""

    function: str
    releases: Releases
    source: Source


@dataclass(frozen=True, slots=True)
class Bypass:
    """A parameter of an engine function (dotted name) that takes what the gate would have judged.

    A call that passes it is not asked.
    """

    function: str
    argument: str
    releases: Releases
    source: Source


@dataclass(frozen=True, slots=True)
class Capability:
    """A promise that classes of one role make.

    owner: dotted name of the engine base that declares the default.
    opt_in: the promise must be made deliberately, so a default of true is a fault.
    methods: compute methods the promise is about; overriding one re-opens the question.
    implies: capabilities (of the same role) that must be true where this one is.
    encoding: `attribute` (class or instance attribute) or `method` (classmethod without arguments).
    delegates: for a method, the accessor of this role whose class's capability of the same name
    it returns; such a capability has no defaults of its own.
    readers: engine functions, gates included, that read it; in a release where none holds, the
    promise has no effect.
    """

    name: str
    role: str
    owner: str
    summary: str
    opt_in: bool
    methods: tuple[str, ...]
    implies: tuple[str, ...]
    encoding: str
    delegates: str | None
    defaults: tuple[Default[bool], ...]
    releases: Releases
    source: Source
    overrides: tuple[Override, ...] = ()
    readers: tuple[Site, ...] = ()

    def default_at(self, version: Version) -> Default[bool] | None:
        """The default in `version`; None where it has none, as a delegating method."""
        return next(holding(self.defaults, version), None)

    def override_at(self, owner: str, version: Version) -> Override | None:
        """What the engine class `owner` states in place of the default in `version`."""
        return next((o for o in holding(self.overrides, version) if o.owner == owner), None)

    def readers_at(self, version: Version) -> tuple[Site, ...]:
        """The engine functions that read it in `version`."""
        return tuple(holding(self.readers, version))


@dataclass(frozen=True, slots=True)
class Derived:
    """A value that the engine computes from a capability, and that gates may read instead.

    function: dotted name of the code that computes it. condition: what else must hold, in words.
    """

    name: str
    role: str
    capability: str
    function: str
    condition: str
    releases: Releases
    source: Source


@dataclass(frozen=True, slots=True)
class Gate:
    """Engine code that reads a capability and refuses.

    name: capability and stage. function: dotted name. reads: the name whose value decides, which
    is `capability` itself or a value derived from it (`Derived`). role: whose capability that is.
    stage: `selection` or `load`. outcome: what the user sees. argument: the parameter without
    which `function` asks nothing. only_for: which models or layers it asks about, where not about
    all: a class that serves others is not refused. callers: who calls it. hooks: overridable
    methods that the engine counts on to reach it. bypasses: arguments by which it is left out.
    """

    name: str
    function: str
    reads: str
    capability: str
    stage: str
    outcome: str
    releases: Releases
    source: Source
    role: str = "impl"
    argument: str | None = None
    only_for: str | None = None
    callers: tuple[Site, ...] = ()
    hooks: tuple[Site, ...] = ()
    bypasses: tuple[Bypass, ...] = ()


@dataclass(frozen=True, slots=True)
class Accessor:
    """A method of one role that returns a class of another (`get_impl_cls`).

    owner: dotted name of the base that declares it.
    """

    name: str
    role: str
    returns: str
    releases: Releases
    source: Source
    owner: str = ""


@dataclass(frozen=True, slots=True)
class ContractField:
    """Metadata that the runner owes its consumers whenever DCP is on.

    record: dotted name of the class that carries it. optional: nobody owes it, and a consumer
    must do without. localises: the field of the same record that holds the global quantity.
    """

    name: str
    record: str
    summary: str
    optional: bool
    releases: Releases
    source: Source
    localises: str | None = None


AXES = ("heads", "rows")


@dataclass(frozen=True, slots=True)
class Output:
    """A value that a method owes under DCP where its class makes a promise.

    method: name of a method of `role`; element: which element of the tuple it returns, from 0.
    capability: the promise of that role which makes it due. base: the capability of that role that
    says whether it is a natural logarithm; false means base 2. axes: what its dimensions stand for,
    of `AXES`; empty where that is not stated. query: which of the method's parameters, the instance
    not counted, is the query, gathered over the heads of all ranks.
    """

    method: str
    role: str
    element: int
    capability: str
    summary: str
    releases: Releases
    source: Source
    base: str | None = None
    axes: tuple[str, ...] = ()
    query: int | None = None


@dataclass(frozen=True, slots=True)
class Kernel:
    """A function that computes attention, whoever wrote it; nothing looks inside.

    name: dotted, where it is defined; aliases: other names that it is imported under.
    lse: which element of its result is the LSE, and base its logarithm's: `e` or `2`. unless:
    arguments with which that is not so. axes: what the dimensions of the LSE stand for, of `AXES`;
    turned: arguments, or `name=value`, with all of which they come the other way round.
    rank: the parameter that takes the DCP rank; interleave:
    the one that takes the interleave size. promise: the capability that a class which passes the
    rank without an interleave size cannot have; varlen: the parameter by which the class's builder
    tells its base that decodes have several query tokens, which it then can at interleave 1 only.
    """

    name: str
    releases: Releases
    source: Source
    aliases: tuple[str, ...] = ()
    lse: int | None = None
    base: str | None = None
    unless: tuple[str, ...] = ()
    axes: tuple[str, ...] = ()
    turned: tuple[str, ...] = ()
    rank: str | None = None
    interleave: str | None = None
    promise: str | None = None
    varlen: str | None = None

    @property
    def called(self) -> str:
        """What it is called without the modules around it: `function`, or `Class.method`."""
        owner, name = self.name.split(".")[-2:]
        return f"{owner}.{name}" if owner[:1].isupper() else name


@dataclass(frozen=True, slots=True)
class Refusal:
    """An engine function that cannot run, or cannot matter to a consumer, when DCP is on.

    function: dotted name. reason: the assertion or check that keeps it away, in words.
    """

    function: str
    reason: str
    releases: Releases
    source: Source


UNITS = (
    "global",
    "local",
    "all-ranks",
    "upper-bound",
    "local-upper-bound",
    "queries",
    "query-offsets",
    "places",
    "local-places",
)


@dataclass(frozen=True, slots=True)
class Length:
    """What an attribute of a record counts, in tokens.

    unit: one of `UNITS`: the whole sequence, this rank's shard, every rank's shard, at least as
    many as the sequence or the shard has, the tokens that are new in this step, or where each
    request's new tokens start.
    on_device: reading it on the host waits for the device, and is no part of the plan.
    """

    name: str
    record: str
    unit: str
    on_device: bool
    releases: Releases
    source: Source


@dataclass(frozen=True, slots=True)
class Localizer:
    """An engine function that turns lengths into the lengths of one rank's shard.

    function: dotted name. parameters: in order. length, rank: those that take the global lengths
    and the rank: None means every rank, rank 0 the longest shard; one without such a parameter
    works for the rank that calls it, or gives the lengths of every rank, a column each
    (every_rank). out: the one that it fills in.
    """

    function: str
    parameters: tuple[str, ...]
    length: str
    rank: str | None
    out: str | None
    releases: Releases
    source: Source
    every_rank: bool = False


@dataclass(frozen=True, slots=True)
class KernelArgument:
    """An argument that wants a length of one unit under DCP.

    function: dotted name of a function, or of a method that subclasses may override. position:
    its place, from 0 and without `self`, for a function whose signature is not at hand. given: the
    argument without which it counts something else. on_device: whether an override of the method
    gets it on the device.
    """

    function: str
    argument: str
    unit: str
    position: int | None
    given: str | None
    on_device: bool
    releases: Releases
    source: Source


COUNTS = ("sequence", "rank-block", "sequence-block", "block-ids", "tokens")


@dataclass(frozen=True, slots=True)
class BlockFact:
    """What an attribute, an argument or a result has to do with the blocks of the KV cache.

    record: dotted name of the class; aliases: other names that the engine exports it under.
    name: the attribute; or method: what subclasses may override, and argument: which of its
    arguments. Without one, what it returns is meant.
    counts: one of `COUNTS`: tokens of whole sequences, tokens that one rank holds in a block,
    tokens of the sequence that a block stands for under DCP; or it holds ids of blocks,
    or a sequence's tokens.
    holds: in place of that, the record that the attribute is, or is a list of.
    kinds: records derived from this one. whole: those of them whose blocks every rank has whole, so
    that they stand for no more tokens than they hold. unless: arguments of a constructor with which
    it is another thing that counts.
    """

    record: str
    releases: Releases
    source: Source
    aliases: tuple[str, ...] = ()
    name: str = ""
    method: str = ""
    argument: str = ""
    counts: str = ""
    holds: str = ""
    kinds: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Term:
    """One word of the vocabulary. `kind` is the key of the pack it stands under.

    base: of a merge, the parameter that says whether the LSEs are natural logarithms; always: the
    base (`e` or `two`) of a merge that takes no other. axes: what the dimensions of the LSEs stand
    for that a merge takes, of `AXES`. per_shard: of an argument of attention kernels, that each
    rank may pass it for its shard just as one rank passes it for the whole.
    """

    kind: str
    name: str
    releases: Releases
    source: Source
    base: str | None = None
    per_shard: bool = False
    always: str | None = None
    axes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The names by which engine code speaks of DCP, in whatever release of the pack.

    sizes, ranks: attribute and parameter names holding the DCP world size and rank.
    members: names holding the ranks of the DCP group, one each, as many as it has.
    switches: names that are true where DCP is on, and nowhere else.
    interleaves: names holding the interleave size; where there is none, it is 1 everywhere.
    groups: dotted names of functions that return the DCP process group; group_names: attributes
    that hold it.
    group_ranks, group_sizes: attributes of a group: this rank's place in it, and how many it has.
    wider_groups: dotted names of functions that return a group of which every rank of the DCP
    group is another rank.
    varying: attributes of a group that tell its ranks apart, besides their place, and dotted names
    of functions that tell the DCP ranks apart.
    merges: dotted names of functions and classes that merge partial outputs by LSE over ranks.
    combines: dotted names of functions that merge two of them on one rank.
    collectives: methods of a group that exchange tensors, and dotted names of such functions.
    syncs: dotted names of context managers that allow waiting for the device.
    heads: attributes that hold how many query heads this rank has.
    semantics: parameters of attention kernels that change what is computed, over whatever tokens.
    neutral: top-level packages whose classes never state an engine capability.
    """

    sizes: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    switches: tuple[str, ...] = ()
    ranks: tuple[str, ...] = ()
    interleaves: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    group_names: tuple[str, ...] = ()
    group_ranks: tuple[str, ...] = ()
    group_sizes: tuple[str, ...] = ()
    wider_groups: tuple[str, ...] = ()
    varying: tuple[str, ...] = ()
    merges: tuple[str, ...] = ()
    combines: tuple[str, ...] = ()
    collectives: tuple[str, ...] = ()
    syncs: tuple[str, ...] = ()
    heads: tuple[str, ...] = ()
    semantics: tuple[str, ...] = ()
    neutral: tuple[str, ...] = ()

    @classmethod
    def of(cls, terms: Iterable[Term], neutral: tuple[str, ...] = ()) -> Vocabulary:
        """The vocabulary that the given terms make up."""
        names: dict[str, list[str]] = {}
        for term in terms:
            names.setdefault(term.kind, []).append(term.name)
        found = {kind.replace("-", "_"): tuple(words) for kind, words in names.items()}
        return cls(**found, neutral=neutral)


def holding(facts: tuple[D, ...], version: Version) -> Iterator[D]:
    """Those of some facts that hold in a release."""
    return (fact for fact in facts if version in fact.releases)
