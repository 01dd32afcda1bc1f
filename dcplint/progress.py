"""What a run is at, on one line of a terminal, for whoever waits longer than a second."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
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


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
