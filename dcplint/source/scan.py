"""The byte prefilter: which classes a file defines, on what names, and which names it re-binds.

It over-approximates (text in a docstring counts) and never decides anything: it tells which files
are worth parsing. Every pattern starts with a literal, which makes the difference between 0.1 s
and 0.5 s per pass over a whole engine. Assignments are looked for last, and only in files that
have a name at hand which matters.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

_NAME = rb"[\w\x80-\xff]+"
_BETWEEN = rb"[ \t\\\r\n]*"  # two tokens of a line
_CLASS = re.compile(rb"class[ \t\\\r\n]+(" + _NAME + rb")" + _BETWEEN)
_OPENED = re.compile(_BETWEEN + rb"\(")
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
_AS_MODULE = re.compile(_NAME + rb"\.(?:" + _NAME + rb"\.)*(" + _NAME + rb"[ \t]+as\b)")
_DOTTED = re.compile(_NAME + rb"(?:\." + _NAME + rb")*")
_BRACKETS = re.compile(rb"[()\[\]{}]|#[^\n]*|\"[^\"\n]*\"|'[^'\n]*'")
_CLASS_CALLS = (b"getattr", b"cast", b"type", b"import_module")
_LITERAL_STARTS = b"\"'0123456789[{#-"
_RIGHT_LIMIT = 400  # bytes; a longer right side is not a class
_MANY = 5  # words; for fewer, a search for what they share does not pay
_HEADER_LIMIT = 4000  # bytes; a base list longer than this is not a class header

Pairs = tuple[tuple[bytes, frozenset[bytes]], ...]


@dataclass(frozen=True, slots=True)
class Scan:
    """What one file's bytes suggest.

    headers: (class name, names in its base list). renamed: (new name, name it stands for) of
    imports. imported: names that imports mention. has_star: it imports whatever a module has.
    words: which of the scanner's words occur.
    """

    headers: Pairs
    renamed: Pairs
    imported: frozenset[bytes]
    has_star: bool
    words: frozenset[bytes]


@dataclass(frozen=True, slots=True)
class Scanner:
    """Scans files.

    words: by what they contain, without which none of them need be searched for: a stem that many
    share, or the shortest of them.
    hands_out: calls that yield classes. sought: the words, an empty one, and the accessors.
    """

    words: tuple[tuple[bytes, tuple[bytes, ...]], ...]
    hands_out: re.Pattern[bytes]
    sought: tuple[str, ...]

    @classmethod
    def of(cls, words: Iterable[bytes], accessors: Iterable[bytes]) -> Scanner:
        """A scanner for these words and accessors."""
        words, accessors = sorted(set(words)), sorted(set(accessors))
        groups: dict[bytes, list[bytes]] = {stem: [] for stem in _stem(words)}
        for word in sorted(words, key=len):
            short = next((short for short in groups if short in word), word)
            groups.setdefault(short, []).append(word)
        calls = b"|".join(map(re.escape, (*_CLASS_CALLS, *accessors)))
        return cls(
            tuple((start, tuple(group)) for start, group in groups.items()),
            re.compile(rb"\b(?:" + calls + rb")\("),
            tuple(word.decode() for word in (*words, b"", *accessors)),
        )

    @classmethod
    def seeking(cls, sought: Sequence[str]) -> Scanner:
        """The scanner that seeks just that."""
        end = sought.index("")
        words, accessors = (
            [word.encode() for word in s] for s in (sought[:end], sought[end + 1 :])
        )
        return cls.of(words, accessors)

    def scan(self, data: bytes) -> Scan:
        """What one file's bytes suggest. Its lines end in `\\n`."""
        data = b"\n" + data  # so that every line follows one
        imported: set[bytes] = set()
        renamed: list[tuple[bytes, frozenset[bytes]]] = []
        has_star = False
        for names in _imports(data):
            if b"." in names:
                names = _AS_MODULE.sub(rb"\1", names)
            imported.update(_NAMES.findall(names))
            has_star = has_star or names[:1] == b"*"
            if b"as" in names:
                found = _RENAMED.finditer(names)
                renamed += ((m.group(2), frozenset((m.group(1),))) for m in found)
        words = (w for start, group in self.words if start in data for w in group if w in data)
        return Scan(
            tuple((name, _names(bases)) for name, bases in _headers(data)),
            tuple(renamed),
            frozenset(imported) - {b"as"},
            has_star,
            frozenset(words),
        )

    def aliases(self, data: bytes) -> Pairs:
        """(new name, names it may stand for) of a file's assignments."""
        data = b"\n" + data
        headers = list(_headers(data))
        imported = {name for names in _imports(data) for name in _NAMES.findall(names)}
        chains = (c.split(b".") for _, bases in headers for c in _DOTTED.findall(bases))
        local = {name for chain in chains if chain[0] not in imported for name in chain}
        local -= {name for name, _ in headers}
        return tuple(
            (name, _names(right))
            for name, right in _assignments(data, local)
            if self._may_be_class(right)
        )

    def _may_be_class(self, right: bytes) -> bool:
        """Whether the right side of an assignment could name a class.

        It may be a dotted or subscripted name, a choice between such, or a call that hands out a
        class; never a literal or a long formula.
        """
        if right[:1] in _LITERAL_STARTS or len(right) > _RIGHT_LIMIT:
            return False
        return b"(" not in right or b" if " in right or self.hands_out.search(right) is not None


