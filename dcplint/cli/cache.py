"""`dcplint cache`."""

from __future__ import annotations

from pathlib import Path

import click

from dcplint import cache
from dcplint.cli import options
from dcplint.errors import UserError


@click.group("cache")
def command() -> None:
    """Remove what earlier runs have kept."""


@command.command()
@options.cache_dir
def clean(cache_dir: Path | None) -> None:
    """Remove all kept runs.

    They lie in a folder of your own cache, unless --cache-dir or DCPLINT_CACHE_DIR names another.
    """
    directory = str(cache_dir or cache.default_directory() or "")
    if not directory:
        raise UserError("there is no cache folder without a home; name one with --cache-dir")
    try:
        count = cache.clean(directory)
    except OSError as error:
        raise UserError(f"{directory}: {error.strerror}") from error
    click.echo(f"removed {count} kept run{'' if count == 1 else 's'} from {directory}")
