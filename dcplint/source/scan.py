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
    """Scans files. words: searched for as plain substrings. accessors: methods that hand out classes."""

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
