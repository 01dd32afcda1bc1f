"""Compares a pack with an engine release: what it names exists, and says what the pack says.

Dates are compared in both directions: a fact must hold where the pack says so, and must not where
its `releases` leave the release out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from dcplint.contracts.model import (
    Capability,
    Contract,
    EngineClass,
    Gate,
    Kernel,
    Moved,
    Site,
    Source,
)

_PLACE = re.compile(r"([^\s,:@#]+)(?::(\d+))?@([^\s,:@#]+)")


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the engine's source; `path` is relative to the folder that holds its package."""

    path: str
    line: int


class Engine(Protocol):
    """An engine release as the comparison sees it. Names are dotted and absolute."""

    def resolve(self, name: str) -> str | None:
        """The name under which that module, class, function or attribute is defined.

        Imports and re-exports are followed; None where the release has no such name.
        """

    def place(self, name: str) -> Place:
        """Where a name that resolves is defined."""

    def bases(self, name: str) -> tuple[str, ...]:
        """The defining names of a class's direct bases, subscripts dropped."""

    def methods(self, name: str) -> frozenset[str]:
        """The methods in a class's own body."""

    def abstract_methods(self, name: str) -> frozenset[str]:
        """Those of them that are abstract."""

    def fields(self, name: str) -> frozenset[str]:
        """The annotated attributes in a class's own body."""

    def class_value(self, name: str, attribute: str) -> object:
        """The literal a class's own body gives an attribute, or None."""

    def parameters(self, function: str) -> tuple[str, ...]:
        """The names of a function's parameters."""

    def mentions(self, function: str, name: str) -> bool:
        """Whether a function's body names an attribute, a variable or a string `name`."""

    def source_line(self, path: str, line: int) -> str | None:
        """One line of the release, or None where there is none."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """One thing that pack and release say differently.

    source: the pack's statement. place: the engine's, where it has one.
    """

    message: str
    source: Source
    place: Place | None = None


def disagreements(contract: Contract, engine: Engine) -> Iterator[Disagreement]:
    """Everything the contract says that the release does not, in the order of the pack's lines."""
    comparison = _Comparison(contract, engine)
    found = dict.fromkeys(comparison.all())
    yield from sorted(found, key=lambda d: (d.source.pack, d.source.line, d.message))


