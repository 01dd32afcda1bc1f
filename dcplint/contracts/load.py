"""Reads a pack: YAML to the typed model, with errors that name the line and the remedy.

The keys are those of `rules/pack.schema.json`; docs/packs.md explains each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from dcplint.contracts.coherence import check, dangling
from dcplint.contracts.contract import Pack
from dcplint.contracts.document import Node, PackError, read_document
from dcplint.contracts.entries import Fields, Reader
from dcplint.contracts.inherit import Heritage, inherit
from dcplint.contracts.model import (
    AXES,
    COUNTS,
    ROLES,
    UNITS,
    Accessor,
    BlockFact,
    Bypass,
    Capability,
    ContractField,
    Default,
    Derived,
    EngineClass,
    Gate,
    Kernel,
    KernelArgument,
    Length,
    Localizer,
    Moved,
    Output,
    Override,
    Refusal,
    Site,
    Source,
    Term,
    Vocabulary,
)

__all__ = ["FindParent", "PackError", "build_pack", "load_pack"]

FindParent = Callable[[str], Pack | None]
"""Finds the pack of an engine that `extends` names; None where there is no such pack."""

STAGES = ("selection", "load")
ENCODINGS = ("attribute", "method")
PLACES = ("device", "host")
MOVED_KINDS = ("name", "module")
LSE_BASES = ("e", "two")
_WORDS = {  # kinds of term, and what their names are
    "sizes": "a name",
    "members": "a name",
    "switches": "a name",
    "ranks": "a name",
    "interleaves": "a name",
    "groups": "a dotted name",
    "group-names": "a name",
    "group-ranks": "a name",
    "group-sizes": "a name",
    "wider-groups": "a dotted name",
    "varying": "a dotted name",
    "merges": "a dotted name",
    "combines": "a dotted name",
    "collectives": "a dotted name",
    "syncs": "a dotted name",
    "heads": "a name",
    "semantics": "a name",
}
_HOSTS = ("extends", "moved", "capabilities", "derived", "gates", "accessors", "outputs")
_ABOUT_WORDS = {"merges": "base always axes", "combines": "axes", "semantics": "per-shard"}


def load_pack(
    path: Path, *, shown: str | None = None, find_parent: FindParent | None = None
) -> Pack:
    """The pack in the file `path`, which messages and sources call `shown`.

    Raises PackError. Without `find_parent` a pack cannot extend another.
    """
    shown = shown or path.as_posix()
    return build_pack(read_document(path, shown), path, shown, find_parent)


def build_pack(root: Node, path: Path, shown: str, find_parent: FindParent | None) -> Pack:
    """The pack whose document is `root`; as `load_pack` otherwise."""
    return _Loader(shown, path, find_parent).pack(root)


@dataclass(slots=True)
class _Loader(Reader):
    path: Path
    find_parent: FindParent | None

    def pack(self, root: Node) -> Pack:
        keys = (
            "engine extends based-on rewrite lacks joins package distribution known classes "
            "implementations moved capabilities derived gates accessors vocabulary fields refusals "
            "outputs kernels lengths localizers arguments blocks"
        )
        top = self.fields(root, "", keys)
        engine = top.text("engine", "an engine name")
        heritage = self._heritage(top, engine)
        parent = heritage.parent if heritage else None
        terms, neutral = self._vocabulary(top)
        own = Pack(
            engine=engine,
            package=_own_or(top, "package", "a name", parent.package if parent else None),
            distribution=_own_or(
                top, "distribution", "a distribution name", parent.distribution if parent else None
            ),
            path=self.shown,
            known=self._known(top, parent),
            classes=tuple(top.items("classes", self._class)),
            moved=tuple(top.items("moved", self._moved)),
            capabilities=tuple(top.items("capabilities", self._capability)),
            gates=tuple(gate for gates in top.items("gates", self._gates) for gate in gates),
            accessors=tuple(top.items("accessors", self._accessor)),
            vocabulary=Vocabulary.of(terms, neutral),
            derived=tuple(top.items("derived", self._derived)),
            terms=terms,
            implementations=tuple(top.items("implementations", self._class)),
            fields=tuple(top.items("fields", self._field)),
            refusals=tuple(top.items("refusals", self._refusal)),
            outputs=tuple(top.items("outputs", self._output)),
            lengths=tuple(top.items("lengths", self._length)),
            localizers=tuple(top.items("localizers", self._localizer)),
            arguments=tuple(top.items("arguments", self._argument)),
            blocks=tuple(top.items("blocks", self._block)),
            kernels=tuple(top.items("kernels", self._kernel)),
            joins=self._joins(top),
            files={self.shown: self.path},
        )
        if heritage is not None:
            uncovered = [v for v in own.known if heritage.parent_release(v) is None]
            if uncovered:
                name = heritage.parent.engine
                top.fail(
                    "based-on", f"must say which release of {name} {uncovered[0]} is made from"
                )
            own = inherit(own, heritage)
            inherited = {(c.role, c.name) for c in own.capabilities}
            for (role, name), source in heritage.lacks.items():
                if (role, name) not in inherited:
                    dangling(source, "capability", name, role)
        check(own)
        return own

    def _known(self, top: Fields, parent: Pack | None) -> tuple[Version, ...]:
        if parent and top.optional("known") is None:
            return parent.known
        top.required("known")
        known = tuple(map(Version, top.texts("known", "a release")))
        if not known:
            top.fail("known", "must name the releases that the facts were read in")
        if any(later <= earlier for earlier, later in pairwise(known)):
            top.fail("known", "must be in ascending order, each release once")
        return known

    def _joins(self, top: Fields) -> str | None:
        for key in _HOSTS if top.optional("joins") is not None else ():
            if top.optional(key) is not None:
                top.fail(key, "is for the pack of the engine that this one joins to say")
        return top.text_or("joins", "an engine name", None)

    def _heritage(self, top: Fields, engine: str) -> Heritage | None:
        if top.optional("extends") is None:
            for key in ("based-on", "rewrite", "lacks"):
                if top.optional(key) is not None:
                    top.fail(key, "says how to read another pack; add 'extends'")
            return None
        name = top.text("extends", "an engine name")
        parent = self.find_parent(name) if self.find_parent else None
        if parent is None:
            top.fail("extends", f"names '{name}', and there is no pack of that engine to extend")
        return Heritage(
            parent,
            self._based_on(top, parent),
            self._rewrite(top),
            dict(top.items("lacks", self._lack)),
        )

    def _based_on(self, top: Fields, parent: Pack) -> tuple[tuple[SpecifierSet, Version], ...]:
        pairs = []
        for key, value in self.pairs(top, "based-on", "a range of releases", "a release"):
            if Version(value) not in parent.known:
                newest = parent.known[-1]
                top.fail(
                    "based-on",
                    f"names {value}, which {parent.path} does not know; its releases are "
                    f"{parent.known[0]} to {newest}",
                )
            pairs.append((SpecifierSet(key), Version(value)))
        return tuple(pairs)

    def _rewrite(self, top: Fields) -> Mapping[str, str]:
        pairs = dict(self.pairs(top, "rewrite", "a name to rewrite", "a name to rewrite"))
        for old, new in pairs.items():
            if old.endswith(".") != new.endswith("."):
                top.fail("rewrite", f"must end both of '{old}: {new}' in a dot, or neither")
        return pairs

    def _lack(self, node: Node, where: str) -> tuple[tuple[str, str], Source]:
        fields = self.fields(node, where, "role capability source")
        key = (fields.choice("role", ROLES), fields.text("capability", "a name"))
        return key, fields.source()

    def _class(self, node: Node, where: str) -> EngineClass:
        keys = "name role bases abstract defines aliases dcp-only releases source"
        fields = self.fields(node, where, keys)
        return EngineClass(
            name=fields.text("name", "a dotted name"),
            role=fields.choice("role", ROLES),
            bases=fields.texts("bases", "a dotted name"),
            abstract=fields.texts("abstract", "a name"),
            releases=fields.releases(),
            source=fields.source(),
            defines=fields.texts("defines", "a name"),
            aliases=fields.texts("aliases", "a dotted name"),
            dcp_only=fields.flag_or("dcp-only"),
        )

    def _moved(self, node: Node, where: str) -> Moved:
        fields = self.fields(node, where, "name successor kind releases source")
        fields.required("releases")
        return Moved(
            name=fields.text("name", "a dotted name"),
            successor=fields.text_or("successor", "a dotted name", None),
            releases=fields.releases(),
            source=fields.source(),
            kind=fields.choice("kind", MOVED_KINDS, "name"),
        )

    def _capability(self, node: Node, where: str) -> Capability:
        keys = (
            "name role owner summary opt-in methods implies encoding delegates releases source "
            "defaults overrides readers"
        )
        fields = self.fields(node, where, keys)
        encoding = fields.choice("encoding", ENCODINGS, "attribute")
        delegates = fields.text_or("delegates", "a name", None)
        defaults = tuple(fields.items("defaults", self._default))
        if delegates and encoding != "method":
            fields.fail("delegates", "only suits a method; add 'encoding: method'")
        if bool(delegates) == bool(defaults):
            self.fail(
                node.line,
                f"{where} needs either 'defaults' or 'delegates': where its value is from",
            )
        return Capability(
            name=fields.text("name", "a name"),
            role=fields.choice("role", ROLES),
            owner=fields.text("owner", "a dotted name"),
            summary=fields.text("summary", "a sentence"),
            opt_in=fields.flag("opt-in"),
            methods=fields.texts("methods", "a name"),
            implies=fields.texts("implies", "a name"),
            encoding=encoding,
            delegates=delegates,
            defaults=defaults,
            releases=fields.releases(),
            source=fields.source(),
            overrides=tuple(fields.items("overrides", self._override)),
            readers=tuple(fields.items("readers", self._site)),
        )

    def _default(self, node: Node, where: str) -> Default[bool]:
        fields = self.fields(node, where, "value releases source")
        return Default(fields.flag("value"), fields.releases(), fields.source())

    def _override(self, node: Node, where: str) -> Override:
        fields = self.fields(node, where, "owner value releases source")
        owner = fields.text("owner", "a dotted name")
        return Override(owner, fields.flag("value"), fields.releases(), fields.source())

    def _site(self, node: Node, where: str) -> Site:
        fields = self.fields(node, where, "function releases source")
        function = fields.text("function", "a dotted name")
        return Site(function, fields.releases(), fields.source())

    def _derived(self, node: Node, where: str) -> Derived:
        keys = "name role capability function condition releases source"
        fields = self.fields(node, where, keys)
        return Derived(
            name=fields.text("name", "a name"),
            role=fields.choice("role", ROLES),
            capability=fields.text("capability", "a name"),
            function=fields.text("function", "a dotted name"),
            condition=fields.text("condition", "a sentence"),
            releases=fields.releases(),
            source=fields.source(),
        )

    def _bypass(self, node: Node, where: str) -> Bypass:
        fields = self.fields(node, where, "function argument releases source")
        function = fields.text("function", "a dotted name")
        argument = fields.text("argument", "a name")
        return Bypass(function, argument, fields.releases(), fields.source())

    def _gates(self, node: Node, where: str) -> tuple[Gate, ...]:
        """The gates of one engine function, which may ask for several capabilities."""
        fields = self.fields(node, where, "function stage callers hooks bypasses asks")
        function = fields.text("function", "a dotted name")
        stage = fields.choice("stage", STAGES)
        callers = tuple(fields.items("callers", self._site))
        hooks = tuple(fields.items("hooks", self._site))
        bypasses = tuple(fields.items("bypasses", self._bypass))
        if not fields.required("asks").items:
            fields.fail("asks", "must list what the function asks for")

        def gate(node: Node, where: str) -> Gate:
            keys = "capability role reads argument only-for outcome releases source"
            asked = self.fields(node, where, keys)
            capability = asked.text("capability", "a name")
            return Gate(
                name=f"{capability} at {stage}",
                function=function,
                reads=asked.text_or("reads", "a name", capability),
                capability=capability,
                stage=stage,
                outcome=asked.text("outcome", "a sentence"),
                releases=asked.releases(),
                source=asked.source(),
                role=asked.choice("role", ROLES),
                argument=asked.text_or("argument", "a name", None),
                only_for=asked.text_or("only-for", "a sentence", None),
                callers=callers,
                hooks=hooks,
                bypasses=bypasses,
            )

        return tuple(fields.items("asks", gate))

    def _accessor(self, node: Node, where: str) -> Accessor:
        fields = self.fields(node, where, "name role owner returns releases source")
        return Accessor(
            name=fields.text("name", "a name"),
            role=fields.choice("role", ROLES),
            returns=fields.choice("returns", ROLES),
            releases=fields.releases(),
            source=fields.source(),
            owner=fields.text("owner", "a dotted name"),
        )

    def _field(self, node: Node, where: str) -> ContractField:
        fields = self.fields(node, where, "name record summary optional localises releases source")
        return ContractField(
            name=fields.text("name", "a name"),
            record=fields.text("record", "a dotted name"),
            summary=fields.text("summary", "a sentence"),
            optional=fields.flag_or("optional"),
            releases=fields.releases(),
            source=fields.source(),
            localises=fields.text_or("localises", "a name", None),
        )

    def _output(self, node: Node, where: str) -> Output:
        keys = "method role element capability base axes query summary releases source"
        fields = self.fields(node, where, keys)
        return Output(
            method=fields.text("method", "a name"),
            role=fields.choice("role", ROLES),
            element=fields.count("element"),
            capability=fields.text("capability", "a name"),
            summary=fields.text("summary", "a sentence"),
            releases=fields.releases(),
            source=fields.source(),
            base=fields.text_or("base", "a name", None),
            axes=fields.choices("axes", AXES),
            query=fields.count_or("query"),
        )

    def _kernel(self, node: Node, where: str) -> Kernel:
        keys = "name aliases lse base unless axes turned rank interleave promise varlen"
        fields = self.fields(node, where, f"{keys} releases source")
        if (fields.optional("lse") is None) != (fields.optional("base") is None):
            self.fail(node.line, f"{where} needs both 'lse' and 'base', or neither")
        base = fields.choice("base", LSE_BASES) if fields.optional("base") else None
        return Kernel(
            name=fields.text("name", "a dotted name"),
            releases=fields.releases(),
            source=fields.source(),
            aliases=fields.texts("aliases", "a dotted name"),
            lse=fields.count_or("lse"),
            base=base,
            unless=fields.texts("unless", "a name"),
            axes=fields.choices("axes", AXES),
            turned=fields.texts("turned", "an argument"),
            rank=fields.text_or("rank", "a name", None),
            interleave=fields.text_or("interleave", "a name", None),
            promise=fields.text_or("promise", "a name", None),
            varlen=fields.text_or("varlen", "a name", None),
        )

    def _refusal(self, node: Node, where: str) -> Refusal:
        fields = self.fields(node, where, "function reason releases source")
        return Refusal(
            function=fields.text("function", "a dotted name"),
            reason=fields.text("reason", "a sentence"),
            releases=fields.releases(),
            source=fields.source(),
        )

    def _length(self, node: Node, where: str) -> Length:
        fields = self.fields(node, where, "name record unit place releases source")
        return Length(
            name=fields.text("name", "a name"),
            record=fields.text("record", "a dotted name"),
            unit=fields.choice("unit", UNITS),
            on_device=_is_on_device(fields),
            releases=fields.releases(),
            source=fields.source(),
        )

    def _localizer(self, node: Node, where: str) -> Localizer:
        keys = "function parameters length rank out every-rank releases source"
        fields = self.fields(node, where, keys)
        if fields.optional("rank") is not None and fields.optional("every-rank") is not None:
            self.fail(node.line, f"{where} needs 'rank' or 'every-rank', not both")
        return Localizer(
            function=fields.text("function", "a dotted name"),
            parameters=fields.texts("parameters", "a name"),
            length=fields.text("length", "a name"),
            rank=fields.text_or("rank", "a name", None),
            out=fields.text_or("out", "a name", None),
            releases=fields.releases(),
            source=fields.source(),
            every_rank=fields.flag_or("every-rank"),
        )

    def _argument(self, node: Node, where: str) -> KernelArgument:
        keys = "function argument unit position given place releases source"
        fields = self.fields(node, where, keys)
        return KernelArgument(
            function=fields.text("function", "a dotted name"),
            argument=fields.text("argument", "a name"),
            unit=fields.choice("unit", UNITS),
            position=fields.count("position") if fields.optional("position") else None,
            given=fields.text_or("given", "a name", None),
            on_device=_is_on_device(fields),
            releases=fields.releases(),
            source=fields.source(),
        )

    def _block(self, node: Node, where: str) -> BlockFact:
        keys = "record aliases name method argument counts holds kinds whole unless releases source"
        fields = self.fields(node, where, keys)
        has = {key for key in keys.split() if fields.optional(key) is not None}
        if len(has & {"name", "method"}) != 1:
            self.fail(node.line, f"{where} needs either 'name' or 'method'")
        if len(has & {"counts", "holds"}) != 1:
            self.fail(node.line, f"{where} needs either 'counts' or 'holds'")
        if "name" in has and "argument" in has:
            self.fail(node.line, f"{where}: 'argument' is one of a 'method'")
        if "method" in has and "holds" in has:
            self.fail(node.line, f"{where}: 'holds' is about an attribute, by its 'name'")
        return BlockFact(
            record=fields.text("record", "a dotted name"),
            releases=fields.releases(),
            source=fields.source(),
            aliases=fields.texts("aliases", "a dotted name"),
            name=fields.text("name", "a name") if "name" in has else "",
            method=fields.text("method", "a name") if "method" in has else "",
            argument=fields.text("argument", "a name") if "argument" in has else "",
            counts=fields.choice("counts", COUNTS) if "counts" in has else "",
            holds=fields.text("holds", "a dotted name") if "holds" in has else "",
            kinds=fields.texts("kinds", "a dotted name"),
            whole=fields.texts("whole", "a dotted name"),
            unless=fields.texts("unless", "a name"),
        )

    def _vocabulary(self, top: Fields) -> tuple[tuple[Term, ...], tuple[str, ...]]:
        node = top.optional("vocabulary")
        if node is None:
            return (), ()
        fields = self.fields(node, "vocabulary", " ".join((*_WORDS, "neutral")))
        terms: list[Term] = []
        for kind, what in _WORDS.items():

            def term(node: Node, where: str, kind: str = kind, what: str = what) -> Term:
                keys = f"name {_ABOUT_WORDS.get(kind, '')} releases source"
                entry = self.fields(node, where, keys)
                name, base = entry.text("name", what), entry.text_or("base", "a name", None)
                always = entry.choice("always", LSE_BASES) if entry.optional("always") else None
                if base and always:
                    self.fail(node.line, f"{where} needs 'base' or 'always', not both")
                per_shard = entry.flag_or("per-shard")
                axes = entry.choices("axes", AXES)
                return Term(
                    kind, name, entry.releases(), entry.source(), base, per_shard, always, axes
                )

            terms.extend(fields.items(kind, term))
        return tuple(terms), fields.texts("neutral", "a name")


def _is_on_device(fields: Fields) -> bool:
    return fields.optional("place") is not None and fields.choice("place", PLACES) == "device"


def _own_or(top: Fields, key: str, what: str, inherited: str | None) -> str:
    return top.text(key, what) if inherited is None else top.text_or(key, what, inherited)
