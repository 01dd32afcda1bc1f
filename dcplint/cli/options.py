"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path

import click

paths = click.argument("paths", nargs=-1, type=click.Path(path_type=Path))

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

# Read by `main` when something goes wrong, so it has to be an option of every command.
verbose = click.option("-v", "--verbose", is_flag=True, help="Say more, tracebacks included.")
