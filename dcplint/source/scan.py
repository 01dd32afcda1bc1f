"""The byte prefilter: which classes a file defines, on what names, and which names it re-binds.

It over-approximates (text in a docstring counts) and never decides anything: it tells which files
are worth parsing. Every pattern starts with a literal, which makes the difference between 0.1 s
and 0.5 s per pass over a whole engine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_NAME = rb"[\w\x80-\xff]+"
_CLASS = re.compile(rb"class[ \t\\\n]+(" + _NAME + rb")[ \t]*")
_PLAIN_BASES = re.compile(rb"\(([^()\[\]#\"']*)\)")
_IMPORT = re.compile(rb"import[ \t]*(\([^)#]*|(?:[^\n\\]|\\.)*)", re.DOTALL)
_RENAMED = re.compile(rb"(" + _NAME + rb")[\s\\]+as[\s\\]+(" + _NAME + rb")")
_LIST = _NAME + rb"(?:[ \t]*,[ \t]*" + _NAME + rb")*"
_TARGET_LIST = re.compile(_LIST)
_TARGETS = rb"(" + _LIST + rb")(?:[ \t]*:[^=\n]*)?[ \t]*="
_ASSIGNED = re.compile(rb"\n" + _TARGETS + rb"(?=[^=\n])")
_AFTER_SEMICOLON = re.compile(rb";[ \t]*" + _TARGETS + rb"(?=[^=\n])")
_INDENTED = re.compile(rb"\n[ \t]+" + _TARGETS + rb"(?=[^=\n])")
_BLOCK = re.compile(
    rb"(?:\n(?:if|elif|else|try|except|finally)\b[^\n]*|\n[ \t]+[^\n]*|\n(?=[\n#])[^\n]*)+"
)
_NAMES = re.compile(_NAME)
_DOTTED = re.compile(_NAME + rb"(?:\." + _NAME + rb")*")
_BRACKETS = re.compile(rb"[()\[\]{}]|#[^\n]*|\"[^\"\n]*\"|'[^'\n]*'")
_CLASS_CALLS = (b"getattr", b"cast", b"type", b"import_module")
_LITERAL_STARTS = b"\"'0123456789[{#-"
_RIGHT_LIMIT = 400  # bytes; a longer right side is not a class
_HEADER_LIMIT = 4000  # bytes; a base list longer than this is not a class header
_GROUPED = 8  # bytes that words must share to be searched for together

Pairs = tuple[tuple[bytes, frozenset[bytes]], ...]


@dataclass(frozen=True, slots=True)
class Scan:
    """What one file's bytes suggest.

    headers: (class name, names in its base list). aliases: (new name, names it may stand for).
    words: which of the scanner's words occur.
    """

    headers: Pairs
    aliases: Pairs
    words: frozenset[bytes]


@dataclass(frozen=True, slots=True)
class Scanner:
    """Scans files.

    words: by a beginning that they share, searched for as plain substrings. hands_out: calls that
    yield classes.
    """

    words: tuple[tuple[bytes, tuple[bytes, ...]], ...]
    hands_out: re.Pattern[bytes]

    @classmethod
    def of(cls, words: Iterable[bytes], accessors: Iterable[bytes]) -> Scanner:
        """A scanner for these words and accessors."""
        groups: dict[bytes, list[bytes]] = {}
        for word in sorted(words):
            groups.setdefault(word[:_GROUPED], []).append(word)
        calls = b"|".join(sorted(re.escape(name) for name in (*_CLASS_CALLS, *accessors)))
        return cls(
            tuple((start, tuple(group)) for start, group in groups.items()),
            re.compile(rb"\b(?:" + calls + rb")\("),
        )

    def scan(self, data: bytes) -> Scan:
        """What one file's bytes suggest."""
        data = b"\n" + data  # every line has one in front
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        found = list(_headers(data))
        imported: set[bytes] = set()
        aliases: list[tuple[bytes, frozenset[bytes]]] = []
        for names in _imports(data):
            imported.update(_NAMES.findall(names))
            if b"as" in names:
                renamed = _RENAMED.finditer(names)
                aliases += ((m.group(2), frozenset((m.group(1),))) for m in renamed)
        chains = (c.split(b".") for _, bases in found for c in _DOTTED.findall(bases))
        local = {name for chain in chains if chain[0] not in imported for name in chain}
        local -= {name for name, _ in found}
        for name, right in _assignments(data, local):
            if self._may_be_class(right):
                aliases.append((name, _names(right)))
        words = (w for start, group in self.words if start in data for w in group if w in data)
        return Scan(_pairs(found), tuple(aliases), frozenset(words))

    def _may_be_class(self, right: bytes) -> bool:
        """Whether the right side of an assignment could name a class.

        It may be a dotted or subscripted name, a choice between such, or a call that hands out a
        class; never a literal or a long formula.
        """
        if right[:1] in _LITERAL_STARTS or len(right) > _RIGHT_LIMIT:
            return False
        return b"(" not in right or b" if " in right or self.hands_out.search(right) is not None


