"""The byte prefilter: which classes a file defines, on what names, and which names it re-binds.

It over-approximates (text in a docstring counts) and never decides anything: it tells which files
are worth parsing. Every pattern starts with a literal, which makes the difference between 0.1 s
and 0.5 s per pass over a whole engine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_NAME = rb"[\w\x80-\xff]+"
_CLASS = re.compile(rb"class[ \t]+(" + _NAME + rb")[ \t]*")
_AS = re.compile(rb" as[ \t]+(" + _NAME + rb")")
_ASSIGNED = re.compile(rb"\n(" + _NAME + rb")(?:[ \t]*:[^=\n]*)?[ \t]*=([^=\n][^\n]*)")
_NAMES = re.compile(_NAME)
_TRAILING_NAME = re.compile(rb"(" + _NAME + rb")[ \t]*$")
_NO_IMPORT = re.compile(rb"[ \t]*(?:with|except|async|case)\b|[^#]*#")
_CLASS_CALLS = (b"getattr", b"cast", b"type")
_LITERAL_STARTS = b"\"'0123456789[{#-"
_RIGHT_LIMIT = 400  # bytes; a longer right side is not a class
_HEADER_LIMIT = 4000  # bytes; a base list longer than this is not a class header


@dataclass(frozen=True, slots=True)
class Scan:
    """What one file's bytes suggest.

    headers: (class name, names in its base list). aliases: (new name, names it may stand for).
    words: which of the scanner's words occur.
    """

    headers: tuple[tuple[bytes, frozenset[bytes]], ...]
    aliases: tuple[tuple[bytes, frozenset[bytes]], ...]
    words: frozenset[bytes]


@dataclass(frozen=True, slots=True)
class Scanner:
    """Scans files. words: searched for as plain substrings. hands_out: calls that yield classes."""

    words: tuple[bytes, ...]
    hands_out: re.Pattern[bytes]

    @classmethod
    def of(cls, words: Iterable[bytes], accessors: Iterable[bytes]) -> Scanner:
        """A scanner for these words and accessors."""
        calls = b"|".join(sorted(re.escape(name) for name in (*_CLASS_CALLS, *accessors)))
        return cls(tuple(words), re.compile(rb"\b(?:" + calls + rb")\("))

    def scan(self, data: bytes) -> Scan:
        """What one file's bytes suggest."""
        headers = tuple(_headers(data))
        aliases = [(m.group(1), _renamed(data, m.start())) for m in _AS.finditer(data)]
        assigned = (*_ASSIGNED.findall(data), *_local_assignments(data, headers))
        aliases += [(name, _names(right)) for name, right in assigned if self._may_be_class(right)]
        return Scan(headers, tuple(aliases), frozenset(w for w in self.words if w in data))

    def _may_be_class(self, right: bytes) -> bool:
        """Whether the right side of an assignment could name a class.

        It may be a dotted or subscripted name, a choice between such, or a call that hands out a
        class; never a literal or a long formula.
        """
        if right.lstrip()[:1] in _LITERAL_STARTS or len(right) > _RIGHT_LIMIT:
            return False
        return b"(" not in right or self.hands_out.search(right) is not None


def _headers(data: bytes) -> Iterable[tuple[bytes, frozenset[bytes]]]:
    for match in _CLASS.finditer(data):
        position = match.end()
        if data[position : position + 1] == b"[":
            position = _closing(data, position)
        if data[position : position + 1] == b"(":
            yield match.group(1), _names(data[position : _closing(data, position)])


def _closing(data: bytes, start: int) -> int:
    """Offset after the bracket that closes the one at `start`."""
    depth = 0
    for position in range(start, min(start + _HEADER_LIMIT, len(data))):
        byte = data[position]
        if byte in b"([":
            depth += 1
        elif byte in b")]":
            depth -= 1
            if depth == 0:
                return position + 1
    return start


def _local_assignments(
    data: bytes, headers: tuple[tuple[bytes, frozenset[bytes]], ...]
) -> Iterable[tuple[bytes, bytes]]:
    """Assignments at any depth to a name that a class of this file derives from."""
    defined = {name for name, _ in headers}
    for name in {base for _, bases in headers for base in bases} - defined:
        for position in _occurrences(data, name + b" = "):
            end = data.find(b"\n", position)
            yield name, data[position + len(name) + 3 : end if end >= 0 else len(data)]


def _occurrences(data: bytes, needle: bytes) -> Iterable[int]:
    position = data.find(needle)
    while position >= 0:
        yield position
        position = data.find(needle, position + 1)


def _renamed(data: bytes, end: int) -> frozenset[bytes]:
    """The name before ` as ` at `end`, where the line can be part of an import."""
    line = data[data.rfind(b"\n", 0, end) + 1 : end]
    match = _TRAILING_NAME.search(line)
    if match is None or _NO_IMPORT.match(line):
        return frozenset()
    return frozenset(match.groups())


def _names(data: bytes) -> frozenset[bytes]:
    return frozenset(_NAMES.findall(data))


def closure(scans: Iterable[Scan], roots: Iterable[bytes]) -> frozenset[bytes]:
    """Every name that may be, or stand for, a descendant of `roots`."""
    users: dict[bytes, list[bytes]] = {}
    for found in scans:
        for name, sources in (*found.headers, *found.aliases):
            for source in sources:
                users.setdefault(source, []).append(name)
    reached = set(roots)
    queue = list(reached)
    while queue:
        for name in users.get(queue.pop(), ()):
            if name not in reached:
                reached.add(name)
                queue.append(name)
    return frozenset(reached)