@dataclass(frozen=True, slots=True)
class _Comparison:
    contract: Contract
    engine: Engine

    def all(self) -> Iterator[Disagreement]:
        yield from self._classes()
        yield from self._moved()
        for capability in self.contract.capabilities:
            yield from self._capability(capability)
        yield from self._absent_capabilities()
        yield from self._derived()
        yield from self._gates()
        yield from self._accessors()
        yield from self._fields()
        yield from self._lengths()
        yield from self._blocks()
        yield from self._vocabulary()
        yield from self._sources()

    def _here(self, message: str, source: Source, name: str) -> Disagreement:
        """A disagreement at the place where `name` is defined."""
        return Disagreement(message, source, self.engine.place(name))

    def _defined(self, name: str, source: Source) -> Iterator[Disagreement]:
        """Nothing where the release defines `name` under that very name."""
        canonical = self.engine.resolve(name)
        if canonical is None:
            yield Disagreement(f"{name} does not exist", source)
        elif canonical != name:
            yield self._here(f"{name} is defined as {canonical}", source, canonical)

    def _is_defined(self, name: str) -> bool:
        return self.engine.resolve(name) == name

    def _described(self) -> tuple[EngineClass, ...]:
        return (*self.contract.classes, *self.contract.implementations)

    # Classes

    def _classes(self) -> Iterator[Disagreement]:
        described = self._described()
        for stated in described:
            missing = list(self._defined(stated.name, stated.source))
            yield from missing or self._class(stated)
        names = {stated.name for stated in described}
        pack = self.contract.pack
        for stated in (*pack.classes, *pack.implementations):
            if stated.name not in names and self._is_defined(stated.name):
                message = f"{stated.name} exists, where the pack has it in {stated.releases} only"
                yield self._here(message, stated.source, stated.name)

    def _class(self, stated: EngineClass) -> Iterator[Disagreement]:
        engine, name = self.engine, stated.name
        bases = tuple(base for base in engine.bases(name) if self._is_own(base))
        if bases != stated.bases:
            yield self._here(
                f"{name} has the bases {_listed(bases)}, where the pack says "
                f"{_listed(stated.bases)}",
                stated.source,
                name,
            )
        abstract = engine.abstract_methods(name)
        inherited = frozenset().union(*map(engine.abstract_methods, self._ancestors(name)))
        defines = (engine.methods(name) - abstract) & inherited
        for what, found, said in (
            ("declares abstract", abstract, stated.abstract),
            ("implements of its bases' abstract methods", defines, stated.defines),
        ):
            if found != set(said):
                yield self._here(
                    f"{name} {what} {_listed(sorted(found))}, where the pack says {_listed(said)}",
                    stated.source,
                    name,
                )
        for alias in stated.aliases:
            if engine.resolve(alias) != name:
                yield Disagreement(f"{alias} is not {name}", stated.source)
        yield from self._unlisted_bases(stated, bases)
        yield from self._unlisted_values(stated)

    def _is_own(self, name: str) -> bool:
        return name.startswith(f"{self.contract.pack.package}.")

    def _ancestors(self, name: str) -> Iterator[str]:
        for base in self.engine.bases(name):
            if self._is_defined(base):
                yield base
                yield from self._ancestors(base)

    def _unlisted_bases(
        self, stated: EngineClass, bases: tuple[str, ...]
    ) -> Iterator[Disagreement]:
        """A base that the pack does not describe may have nothing that the pack is about."""
        described = {other.name for other in self._described()}
        for base in bases:
            if base in described or not self._is_defined(base):
                continue
            has = set(self.engine.abstract_methods(base))
            has |= {
                capability.name
                for capability in self.contract.capabilities
                if self.engine.class_value(base, capability.name) is not None
            }
            if has:
                yield self._here(
                    f"base {base} of {stated.name} has {_listed(sorted(has))} and no entry",
                    stated.source,
                    base,
                )

    def _unlisted_values(self, stated: EngineClass) -> Iterator[Disagreement]:
        """A class that the pack describes may state no value that the pack leaves out."""
        for capability in self.contract.capabilities:
            if capability.role != stated.role or capability.owner == stated.name:
                continue
            value = self.engine.class_value(stated.name, capability.name)
            override = capability.override_at(stated.name, self.contract.effective)
            if value is not None and override is None:
                yield self._here(
                    f"{stated.name}.{capability.name} is {value}, where the pack lists no override",
                    capability.source,
                    stated.name,
                )

    def _moved(self) -> Iterator[Disagreement]:
        for moved in self.contract.pack.moved:
            canonical = self.engine.resolve(moved.name)
            if self.contract.effective in moved.releases:
                if canonical is None:
                    yield Disagreement(f"{moved.name} does not exist", moved.source)
            elif canonical is not None:
                message = f"{moved.name} exists, where the pack has it in {moved.releases} only"
                yield self._here(message, moved.source, canonical)
            elif moved in self.contract.moved:
                yield from self._successor(moved)

    def _successor(self, moved: Moved) -> Iterator[Disagreement]:
        found = self.contract.missing(moved.name)
        successor = found[1] if found else None
        if successor is not None and self.engine.resolve(successor) is None:
            yield Disagreement(
                f"{successor}, the successor of {moved.name}, does not exist", moved.source
            )

    # Capabilities

    def _capability(self, capability: Capability) -> Iterator[Disagreement]:
        missing = list(self._defined(capability.owner, capability.source))
        if missing:
            yield from missing
            return
        if capability.encoding == "method":
            yield from self._method(capability)
        else:
            default = capability.default_at(self.contract.effective)
            if default is not None:
                yield from self._value(
                    capability.owner, capability.name, default.value, default.source
                )
        for override in capability.overrides:
            if self.contract.effective in override.releases:
                missing = list(self._defined(override.owner, override.source))
                yield from missing or self._value(
                    override.owner, capability.name, override.value, override.source
                )
        name = capability.name
        # The same function may read the capability of that name of another role.
        others = {
            site.function
            for other in self.contract.capabilities
            if other.name == name
            for site in other.readers_at(self.contract.effective)
        }
        readers = [
            site
            for site in capability.readers
            if self.contract.effective in site.releases or site.function not in others
        ]
        yield from self._sites(readers, name, f"reads {name}", "reader")
        known = {
            method
            for stated in self._described()
            if stated.role == capability.role and self._is_defined(stated.name)
            for method in self.engine.methods(stated.name)
        }
        for method in capability.methods:
            if method not in known:
                yield Disagreement(
                    f"no class of role {capability.role} has a method {method}", capability.source
                )

    def _method(self, capability: Capability) -> Iterator[Disagreement]:
        method = f"{capability.owner}.{capability.name}"
        if capability.name not in self.engine.methods(capability.owner):
            yield self._here(f"{method} is no method", capability.source, capability.owner)
        elif capability.delegates and not self.engine.mentions(method, capability.delegates):
            yield self._here(
                f"{method} does not ask {capability.delegates}()", capability.source, method
            )

    def _value(self, owner: str, name: str, value: bool, source: Source) -> Iterator[Disagreement]:
        found = self.engine.class_value(owner, name)
        if found is not value:
            says = "has no literal value" if found is None else f"is {found}"
            yield self._here(f"{owner}.{name} {says}, where the pack says {value}", source, owner)

    def _absent_capabilities(self) -> Iterator[Disagreement]:
        """A capability whose releases leave this one out must not be there."""
        present = {(c.role, c.name) for c in self.contract.capabilities}
        for capability in self.contract.pack.capabilities:
            owner, name = capability.owner, capability.name
            if (capability.role, name) in present or not self._is_defined(owner):
                continue
            stated = self.engine.class_value(owner, name) is not None
            if stated or name in self.engine.methods(owner):
                message = (
                    f"{owner}.{name} exists, where the pack has it in {capability.releases} only"
                )
                yield self._here(message, capability.source, owner)

    def _derived(self) -> Iterator[Disagreement]:
        for derived in self.contract.derived:
            missing = list(self._defined(derived.function, derived.source))
            yield from missing
            for name in () if missing else (derived.name, derived.capability):
                if not self.engine.mentions(derived.function, name):
                    yield self._here(
                        f"{derived.function} does not mention {name}",
                        derived.source,
                        derived.function,
                    )

    # Gates and accessors

    def _gates(self) -> Iterator[Disagreement]:
        for gate in self.contract.gates:
            missing = list(self._defined(gate.function, gate.source))
            yield from missing or self._gate(gate)
        asked = {(gate.function, gate.reads) for gate in self.contract.gates}
        for gate in self.contract.pack.gates:
            key = (gate.function, gate.reads)
            if key not in asked and self._does(gate.function, gate.reads):
                yield self._here(
                    f"{gate.function} reads {gate.reads}, where the pack has it in "
                    f"{gate.releases} only",
                    gate.source,
                    gate.function,
                )

    def _gate(self, gate: Gate) -> Iterator[Disagreement]:
        if not self.engine.mentions(gate.function, gate.reads):
            message = f"{gate.function} does not read {gate.reads}"
            yield self._here(message, gate.source, gate.function)
        if gate.argument and gate.argument not in self.engine.parameters(gate.function):
            message = f"{gate.function} has no parameter {gate.argument}"
            yield self._here(message, gate.source, gate.function)
        name = gate.function.rpartition(".")[2]
        yield from self._sites(gate.callers, name, f"calls {name}", "caller")
        for hook in gate.hooks:
            if self.contract.effective in hook.releases:
                yield from self._defined(hook.function, hook.source)
        for way in gate.bypasses:
            if self.contract.effective in way.releases:
                yield from self._defined(way.function, way.source)
                if way.argument not in self.engine.parameters(way.function):
                    message = f"{way.function} has no parameter {way.argument}"
                    yield self._here(message, way.source, way.function)

    def _sites(
        self, sites: Iterable[Site], name: str, does: str, what: str
    ) -> Iterator[Disagreement]:
        """Each function does mention `name` where the pack says so, and not where it doesn't."""
        for site in sites:
            if self.contract.effective in site.releases:
                missing = list(self._defined(site.function, site.source))
                yield from missing
                if not missing and not self.engine.mentions(site.function, name):
                    message = f"{site.function} is no {what}: it never {does}"
                    yield self._here(message, site.source, site.function)
            elif self._does(site.function, name):
                message = f"{site.function} {does}, where the pack says in {site.releases} only"
                yield self._here(message, site.source, site.function)

    def _does(self, function: str, name: str) -> bool:
        return self._is_defined(function) and self.engine.mentions(function, name)

    def _accessors(self) -> Iterator[Disagreement]:
        for accessor in self.contract.accessors:
            missing = list(self._defined(accessor.owner, accessor.source))
            yield from missing
            if not missing and accessor.name not in self.engine.methods(accessor.owner):
                message = f"{accessor.owner} has no method {accessor.name}"
                yield self._here(message, accessor.source, accessor.owner)

    # Contract fields

    def _fields(self) -> Iterator[Disagreement]:
        for stated in self.contract.fields:
            missing = list(self._defined(stated.record, stated.source))
            yield from missing
            if not missing and stated.name not in self.engine.fields(stated.record):
                message = f"{stated.record} has no field {stated.name}"
                yield self._here(message, stated.source, stated.record)
        present = {(stated.record, stated.name) for stated in self.contract.fields}
        for stated in self.contract.pack.fields:
            key = (stated.record, stated.name)
            if key in present or not self._is_defined(stated.record):
                continue
            if stated.name in self.engine.fields(stated.record):
                message = (
                    f"{stated.record}.{stated.name} exists, where the pack has it in "
                    f"{stated.releases} only"
                )
                yield self._here(message, stated.source, stated.record)
        for output in self.contract.outputs:
            described = (s for s in self._described() if s.role == output.role)
            methods = (self.engine.methods(s.name) for s in described if self._is_defined(s.name))
            if not any(output.method in found for found in methods):
                message = f"no class of role {output.role} has a method {output.method}"
                yield Disagreement(message, output.source)
        for refusal in self.contract.refusals:
            yield from self._defined(refusal.function, refusal.source)
        for kernel in self.contract.kernels:
            yield from self._kernel(kernel)

    def _kernel(self, kernel: Kernel) -> Iterator[Disagreement]:
        """Another project's kernel is only imported: the line of its source shows that."""
        if not self._is_own(kernel.name):
            return
        missing = list(self._defined(kernel.name, kernel.source))
        yield from missing
        named = [*kernel.unless, *filter(None, (kernel.rank, kernel.interleave))]
        for name in () if missing else named:
            if name not in self.engine.parameters(kernel.name):
                message = f"{kernel.name} has no parameter {name}"
                yield self._here(message, kernel.source, kernel.name)

    def _lengths(self) -> Iterator[Disagreement]:
        for length in self.contract.lengths:
            yield from self._attribute(length.record, length.name, length.source)
        for localizer in self.contract.localizers:
            wanted = (*localizer.parameters, localizer.length, localizer.rank, localizer.out)
            yield from self._parameters(localizer.function, wanted, localizer.source)
        package = self.contract.pack.package
        for argument in self.contract.arguments:
            if argument.function.partition(".")[0] == package:
                wanted = (argument.argument, argument.given, None)
                yield from self._parameters(argument.function, wanted, argument.source)

    def _attribute(self, record: str, name: str, source: Source) -> Iterator[Disagreement]:
        """A class is defined, and has the attribute that the pack names."""
        missing = list(self._defined(record, source))
        yield from missing
        found = self.engine.fields(record) | self.engine.methods(record)
        made = f"{record}.__init__"
        is_set = self._is_defined(made) and self.engine.mentions(made, name)
        if not missing and name not in found and not is_set:
            yield self._here(f"{record} has no field {name}", source, record)

    def _blocks(self) -> Iterator[Disagreement]:
        for block in self.contract.blocks:
            if block.name:
                yield from self._attribute(block.record, block.name, block.source)
            else:
                method = f"{block.record}.{block.method}"
                yield from self._parameters(method, (block.argument or None,), block.source)
            for alias in block.aliases:
                if self.engine.resolve(alias) != block.record:
                    yield Disagreement(f"{alias} is not {block.record}", block.source)
            for record in (*block.kinds, *block.whole, *filter(None, (block.holds,))):
                yield from self._defined(record, block.source)

    def _parameters(
        self, function: str, wanted: Iterable[str | None], source: Source
    ) -> Iterator[Disagreement]:
        """A function is defined, and has the parameters that the pack names.

        Those of a kernel that another package or a compiler makes are not to be seen.
        """
        missing = list(self._defined(function, source))
        yield from missing
        parameters = self.engine.parameters(function) if not missing else ()
        if parameters:
            for name in wanted:
                if name is not None and name not in parameters:
                    message = f"{function} has no parameter {name}"
                    yield self._here(message, source, function)

    # Words and sources

    def _vocabulary(self) -> Iterator[Disagreement]:
        for term in self.contract.pack.terms:
            if "." not in term.name:
                continue
            if self.contract.effective in term.releases:
                yield from self._defined(term.name, term.source)
                if term.base and term.base not in self.engine.parameters(term.name):
                    message = f"{term.name} has no parameter {term.base}"
                    yield self._here(message, term.source, term.name)
            elif self._is_defined(term.name):
                message = f"{term.name} exists, where the pack has it in {term.releases} only"
                yield self._here(message, term.source, term.name)

    def _sources(self) -> Iterator[Disagreement]:
        """Where a statement was read in this very release, its line must bear it out."""
        for source, name in self._statements():
            for path, line, release in _PLACE.findall(source.text):
                if release != str(self.contract.version):
                    continue
                text = self.engine.source_line(path, int(line or 1))
                place = Place(path, int(line or 1))
                if text is None:
                    yield Disagreement(f"source {path}:{line} is not in the release", source)
                elif line and name not in text:
                    message = f"line {line} of {path} does not mention {name}"
                    yield Disagreement(message, source, place)

    def _statements(self) -> Iterator[tuple[Source, str]]:
        """Every source of the pack, with the name that its line must show."""
        pack = self.contract.pack
        for stated in (*pack.classes, *pack.implementations):
            yield stated.source, _last(stated.name)
        for moved in pack.moved:
            yield moved.source, _last(moved.name)
        for capability in pack.capabilities:
            sources = [capability.source, *(d.source for d in capability.defaults)]
            sources += [o.source for o in capability.overrides]
            sources += [r.source for r in capability.readers]
            # A capability that the engine lacks is shown by the class that would have it.
            has = bool(capability.releases.specs)
            for source in sources:
                yield source, capability.name if has else _last(capability.owner)
        for derived in pack.derived:
            yield derived.source, derived.name
        for gate in pack.gates:
            yield gate.source, gate.reads
            for caller in gate.callers:
                yield caller.source, _last(gate.function)
            for hook in gate.hooks:
                yield hook.source, _last(hook.function)
            for way in gate.bypasses:
                yield way.source, way.argument
        for accessor in pack.accessors:
            yield accessor.source, accessor.name
        for kernel in pack.kernels:
            yield kernel.source, _last(kernel.name)
        for term in pack.terms:
            yield term.source, _last(term.name)
        for length in pack.lengths:
            yield length.source, length.name
        for localizer in pack.localizers:
            yield localizer.source, _last(localizer.function)
        for argument in pack.arguments:
            yield argument.source, argument.argument
        for block in pack.blocks:
            yield block.source, block.argument or block.method or block.name


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
