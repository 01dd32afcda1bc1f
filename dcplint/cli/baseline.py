"""`dcplint baseline`."""

from __future__ import annotations

from pathlib import Path

import click

from dcplint.cli import options, output
from dcplint.cli.lint import lint
from dcplint.errors import UserError

_DEFAULT = "dcplint-baseline.jsonl"


@click.command("baseline")
@options.paths
@click.option(
    "--baseline",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help=f"The file to write. Default: the configured one, else {_DEFAULT}.",
)
@click.option("--engine", metavar="NAME==RELEASE|auto", help="As for `dcplint check`.")
@options.engine_path
@options.packs
@options.verbose
def command(
    paths: tuple[Path, ...],
    baseline: Path | None,
    engine: str | None,
    engine_path: Path | None,
    packs: tuple[Path, ...],
    verbose: bool,
) -> int:
    """Accept the findings on PATHS as they are, so that `dcplint check` reports only new ones.

    What the file accepted before stays accepted, but for entries whose finding is gone.
    """
    from dcplint.checks.base import all_rules
    from dcplint.config import find_config
    from dcplint.findings.baseline import entry_of, read_entries, written
    from dcplint.findings.catalogue import Catalogue
    from dcplint.findings.suppress import UNSUPPRESSIBLE

    catalogue = Catalogue(registered.rule for registered in all_rules())
    configured = find_config(paths or (Path(),), catalogue).baseline
    file = baseline or configured or Path(_DEFAULT)
    report = lint(paths, engine, engine_path, packs, file if file.exists() else None)
    if report.errors:
        raise UserError("; ".join(report.errors))
    before = read_entries(file.read_text("utf-8"), str(file)) if file.exists() else ()
    kept = {entry.fingerprint for entry in report.known}
    dropped = {e.fingerprint: e for e in before if e.fingerprint not in kept}
    new = [entry_of(finding) for finding in report.findings if finding.code not in UNSUPPRESSIBLE]
    output.write_text(file, output.joined(written((*report.known, *new))))
    gone = f", {len(dropped)} dropped" if dropped else ""
    click.echo(f"{file}: {len(new)} new, {len(report.known)} known before{gone}", err=True)
    for entry in dropped.values():
        click.echo(f"dropped, because the finding is gone: {entry}", err=True)
    if configured is None or file.resolve() != configured.resolve():
        click.echo(f'note: `baseline = "{file}"` in the configuration has it used', err=True)
    return 0
