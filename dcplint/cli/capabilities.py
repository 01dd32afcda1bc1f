"""`dcplint capabilities`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from dcplint.cli import options, output


@click.command("capabilities")
@options.paths
@click.option("--output-format", type=click.Choice(["text", "markdown", "json"]), default="text")
@click.option("--output-file", type=click.Path(path_type=Path), metavar="FILE")
@click.option(
    "--engine",
    "engines",
    multiple=True,
    metavar="NAME==RELEASE",
    help="Judge against this release; may be repeated to compare releases.",
)
@options.engine_path
@options.packs
@options.color
@options.verbose
def command(
    paths: tuple[Path, ...],
    output_format: str,
    output_file: Path | None,
    engines: tuple[str, ...],
    engine_path: Path | None,
    packs: tuple[Path, ...],
    color: str,
    verbose: bool,
) -> int:
    """Show which attention classes of PATHS promise what, and where each promise is made."""
    from dcplint.checks.base import all_rules
    from dcplint.config import find_config
    from dcplint.contracts.spec import parse_engine
    from dcplint.errors import UserError
    from dcplint.findings.catalogue import Catalogue
    from dcplint.findings.policy import Policy
    from dcplint.report.capabilities import FORMATS, Matrix
    from dcplint.run import capability_matrices
    from dcplint.run_options import RunOptions

    paths = paths or (Path(),)
    config = find_config(paths, Catalogue(r.rule for r in all_rules()))
    try:
        wanted = [parse_engine(engine) for engine in engines] or [config.engine]
    except ValueError as error:
        raise UserError(str(error)) from error
    matrices: list[Matrix] = []
    notices: list[str] = []
    for engine in wanted:
        found, told = capability_matrices(
            RunOptions(
                paths=paths,
                policy=Policy(frozenset()),
                config_path=config.path,
                exclude=config.exclude,
                engine=engine,
                engine_path=engine_path or config.engine_path,
                packs=(*config.packs, *packs),
            )
        )
        matrices += found
        notices += told
    for line in dict.fromkeys(notices):
        click.echo(line, err=True)
    if not matrices:
        raise UserError(
            f"nothing in {', '.join(map(str, paths))} belongs to, or builds on, an engine that a "
            "pack describes; `dcplint packs` lists them"
        )
    view = output.view_for(color, os.environ, to_file=output_file is not None, summary=True)
    lines = FORMATS[output_format](matrices, view)
    if output_file is not None:
        output.write_text(output_file, output.joined(lines))
    else:
        output.print_lines(lines)
    return 0
