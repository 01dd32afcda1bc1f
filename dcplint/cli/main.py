"""The `dcplint` command: answers from the cache, before anything is imported, where it can."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit; see `commands.run` for the status."""
    given = sys.argv[1:] if args is None else args
    status = _kept(given) if given[:1] == ["check"] else None
    if status is None:
        from dcplint.cli.commands import run

        status = run(given)
    sys.exit(status)


def _kept(args: Sequence[str]) -> int | None:
    """Show what the same run showed before, if all is as it was; None where it is not."""
    from dcplint import cache

    directory = cache.asked_directory(args)
    kept = cache.load(directory, cache.key(args)) if directory else None
    if kept is None:
        return None
    from dcplint.cli.streams import show

    return show(kept)
