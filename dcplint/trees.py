"""The roots of a run: indexed, linked for each engine they have to do with, and their lines."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dcplint import disk, progress
from dcplint.contracts.contract import Pack
from dcplint.contracts.spec import EngineSpec
from dcplint.errors import UserError
from dcplint.findings.model import Location, Tree
from dcplint.findings.suppress import MARKER
from dcplint.program.blocked import block_words
from dcplint.program.build import build_program
from dcplint.program.engine import Engine, find_engine
from dcplint.program.index import Index, build_index, gate_words, import_words
from dcplint.program.modules import Broken
from dcplint.program.program import Program
from dcplint.program.related import computes_with, field_words, rank_words
from dcplint.report.model import Engine as ReportedEngine
from dcplint.run_options import RunOptions
from dcplint.source.roots import Root, find_roots, nested_root, root_of_file
from dcplint.source.scan import Scanner
from dcplint.source.text import SourceText, UnreadableSource, decode, plain_lines


@dataclass(slots=True)
class Checked:
    """One root after indexing.

    prefix: goes before its paths when a run has several roots. broken: files that could not be
    read or parsed, as far as anything has asked for them.
    """

    index: Index
    unsaved: dict[str, bytes]
    prefix: str = ""
    programs: list[tuple[Engine, Program]] = field(default_factory=list)
    broken: list[Broken] = field(default_factory=list)
    focus: frozenset[Path] = field(init=False)

    def __post_init__(self) -> None:
        self.focus = frozenset(self.index.root.focus)
        self.broken += self.index.broken

    @property
    def directory(self) -> Path:
        """The root's directory."""
        return self.index.root.directory

    @property
    def files(self) -> int:
        """How many files were looked at, unreadable ones included."""
        broken = sum(entry.path.endswith(".py") for entry in self.index.broken)
        return len(self.index.scans) + broken

    def owns(self, path: str) -> bool:
        """Whether a path of the run can be one of this root's."""
        return path.startswith(self.prefix)

    def own(self, path: str) -> str:
        """A path of the run, relative to this root."""
        return path[len(self.prefix) :]

    def in_focus(self, path: str) -> bool:
        """Whether the file `path`, relative to the root, is one that the user asked about."""
        absolute = self.directory / path
        return absolute in self.focus or not self.focus.isdisjoint(absolute.parents)


def open_trees(options: RunOptions) -> list[Checked]:
    """Index every root that the paths lie in and link it for each engine it has to do with.

    Raises UserError where there is nothing to check, unless that is an answer.
    """
    from dcplint.contracts.packs import find_packs

    packs = find_packs(options.packs)
    if options.engine is not None:
        _require_known(options.engine, list(packs))
    trees = [_index(root, packs, options) for root in _roots(options)]
    position = 0
    while position < len(trees):
        nested = trees[position].index.nested
        trees += (
            _index(nested_root(d), packs, options) for d in nested if _wanted(d, trees[position])
        )
        position += 1
    filled = [tree for tree in trees if tree.index.scans or tree.index.broken]
    if filled:
        trees = filled
    elif not options.may_be_empty:
        raise UserError(f"no Python files found in {', '.join(map(str, options.paths))}")
    _set_prefixes(trees)
    for tree in trees:
        progress.at(f"looking through {len(tree.index.scans):,} files in {tree.directory.name}")
        for pack in packs.values():
            engine = _engine(tree, pack, packs, options) if pack.joins is None else None
            if engine is not None:
                program = build_program(tree.index, engine, tree.unsaved, options.jobs)
                if engine.in_tree or program.uses_engine() or computes_with(tree.index, pack):
                    tree.programs.append((engine, program))
                tree.broken += _unparsed(tree, engine, program)
    return trees


def _engine(
    tree: Checked, pack: Pack, packs: Mapping[str, Pack], options: RunOptions
) -> Engine | None:
    """The engine of `pack` for a tree, with the plugins that the tree is made of or builds on."""
    found, *plugins = (
        find_engine(tree.index, one, options.engine, options.engine_path, packs.values())
        for one in (pack, *(other for other in packs.values() if other.joins == pack.engine))
    )
    return found and found.joined(plugin for plugin in plugins if plugin is not None)


