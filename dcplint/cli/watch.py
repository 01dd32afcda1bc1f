"""`dcplint check --watch`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NoReturn

import click

from dcplint.errors import UserError
from dcplint.source.discovery import discover
from dcplint.source.roots import find_roots

_PAUSE = 0.3  # seconds; also how long files must have been left alone
_SHARE = 10  # looking takes no more than this part of the time

State = frozenset[tuple[str, int, int]]


def watch(
    once: Callable[[], object],
    look: Callable[[], State],
    sleep: Callable[[float], None] = time.sleep,
) -> NoReturn:
    """Run `once` now and after every change of what `look` sees, until interrupted."""
    while True:
        seen = look()
        if sys.stdout.isatty():
            click.clear()
        try:
            once()
        except UserError as error:  # half of an edit, say of the configuration: the next helps
            click.echo(f"error: {error}", err=True)
        click.echo("watching for changes; Ctrl-C ends", err=True)
        _wait(seen, look, sleep)


def _wait(seen: State, look: Callable[[], State], sleep: Callable[[float], None]) -> None:
    latest = seen
    while True:
        started = time.perf_counter()
        now = look()
        if now == latest != seen:
            return  # changed, and at rest
        latest = now
        sleep(max(_PAUSE, _SHARE * (time.perf_counter() - started)))


def state_of(paths: tuple[Path, ...], others: Iterable[Path | None]) -> State:
    """What a check of `paths` may depend on, as of now: their projects, settings, other files."""
    return frozenset(_stamps((*_files(paths), *_settings(paths), *filter(None, others))))


def _files(paths: tuple[Path, ...]) -> Iterator[Path]:
    try:
        for root in find_roots(paths):
            yield from root.focus
            yield from (
                root.directory / name for name in discover(root.directory, only=root.only).files
            )
    except UserError:
        return  # what was to be watched is gone; it may come back


def _settings(paths: tuple[Path, ...]) -> Iterator[Path]:
    """The configuration files that are in force, or would be if they were there."""
    folders = {folder for path in paths for folder in (path.absolute(), *path.absolute().parents)}
    for folder in folders:
        yield folder / "dcplint.toml"
        yield folder / "pyproject.toml"


def _stamps(files: Iterable[Path]) -> Iterator[tuple[str, int, int]]:
    for file in files:
        try:
            found = file.stat()
        except OSError:
            continue
        # Not the time of the last change alone, which who restores a file may restore as well.
        yield str(file), max(found.st_mtime_ns, found.st_ctime_ns), found.st_size