def _pairs(found: Iterable[tuple[bytes, bytes]]) -> Pairs:
    """(class name, names in its base list) for what looks like a class with bases."""
    return tuple((name, _names(bases)) for name, bases in found)


def _headers(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    for match in _CLASS.finditer(data):
        position = match.end()
        if data[position : position + 1] == b"[":
            position = _closing(data, position)
        plain = _PLAIN_BASES.match(data, position)
        if plain is not None:
            yield match.group(1), plain.group(1)
        elif data[position : position + 1] == b"(":
            yield match.group(1), data[position : _closing(data, position)]


def _closing(data: bytes, start: int) -> int:
    """Offset after the bracket that closes the one at `start`; not farther than a header goes."""
    depth = 0
    limit = min(start + _HEADER_LIMIT, len(data))
    for match in _BRACKETS.finditer(data, start, limit):
        bracket = match.group()
        if bracket in (b"(", b"[", b"{"):
            depth += 1
        elif bracket in (b")", b"]", b"}"):
            depth -= 1
            if depth == 0:
                return match.end()
    return limit


def _imports(data: bytes) -> Iterator[bytes]:
    """What follows `import` in what looks like an import statement."""
    for match in _IMPORT.finditer(data):
        names = match.group(1)
        if names[:1] == b"(" and data[match.end() : match.end() + 1] == b"#":
            yield data[match.start(1) : _closing(data, match.start(1))]
        else:
            yield names


def _assignments(data: bytes, local: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """(name, right side) of assignments that other files or this one may derive classes from.

    These are the module's own ones, under conditions too, and those at any depth to the names
    `local`, which classes of this file derive from.
    """
    for pattern in (_ASSIGNED, _AFTER_SEMICOLON):
        for match in pattern.finditer(data):
            yield from _targets(data, match)
    for start in (*_occurrences(data, b"\nif "), *_occurrences(data, b"\ntry:")):
        block = _BLOCK.match(data, start)
        if block is not None:
            for match in _INDENTED.finditer(data, start, block.end()):
                yield from _targets(data, match)
    for name in local:
        for sign in (b" = ", b" := "):
            for position in _occurrences(data, name + sign):
                yield name, _right(data, position + len(name) + len(sign))


def _targets(data: bytes, match: re.Match[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """The names that an assignment binds: `a = …`, `a, b = …`, `a = b = …`."""
    right = _right(data, match.end())
    *chained, last = right.split(b" = ")
    targets = [match.group(1), *(part for part in chained if _TARGET_LIST.fullmatch(part))]
    for name in (n for target in targets for n in _names(target)):
        yield name, last.strip()


def _right(data: bytes, start: int) -> bytes:
    """The right side of an assignment; what is in brackets may go on over several lines."""
    end = data.find(b"\n", start)
    right = data[start : end if end >= 0 else len(data)].strip()
    if right[:1] == b"(":
        opening = data.index(b"(", start)
        return data[opening + 1 : _closing(data, opening) - 1].strip()
    if right[-1:] in (b"(", b"[", b"\\"):
        return data[start : start + _RIGHT_LIMIT].strip()
    return right


def _occurrences(data: bytes, needle: bytes) -> Iterator[int]:
    position = data.find(needle)
    while position >= 0:
        yield position
        position = data.find(needle, position + 1)


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
