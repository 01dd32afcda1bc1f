"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path

import click

from dcplint.errors import UserError


def words(_: click.Context, option: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    """Repeated and comma-separated values as one. Raises UserError where they are all empty."""
    found = tuple(word for part in value for item in part.split(",") if (word := item.strip()))
    if value and not found:
        raise UserError(f"{option.opts[0]} is given no rule; `dcplint rule` lists them")
    return found


paths = click.argument("paths", nargs=-1, type=click.Path(path_type=Path))

select = click.option(
    "--select",
    multiple=True,
    callback=words,
    metavar="RULES",
    help="Codes, prefixes (DCP1) or names, in place of the configured choice.",
)

engine_path = click.option(
    "--engine-path",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where the engine's source lies: an unpacked release or a checkout.",
)

packs = click.option(
    "--pack",
    "packs",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A contract pack of your own; may be repeated.",
)

color = click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto")

cache_dir = click.option(
    "--cache-dir",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where runs are kept. Default: a folder in your cache, or $DCPLINT_CACHE_DIR.",
)

# Read by `commands.run` when something goes wrong, so it has to be an option of every command.
verbose = click.option("-v", "--verbose", is_flag=True, help="Say more, tracebacks included.")
