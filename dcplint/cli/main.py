"""The `dcplint` command: answers from the cache, before anything is imported, where it can."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from dcplint import disk


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit; see `commands.run` for the status.

    args: left out where the process is the command's own, and ends with it.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # whoever started the process had closed it
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
    given = sys.argv[1:] if args is None else args
    ends = args is None and given[:1] == ["check"] and "--watch" not in given
    if ends:
        gc.disable()  # what a run builds lives until the process ends
    status = _kept(given) if given[:1] == ["check"] else None
    if status is None:
        from dcplint.cli.commands import run

        status = run(given)
    if ends:
        _end(status)
    sys.exit(status)


def _end(status: int) -> NoReturn:
    """End the process without taking apart, object by object, what a large run has built."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # closed, or nobody reads it
            stream.flush()
    os._exit(status)


def _kept(args: Sequence[str]) -> int | None:
    """Show what the same run showed before, if all is as it was; None where it is not."""
    from dcplint import cache

    directory = cache.asked_directory(args)
    try:
        kept = cache.load(directory, cache.key(args), _ask) if directory else None
    except OSError:  # there is no working directory any more: the run itself says so
        return None
    if kept is None:
        return None
    from dcplint.cli.streams import show
    from dcplint.errors import UserError

    try:
        return show(kept)
    except UserError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2


def _ask(question: disk.Question, data: bytes) -> str | None:
    from dcplint.source.skim import ask

    return ask(question, data)
