"""Where a file's comments are, and which statement each belongs to.

A scan for strings, brackets and line ends is all this needs. Unlike `tokenize` it goes on after
whatever the running Python cannot read: a syntax error, a syntax newer than itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    r'''
      (?P<string> """ (?: [^"\\]+ | \\. | "(?!"") )* (?: """ | \Z )
                | \'\'\' (?: [^'\\]+ | \\. | '(?!\'\') )* (?: \'\'\' | \Z )
                | " (?: [^"\\\n]+ | \\. )* "?
                | ' (?: [^'\\\n]+ | \\. )* '? )
    | (?P<comment> \#[^\n]* )
    | (?P<open> [(\[{] )
    | (?P<close> [)\]}] )
    | (?P<joined> \\\n )
    | (?P<newline> \n )
    | (?P<code> [^\s"'\#()\[\]{}\\] [^\n"'\#()\[\]{}\\]* | \\ )
    ''',
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment, and the lines of the statement it belongs to.

    That is the statement it stands in or behind, else the next one. A statement's lines begin
    with its first decorator; those of a compound statement end with its header. A comment that
    nothing follows has its own line.
    """

    text: str
    line: int
    column: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Statement:
    """The lines of a statement, from its first decorator; of a compound one those of its header."""

    first: int
    last: int


def comments(source: str) -> Iterator[Comment]:
    """The comments of a file, in order."""
    return (part for part in _parts(source) if isinstance(part, Comment))


def statements(source: str) -> Iterator[Statement]:
    """The statements of a file, in order. Several in one line are one."""
    return (part for part in _parts(source) if isinstance(part, Statement))


def _parts(source: str) -> Iterator[Comment | Statement]:
    source = source.replace("\r\n", "\n").replace("\r", "\n")
    waiting: list[tuple[str, int, int]] = []
    line, line_start, depth = 1, 0, 0
    first = 0  # line on which the current statement began, decorators included
    decorating = begun = False  # of the current logical line
    for match in _TOKEN.finditer(source):
        kind, text = match.lastgroup, match.group()
        if kind == "comment":
            waiting.append((text, line, match.start() - line_start + 1))
            continue
        if kind == "newline" and begun and not depth:
            begun = False
            if not decorating:
                yield from (Comment(*comment, first, line) for comment in waiting)
                waiting.clear()
                yield Statement(first, line)
                first = 0
        elif kind not in ("newline", "joined") and not begun:
            begun, decorating = True, text.startswith("@")
            first = first or line
        if kind == "open":
            depth += 1
        elif kind == "close":
            depth = max(depth - 1, 0)
        if "\n" in text:
            line += text.count("\n")
            line_start = match.start() + text.rindex("\n") + 1
    for text, own, column in waiting:
        yield Comment(text, own, column, first or own, line if first else own)
    if first:
        yield Statement(first, line)
