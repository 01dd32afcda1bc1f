"""Ignore files, as git reads them (gitignore(5) and its `wildmatch`).

A pattern is matched against a path itself, never against what lies above it: whoever walks a tree
asks for each directory on the way, and does not enter those that are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_POSIX = {
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "alnum": "a-zA-Z0-9",
    "upper": "A-Z",
    "lower": "a-z",
    "space": r"\s",
    "xdigit": "0-9a-fA-F",
    "punct": r"!-/:-@\[-`{-~",
}
_CLASS_PART = re.compile(r"\[:(\w+):\]|\\(.)|([^\]])", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Pattern:
    """regex: what it matches, whole paths relative to its file, with `/` after a directory."""

    regex: re.Pattern[str]
    negated: bool


@dataclass(frozen=True, slots=True)
class Patterns:
    """The patterns of one file, in order, and one regular expression that any of them matches."""

    patterns: tuple[_Pattern, ...]
    any_of_them: re.Pattern[str]

    @classmethod
    def of(cls, lines: Iterable[str]) -> Patterns:
        """The patterns in the lines of an ignore file."""
        patterns = tuple(pattern for line in lines if (pattern := _parse(line)) is not None)
        together = "|".join(f"(?:{pattern.regex.pattern})" for pattern in patterns) or r"(?!)"
        return cls(patterns, re.compile(together, re.DOTALL))

    def verdict(self, path: str) -> bool | None:
        """True: ignored, False: re-included, None: says nothing. The last pattern decides.

        path: relative to the ignore file's directory; that of a directory ends in `/`.
        """
        if not self.any_of_them.fullmatch(path):
            return None
        for pattern in reversed(self.patterns):
            if pattern.regex.fullmatch(path):
                return not pattern.negated
        return None


def is_pattern(line: str) -> bool:
    """Whether a line can match anything: no comment, and its brackets close."""
    return _parse(line) is not None


def _parse(line: str) -> _Pattern | None:
    """The pattern of one line; None where it is none, or one that git matches with nothing."""
    text = line.rstrip("\r\n")
    while text.endswith(" ") and not text.endswith("\\ "):
        text = text[:-1]
    if not text or text.startswith("#"):
        return None
    negated = text.startswith("!")
    text = text[1:] if negated else text
    directory = text.endswith("/")
    text = text.removesuffix("/")
    if not text:
        return None
    anchored = "/" in text
    regex = _translate(text.removeprefix("/"), anchored)
    if regex is None:
        return None
    above = "" if anchored else "(?:.*/)?"
    try:
        whole = re.compile(f"{above}{regex}{'/' if directory else '/?'}", re.DOTALL)
    except re.error:
        return None  # a range that runs backwards
    return _Pattern(whole, negated)


def _translate(pattern: str, anchored: bool) -> str | None:
    """The regular expression of a pattern; None where its brackets don't close."""
    parts: list[str] = []
    position = 0
    while position < len(pattern):
        char = pattern[position]
        if char == "*":
            stars = len(pattern) - position - len(pattern[position:].lstrip("*"))
            part, used = _stars(pattern, position, stars, anchored)
            parts.append(part)
            position += used
        elif char == "?":
            parts.append("[^/]")
            position += 1
        elif char == "[":
            bracket = _bracket(pattern, position + 1)
            if bracket is None:
                return None
            regex, position = bracket
            parts.append(regex)
        else:
            if char == "\\":
                position += 1
                if position == len(pattern):
                    return None
            parts.append(re.escape(pattern[position]))
            position += 1
    return "".join(parts)


def _stars(pattern: str, position: int, stars: int, anchored: bool) -> tuple[str, int]:
    """(regular expression, characters used) of `*` or `**` at `position`."""
    starts = position == 0 or pattern[position - 1] == "/"
    rest = pattern[position + stars :]
    if anchored and stars > 1 and starts:
        if rest.startswith("/"):
            return "(?:.*/)?", stars + 1
        if not rest:
            return ".+", stars
    # A part of a path is not empty: `pkg/*` says nothing of `pkg/` itself.
    alone = starts and (not rest or rest.startswith("/"))
    return "[^/]+" if alone else "[^/]*", stars


def _bracket(pattern: str, position: int) -> tuple[str, int] | None:
    """(regular expression, offset behind) of the class whose `[` stands before `position`."""
    negated = pattern[position : position + 1] in ("!", "^")
    position += negated
    members: list[str] = []
    first = position
    while position < len(pattern) and (pattern[position] != "]" or position == first):
        match = _CLASS_PART.match(pattern, position)
        if match is None:
            members.append(r"\]")  # `]` in the first place is a member
            position += 1
            continue
        name, escaped, plain = match.groups()
        if name is not None:
            members.append(_POSIX.get(name, ""))
        elif plain == "-" and members and pattern[match.end() : match.end() + 1] not in ("", "]"):
            members.append("-")
        else:
            members.append(re.escape(escaped or plain))
        position = match.end()
    if position >= len(pattern):
        return None
    inside = "".join(members)
    return (f"[^/{inside}]" if negated else f"(?!/)[{inside}]"), position + 1
