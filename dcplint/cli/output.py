"""Writing to the terminal, a pipe or a file."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from dcplint.cli.streams import write
from dcplint.errors import UserError
from dcplint.report.view import View

if TYPE_CHECKING:
    from dcplint.fixes.passes import Fixed
    from dcplint.report.model import Report

_PIPE_WIDTH = 100  # also where the terminal does not know its own
_SUMMARY_LIMIT = 2**20  # bytes that GitHub keeps of a step's summary
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


def add_job_summary(report: Report, environ: Mapping[str, str]) -> bool:
    """Add the whole report to the summary of the job; False where GitHub asks for none.

    Raises UserError where that cannot be done.
    """
    path = environ.get("GITHUB_STEP_SUMMARY")
    if not path:
        return False
    from dcplint.report import markdown

    try:
        with Path(path).open("a", encoding="utf-8", errors="backslashreplace") as file:
            lines = markdown.within(markdown.render(report, View()), _SUMMARY_LIMIT - file.tell())
            file.writelines(line + "\n" for line in lines)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from error
    return True


def problems(report: Report, verbose: bool) -> Iterator[str]:
    """What went wrong in a run, each with where in dcplint, if that is asked for."""
    for error, traceback in zip_longest(report.errors, report.tracebacks, fillvalue=""):
        yield f"error: {error}"
        yield from traceback.splitlines() if verbose else ()


def joined(lines: Iterable[str]) -> str:
    """Lines as text."""
    return "".join(f"{line}\n" for line in lines)


def from_here(path: Path) -> str:
    """A path as seen from the working directory, if it lies below it."""
    here = Path.cwd()
    return (path.relative_to(here) if path.is_relative_to(here) else path).as_posix()


def fix_summary(fixed: Fixed, verb: str, diff: bool) -> str:
    """`Would fix 3 findings in 2 files.`, or what was done."""
    findings, files = sum(map(len, fixed.findings.values())), len(fixed.after)
    what = f"{findings} finding{'s' * (findings != 1)} in {files} file{'s' * (files != 1)}"
    if not files:
        return f"Nothing to {verb}."
    return f"Would {verb} {what}." if diff else f"{verb.capitalize()}ed {what}."


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
