"""`dcplint harness`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from dcplint.errors import UserError

if TYPE_CHECKING:
    from dcplint.contracts.spec import EngineSpec


@click.group("harness")
def command() -> None:
    """Fetch engines for `dcplint confirm` to run, where they are not installed."""


@command.command()
@click.argument("release", metavar="NAME==RELEASE")
def prepare(release: str) -> None:
    """Fetch the CPU distribution of a release, into a folder of your own cache.

    `dcplint confirm --engine NAME==RELEASE` then runs it. Nothing is installed.
    """
    from dcplint.harness.prepare import prepare

    with _disk_errors():
        prepare(_named(release), lambda text: click.echo(text, err=True))


@command.command()
@click.argument("release", metavar="NAME==RELEASE")
def remove(release: str) -> None:
    """Remove what `prepare` has fetched."""
    from dcplint.harness.prepare import remove

    with _disk_errors():
        click.echo(f"removed {remove(_named(release))}", err=True)


@contextmanager
def _disk_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(f"{error.filename}: {error.strerror}") from error


def _named(release: str) -> EngineSpec:
    from dcplint.contracts.spec import parse_engine

    try:
        engine = parse_engine(release)
    except ValueError as error:
        raise UserError(str(error)) from error
    if engine is None:
        raise UserError("name the release: something like vllm==0.32.0")
    return engine
