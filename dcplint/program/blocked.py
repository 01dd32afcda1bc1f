"""Where the size of a block is computed with, found by text: under its own name or another one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from dcplint.contracts.model import Contract, Pack
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
_COUNTS = re.compile(r"\b(?:cdiv|ceil_div|div)\(([^;]{0,160})")
_FUNCTION = re.compile(r"\n[ \t]*(?:async +)?def ")
_ROUNDS = 3  # names in terms of names
_LINE = 400  # characters; longer lines are data


@dataclass(frozen=True, slots=True)
class Named:
    """The names that a module gives the sizes of blocks, and that of the group."""

    blocks: frozenset[str]
    group: frozenset[str]

    def multiplies(self, text: str) -> bool:
        """Whether the one seems to be multiplied by the other."""
        return any(
            (one in self.blocks and other in self.group)
            or (one in self.group and other in self.blocks)
            for one, other in _FACTORS.findall(text)
        )

    def divides(self, text: str) -> bool:
        """Whether something seems to be divided by the size of a block."""
        counted = "\n".join(_COUNTS.findall(text))
        return not self.blocks.isdisjoint(_DIVIDES.findall(text) + _NAME.findall(counted))


def named(text: str, contract: Contract) -> Named:
    """What lines call something that names one of the sizes, or what is called so, on the right.

    What is a keyword of a call goes to a parameter of that name.
    """
    lines = (line for line in text.split("\n") if "=" in line or "for " in line)
    given = [match for line in lines if len(line) < _LINE for match in _GIVEN.findall(line)]
    words = contract.pack.vocabulary
    getters = (name.rpartition(".")[2] for name in words.groups)
    group = frozenset((*words.sizes, *words.group_sizes, *getters))
    return Named(_closed(given, block_sizes(contract.pack)), _closed(given, group))


def _closed(given: list[tuple[str, str, str, str]], names: frozenset[str]) -> frozenset[str]:
    for _ in range(_ROUNDS):
        left = [
            one or other
            for one, value, other, through in given
            if not names.isdisjoint(_NAME.findall(value or through))
        ]
        found = names.union(*map(_TARGET.findall, left))
        if found == names:
            break
        names = found
    return names


def block_words(pack: Pack) -> frozenset[bytes]:
    """What a module that computes with the size of a block mentions, or with ids of blocks."""
    words = (*block_sizes(pack), *block_ids(pack), *_takers(pack), *pack.vocabulary.sizes)
    return frozenset(word.encode() for word in words)


def block_sizes(pack: Pack) -> frozenset[str]:
    """The attributes that hold the size of a block."""
    return frozenset(f.name for f in pack.blocks if f.name and f.counts.endswith("-block"))


def block_ids(pack: Pack) -> frozenset[str]:
    """The attributes that hold ids of blocks, and the methods that return some."""
    return frozenset(f.name or f.method for f in pack.blocks if f.counts == "block-ids")


def _takers(pack: Pack) -> frozenset[str]:
    """The methods that are given the size of a block."""
    return frozenset(f.method for f in pack.blocks if f.argument and f.counts.endswith("-block"))


def blocked_modules(index: Index, modules: Modules, contract: Contract) -> Iterator[Module]:
    """The modules of the checked tree that multiply the size of a block by that of the group, hand
    it on, or count blocks by it."""
    pack = contract.pack
    words = (block_ids(pack), _takers(pack), frozenset(pack.vocabulary.sizes))
    wanted = frozenset(word.encode() for each in words for word in each)
    ids, takers = (re.compile("|".join(sorted(each)) or r"(?!)") for each in words[:2])
    sizes = (size.encode() for size in block_sizes(pack))
    for path in sorted({path for size in sizes for path in index.mentioning(size)}):
        if is_test(path) or not index.scans[path].words & wanted:
            continue
        text = index.read(path).decode(errors="replace")
        names = named(text, contract)
        has_ids = ids.search(text) and names.divides(text)
        functions = _FUNCTION.split(text) if has_ids else ()
        if (
            takers.search(text)
            or names.multiplies(text)
            or any(names.divides(f) for f in functions if ids.search(f))
        ):
            module = modules.load(modules.trees[0], path, index.names[path])
            if module is not None:
                yield module
