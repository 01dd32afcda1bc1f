"""What a run is at, on one line of a terminal, for whoever waits longer than a second."""

from __future__ import annotations

import mmap
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

_PATIENCE = 1.0  # seconds without a word
_WIPE = "\r\x1b[K"

_since: float | None = None  # when a run began that is shown; None while none is


@contextmanager
def shown(wanted: bool = True) -> Iterator[None]:
    """Show what the run inside is at, where stderr is a terminal, and wipe it in the end."""
    global _since
    if not wanted or _since is not None or not sys.stderr.isatty():
        yield
        return
    _since = time.monotonic()
    try:
        yield
    finally:
        if time.monotonic() - _since >= _PATIENCE:
            _write(_WIPE)
        _since = None


def at(what: str) -> None:
    """Say that a run has come to `what`."""
    if _since is not None and time.monotonic() - _since >= _PATIENCE:
        _write(f"{_WIPE}dcplint: {what}"[: len(_WIPE) + shutil.get_terminal_size().columns - 1])


class Steps:
    """The steps of a run, of which it is said how many have begun, in whatever process."""

    def __init__(self, total: int) -> None:
        # One byte a step; children that begin as copies of this process share them.
        self._begun = mmap.mmap(-1, total) if _since is not None and total else None
        self._named = 0

    def of(self, names: Sequence[str]) -> Callable[[str, str], None]:
        """For the next of the steps, by name: say that one has begun, and what it is."""
        numbers = {name: self._named + i for i, name in enumerate(names)}
        self._named += len(names)
        return lambda name, what: self._begin(numbers[name], what)

    def _begin(self, number: int, what: str) -> None:
        if self._begun is not None:
            self._begun[number] = 1
            at(f"{self._begun[:].count(1)} of {len(self._begun)}: {what}")


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
