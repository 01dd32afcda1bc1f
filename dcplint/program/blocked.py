"""Where the size of a block is computed with, found by text: under its own name or another one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from dcplint.contracts.contract import Contract, Pack
from dcplint.program.index import Index
from dcplint.program.modules import Modules
from dcplint.program.related import is_test
from dcplint.program.symbols import Module

_NAME = re.compile(r"\w+")
_TARGET = re.compile(r"\w+(?= *(?:,|\)|$))")  # the last ones of dotted names
_GIVEN = re.compile(
    r"(?<![\w.])([\w.]+(?:, *[\w.]+)*)(?: *:[^=]*)? *=(?!=)([^=]*)|\bfor ([\w., ()]+) in (.*)"
)
_FACTORS = re.compile(r"\b(\w+)\b(?=[\])\s]*(?<!\*)\*=?[\s(]*(?:\w+[.\[\]()]+)*(\w+))")
_DIVIDES = re.compile(r"/[\s(]*(?:\w+[.\[\]]+)*(\w+)")
_COUNTS = re.compile(r"div(?:mod)?\(([^;]{0,160})")
_FUNCTION = re.compile(r"\n[ \t]*(?:async +)?def ")
_CALLED = re.compile(r"(\w+)\(")
_ROUNDS = 3  # names in terms of names
_LINE = 400  # characters; longer lines are data


@dataclass(frozen=True)
class Named:
    """The names that a module gives the sizes of blocks, and that of the group.

    Those are what lines call something that names one of the sizes, or what is called so, on the
    right. What is a keyword of a call goes to a parameter of that name, and what is returned to the
    name of the function.
    """

    text: str
    contract: Contract

    @cached_property
    def blocks(self) -> frozenset[str]:
        """The names of the sizes of blocks."""
        return _closed(self.text, block_sizes(self.contract.pack))

    @cached_property
    def group(self) -> frozenset[str]:
        """The names of the size of DCP's group, or of the group itself."""
        words = self.contract.pack.vocabulary
        getters = (name.rpartition(".")[2] for name in words.groups)
        return _closed(self.text, frozenset((*words.sizes, *words.group_sizes, *getters)))

    def multiplies(self, text: str) -> bool:
        """Whether the one seems to be multiplied by the other."""
        return any(
            (one in self.blocks and other in self.group)
            or (one in self.group and other in self.blocks)
            for near in _around(text, self.group)
            if "*" in near
            for one, other in _FACTORS.findall(near)
        )

    def divides(self, text: str) -> bool:
        """Whether something seems to be divided by the size of a block."""
        counted = "\n".join(_COUNTS.findall(text))
        return not self.blocks.isdisjoint(_DIVIDES.findall(text) + _NAME.findall(counted))

    def counts(self, text: str) -> bool:
        """Whether a function seems to divide by the size of a block, or to call one that does."""
        return self.divides(text) or not self._counters.isdisjoint(_CALLED.findall(text))

    @cached_property
    def _counters(self) -> frozenset[str]:
        """The functions of the module that seem to divide by the size of a block."""
        if not self.divides(self.text):
            return frozenset()
        found = (_NAME.match(f) for f in _FUNCTION.split(self.text)[1:] if self.divides(f))
        return frozenset(match[0] for match in found if match is not None)


def _closed(text: str, names: frozenset[str]) -> frozenset[str]:
    latest = names
    for _ in range(_ROUNDS):
        given = (match for line in _lines(text, latest) for match in _GIVEN.findall(line))
        left = (
            one or other
            for one, value, other, through in given
            if not latest.isdisjoint(_NAME.findall(value or through))
        )
        latest = frozenset(name for part in left for name in _TARGET.findall(part)) - names
        if not latest:
            break
        names |= latest
    return names


def _lines(text: str, names: Iterable[str]) -> Iterator[str]:
    """The lines that may give a name to what one of the names goes into."""
    starts = set()
    for name in names:
        at = text.find(name)
        while at >= 0:
            start, end = text.rfind("\n", 0, at) + 1, _line_end(text, at)
            if end - start < _LINE and start not in starts:
                starts.add(start)
                line = text[start:end]
                if "=" in line or "for " in line:
                    yield line
                before, returned, value = line.partition("return ")
                if returned and not before.strip():
                    yield f"{_defined_before(text, at)} = {value.partition('=')[0]}"
            at = text.find(name, end)


def _defined_before(text: str, position: int) -> str:
    """The name of the function that begins last before a position."""
    found = _NAME.search(text, text.rfind("def ", 0, position) + len("def "))
    return found[0] if found is not None else ""


def _around(text: str, names: Iterable[str]) -> Iterator[str]:
    """The lines in which one of the names occurs, with the ones before and after."""
    for name in names:
        at = text.find(name)
        while at >= 0:
            start = text.rfind("\n", 0, max(text.rfind("\n", 0, at), 0)) + 1
            end = _line_end(text, at)
            yield text[start : _line_end(text, end + 1)]
            at = text.find(name, end)


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return end if end >= 0 else len(text)


def block_words(pack: Pack) -> frozenset[bytes]:
    """What a module that computes with the size of a block mentions, or with ids of blocks."""
    words = (*block_sizes(pack), *block_ids(pack), *_takers(pack), *pack.vocabulary.sizes)
    return frozenset(word.encode() for word in words)


def block_sizes(pack: Pack) -> frozenset[str]:
    """The attributes that hold the size of a block."""
    return frozenset(f.name for f in pack.blocks if f.name and f.counts.endswith("-block"))


def block_ids(pack: Pack) -> frozenset[str]:
    """The attributes and arguments that hold ids of blocks, and the methods that return some."""
    return frozenset(
        f.name or f.argument or f.method for f in pack.blocks if f.counts == "block-ids"
    )


def _takers(pack: Pack) -> frozenset[str]:
    """The methods that are given the size of a block."""
    return frozenset(f.method for f in pack.blocks if f.argument and f.counts.endswith("-block"))


def blocked_modules(index: Index, modules: Modules, contract: Contract) -> Iterator[Module]:
    """The modules of the checked tree that multiply the size of a block by that of the group, hand
    it on, or count blocks by it."""
    pack = contract.pack
    words = (block_ids(pack), _takers(pack), frozenset(pack.vocabulary.sizes))
    wanted = frozenset(word.encode() for each in words for word in each)
    ids, takers = words[:2]
    sizes = (size.encode() for size in block_sizes(pack))
    for path in sorted({path for size in sizes for path in index.mentioning(size)}):
        if is_test(path) or not index.scans[path].words & wanted:
            continue
        text = index.read(path).decode(errors="replace")
        names = Named(text, contract)
        if _has_one(takers, text) or names.multiplies(text) or _counts(text, names, ids):
            module = modules.load(modules.trees[0], path, index.names[path])
            if module is not None:
                yield module


def _counts(text: str, names: Named, ids: Iterable[str]) -> bool:
    """Whether a function gets ids of blocks and seems to count them by the size of one."""
    if not _has_one(ids, text) or not names.divides(text):
        return False
    return any(names.counts(f) for f in _FUNCTION.split(text) if _has_one(ids, f))


def _has_one(words: Iterable[str], text: str) -> bool:
    return any(word in text for word in words)
