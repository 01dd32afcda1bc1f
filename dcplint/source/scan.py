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
_HEADER_LIMIT = 4000  # bytes; a base list longer than this is not a class header


@dataclass(frozen=True, slots=True)
class Scan:
    """What one file's bytes suggest.

    headers: (class name, names in its base list). aliases: (new name, names it may stand for).
    words: which of the words asked for occur.
    """

    headers: tuple[tuple[bytes, frozenset[bytes]], ...]
    aliases: tuple[tuple[bytes, frozenset[bytes]], ...]
    words: frozenset[bytes]


def scan(data: bytes, words: Iterable[bytes]) -> Scan:
    """Scan one file's bytes; `words` are searched for as plain substrings."""
    headers = tuple(_headers(data))
    aliases = [(m.group(1), _renamed(data, m.start())) for m in _AS.finditer(data)]
    aliases += [(m[0], _names(m[1])) for m in _ASSIGNED.findall(data) if _may_be_class(m[1])]
    aliases += _local_aliases(data, headers)
    return Scan(headers, tuple(aliases), frozenset(word for word in words if word in data))


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


def _local_aliases(
    data: bytes, headers: tuple[tuple[bytes, frozenset[bytes]], ...]
) -> list[tuple[bytes, frozenset[bytes]]]:
    """Indented assignments to a name that a class of this file derives from."""
    defined = {name for name, _ in headers}
    wanted = {base for _, bases in headers for base in bases} - defined
    found = []
    for name in wanted:
        for position in _occurrences(data, name + b" = "):
            end = data.find(b"\n", position)
            right = data[position + len(name) + 3 : end if end >= 0 else len(data)]
            found.append((name, _names(right)))
    return found


def _occurrences(data: bytes, needle: bytes) -> Iterable[int]:
    position = data.find(needle)
    while position >= 0:
        yield position
        position = data.find(needle, position + 1)


def _renamed(data: bytes, end: int) -> frozenset[bytes]:
    match = _TRAILING_NAME.search(data, max(0, end - 100), end)
    return frozenset(match.groups()) if match else frozenset()


def _may_be_class(right: bytes) -> bool:
    """Whether the right side of an assignment could be a class: no literal, no long formula."""
    first = right.lstrip()[:1]
    return first not in b"\"'0123456789[{#-" and len(right) < 400


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
