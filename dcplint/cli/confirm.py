"""`dcplint confirm`."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dcplint.cli import options, output
from dcplint.cli.lint import configuration, lint
from dcplint.errors import UserError
from dcplint.findings.model import Finding, Severity
from dcplint.report.escape import printable
from dcplint.report.formats import FORMATS

if TYPE_CHECKING:
    from dcplint.contracts.spec import EngineSpec
    from dcplint.harness.confirm import Settled
    from dcplint.harness.job import Job
    from dcplint.harness.model import Confirmation
    from dcplint.harness.pool import Pool
    from dcplint.report.model import Report


@click.command("confirm")
@options.paths
@click.option(
    "--backend",
    metavar="MODULE:CLASS",
    help="Run every probe on this backend (or FILE.py:CLASS) instead of linting.",
)
@options.select
@click.option("--repro", metavar="ID", help="Run again what a verdict's id stands for.")
@click.option("--world-size", type=click.IntRange(2, 8), default=4, show_default=True)
@click.option(
    "--interleave", type=int, help="Only probes with this interleave; nothing is refuted then."
)
@click.option(
    "--dtype",
    type=click.Choice(["float32", "float16", "bfloat16"]),
    default="float32",
    show_default=True,
)
@click.option("--device", type=click.Choice(["auto", "cuda", "cpu"]), default="auto")
@click.option("--processes", is_flag=True, help="One process per rank, over torch.distributed.")
@click.option("--probe", default="", metavar="NAME", help="Only probes beginning with NAME.")
@click.option("--timeout", type=float, default=120.0, show_default=True, help="Seconds per probe.")
@click.option("-j", "--jobs", type=click.IntRange(1), help="Processes at a time. Default: cores.")
@click.option(
    "--fix",
    "fixes",
    is_flag=True,
    help="State as True the capabilities that nobody stated and every probe of this run bears out.",
)
@click.option("--strict", is_flag=True, help="Exit 1 for inconclusive findings too.")
@click.option("--output-format", type=click.Choice(list(FORMATS)), default="text")
@click.option("--engine", metavar="NAME==RELEASE|auto", help="As for `dcplint check`.")
@options.engine_path
@options.packs
@click.option("-q", "--quiet", is_flag=True, help="No progress, no notices.")
@options.color
@options.verbose
def command(
    paths: tuple[Path, ...],
    backend: str | None,
    select: tuple[str, ...],
    repro: str | None,
    world_size: int,
    interleave: int | None,
    dtype: str,
    device: str,
    processes: bool,
    probe: str,
    timeout: float,
    jobs: int | None,
    fixes: bool,
    strict: bool,
    output_format: str,
    engine: str | None,
    engine_path: Path | None,
    packs: tuple[Path, ...],
    quiet: bool,
    color: str,
    verbose: bool,
) -> int:
    """Lint PATHS, then run what was found: confirmed, refuted or inconclusive.

    This executes the checked code, in processes of their own. Exits 1 if anything is confirmed.
    """
    from dcplint.harness.confirm import choose_device, find_engine, require_harness, settle
    from dcplint.harness.job import Job, Mode
    from dcplint.harness.pool import Pool, PoolError

    require_harness()
    mode = (Mode.PROCESSES if processes else Mode.EMULATED).value
    template = Job("", "", world_size, dtype, choose_device(device), mode)
    if repro:
        try:
            template = Job.from_repro(repro)
        except ValueError as error:
            raise UserError(f"--repro: {error}") from error
    target = backend or template.target
    if target:
        _require_backend(target)
        # Whose configuration counts is the target's own, wherever its id is run again.
        place = Path(target.rpartition(":")[0])
        paths = paths or ((place,) if place.suffix == ".py" else ())
    only = _selection(probe, interleave)
    config = configuration(paths)
    named = _named(engine)
    engine_path = engine_path or _fetched(named) or config.engine_path or _fetched(config.engine)
    report = None if backend or repro else lint(paths, engine, engine_path, packs, select=select)
    for line in output.problems(report, verbose) if report is not None else ():
        click.echo(printable(line), err=True)
    if report is not None and not report.findings:
        click.echo("nothing was found, so there is nothing to confirm", err=True)
        return 2 if report.errors else 0
    if not quiet:
        click.echo("note: confirm runs the checked code, in processes of its own", err=True)
    judged = None if report is None else frozenset(e.name for e in report.engines)
    root = find_engine(paths or (Path(),), engine_path, judged)
    if root is None and not quiet:
        for line in _how_to_fetch(named or config.engine):
            click.echo(line, err=True)
    with Pool(
        template.device,
        jobs=jobs or os.cpu_count() or 1,
        timeout=timeout,
        engine=root,
        drivers=config.harness.drivers,
    ) as pool:
        if report is None:
            template = replace(template, target=target)
            if repro:
                return _show_runs(pool, [template])
            try:
                described = pool.describe(target, template.world_size)
            except PoolError as error:
                raise UserError(f"{target} cannot be run: {error}") from error
            if described["lacking"]:
                raise UserError(f"{target} cannot be run here: {described['lacking']}")
            names = described["probes"]
            chosen = [n for n in names if only is None or only(n)]
            if not chosen:
                raise UserError(f"no probe is left to run; there are {', '.join(names)}")
            return _show_runs(pool, [replace(template, probe=n) for n in chosen])
        progress = _Progress(len(report.findings), quiet)
        places = tuple(dict.fromkeys(_places(paths or (Path(),))))
        settled = []
        for one in settle(report.findings, places, pool, template, only=only):
            settled.append(one)
            progress.step(one)
    said = {one.finding.fingerprint: one.confirmation for one in settled}
    upheld = {finding.fingerprint: finding for finding in _upheld(report, settled)}
    findings = tuple(upheld.get(finding.fingerprint, finding) for finding in report.findings)
    report = replace(report, findings=findings, confirmations=said)
    if fixes:
        _fix(report, tuple(upheld.values()), paths or (Path(),), quiet)
    if output_format == "github":
        output.add_job_summary(report, os.environ)
    given = () if engine_path is None else ("--engine-path", str(engine_path.resolve()))
    output.print_lines(_render(report, settled, output_format, color, given))
    wanted = {"confirmed", "inconclusive"} if strict else {"confirmed"}
    return int(any(s.confirmation.verdict.value in wanted for s in settled))


def _named(engine: str | None) -> EngineSpec | None:
    from dcplint.contracts.spec import parse_engine

    try:
        return parse_engine(engine) if engine else None
    except ValueError as error:
        raise UserError(str(error)) from error


def _fetched(engine: EngineSpec | None) -> Path | None:
    """Where `dcplint harness prepare` has put a release."""
    from dcplint.harness.prepare import prepared

    return None if engine is None else prepared(engine)


def _how_to_fetch(engine: EngineSpec | None) -> Iterator[str]:
    """What to do about a release that is named and not at hand, if anything can be done."""
    from dcplint.harness.prepare import DISTRIBUTIONS

    if engine is not None and engine.name in DISTRIBUTIONS:
        release = f"{engine.name}=={engine.version}"
        yield f"note: {release} is not here; `dcplint harness prepare {release}` fetches it"


def _require_backend(target: str) -> None:
    """Raises UserError for what names no class, or a file that is not there."""
    place, colon, name = target.rpartition(":")
    if not colon or not all(part.isidentifier() for part in name.split(".")):
        raise UserError(f"{target!r} is no backend: say FILE.py:Class or module:Class")
    if place.endswith(".py") and not Path(place).is_file():
        raise UserError(f"no such file: {place}")


def _upheld(report: Report, settled: list[Settled]) -> tuple[Finding, ...]:
    """The findings whose claim this run bears out, as notes whose fix says what nobody said."""
    from dcplint.fixes.edits import with_edits

    notes = (
        replace(one.finding, severity=Severity.NOTE, fix=one.finding.affirmation)
        for one in settled
        if one.finding.affirmation and one.confirmation.verdict.value == "refuted"
    )
    return with_edits(notes, report.lines)


def _fix(report: Report, upheld: tuple[Finding, ...], paths: tuple[Path, ...], quiet: bool) -> None:
    from dcplint.fixes.passes import below, fix

    done = fix(
        # One pass: what is written changes nothing of what was run.
        lambda changed: replace(report, findings=() if changed else upheld),
        below(paths),
        unsafe=False,
    )
    done.write()
    said = [] if quiet else [output.fix_summary(done, "fix", diff=False)]
    for line in (*done.problems, *said):
        click.echo(printable(line), err=True)


def _selection(probe: str, interleave: int | None) -> Callable[[str], bool] | None:
    if not probe and interleave is None:
        return None
    ending = "" if interleave is None else f"-i{interleave}"
    return lambda name: name.startswith(probe) and name.endswith(ending)


def _places(paths: Iterable[Path]) -> Iterator[Path]:
    """Every folder that the project root may be: the paths themselves and all above them."""
    for path in paths:
        absolute = Path.cwd() / path
        yield absolute
        yield from absolute.parents


class _Progress:
    """One line per settled finding on stderr, with the time left at the pace so far."""

    def __init__(self, total: int, quiet: bool) -> None:
        self._total = total
        self._quiet = quiet
        self._done = 0
        self._started = time.monotonic()

    def step(self, settled: Settled) -> None:
        self._done += 1
        if self._quiet:
            return
        spent = time.monotonic() - self._started
        left = spent / self._done * (self._total - self._done)
        where = settled.finding.location
        click.echo(
            f"[{self._done}/{self._total}, about {left:.0f} s left] {settled.finding.code} "
            f"{where.path}:{where.line} {settled.confirmation.verdict.value}",
            err=True,
        )


def _render(
    report: Report,
    settled: list[Settled],
    output_format: str,
    color: str,
    given: tuple[str, ...],
) -> Iterator[str]:
    if output_format == "text":
        yield from _table(report, settled, given)
        return
    view = output.view_for(color, os.environ, to_file=False, summary=False)
    yield from FORMATS[output_format](report, view)


def _table(report: Report, settled: list[Settled], given: tuple[str, ...]) -> Iterator[str]:
    """given: the options that a verdict's id needs to be run again."""
    rows = [("verdict", "execution", "finding", "what was measured")]
    for one in settled:
        said, finding = one.confirmation, one.finding
        where = f"{report.path(finding.location)}:{finding.location.line}"
        rows.append(
            (
                said.verdict.value,
                said.execution.value,
                f"{finding.code} {where}",
                said.reason + _figure(said),
            )
        )
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield printable("  ".join([*cells, row[3]]))
    for verdict in ("confirmed", "refuted", "inconclusive"):
        count = sum(s.confirmation.verdict.value == verdict for s in settled)
        yield f"{count} {verdict}"
    repros = (s.confirmation.repro for s in settled if s.confirmation.verdict.value == "confirmed")
    for repro in dict.fromkeys(filter(None, repros)):
        yield f"again: {shlex.join(['dcplint', 'confirm', *given, '--repro', repro])}"


def _figure(said: Confirmation) -> str:
    if said.signal is None or said.measured is None:
        return ""
    figures = f"{said.signal.value} {said.measured:.3g}, tolerance {said.tolerance:.3g}"
    return f" ({figures}; control {said.control})"


def _show_runs(pool: Pool, jobs: list[Job]) -> int:
    """Run probes without a finding to settle; 1 if any fails."""
    bad = False
    for _, run in pool.run(jobs):
        worst = run.worst
        bad |= worst is not None
        said = "; ".join(run.notes) or (worst.detail if worst else "right")
        if worst is None and run.remark is not None:
            said += f"; {run.remark.signal.value}: {run.remark.detail}"
        name = f"{worst.signal.value}: " if worst else ""
        output.print_lines([printable(f"{run.probe:18}  {run.execution.value:12}  {name}{said}")])
    return int(bad)
