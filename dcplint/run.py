"""One run: roots, index, engines, programs, rules, and what is left to report."""

from __future__ import annotations

import difflib
import gc
import os
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from dcplint import disk
from dcplint.checks.base import Context, Registered, all_rules
from dcplint.compare.states import ClassState, states
from dcplint.contracts.model import Pack
from dcplint.contracts.spec import EngineSpec
from dcplint.errors import UserError
from dcplint.findings.baseline import Baseline, read_entries
from dcplint.findings.catalogue import Catalogue
from dcplint.findings.model import Evidence, Finding, Fix, Location, Tree
from dcplint.findings.settle import settle
from dcplint.findings.suppress import MARKER
from dcplint.processes import spread
from dcplint.program.build import build_program
from dcplint.program.engine import Engine, find_engine
from dcplint.program.index import Index, build_index, gate_words, import_words
from dcplint.program.matrix import Row, columns, rows
from dcplint.program.modules import Broken
from dcplint.program.program import Program
from dcplint.program.related import field_words, rank_words
from dcplint.program.symbols import ClassSymbol
from dcplint.report.capabilities import Matrix
from dcplint.report.model import Engine as ReportedEngine
from dcplint.report.model import Report
from dcplint.run_options import RunOptions
from dcplint.source.roots import Root, find_roots, nested_root
from dcplint.source.scan import Scanner
from dcplint.source.text import SourceText, UnreadableSource, decode, plain_lines

if TYPE_CHECKING:
    from dcplint.report.contract import ContractTable

_FAMILY = len("DCP2")
_WORTH = 50  # modules; with fewer, a process costs more than it saves


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


def run_checks(options: RunOptions) -> Report:
    """Check what `options` names. Raises UserError for what only the user can put right."""
    started = time.perf_counter()
    with _without_collector():
        return _report(options, open_trees(options), started)


@dataclass(frozen=True, slots=True)
class Survey:
    """Everything that one run says of a tree."""

    report: Report
    states: tuple[ClassState, ...]


def survey(options: RunOptions) -> Survey:
    """Findings and promises of what `options` names. Raises UserError."""
    started = time.perf_counter()
    with _without_collector():
        trees = open_trees(options)
        found = (
            (state, tree)
            for tree in trees
            for _, program in tree.programs
            for state in states(program)
        )
        shown = tuple(_state_prefixed(s, t.prefix) for s, t in found if t.in_focus(s.location.path))
        return Survey(_report(options, trees, started), shown)


def _state_prefixed(state: ClassState, prefix: str) -> ClassState:
    promises = tuple(
        replace(p, location=_moved(p.location, prefix)) if p.location else p for p in state.promises
    )
    return replace(state, location=_moved(state.location, prefix), promises=promises)


def _report(options: RunOptions, trees: list[Checked], started: float) -> Report:
    rules = [r for r in all_rules() if r.rule.code in options.policy.codes]
    found: list[Finding] = []
    failures: list[Failure] = []
    for tree in trees:
        for done in _checked(tree, rules, options.jobs):
            found += (_prefixed(f, tree.prefix) for f in done.findings)
            failures += done.failures
            tree.broken += done.broken
        found += (_prefixed(f, tree.prefix) for f in _broken(tree))
    lines = Lines(trees)
    directory = _common([tree.directory for tree in trees])
    outcome = settle(
        dict.fromkeys(found),
        catalogue=Catalogue(registered.rule for registered in all_rules()),
        policy=options.policy,
        sources=_marked(trees),
        lines=lines,
        in_focus=lambda path: any(t.owns(path) and t.in_focus(t.own(path)) for t in trees),
        bases=lambda finding: _bases(trees, finding),
        baseline=_baseline(options.baseline, directory) if options.baseline else None,
        complete=not failures,
    )
    findings = outcome.findings
    if options.edits:
        from dcplint.fixes.edits import with_edits

        findings = with_edits(findings, lines)
    return Report(
        findings=findings,
        accepted=outcome.accepted,
        known=outcome.known,
        lines=lines,
        engines=engines_of(trees),
        notices=notices_of(trees),
        errors=tuple(failure.sentence for failure in failures),
        tracebacks=tuple(failure.traceback for failure in failures),
        files=sum(tree.files for tree in trees),
        seconds=time.perf_counter() - started,
        prefix=_from_here(directory),
        repository=_from_repository(directory),
        root=directory,
    )


