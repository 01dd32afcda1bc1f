"""Reads a pack: YAML to the typed model, with errors that name the line and the remedy.

The keys are those of `rules/pack.schema.json`; docs/packs.md explains each of them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NoReturn, TypeVar

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from dcplint.contracts.document import Node, PackError, read_document
from dcplint.contracts.inherit import Heritage, inherit
from dcplint.contracts.model import (
    ROLES,
    UNITS,
    Accessor,
    Bypass,
    Capability,
    ContractField,
    Dated,
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
    Pack,
    Refusal,
    Releases,
    Site,
    Source,
    Term,
    Vocabulary,
)

__all__ = ["FindParent", "PackError", "build_pack", "load_pack"]

T = TypeVar("T")

FindParent = Callable[[str], Pack | None]
"""Finds the pack of an engine that `extends` names; None where there is no such pack."""

_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
_VERSION = r"[0-9]+(\.[0-9]+)*((a|b|rc)[0-9]+)?(\.post[0-9]+)?"
_SPECIFIER = f"(==|!=|<=|>=|<|>) ?{_VERSION}"
_PATTERNS = {
    # what messages call it: its pattern and an example. The schema has the same patterns.
    "an engine name": (r"[a-z][a-z0-9-]*", "my-engine"),
    "a distribution name": (r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", "my-engine"),
    "a name": (_IDENTIFIER, "supports_dcp"),
    "a dotted name": (rf"{_IDENTIFIER}(\.{_IDENTIFIER})*", "engine.attention.Backend"),
    "a release": (_VERSION, "0.30.0"),
    "a range of releases": (f"{_SPECIFIER}(, ?{_SPECIFIER})*", ">=0.26,<0.30"),
    "a source": (
        r"[^\s,:@#]+(:[0-9]+)?@[^\s,:@#]+|[^\s,:@#]+#[0-9]+",
        "engine/attention.py:12@0.30.0 or repo#123",
    ),
    "a name to rewrite": (rf"{_IDENTIFIER}(\.{_IDENTIFIER})*\.?", "vllm."),
    "a sentence": (r"[\s\S]*\S[\s\S]*", "what it promises"),
}
_COMPILED = {what: re.compile(pattern) for what, (pattern, _) in _PATTERNS.items()}

STAGES = ("selection", "load")
ENCODINGS = ("attribute", "method")
PLACES = ("device", "host")
MOVED_KINDS = ("name", "module")
LSE_BASES = ("e", "two")
_WORDS = {  # kinds of term, and what their names are
    "sizes": "a name",
    "ranks": "a name",
    "interleaves": "a name",
    "groups": "a dotted name",
    "merges": "a dotted name",
    "collectives": "a name",
    "syncs": "a dotted name",
    "heads": "a name",
    "semantics": "a name",
}
_ABOUT_WORDS = {"merges": "base", "semantics": "per-shard"}


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
    return _Loader(path, shown, find_parent).pack(root)


@dataclass(slots=True)
class _Fields:
    """The entries of one mapping, taken by name and checked as they are taken."""

    loader: _Loader
    node: Node
    where: str

    @property
    def line(self) -> int:
        return self.node.line

    def fail(self, key: str, problem: str) -> NoReturn:
        node = self.node.entries.get(key, self.node)
        self.loader.fail(node.line, f"{self.at(key)} {problem}")

    def at(self, key: str) -> str:
        """How messages call the value of `key`."""
        return f"{self.where}.{key}" if self.where else key

    def optional(self, key: str) -> Node | None:
        return self.node.entries.get(key)

    def required(self, key: str) -> Node:
        node = self.node.entries.get(key)
        if node is None:
            place = self.where or "the pack"
            self.loader.fail(self.node.line, f"{place} lacks '{key}'; add it (see docs/packs.md)")
        return node

    def text(self, key: str, what: str) -> str:
        return self.loader.text(self.required(key), self.at(key), what)

    def text_or(self, key: str, what: str, default: T) -> str | T:
        node = self.optional(key)
        return default if node is None else self.loader.text(node, self.at(key), what)

    def texts(self, key: str, what: str) -> tuple[str, ...]:
        return tuple(self.items(key, lambda node, at: self.loader.text(node, at, what)))

    def flag(self, key: str) -> bool:
        node = self.required(key)
        if node.kind != "flag":
            self.fail(key, f"must be true or false, got {node}")
        return node.truth

    def flag_or(self, key: str) -> bool:
        return self.optional(key) is not None and self.flag(key)

    def count(self, key: str) -> int:
        node = self.required(key)
        if node.kind != "a number" or not node.raw.isdigit():
            self.fail(key, f"must be a whole number from 0 on, got {node}")
        return int(node.raw)

    def count_or(self, key: str) -> int | None:
        return None if self.optional(key) is None else self.count(key)

    def choice(self, key: str, options: tuple[str, ...], default: str | None = None) -> str:
        node = self.optional(key) if default else self.required(key)
        if node is None:
            assert default is not None
            return default
        if node.kind != "text" or node.raw not in options:
            close = difflib.get_close_matches(node.raw, options, 1)
            hint = f"; did you mean '{close[0]}'?" if close else ""
            self.fail(key, f"must be one of {', '.join(options)}, got {node}{hint}")
        return node.raw

    def items(self, key: str, decode: Callable[[Node, str], T]) -> Iterator[T]:
        """Each item of the list under `key`, decoded; nothing where the key is absent."""
        node = self.optional(key)
        if node is None:
            return
        if node.kind != "list":
            self.fail(key, f"must be a list, got {node}")
        for index, item in enumerate(node.items):
            yield decode(item, f"{self.at(key)}[{index}]")

    def releases(self) -> Releases:
        """The value of `releases`: one range or a list of them; absent means every release."""
        node = self.optional("releases")
        if node is None:
            return Releases()
        nodes = node.items if node.kind == "list" else [node]
        if not nodes:
            self.fail("releases", "must name at least one range; leave it out for every release")
        texts = (self.loader.text(n, self.at("releases"), "a range of releases") for n in nodes)
        return Releases(tuple(map(SpecifierSet, texts)))

    def source(self) -> Source:
        """The value of `source`: one place or a list of them, located at this mapping."""
        node = self.required("source")
        nodes = node.items if node.kind == "list" else [node]
        if not nodes:
            self.fail("source", "must name at least one place, such as repo#123")
        texts = (self.loader.text(n, self.at("source"), "a source") for n in nodes)
        return Source(", ".join(texts), self.loader.shown, self.node.line)


@dataclass(slots=True)
class _Loader:
    path: Path
    shown: str
    find_parent: FindParent | None

    def fail(self, line: int, problem: str) -> NoReturn:
        raise PackError(f"{self.shown}:{line}: {problem}")

    def text(self, node: Node, where: str, what: str) -> str:
        """A text that is `what` (a key of `_PATTERNS`)."""
        if node.kind != "text":
            quote = "; put it in quotes" if node.raw and node.kind != "nothing" else ""
            self.fail(node.line, f"{where} must be {what}, got {_with_kind(node)}{quote}")
        if not _COMPILED[what].fullmatch(node.raw):
            example = _PATTERNS[what][1]
            self.fail(node.line, f"{where} must be {what} such as {example}, got {node}")
        return node.raw

    def fields(self, node: Node, where: str, keys: str) -> _Fields:
        """The entries of the mapping `node`, which may have no other than the given keys."""
        allowed = keys.split()
        if node.kind != "mapping":
            wanted = ", ".join(allowed[:4])
            self.fail(node.line, f"{where} must be a mapping with {wanted}, got {node}")
        for key in node.entries:
            if key not in allowed:
                place = f" in {where}" if where else ""
                close = difflib.get_close_matches(key, allowed, 1)
                hint = (
                    f"did you mean '{close[0]}'?" if close else f"it may have {', '.join(allowed)}"
                )
                self.fail(node.key_lines[key], f"unknown key '{key}'{place}; {hint}")
        return _Fields(self, node, where)

    def pack(self, root: Node) -> Pack:
        keys = (
            "engine extends based-on rewrite lacks package distribution known classes "
            "implementations moved capabilities derived gates accessors vocabulary fields refusals "
            "outputs kernels lengths localizers arguments"
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
            kernels=tuple(top.items("kernels", self._kernel)),
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
                    self._dangling(source, "capability", name, role)
        self._check(own)
        return own

    def _known(self, top: _Fields, parent: Pack | None) -> tuple[Version, ...]:
        if parent and top.optional("known") is None:
            return parent.known
        top.required("known")
        known = tuple(map(Version, top.texts("known", "a release")))
        if not known:
            top.fail("known", "must name the releases that the facts were read in")
        if any(later <= earlier for earlier, later in pairwise(known)):
            top.fail("known", "must be in ascending order, each release once")
        return known

    def _heritage(self, top: _Fields, engine: str) -> Heritage | None:
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

    def _based_on(self, top: _Fields, parent: Pack) -> tuple[tuple[SpecifierSet, Version], ...]:
        pairs = []
        for key, value in self._pairs(top, "based-on", "a range of releases", "a release"):
            if Version(value) not in parent.known:
                newest = parent.known[-1]
                top.fail(
                    "based-on",
                    f"names {value}, which {parent.path} does not know; its releases are "
                    f"{parent.known[0]} to {newest}",
                )
            pairs.append((SpecifierSet(key), Version(value)))
        return tuple(pairs)

    def _rewrite(self, top: _Fields) -> Mapping[str, str]:
        pairs = dict(self._pairs(top, "rewrite", "a name to rewrite", "a name to rewrite"))
        for old, new in pairs.items():
            if old.endswith(".") != new.endswith("."):
                top.fail("rewrite", f"must end both of '{old}: {new}' in a dot, or neither")
        return pairs

    def _pairs(self, top: _Fields, key: str, left: str, right: str) -> Iterator[tuple[str, str]]:
        node = top.optional(key)
        if node is None:
            return
        if node.kind != "mapping":
            top.fail(key, f"must be a mapping from {left} to {right}, got {node}")
        for name, value in node.entries.items():
            line = node.key_lines[name]
            if not _COMPILED[left].fullmatch(name):
                example = _PATTERNS[left][1]
                self.fail(line, f"{key} must map {left} such as {example}, got '{name}'")
            yield name, self.text(value, f"{key}[{name}]", right)

    def _lack(self, node: Node, where: str) -> tuple[tuple[str, str], Source]:
        fields = self.fields(node, where, "role capability source")
        key = (fields.choice("role", ROLES), fields.text("capability", "a name"))
        return key, fields.source()

    def _class(self, node: Node, where: str) -> EngineClass:
        keys = "name role bases abstract defines aliases releases source"
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
        keys = "method role element capability base query summary releases source"
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
            query=fields.count_or("query"),
        )

    def _kernel(self, node: Node, where: str) -> Kernel:
        keys = "name aliases lse base unless rank interleave promise releases source"
        fields = self.fields(node, where, keys)
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
            rank=fields.text_or("rank", "a name", None),
            interleave=fields.text_or("interleave", "a name", None),
            promise=fields.text_or("promise", "a name", None),
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
            on_device=fields.choice("place", PLACES) == "device",
            releases=fields.releases(),
            source=fields.source(),
        )

    def _localizer(self, node: Node, where: str) -> Localizer:
        fields = self.fields(node, where, "function parameters length rank out releases source")
        return Localizer(
            function=fields.text("function", "a dotted name"),
            parameters=fields.texts("parameters", "a name"),
            length=fields.text("length", "a name"),
            rank=fields.text("rank", "a name"),
            out=fields.text_or("out", "a name", None),
            releases=fields.releases(),
            source=fields.source(),
        )

    def _argument(self, node: Node, where: str) -> KernelArgument:
        keys = "function argument unit position given releases source"
        fields = self.fields(node, where, keys)
        return KernelArgument(
            function=fields.text("function", "a dotted name"),
            argument=fields.text("argument", "a name"),
            unit=fields.choice("unit", UNITS),
            position=fields.count("position") if fields.optional("position") else None,
            given=fields.text_or("given", "a name", None),
            releases=fields.releases(),
            source=fields.source(),
        )

    def _vocabulary(self, top: _Fields) -> tuple[tuple[Term, ...], tuple[str, ...]]:
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
                per_shard = entry.flag_or("per-shard")
                return Term(kind, name, entry.releases(), entry.source(), base, per_shard)

            terms.extend(fields.items(kind, term))
        return tuple(terms), fields.texts("neutral", "a name")

    def _check(self, pack: Pack) -> None:
        """What no single entry can show: that the facts of a pack fit together."""
        self._check_spans(pack)
        self._check_defaults(pack)
        capabilities = {(c.role, c.name) for c in pack.capabilities}
        derived = {(d.role, d.name): d.capability for d in pack.derived}
        accessors = {(a.role, a.name): a.returns for a in pack.accessors}
        for capability in pack.capabilities:
            for implied in capability.implies:
                if (capability.role, implied) not in capabilities:
                    self._dangling(capability.source, "implies", implied, capability.role)
            if capability.delegates:
                returned = accessors.get((capability.role, capability.delegates))
                if returned is None:
                    self._at(
                        capability.source,
                        f"'delegates: {capability.delegates}' names no accessor of role "
                        f"{capability.role}; add it under 'accessors'",
                    )
                if (returned, capability.name) not in capabilities:
                    self._dangling(capability.source, "name", capability.name, returned)
        for value in pack.derived:
            if (value.role, value.capability) not in capabilities:
                self._dangling(value.source, "capability", value.capability, value.role)
        for gate in pack.gates:
            if (gate.role, gate.capability) not in capabilities:
                self._dangling(gate.source, "capability", gate.capability, gate.role)
            if gate.reads != gate.capability and (
                derived.get((gate.role, gate.reads)) != gate.capability
            ):
                self._at(
                    gate.source,
                    f"'reads: {gate.reads}' is neither the capability nor a value derived from "
                    f"it; add it under 'derived'",
                )

    def _check_defaults(self, pack: Pack) -> None:
        """An attribute has a default in just those releases that have the capability."""
        for capability in pack.capabilities:
            for version in pack.known:
                has = version in capability.releases
                if not capability.delegates and has != bool(capability.default_at(version)):
                    self._at(
                        capability.source,
                        f"capability {capability.name} has no default in {version}; add it or "
                        "correct 'releases'"
                        if has
                        else f"capability {capability.name} has a default in {version}, where its "
                        "'releases' do not hold; correct one of them",
                    )

    def _check_spans(self, pack: Pack) -> None:
        """Each fact holds in some known release, and no two of one name hold in the same."""
        seen: dict[tuple[object, Version], Source] = {}
        for group, fact, source in _statements(pack):
            held = [version for version in pack.known if version in fact.releases]
            if not held and fact.releases.specs and not isinstance(fact, Moved):
                self._at(
                    source,
                    f"'releases: {fact.releases}' holds in none of the pack's releases "
                    f"({pack.known[0]} to {pack.known[-1]}); correct the range",
                )
            for version in held:
                first = seen.setdefault((group, version), source)
                if first is not source:
                    self._at(
                        source,
                        f"says the same as line {first.line} of {first.pack} about {version}; "
                        "give the two different 'releases'",
                    )

    def _dangling(self, source: Source, key: str, name: str, role: str | None) -> NoReturn:
        self._at(source, f"'{key}: {name}' names no capability of role {role}; add or correct it")

    def _at(self, source: Source, problem: str) -> NoReturn:
        raise PackError(f"{source.pack}:{source.line}: {problem}")


def _own_or(top: _Fields, key: str, what: str, inherited: str | None) -> str:
    return top.text(key, what) if inherited is None else top.text_or(key, what, inherited)


def _with_kind(node: Node) -> str:
    return f"{node} ({node.kind})" if node.kind in ("a number", "a date") else str(node)


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
