"""Writing to the terminal, a pipe or a file."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from dcplint.cli.streams import write
from dcplint.errors import UserError
from dcplint.report.view import View

_PIPE_WIDTH = 100  # also where the terminal does not know its own
_MOST = 120  # longer lines of prose are hard to read


def view_for(color: str, environ: Mapping[str, str], *, to_file: bool, summary: bool) -> View:
    """How to show a report. color: auto, always or never."""
    plain = to_file or environ.get("NO_COLOR") or environ.get("TERM") == "dumb"
    plain = plain or not sys.stdout.isatty()
    return View(
        color=color == "always" or (color == "auto" and not plain),
        width=min(shutil.get_terminal_size((_PIPE_WIDTH, 24)).columns, _MOST),
        summary=summary,
    )


def joined(lines: Iterable[str]) -> str:
    """Lines as text."""
    return "".join(f"{line}\n" for line in lines)


def print_lines(lines: Iterable[str]) -> None:
    """Write lines to standard output."""
    write(joined(lines))


def write_text(path: Path, text: str) -> None:
    """Write text to a file. Raises UserError where that cannot be done."""
    try:
        with path.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            file.write(text)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from error
