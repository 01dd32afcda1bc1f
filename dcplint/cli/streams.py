"""Standard output, written to so that neither encodings nor pipes get in the way."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING

from dcplint.errors import UserError

if TYPE_CHECKING:
    from dcplint.cache import Kept


def show(kept: Kept) -> int:
    """Say what a run has to say, and return its status."""
    sys.stderr.write(kept.err)
    sys.stderr.flush()
    write(kept.out)
    return kept.status


def write(text: str) -> None:
    """Write to standard output. A reader that has left is no error.

    Raises UserError where it cannot be written, as on a disk that is full.
    """
    out = sys.stdout
    if isinstance(out, io.TextIOWrapper):
        # Paths may hold what the terminal's encoding does not.
        out.reconfigure(errors="backslashreplace")
    try:
        out.write(text)
        out.flush()
    except OSError as error:
        # Python flushes once more as it exits, which must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
        if not isinstance(error, BrokenPipeError):
            raise UserError(f"the output cannot be written: {error.strerror}") from error