def _require_known(named: EngineSpec, engines: Sequence[str]) -> None:
    """Raises UserError for an engine that no pack describes: nothing could be said of it."""
    if named.name not in engines:
        near = difflib.get_close_matches(named.name, engines, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; they describe {', '.join(engines)}"
        raise UserError(f"no contract pack describes an engine {named.name!r}{hint}")


def _unparsed(tree: Checked, engine: Engine, program: Program) -> list[Broken]:
    """The files in focus that may matter to an engine and cannot be parsed.

    A broken line can hide from the index what the file has to do with the engine, so whatever
    imports it is parsed; of the engine itself, which imports itself everywhere, only what is asked
    about by name.
    """
    index, modules = tree.index, program.modules
    asked = {path.relative_to(tree.directory).as_posix() for path in tree.focus}
    importing = () if engine.in_tree else index.importing(engine.contract.pack.package)
    for path in sorted((asked & index.scans.keys()).union(filter(tree.in_focus, importing))):
        modules.check(path)
    return modules.broken


def engines_of(trees: Sequence[Checked]) -> tuple[ReportedEngine, ...]:
    """The engines that the trees were judged against."""
    return tuple(dict.fromkeys(reported(e) for tree in trees for e, _ in tree.programs))


def reported(engine: Engine) -> ReportedEngine:
    """An engine as reports name it."""
    return ReportedEngine(engine.contract.pack.engine, str(engine.contract.version), engine.how)


def notices_of(trees: Sequence[Checked]) -> tuple[str, ...]:
    """What the user should know about the choice of engines, each sentence once."""
    return tuple(
        dict.fromkeys(
            notice
            for tree in trees
            for engine, program in tree.programs
            for notice in (*engine.notices(), *_strange(engine, program))
        )
    )


def _strange(engine: Engine, program: Program) -> Iterator[str]:
    """That an engine's own tree holds no class that can promise something, where that is so."""
    promising = {capability.role for capability in engine.contract.capabilities}
    if engine.in_tree and promising and not any(map(program.classes, promising)):
        pack, version = engine.contract.pack, engine.contract.version
        yield (
            f"no attention class of {pack.engine} {version} is one that {pack.path} describes: "
            "most rules have nothing to say of it"
        )


def _roots(options: RunOptions) -> Sequence[Root]:
    if options.stdin is None:
        return find_roots(options.paths)
    return (root_of_file(options.stdin.path.resolve()),)


def _index(root: Root, packs: Mapping[str, Pack], options: RunOptions) -> Checked:
    unsaved = {
        path.relative_to(root.directory).as_posix(): plain_lines(data)
        for path, data in options.replaced.items()
        if path.is_relative_to(root.directory)
    }
    if options.stdin is not None:
        relative = options.stdin.path.resolve().relative_to(root.directory).as_posix()
        unsaved[relative] = plain_lines(options.stdin.source)
    words = {MARKER}
    accessors: set[bytes] = set()
    for pack in packs.values():
        words.update(import_words(pack))
        words.update(capability.name.encode() for capability in pack.capabilities)
        words.update(field_words(pack) | rank_words(pack) | block_words(pack))
        words.update(gate_words(pack.gates))
        accessors.update(accessor.name.encode() for accessor in pack.accessors)
    scanner = Scanner.of(words, accessors)
    return Checked(build_index(root, scanner, options.exclude, unsaved, options.jobs), unsaved)


def _wanted(directory: Path, tree: Checked) -> bool:
    return any(f == directory or f in directory.parents for f in tree.index.root.focus)


def _set_prefixes(trees: list[Checked]) -> None:
    """Paths are relative to the root; with several roots, to the directory that holds them all."""
    if len(trees) == 1:
        return
    above = common([tree.directory for tree in trees])
    for tree in trees:
        tree.prefix = _prefix(tree.directory.relative_to(above))


def common(directories: Sequence[Path]) -> Path:
    """The directory that holds them all."""
    return Path(os.path.commonpath(directories))


def from_here(directory: Path) -> str:
    """What leads from the working directory to a root around or below it; else nothing.

    A tree that lies elsewhere is spoken of by its own paths.
    """
    here = Path.cwd()
    if here == directory or here in directory.parents or directory in here.parents:
        return _prefix(Path(os.path.relpath(directory)))
    return ""


def from_repository(directory: Path) -> str:
    """What leads to a root from its git checkout; where there is none, from here."""
    checkout = next((a for a in (directory, *directory.parents) if disk.exists(a / ".git")), None)
    if checkout is None:
        return from_here(directory) if Path.cwd() in directory.parents else ""
    return _prefix(directory.relative_to(checkout))


def _prefix(directory: Path) -> str:
    """What goes before a path relative to `directory`."""
    return "" if directory == Path() else f"{directory.as_posix()}/"


def marked(trees: list[Checked]) -> Iterator[tuple[str, str]]:
    """Path and text of the files that have suppression comments."""
    for tree in trees:
        for path in tree.index.mentioning(MARKER):
            data = tree.unsaved.get(path)
            try:
                text = decode(disk.read(tree.directory / path) if data is None else data)
            except (OSError, UnreadableSource):
                continue  # reported as broken where it is needed
            yield tree.prefix + path, text


@dataclass(frozen=True)
class Lines:
    """Source lines for reports, from whichever tree a location lies in."""

    trees: Sequence[Checked]
    _read: dict[Path, list[str]] = field(default_factory=dict)

    def __call__(self, location: Location) -> Sequence[str]:
        """The lines of the file; empty where it cannot be read."""
        if location.tree is not Tree.PROJECT:
            file = self._outside(location)
            return () if file is None else self._lines(file)
        for tree in self.trees:
            if not tree.owns(location.path):
                continue
            path = tree.own(location.path)
            if path in tree.unsaved:
                return SourceText(_text(tree.unsaved[path])).lines
            found = self._lines(tree.directory / path)
            if found:
                return found
        return ()

    def path(self, location: Location) -> str:
        """Where the file of an engine or a pack lies, as seen from the working directory."""
        file, here = self._outside(location), Path.cwd()
        if file is None:
            return location.path
        return (file.relative_to(here) if file.is_relative_to(here) else file).as_posix()

    def _outside(self, location: Location) -> Path | None:
        engines = (engine for tree in self.trees for engine, _ in tree.programs)
        for engine in engines:
            if location.tree is Tree.ENGINE and engine.directory is not None:
                return engine.directory / location.path
            if location.tree is Tree.PACK and location.path in engine.contract.pack.files:
                return engine.contract.pack.files[location.path]
        return None

    def _lines(self, path: Path) -> list[str]:
        if path not in self._read:
            try:
                self._read[path] = SourceText(_text(disk.read(path))).lines
            except OSError:
                self._read[path] = []
        return self._read[path]


def _text(data: bytes) -> str:
    try:
        return decode(data)
    except UnreadableSource:
        return ""