def open_trees(options: RunOptions) -> list[Checked]:
    """Index every root that the paths lie in and link it for each engine it has to do with.

    Raises UserError where there is nothing to check.
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
    trees = [tree for tree in trees if tree.index.scans or tree.index.broken]
    if not trees:
        raise UserError(f"no Python files found in {', '.join(map(str, options.paths))}")
    _set_prefixes(trees)
    for tree in trees:
        for pack in packs.values():
            engine = find_engine(tree.index, pack, options.engine, options.engine_path)
            if engine is not None:
                program = build_program(tree.index, engine, tree.unsaved)
                if engine.in_tree or program.uses_engine():
                    tree.programs.append((engine, program))
                tree.broken += _unparsed(tree, engine, program)
    return trees


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


def capability_matrices(options: RunOptions) -> tuple[list[Matrix], tuple[str, ...]]:
    """The capability matrix of each tree and engine, and what the user should know about them."""
    with _without_collector():
        trees = open_trees(options)
        matrices = []
        for tree in trees:
            for engine, program in tree.programs:
                names = tuple(capability.name for capability in columns(program, "impl"))
                shown = (_row_prefixed(row, tree.prefix) for row in rows(program))
                found = tuple(row for row in shown if tree.in_focus(row.symbol.path))
                matrices.append(Matrix(_reported(engine), names, found))
    return matrices, notices_of(trees)


def contract_tables(options: RunOptions) -> tuple[list[ContractTable], tuple[str, ...]]:
    """The contract fields of each tree and engine, and what the user should know about them."""
    from dcplint.flow.contract import field_tables
    from dcplint.flow.fields import FieldFlow
    from dcplint.report.contract import ContractTable

    with _without_collector():
        trees = open_trees(options)
        tables = [
            ContractTable(
                _reported(engine),
                tuple(
                    table.moved(partial(_moved, prefix=tree.prefix))
                    for table in field_tables(FieldFlow(program))
                ),
            )
            for tree in trees
            for engine, program in tree.programs
        ]
    return tables, notices_of(trees)


def _row_prefixed(row: Row, prefix: str) -> Row:
    cells = tuple(
        replace(c, location=_moved(c.location, prefix)) if c.location else c for c in row.cells
    )
    return replace(row, location=_moved(row.location, prefix), cells=cells)


def engines_of(trees: Sequence[Checked]) -> tuple[ReportedEngine, ...]:
    """The engines that the trees were judged against."""
    return tuple(dict.fromkeys(_reported(e) for tree in trees for e, _ in tree.programs))


def _reported(engine: Engine) -> ReportedEngine:
    return ReportedEngine(engine.contract.pack.engine, str(engine.contract.version), engine.how)


def notices_of(trees: Sequence[Checked]) -> tuple[str, ...]:
    """What the user should know about the choice of engines, each sentence once."""
    return tuple(
        dict.fromkeys(
            notice for tree in trees for engine, _ in tree.programs for notice in engine.notices()
        )
    )


def _roots(options: RunOptions) -> Sequence[Root]:
    if options.stdin is None:
        return find_roots(options.paths)
    path = options.stdin.path.resolve()
    (root,) = find_roots((path if disk.exists(path) else path.parent,))
    return (Root(root.directory, (path,), root.only),)


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
        words.update(field_words(pack) | rank_words(pack) | gate_words(pack.gates))
        accessors.update(accessor.name.encode() for accessor in pack.accessors)
    scanner = Scanner.of(words, accessors)
    return Checked(build_index(root, scanner, options.exclude, unsaved, options.jobs), unsaved)


def _wanted(directory: Path, tree: Checked) -> bool:
    return any(f == directory or f in directory.parents for f in tree.index.root.focus)


def _set_prefixes(trees: list[Checked]) -> None:
    """Paths are relative to the root; with several roots, to the directory that holds them all."""
    if len(trees) == 1:
        return
    common = _common([tree.directory for tree in trees])
    for tree in trees:
        tree.prefix = _prefix(tree.directory.relative_to(common))


def _common(directories: Sequence[Path]) -> Path:
    return Path(os.path.commonpath(directories))


def _from_here(directory: Path) -> str:
    """What leads from the working directory to a root around or below it; else nothing.

    A tree that lies elsewhere is spoken of by its own paths.
    """
    here = Path.cwd()
    if here == directory or here in directory.parents or directory in here.parents:
        return _prefix(Path(os.path.relpath(directory)))
    return ""


def _from_repository(directory: Path) -> str:
    """What leads to a root from its git checkout; where there is none, from here."""
    checkout = next((a for a in (directory, *directory.parents) if disk.exists(a / ".git")), None)
    if checkout is None:
        return _from_here(directory) if Path.cwd() in directory.parents else ""
    return _prefix(directory.relative_to(checkout))


def _prefix(directory: Path) -> str:
    """What goes before a path relative to `directory`."""
    return "" if directory == Path() else f"{directory.as_posix()}/"


@dataclass(frozen=True, slots=True)
class Failure:
    """A rule that failed: one sentence for everybody, a traceback for who asks for it."""

    sentence: str
    traceback: str


@dataclass(frozen=True, slots=True)
class _Found:
    """What rules found, which of them failed, and what they asked for that cannot be parsed."""

    findings: list[Finding]
    failures: list[Failure]
    broken: list[Broken]


def _checked(tree: Checked, rules: list[Registered], jobs: int) -> Iterator[_Found]:
    """What the rules find in a tree, against each engine, in order of the rules."""
    for engine, program in tree.programs:
        context = Context(program, engine.contract)
        place = f"{tree.directory} against {engine.contract.pack.engine}"
        # Rules of a family work much of the same out, and do it once if they stay together.
        families = [list(some) for _, some in groupby(rules, lambda r: r.rule.code[:_FAMILY])]
        pays = len(program.checked) >= _WORTH
        yield from spread(partial(_family, context, place), families, jobs if pays else 1)


def _family(context: Context, place: str, rules: list[Registered]) -> _Found:
    found = _Found([], [], context.program.modules.broken)
    for registered in rules:
        found.failures.extend(_run(registered, context, place, found.findings))
    return found


def _run(
    registered: Registered, context: Context, place: str, found: list[Finding]
) -> Iterator[Failure]:
    """Run one rule. Its fault costs neither the others' findings nor those it has made itself."""
    try:
        found += registered.check(context) if registered.check else ()
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        said = f"{registered.rule.code} failed on {place} ({reason}); the other rules ran"
        yield Failure(said, traceback.format_exc())


