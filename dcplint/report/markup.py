"""Markdown: tables, and text in them that is nothing but text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from dcplint.report.escape import printable

_CODE = re.compile(r"`[^`]*`")
# What Markdown, and the HTML in it, would take for more than text. Within a word `_` is text.
_MARKUP = re.compile(r"[\\`*{}\[\]<>#|~&$]|(?<![^\W_])_|_(?![^\W_])")


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """The lines of a table. Cells are Markdown: `prose` and `code` make it of text."""
    yield _line(header)
    yield "|" + "---|" * len(header)
    yield from map(_line, rows)


def _line(cells: Sequence[str]) -> str:
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"


def prose(text: str) -> str:
    """The text with its code spans, and nothing else in it, set as markup."""
    shown, position = "", 0
    text = printable(text)
    for span in _CODE.finditer(text):
        shown += _MARKUP.sub(r"\\\g<0>", text[position : span.start()]) + code(span.group()[1:-1])
        position = span.end()
    return shown + _MARKUP.sub(r"\\\g<0>", text[position:])


def code(text: str) -> str:
    """A code span in a table's cell: nothing in it is markup but the bar."""
    text = printable(text).replace("|", "\\|")
    ticks = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    edge = " " if text.startswith("`") or text.endswith("`") or text != text.strip() else ""
    return f"{ticks}{edge}{text}{edge}{ticks}"
