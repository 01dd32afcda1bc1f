"""A piece of source with its span underlined."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from dcplint.findings.model import Location
from dcplint.report.escape import cells_of, width_of

_CUT = "..."
_MOST_ROWS = 6
_HEAD, _TAIL = 3, 2  # rows kept of a longer span


class Row(NamedTuple):
    """One row of a frame: a source line with its number, or an underline or gap with None."""

    number: int | None
    text: str


def frame(lines: Sequence[str], span: Location, *, mark: str, room: int) -> Iterator[Row]:
    """The span's lines, each underlined with `mark`; nothing where the file has no such line.

    room: terminal columns for a row; what does not fit is cut around the span.
    """
    rows = lines[span.line - 1 : span.end_line]
    if len(rows) > 1:
        yield from _several(rows, span, mark, room)
    elif rows:
        end = span.end_column - 1 if span.end_line == span.line else len(rows[0])
        text, before, marked = _fit(rows[0], span.column - 1, end, room)
        yield Row(span.line, text)
        yield Row(None, " " * before + mark * marked)


def _several(rows: Sequence[str], span: Location, mark: str, room: int) -> Iterator[Row]:
    """A bracket along the left edge, which leads to the first and behind the last character."""
    room -= 2
    lead = rows[0][: span.column - 1]
    if lead.strip():
        text, before, _ = _fit(rows[0], span.column - 1, span.column, room)
        yield Row(span.line, "  " + text)
        yield Row(None, " " + "_" * (1 + before) + mark)
    else:
        yield Row(span.line, "/ " + _fit(rows[0], 0, 1, room)[0])
    for index, row in enumerate(rows[1:-1], 1):
        if len(rows) <= _MOST_ROWS or index < _HEAD or index >= len(rows) - _TAIL:
            yield Row(span.line + index, "| " + _fit(row, 0, 1, room)[0])
        elif index == _HEAD:
            yield Row(None, "| " + _CUT)
    text, before, _ = _fit(rows[-1], max(span.end_column - 2, 0), span.end_column - 1, room)
    yield Row(span.line + len(rows) - 1, "| " + text)
    yield Row(None, "|" + "_" * (1 + before) + mark)


def _fit(line: str, start: int, end: int, room: int) -> tuple[str, int, int]:
    """The line cut to `room` around [start, end): its text, columns before the span, columns in it.

    An empty span, and one behind the end of the line, is one column wide.
    """
    cells = cells_of(line)
    edges = [0, *accumulate(map(width_of, cells))]
    start, end = min(start, len(cells)), min(end, len(cells))
    first, last = 0, len(cells)
    if edges[-1] > room:
        # The whole span if it fits, else its beginning.
        first = min(bisect_left(edges, edges[end] - room + 2 * len(_CUT)), start)
        budget = edges[first] + room - (len(_CUT) if first else 0)
        if edges[-1] > budget:
            last = max(bisect_right(edges, budget - len(_CUT)) - 1, first)
    left, right = _CUT if first else "", _CUT if last < len(cells) else ""
    before = len(left) + edges[start] - edges[first]
    marked = edges[min(end, last)] - edges[start]
    return left + "".join(cells[first:last]) + right, before, max(marked, 1)