def _bases(trees: Sequence[Checked], finding: Finding) -> Iterator[Location]:
    """The headers of the checked classes that the finding's class derives from."""
    place = finding.location
    for tree in trees:
        if not tree.owns(place.path):
            continue
        for _, program in tree.programs:
            symbol = program.enclosing_class(tree.own(place.path), finding.symbol, place.line)
            for base in program.mro(symbol).entries if symbol else ():
                if isinstance(base, ClassSymbol) and base.module.tree is Tree.PROJECT:
                    yield _moved(program.location_of(base), tree.prefix)


def _baseline(path: Path, directory: Path) -> Baseline:
    try:
        text = disk.read(path).decode()
    except OSError as error:
        hint = "; `dcplint baseline` writes it" if isinstance(error, FileNotFoundError) else ""
        raise UserError(f"{path}: cannot be read: {error.strerror}{hint}") from error
    except ValueError as error:
        raise UserError(f"{path}: not a baseline: {error}") from error
    relative = Path(os.path.relpath(disk.realpath(path), directory)).as_posix()
    return Baseline(relative, read_entries(text, str(path)))


def _broken(tree: Checked) -> Iterator[Finding]:
    from dcplint.checks.dcp001_unreadable_file import RULE

    for entry in tree.broken:
        if tree.in_focus(entry.path):
            location = Location(entry.path, entry.error.line, entry.error.column)
            yield RULE.finding(f"{entry.path} {entry.error}", location)


def _marked(trees: list[Checked]) -> Iterator[tuple[str, str]]:
    for tree in trees:
        for path in tree.index.mentioning(MARKER):
            data = tree.unsaved.get(path)
            try:
                text = decode(disk.read(tree.directory / path) if data is None else data)
            except (OSError, UnreadableSource):
                continue  # reported as broken where it is needed
            yield tree.prefix + path, text


def _prefixed(finding: Finding, prefix: str) -> Finding:
    if not prefix:
        return finding
    return replace(
        finding,
        location=_moved(finding.location, prefix),
        evidence=tuple(
            Evidence(e.message, _moved(e.location, prefix), e.role) for e in finding.evidence
        ),
        fix=_fix_prefixed(finding.fix, prefix) if finding.fix else None,
    )


def _fix_prefixed(fix: Fix, prefix: str) -> Fix:
    change = fix.change
    scope, at = _moved(change.scope, prefix), _moved(change.at, prefix)
    return replace(fix, change=replace(change, scope=scope, at=at))


def _moved(location: Location, prefix: str) -> Location:
    if location.tree is not Tree.PROJECT:
        return location
    return replace(location, path=prefix + location.path)


@dataclass(frozen=True)
class Lines:
    """Source lines for reports, from whichever tree a location lies in."""

    trees: Sequence[Checked]
    _read: dict[Path, list[str]] = field(default_factory=dict)

    def __call__(self, location: Location) -> Sequence[str]:
        """The lines of the file; empty where it cannot be read."""
        for tree in self.trees:
            if location.tree is Tree.PROJECT:
                if not tree.owns(location.path):
                    continue
                path = tree.own(location.path)
                if path in tree.unsaved:
                    return SourceText(_text(tree.unsaved[path])).lines
                found = self._lines(tree.directory / path)
                if found:
                    return found
                continue
            for engine, _ in tree.programs:
                if location.tree is Tree.ENGINE and engine.directory is not None:
                    return self._lines(engine.directory / location.path)
                if location.tree is Tree.PACK and location.path in engine.contract.pack.files:
                    return self._lines(engine.contract.pack.files[location.path])
        return ()

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


@contextmanager
def _without_collector() -> Iterator[None]:
    """Parsing makes many objects and no cycles worth collecting before the run ends."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