def _stem(words: Sequence[bytes]) -> Iterable[bytes]:
    """The three bytes that most of the words have in common, where they are many."""
    parts = Counter(part for word in words for part in sorted(_parts(word)))
    return [part for part, shared in parts.most_common(1) if shared >= _MANY]


def _parts(word: bytes) -> set[bytes]:
    return {word[start : start + 3] for start in range(len(word) - 2)}


def _headers(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    for match in _CLASS.finditer(data):
        position = match.end()
        if data[position : position + 1] == b"[":
            position = _closing(data, position)
            opened = _OPENED.match(data, position)
            position = opened.end() - 1 if opened is not None else position
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


def closure(
    scans: Mapping[str, Scan], roots: Iterable[bytes], aliases: Callable[[str], Pairs]
) -> frozenset[bytes]:
    """Every name that may be, or stand for, a descendant of `roots`.

    aliases: the assignments of a file. It is asked for those files only in which a name that was
    reached is at hand: imported, defined, or an attribute of a module that is.
    """
    users: dict[bytes, list[bytes]] = {}
    reached: set[bytes] = set()
    queue = list(roots)

    def add(pairs: Pairs) -> None:
        for name, sources in pairs:
            for source in sources:
                users.setdefault(source, []).append(name)
                if source in reached:
                    queue.append(name)

    for scan in scans.values():
        add(scan.headers)
        add(scan.renamed)
    waiting = dict(scans)
    while queue:
        while queue:
            name = queue.pop()
            if name not in reached:
                reached.add(name)
                queue += users.get(name, ())
        near = _near(waiting, reached, _modules(scans, reached))
        for path in near:
            del waiting[path]
            add(aliases(path))
    return frozenset(reached)


def _modules(scans: Mapping[str, Scan], reached: set[bytes]) -> set[bytes]:
    """What modules are called that have a name that was reached, and packages that hold them."""
    found = {
        _last_part(path)
        for path, scan in scans.items()
        if any(name in reached for name, _ in (*scan.headers, *scan.renamed))
    }
    packages = {path: scan for path, scan in scans.items() if path.endswith("__init__.py")}
    before = -1
    while len(found) > before:
        before = len(found)
        found |= {
            _last_part(path)
            for path, scan in packages.items()
            if not (scan.imported.isdisjoint(reached) and scan.imported.isdisjoint(found))
        }
    return found


def _last_part(path: str) -> bytes:
    last = path.removesuffix(".py").removesuffix("/__init__").rpartition("/")[2]
    return last.encode(errors="surrogateescape")  # a path may be no text


def _near(waiting: Mapping[str, Scan], reached: set[bytes], modules: set[bytes]) -> list[str]:
    at_hand = reached | modules
    return [
        path
        for path, scan in waiting.items()
        if scan.has_star
        or not at_hand.isdisjoint(scan.imported)
        or any(name in reached for name, _ in scan.headers)
    ]
