"""The outline of a module: its text with the bodies of functions blanked.

Linking needs imports, class headers, class attributes and signatures; these are a tenth of a
module, and parsing costs by the byte. An outline keeps every line number and every column of what
it keeps, so the tree parsed from it stands for the real one. Bodies come later, by `body_text`,
for the functions a rule asks about.

Strings and comments are masked by a small lexer first. Where the masking or the indentation
misleads it (continuation lines left of their block, say), the outline is not valid Python, and
`parse.parse_outline` parses the whole text instead.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

_OPAQUE = re.compile(
    r"#[^\n]*"
    r'|"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""'
    r"|'''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'''"
    r'|"[^"\\\n]*(?:\\.[^"\\\n]*)*"'
    r"|'[^'\\\n]*(?:\\.[^'\\\n]*)*'",
    re.DOTALL,
)
# They start with a literal, which makes them fast; what stands before is looked at afterwards.
_DEF = re.compile(r"def[ \t]+\w+")
_CLASS = re.compile(r"class[ \t\\]")
_STRUCTURE = re.compile(r"[()\[\]{}:]")
_OPENING = "([{"
_START, _END = "\x02", "\x01"  # characters that no source has outside strings


@dataclass(frozen=True, slots=True)
class Outline:
    """text: the outlined source. ends: last line of each blanked function, by its `def` line."""

    text: str
    ends: dict[int, int]


def outline(text: str, wanted: Iterable[int]) -> Outline:
    """Blank the body of every function in `text` that nobody asks about.

    Kept are functions around one of the offsets `wanted`, and functions that define classes.
    Inside a function that is kept, inner functions are judged on their own.
    """
    masked = mask(text)
    classes = (match for match in _CLASS.finditer(masked) if not _before(masked, match).strip())
    stay = sorted((*wanted, *(match.end() for match in classes)))
    pieces: list[str] = []
    ends: dict[int, int] = {}
    done = position = 0
    line, counted = 1, 0
    while match := _DEF.search(masked, position):
        position = match.end()
        leading = _before(masked, match)
        if leading.strip() not in ("", "async"):
            continue
        start = match.start() - len(leading)
        colon = _body_colon(masked, match.end())
        if colon is None or _is_one_line(masked, colon) or _continues(masked, start - 1):
            continue
        end = _block_end(masked, colon, len(leading) - len(leading.lstrip()))
        index = bisect_left(stay, start)
        if index < len(stay) and stay[index] < end:
            continue
        line += masked.count("\n", counted, start)
        counted = start
        ends[line] = line + masked.count("\n", start, _last_content(masked, colon, end))
        pieces += (text[done : colon + 1], " ...", "\n" * masked.count("\n", colon, end))
        done = position = end
    pieces.append(text[done:])
    return Outline("".join(pieces), ends)


def _before(masked: str, match: re.Match[str]) -> str:
    """What stands before a match on its line."""
    return masked[masked.rfind("\n", 0, match.start()) + 1 : match.start()]


def mask(text: str) -> str:
    """`text` with strings and comments blanked, line structure and offsets kept.

    Of a string the first and the last character stay visible, as `_START` and `_END`.
    """
    return _OPAQUE.sub(_blank, text)


def _blank(match: re.Match[str]) -> str:
    content = match.group()
    if content[0] == "#":
        return " " * len(content)
    inside = content[1:-1]
    if "\n" not in inside:
        return f"{_START}{' ' * len(inside)}{_END}"
    blank = "\n".join(" " * len(line) for line in inside.split("\n"))
    return f"{_START}{blank}{_END}"


def _body_colon(masked: str, position: int) -> int | None:
    """Offset of the colon that ends the signature starting before `position`."""
    depth = 0
    for match in _STRUCTURE.finditer(masked, position):
        token = match.group()
        if token == ":":
            if depth == 0:
                return match.start()
        elif token in _OPENING:
            depth += 1
        else:
            depth -= 1
            if depth < 0:
                return None
    return None


def _is_one_line(masked: str, colon: int) -> bool:
    end = masked.find("\n", colon)
    return bool(masked[colon + 1 : end if end >= 0 else len(masked)].strip())


def _block_end(masked: str, colon: int, indent: int) -> int:
    """Offset of the newline before the first line that is not part of the block."""
    position = colon
    while match := _dedent(indent).search(masked, position):
        if not _continues(masked, match.start()):
            return match.start()
        position = match.end()
    return len(masked)


def _continues(masked: str, newline: int) -> bool:
    """Whether the line after the newline at that offset continues the one before it."""
    return newline > 0 and masked[newline - 1] == "\\"


_DEDENTS: dict[int, re.Pattern[str]] = {}


def _dedent(indent: int) -> re.Pattern[str]:
    """A line at most `indent` deep; a bracket or string that ends there belongs to the block."""
    if indent not in _DEDENTS:
        _DEDENTS[indent] = re.compile(rf"\n[ \t]{{0,{indent}}}[^\s)\]}}\x01]")
    return _DEDENTS[indent]


def _last_content(masked: str, colon: int, end: int) -> int:
    return colon + len(masked[colon:end].rstrip())
