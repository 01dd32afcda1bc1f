"""`dcplint check`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from dcplint import cache, disk, progress
from dcplint.cli import options, output, streams
from dcplint.errors import UserError
from dcplint.findings.model import Severity
from dcplint.report.formats import FORMATS
from dcplint.source.skim import ask

if TYPE_CHECKING:
    from dcplint.config import Config
    from dcplint.fixes.passes import Fixed
    from dcplint.report.model import Report
    from dcplint.run_options import RunOptions, Stdin

_STDIN = Path("-")
_JOBS = 2  # the rules that take longest hang together: a third process would wait for them


@click.command("check")
@options.paths
@options.select
@click.option(
    "--extend-select", multiple=True, callback=options.words, metavar="RULES", help="Add rules."
)
@click.option(
    "--ignore", multiple=True, callback=options.words, metavar="RULES", help="Leave out rules."
)
@click.option(
    "--output-format",
    type=click.Choice(list(FORMATS)),
    help="Default: text; github in GitHub Actions.",
)
@click.option("--output-file", type=click.Path(path_type=Path), metavar="FILE")
@click.option(
    "--engine",
    metavar="NAME==RELEASE|auto",
    help="The engine release to check against. Default: found by itself.",
)
@options.engine_path
@options.packs
@click.option(
    "--force-exclude",
    is_flag=True,
    help="Leave out what the configuration excludes, even where PATHS name it.",
)
@click.option(
    "--min-severity",
    type=click.Choice([severity.value for severity in Severity]),
    help="Leave out what is milder.",
)
@click.option(
    "--baseline",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Report only what this file, by `dcplint baseline`, does not accept.",
)
@click.option("--fix", "fix", is_flag=True, help="Make the safe fixes, report what is left.")
@click.option("--unsafe-fixes", is_flag=True, help="Make those too that want a look.")
@click.option("--diff", is_flag=True, help="Show what --fix would change, and change nothing.")
@click.option(
    "--add-ignore",
    metavar="REASON",
    help="Put a suppression comment with this reason above what is found, report what is left.",
)
@click.option("--statistics", is_flag=True, help="Counts by rule in place of the findings.")
@click.option("--exit-zero", is_flag=True, help="Exit 0 even with findings.")
@options.color
@click.option(
    "--stdin-filename",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The file that standard input stands for, with `-` as the path.",
)
@click.option("--watch", is_flag=True, help="Check again whenever a file of the project changes.")
@click.option("-q", "--quiet", is_flag=True, help="Findings only: no notices, no summary.")
@click.option("--no-cache", is_flag=True, help="Neither ask nor keep what runs have shown.")
@options.cache_dir
@click.option(
    "-j",
    "--jobs",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Processes that may work at a time. Default: as many as pay, two at most.",
)
@options.verbose
@click.pass_obj
def command(
    args: tuple[str, ...] | None,
    paths: tuple[Path, ...],
    select: tuple[str, ...],
    extend_select: tuple[str, ...],
    ignore: tuple[str, ...],
    output_format: str | None,
    output_file: Path | None,
    engine: str | None,
    engine_path: Path | None,
    packs: tuple[Path, ...],
    force_exclude: bool,
    min_severity: str | None,
    baseline: Path | None,
    fix: bool,
    unsafe_fixes: bool,
    diff: bool,
    add_ignore: str | None,
    statistics: bool,
    exit_zero: bool,
    color: str,
    stdin_filename: Path | None,
    watch: bool,
    quiet: bool,
    no_cache: bool,
    cache_dir: Path | None,
    jobs: int,
    verbose: bool,
) -> int:
    """Lint PATHS, by default the working directory.

    All of the project that they lie in is read. Shown is what is found in PATHS, and what is found
    elsewhere with a part of its evidence in them.

    Exits 0 if nothing graver than a note was found, 1 if something was, 2 if something is wrong
    with the call, the configuration or dcplint itself. `--diff` exits 1 if it shows anything.
    """
    # Imported here: `--help` needs none of it.
    from dcplint.checks.base import all_rules
    from dcplint.config import Config, find_config, policy
    from dcplint.contracts.spec import parse_engine
    from dcplint.findings.catalogue import Catalogue, UnknownRule
    from dcplint.report.escape import printable
    from dcplint.report.formats import WITH_EDITS
    from dcplint.report.summary import statistics as counts
    from dcplint.run import run_checks
    from dcplint.run_options import RunOptions
    from dcplint.source.discovery import is_excluded

    if watch and _STDIN in paths:
        raise UserError("--watch is for files, not for standard input")
    if statistics and output_format not in (None, "text"):
        raise UserError(f"--statistics is text and cannot be {output_format}")
    stdin = _stdin(paths, stdin_filename)
    if stdin and (fix or diff or add_ignore is not None):
        raise UserError("--fix, --diff and --add-ignore are for files, not for standard input")
    if add_ignore is not None and (fix or unsafe_fixes):
        raise UserError("--fix and --add-ignore are for one run each: fix first")
    if unsafe_fixes and not (fix or diff):
        raise UserError("--unsafe-fixes goes with --fix or --diff")
    paths = (stdin.path,) if stdin else paths or (Path(),)
    catalogue = Catalogue(registered.rule for registered in all_rules())
    chosen = partial(
        policy,
        catalogue=catalogue,
        select=select or None,
        extend_select=extend_select,
        ignore=ignore,
        min_severity=Severity(min_severity) if min_severity else None,
    )
    try:
        named = parse_engine(engine) if engine else None
        chosen(Config())  # here, since no edit of a file puts a command line right
    except (UnknownRule, ValueError) as error:
        raise UserError(str(error)) from error
    if watch:
        _watch(paths, packs, baseline)
    edits = fix or diff or add_ignore is not None
    # What is said to a file, about an editor's text, about time or fixes is worked out anew.
    keeps = args is not None and not (no_cache or stdin or output_file or verbose or edits)
    with disk.remembering(keeps) as seen:
        config = find_config(paths, catalogue)
        if force_exclude and config.path:
            folder = config.path.parent
            paths = tuple(path for path in paths if not is_excluded(folder, config.exclude, path))
            if not paths:
                return 0
        directory = str(cache_dir or config.cache_dir or cache.default_directory() or "")
        if keeps and config.cache_dir and not cache_dir:
            # Nobody could look there before the configuration was read.
            kept = cache.load(directory, cache.key(args or ()), ask)
            if kept is not None:
                return streams.show(kept)
        to_file = output_file is not None
        style = output_format or config.output_format or _default_format(os.environ, to_file)
        run_options = RunOptions(
            paths=paths,
            policy=chosen(config),
            config_path=config.path,
            exclude=config.exclude,
            engine=named if engine else config.engine,
            engine_path=engine_path or config.engine_path,
            packs=(*config.packs, *packs),
            stdin=stdin,
            baseline=baseline or config.baseline,
            jobs=jobs or _JOBS,
            edits=style in WITH_EDITS,
        )
        fixed = None
        if edits:
            fixed = _fixed(run_options, unsafe_fixes, add_ignore, diff, quiet)
        if fixed is not None and diff:
            changes = output.joined(fixed.diff(output.from_here))
            streams.write(changes)
            return int(bool(changes))
        with progress.shown(not quiet):
            report = run_checks(run_options)
        view = output.view_for(color, os.environ, to_file=to_file, summary=not quiet)
        lines = counts(report, view) if statistics else FORMATS[style](report, view)
        said = output.joined(lines)
    asides = output.joined(map(printable, _asides(report, config, quiet, verbose)))
    if style == "github":
        keeps = not output.add_job_summary(report, os.environ) and keeps
    status = 2 if report.errors else int(report.failed and not exit_zero)
    if output_file:
        output.write_text(output_file, said)
        said = ""
    shown = cache.Kept(said, asides, status)
    if keeps and directory and not report.errors:
        cache.store(directory, cache.key(args or ()), shown, seen)
    return streams.show(shown)


def _watch(paths: tuple[Path, ...], packs: tuple[Path, ...], baseline: Path | None) -> NoReturn:
    from dcplint.checks.base import all_rules
    from dcplint.cli.watch import State, state_of, watch
    from dcplint.config import Config, find_config
    from dcplint.findings.catalogue import Catalogue

    context = click.get_current_context()
    once = {**context.params, "watch": False, "no_cache": True}

    def look() -> State:
        try:
            config = find_config(paths, Catalogue(r.rule for r in all_rules()))
        except UserError:
            config = Config()
        return state_of(paths, (*packs, baseline, *config.packs, config.baseline))

    watch(lambda: context.invoke(command, **once), look)


def _fixed(
    run_options: RunOptions, unsafe: bool, reason: str | None, diff: bool, quiet: bool
) -> Fixed:
    """The fixes of a run, or with a reason its suppressions, written unless the diff is wanted."""
    from dcplint.fixes.ignore import add_ignores, check_reason
    from dcplint.fixes.passes import below, fix
    from dcplint.report.escape import printable
    from dcplint.run import run_checks

    may_edit = below(run_options.paths)
    if reason is not None:
        check_reason(reason)
        fixed = add_ignores(run_checks(run_options), may_edit, reason)
    else:
        fixed = fix(
            lambda contents: run_checks(replace(run_options, edits=True, replaced=contents)),
            may_edit,
            unsafe=unsafe,
        )
    if not diff:
        fixed.write()
    said = (
        [] if quiet else [output.fix_summary(fixed, "fix" if reason is None else "suppress", diff)]
    )
    for line in (*fixed.problems, *said):
        click.echo(printable(line), err=True)
    return fixed


def _stdin(paths: Sequence[Path], filename: Path | None) -> Stdin | None:
    if _STDIN not in paths:
        if filename:
            raise UserError("--stdin-filename goes with `-` as the only path")
        return None
    if len(paths) > 1 or not filename:
        raise UserError("`-` is the only path there can be, and --stdin-filename says what it is")
    from dcplint.run_options import Stdin

    return Stdin(filename, sys.stdin.buffer.read())


def _default_format(environ: Mapping[str, str], to_file: bool) -> str:
    # Actions reads commands from the log, not from files.
    return "github" if environ.get("GITHUB_ACTIONS") == "true" and not to_file else "text"


def _asides(report: Report, config: Config, quiet: bool, verbose: bool) -> Iterator[str]:
    yield from output.problems(report, verbose)
    if not quiet:
        yield from (f"note: {notice}" for notice in report.notices)
    if verbose:
        yield f"configuration: {config.path or 'none'}"
        yield f"time: {report.seconds:.2f} s"
