"""Finds the contract packs: the user's own, those of installed distributions, the built-in ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import NoReturn

from dcplint import disk
from dcplint.contracts.contract import Pack
from dcplint.contracts.document import Node, PackError, read_document
from dcplint.contracts.load import build_pack
from dcplint.data import data_dir

ENTRY_POINT_GROUP = "dcplint.packs"


@dataclass(slots=True)
class _Candidate:
    """A pack file. Its document is read when its pack is asked for, or to learn its engine."""

    path: Path
    shown: str
    engine: str = ""
    origin: str = ""  # what to put before an error: whose file it is, where that isn't the user's
    root: Node | None = None
    pack: Pack | None = None
    building: bool = False

    def document(self) -> Node:
        if self.root is None:
            self.root = read_document(self.path, self.shown)
        return self.root


@dataclass(slots=True)
class Packs(Mapping[str, Pack]):
    """The packs by engine, each built when it is first asked for. Getting one raises PackError."""

    _candidates: list[_Candidate] = field(default_factory=list)

    def __getitem__(self, engine: str) -> Pack:
        for candidate in self._candidates:
            if candidate.engine == engine:
                return self._build(candidate)
        raise KeyError(engine)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(candidate.engine for candidate in self._candidates))

    def __len__(self) -> int:
        return len({candidate.engine for candidate in self._candidates})

    def _build(self, candidate: _Candidate) -> Pack:
        if candidate.pack is not None:
            return candidate.pack
        root = candidate.document()
        if candidate.building:
            line = root.entries["extends"].line
            raise PackError(
                f"{candidate.shown}:{line}: the pack of '{candidate.engine}' extends itself, by "
                "way of the packs it extends; break the circle"
            )
        candidate.building = True
        try:
            candidate.pack = build_pack(
                root, candidate.path, candidate.shown, lambda name: self._parent(candidate, name)
            )
        except PackError as error:
            _blame(candidate, error)
        finally:
            candidate.building = False
        return candidate.pack

    def _parent(self, heir: _Candidate, name: str) -> Pack | None:
        # A pack that extends the engine it is about adds to the pack it takes precedence over.
        start = self._candidates.index(heir) + 1 if name == heir.engine else 0
        for candidate in self._candidates[start:]:
            if candidate.engine == name:
                return self._build(candidate)
        return None


def find_packs(files: Iterable[Path] = ()) -> Packs:
    """All packs. For an engine with several, the last of `files`, else an installed one, wins.

    `files` are the user's own: from the configuration, then from the command line. Raises
    PackError for one that cannot be read, and for an entry point that doesn't load.
    """
    candidates = [_with_engine(_Candidate(path, path.as_posix())) for path in files][::-1]
    candidates += _installed()
    candidates += [
        # A built-in pack is named after its engine, so that it need not be read to be found.
        _Candidate(path, f"rules/{path.name}", engine=path.stem)
        for path in sorted(data_dir("rules").glob("*.yaml"))
    ]
    return Packs(candidates)


def _installed() -> list[_Candidate]:
    disk.distributions()
    found: dict[str, tuple[_Candidate, str]] = {}
    for point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda p: (_owner(p), p.name)):
        owner = _owner(point)
        path = _path_of(point)
        candidate = _Candidate(path, path.name, origin=f"the pack of distribution '{owner}': ")
        engine = _with_engine(candidate).engine
        if engine in found:
            raise PackError(
                f"the distributions '{found[engine][1]}' and '{owner}' both bring a pack of engine "
                f"'{engine}'; uninstall one of them"
            )
        found[engine] = (candidate, owner)
    return [candidate for candidate, _ in found.values()]


def _owner(point: EntryPoint) -> str:
    return point.dist.name if point.dist else point.value


def _path_of(point: EntryPoint) -> Path:
    """The file an entry point stands for: a path, or a callable that returns one."""
    try:
        value = point.load()
        if callable(value):
            value = value()
        # A resource of a package installed as files is a path; one in a zip archive is not.
        return Path(value)
    except Exception as error:  # whatever a foreign module raises when imported or called
        raise PackError(
            f"the pack of distribution '{_owner(point)}' cannot be loaded: entry point "
            f"'{point.name} = {point.value}' must give the path of a YAML file or a function that "
            f"returns it ({type(error).__name__}: {' '.join(str(error).split())})"
        ) from error


def _with_engine(candidate: _Candidate) -> _Candidate:
    try:
        root = candidate.document()
        engine = root.entries.get("engine")
        if engine is None or engine.kind != "text":
            build_pack(root, candidate.path, candidate.shown, None)  # which says what is wrong
            raise AssertionError("a pack without an engine was accepted")
    except PackError as error:
        _blame(candidate, error)
    candidate.engine = engine.raw
    return candidate


def _blame(candidate: _Candidate, error: PackError) -> NoReturn:
    """Raise `error`, saying whose pack it is about if that is not plain from the path."""
    if str(error).startswith(f"{candidate.shown}:"):
        raise PackError(f"{candidate.origin}{error}") from None
    raise error
