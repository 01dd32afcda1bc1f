"""Text from checked files, made safe to print."""

from __future__ import annotations

import unicodedata

_TAB = " " * 4


def printable(text: str) -> str:
    """The text with whatever could steer a terminal, or mislead its reader, spelt out.

    That is controls, line ends, bidirectional and invisible marks, unassigned and private
    characters, and the surrogates that stand for undecodable bytes in paths.
    """
    return text if text.isprintable() else "".join(map(_spelt, text))


def cells_of(text: str) -> list[str]:
    """What to print for each character of a source line, tabs included."""
    return [_TAB if char == "\t" else _spelt(char) for char in text]


def width_of(text: str) -> int:
    """Terminal columns that printable text takes up."""
    return len(text) if text.isascii() else sum(map(_width, text))


def _spelt(char: str) -> str:
    if char.isprintable() or unicodedata.category(char) == "Zs":
        return char
    return char.encode("unicode_escape").decode()


def _width(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
