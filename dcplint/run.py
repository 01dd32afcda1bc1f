"""One run: roots, programs, rules, and what is left to report."""

from __future__ import annotations

import gc
import os
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from dcplint import disk, prefixed, progress
from dcplint.checks.base import Context, Registered, all_rules
from dcplint.compare.states import ClassState, states
from dcplint.errors import UserError
from dcplint.findings.baseline import Baseline, read_entries
from dcplint.findings.catalogue import Catalogue
from dcplint.findings.model import Finding, Location, Tree
from dcplint.findings.settle import settle
from dcplint.processes import spread
from dcplint.program.matrix import columns, rows
from dcplint.program.modules import Broken
from dcplint.program.symbols import ClassSymbol
from dcplint.report.capabilities import Matrix
from dcplint.report.model import Report
from dcplint.run_options import RunOptions
from dcplint.trees import (
    Checked,
    Lines,
    common,
    engines_of,
    from_here,
    from_repository,
    marked,
    notices_of,
    open_trees,
    reported,
)

if TYPE_CHECKING:
    from dcplint.report.contract import ContractTable

_WORTH = 50  # modules; with fewer, a process costs more than it saves


def run_checks(options: RunOptions) -> Report:
    """Check what `options` names. Raises UserError for what only the user can put right."""
    started = time.perf_counter()
    with _without_collector():
        return _report(options, open_trees(options), started)


@dataclass(frozen=True, slots=True)
class Survey:
    """Everything that one run says of a tree, but for the lines of its files."""

    report: Report
    states: tuple[ClassState, ...]


def surveys(sides: Sequence[RunOptions]) -> list[Survey]:
    """What there is to say of each of some trees, by a process each. Raises UserError."""
    return spread(_survey, sides, len(sides))


def _survey(options: RunOptions) -> Survey:
    started = time.perf_counter()
    with _without_collector():
        trees = open_trees(options)
        found = (
            (state, tree)
            for tree in trees
            for _, program in tree.programs
            for state in states(program)
        )
        shown = tuple(prefixed.state(s, t.prefix) for s, t in found if t.in_focus(s.location.path))
        report = _report(options, trees, started)
    return Survey(replace(report, lines=_unread, outside=attrgetter("path")), shown)


def _unread(place: Location) -> Sequence[str]:
    """The lines of a file, where none are shown: those of whole trees would have to travel."""
    return ()


def _report(options: RunOptions, trees: list[Checked], started: float) -> Report:
    rules = [r for r in all_rules() if r.rule.code in options.policy.codes]
    found: list[Finding] = []
    failures: list[Failure] = []
    steps = progress.Steps(len(rules) * sum(len(tree.programs) for tree in trees))
    for tree in trees:
        for done in _checked(tree, rules, options.jobs, steps):
            found += (prefixed.finding(f, tree.prefix) for f in done.findings)
            failures += done.failures
            tree.broken += done.broken
        found += (prefixed.finding(f, tree.prefix) for f in _broken(tree))
    lines = Lines(trees)
    directory = common([tree.directory for tree in trees])
    outcome = settle(
        dict.fromkeys(found),
        catalogue=Catalogue(registered.rule for registered in all_rules()),
        policy=options.policy,
        sources=marked(trees),
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
        prefix=from_here(directory),
        repository=from_repository(directory),
        root=directory,
        outside=lines.path,
    )


def capability_matrices(options: RunOptions) -> tuple[list[Matrix], tuple[str, ...]]:
    """The capability matrix of each tree and engine, and what the user should know about them."""
    with _without_collector():
        trees = open_trees(options)
        matrices = []
        for tree in trees:
            for engine, program in tree.programs:
                names = tuple(capability.name for capability in columns(program, "impl"))
                shown = (prefixed.row(row, tree.prefix) for row in rows(program))
                found = tuple(row for row in shown if tree.in_focus(row.symbol.path))
                matrices.append(Matrix(reported(engine), names, found))
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
                reported(engine),
                tuple(
                    table.moved(partial(prefixed.location, prefix=tree.prefix))
                    for table in field_tables(FieldFlow(program))
                ),
            )
            for tree in trees
            for engine, program in tree.programs
        ]
    return tables, notices_of(trees)


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


def _checked(
    tree: Checked, rules: list[Registered], jobs: int, steps: progress.Steps
) -> Iterator[_Found]:
    """What the rules find in a tree, against each engine, in order of the rules."""
    for engine, program in tree.programs:
        context = Context(program, engine.contract)
        place = f"{tree.directory} against {engine.contract.pack.engine}"
        pays = len(program.checked) >= _WORTH
        # The later ones work most out that others need.
        follow = [r for r in reversed(rules) if r.rule.follows]
        apart = [r for r in rules if not r.rule.follows]
        begin = steps.of([r.rule.code for r in rules])
        work = partial(_found, context, place, begin)
        found = spread(work, follow, jobs if pays else 1, apart)
        order = {r.rule.code: done for r, done in zip((*apart, *follow), found, strict=True)}
        yield from (order[r.rule.code] for r in rules)


def _found(
    context: Context, place: str, begin: Callable[[str, str], None], registered: Registered
) -> _Found:
    found = _Found([], [], context.program.modules.broken)
    release = f"{context.contract.pack.engine} {context.contract.version}"
    begin(registered.rule.code, f"{registered.rule.code} {registered.rule.name}, {release}")
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
                    yield prefixed.location(program.location_of(base), tree.prefix)


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
