"""`dcplint capabilities`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from dcplint.cli import options, output

if TYPE_CHECKING:
    from dcplint.run_options import RunOptions

T = TypeVar("T")


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
@click.option(
    "--contract",
    "shows_contract",
    is_flag=True,
    help="Show who fills in the fields that a runner owes under DCP, and who reads them, instead.",
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
    shows_contract: bool,
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
    from dcplint.report import capabilities, contract
    from dcplint.run import capability_matrices, contract_tables
    from dcplint.run_options import RunOptions

    paths = paths or (Path(),)
    config = find_config(paths, Catalogue(r.rule for r in all_rules()))
    try:
        wanted = [parse_engine(engine) for engine in engines] or [config.engine]
    except ValueError as error:
        raise UserError(str(error)) from error
    runs = [
        RunOptions(
            paths=paths,
            policy=Policy(frozenset()),
            config_path=config.path,
            exclude=config.exclude,
            engine=engine,
            engine_path=engine_path or config.engine_path,
            packs=(*config.packs, *packs),
        )
        for engine in wanted
    ]
    view = output.view_for(color, os.environ, to_file=output_file is not None, summary=True)
    if shows_contract:
        lines = contract.FORMATS[output_format](_gathered(contract_tables, runs), view)
    else:
        lines = capabilities.FORMATS[output_format](_gathered(capability_matrices, runs), view)
    if output_file is not None:
        output.write_text(output_file, output.joined(lines))
    else:
        output.print_lines(lines)
    return 0


def _gathered(
    run: Callable[[RunOptions], tuple[list[T], tuple[str, ...]]], runs: Sequence[RunOptions]
) -> list[T]:
    """What all runs show. Says their notices, and raises UserError where there is nothing."""
    from dcplint.errors import UserError

    found: list[T] = []
    notices: list[str] = []
    for options_ in runs:
        shown, told = run(options_)
        found += shown
        notices += told
    for line in dict.fromkeys(notices):
        click.echo(line, err=True)
    if not found:
        raise UserError(
            f"nothing in {', '.join(map(str, runs[0].paths))} belongs to, or builds on, an engine "
            "that a pack describes; `dcplint packs` lists them"
        )
    return found
