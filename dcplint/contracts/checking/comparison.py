"""A pack's facts of one release beside that release, and what is asked of many kinds of fact."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dcplint.contracts.checking.engine import Engine, Place
from dcplint.contracts.contract import Contract
from dcplint.contracts.model import EngineClass, Site, Source


@dataclass(frozen=True, slots=True)
class Disagreement:
    """One thing that pack and release say differently.

    source: the pack's statement. place: the engine's, where it has one.
    """

    message: str
    source: Source
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """The contract of a release, and the release."""

    contract: Contract
    engine: Engine

    def described(self) -> tuple[EngineClass, ...]:
        """The classes that the pack describes in this release."""
        return (*self.contract.classes, *self.contract.implementations)

    def is_own(self, name: str) -> bool:
        """Whether a dotted name is one of the engine's own package."""
        return name.startswith(f"{self.contract.pack.package}.")

    def is_defined(self, name: str) -> bool:
        """Whether the release defines `name` under that very name."""
        return self.engine.resolve(name) == name

    def does(self, function: str, name: str) -> bool:
        """Whether a function of the release mentions `name`."""
        return self.is_defined(function) and self.engine.mentions(function, name)

    def here(self, message: str, source: Source, name: str) -> Disagreement:
        """A disagreement at the place where `name` is defined."""
        return Disagreement(message, source, self.engine.place(name))

    def defined(self, name: str, source: Source) -> Iterator[Disagreement]:
        """Nothing where the release defines `name` under that very name."""
        canonical = self.engine.resolve(name)
        if canonical is None:
            yield Disagreement(f"{name} does not exist", source)
        elif canonical != name:
            yield self.here(f"{name} is defined as {canonical}", source, canonical)

    def attribute(self, record: str, name: str, source: Source) -> Iterator[Disagreement]:
        """A class is defined, and has the attribute that the pack names."""
        missing = list(self.defined(record, source))
        yield from missing
        found = self.engine.fields(record) | self.engine.methods(record)
        made = f"{record}.__init__"
        is_set = self.is_defined(made) and self.engine.mentions(made, name)
        if not missing and name not in found and not is_set:
            yield self.here(f"{record} has no field {name}", source, record)

    def parameters(
        self, function: str, wanted: Iterable[str | None], source: Source
    ) -> Iterator[Disagreement]:
        """A function is defined, and has the parameters that the pack names.

        Those of a kernel that another package or a compiler makes are not to be seen.
        """
        missing = list(self.defined(function, source))
        yield from missing
        parameters = self.engine.parameters(function) if not missing else ()
        if parameters:
            for name in wanted:
                if name is not None and name not in parameters:
                    message = f"{function} has no parameter {name}"
                    yield self.here(message, source, function)

    def sites(
        self, sites: Iterable[Site], name: str, does: str, what: str
    ) -> Iterator[Disagreement]:
        """Each function does mention `name` where the pack says so, and not where it doesn't."""
        for site in sites:
            if self.contract.effective in site.releases:
                missing = list(self.defined(site.function, site.source))
                yield from missing
                if not missing and not self.engine.mentions(site.function, name):
                    message = f"{site.function} is no {what}: it never {does}"
                    yield self.here(message, site.source, site.function)
            elif self.does(site.function, name):
                message = f"{site.function} {does}, where the pack says in {site.releases} only"
                yield self.here(message, site.source, site.function)


def listed(names: Iterable[str]) -> str:
    """Names as a message says them."""
    return ", ".join(names) or "none"
