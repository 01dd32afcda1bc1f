"""The modules that some rules need: those that name a contract field, or compute with a rank."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from dcplint.contracts.model import Contract, Pack
from dcplint.program.index import Index
from dcplint.program.modules import Modules, SourceTree
from dcplint.program.symbols import Module
from dcplint.source.location import Tree
from dcplint.source.text import UnreadableSource, read_bytes

# What stands around a rank that is computed with; looked for only where its name stands, which
# costs a thousandth of searching for the whole expression.
_WINDOW = 120  # bytes before the name
_OPERATED_ON = re.compile(rb"\)*\s*[-+*/%<>]")
_OPERATOR = re.compile(rb"[-+*/%<>]=?\s*\(*(?:self\.)?\Z")
_RENAMING = re.compile(rb"(?:\A|\n)[ \t]+\w+ = (?:self\.)?\Z")
_WORD_ENDS = re.compile(rb"\w\Z")


def field_words(pack: Pack) -> frozenset[bytes]:
    """What a module that has to do with a contract field of the pack mentions."""
    records = {field.record.rpartition(".")[2] for field in pack.fields}
    return frozenset(word.encode() for word in records | {field.name for field in pack.fields})


def rank_words(pack: Pack) -> frozenset[bytes]:
    """What a module that computes with a rank mentions: its names, as constants of kernels too."""
    ranks = pack.vocabulary.ranks
    return frozenset(word.encode() for rank in ranks for word in (rank, rank.upper()))


def ranked_modules(index: Index, modules: Modules, contract: Contract) -> Iterator[Module]:
    """The modules of the checked tree that compute with a rank, or give it another name."""
    words = rank_words(contract.pack)
    names = index.names
    paths = {path for word in words for path in index.mentioning(word)}
    for path in sorted(paths):
        data = index.read(path)
        if not any(_is_computed_with(data, word) for word in words):
            continue
        module = modules.load(modules.trees[0], path, names[path])
        if module is not None:
            yield module


def _is_computed_with(data: bytes, word: bytes) -> bool:
    """Whether `word` stands beside an operator somewhere, or is given another name."""
    at = data.find(word)
    while at >= 0:
        end = at + len(word)
        before = data[max(at - _WINDOW, 0) : at]
        if _ends_here(data, end):
            if _OPERATED_ON.match(data, end) and not _WORD_ENDS.search(before):
                return True
            if _OPERATOR.search(before):
                return True
            if data[end : end + 1] in (b"\n", b"\r", b"") and _RENAMING.search(before):
                return True
        at = data.find(word, end)
    return False


def _ends_here(data: bytes, end: int) -> bool:
    return not _WORD_ENDS.search(data[end : end + 1])


def related_modules(index: Index, modules: Modules, contract: Contract) -> Iterator[Module]:
    """The modules of the checked tree, and of engine source beside it, that mention a field."""
    words = field_words(contract.pack)
    names = {relative: name for name, relative in index.modules.items()}
    paths = dict.fromkeys(path for word in sorted(words) for path in index.mentioning(word))
    for tree in modules.trees:
        if tree.tree is Tree.PROJECT:
            found = iter([(path, names[path]) for path in sorted(paths)])
        else:
            found = _mentioning(tree, contract.pack.package, words)
        for path, name in found:
            module = modules.load(tree, path, name)
            if module is not None:
                yield module


def _mentioning(
    tree: SourceTree, package: str, words: frozenset[bytes]
) -> Iterator[tuple[str, str]]:
    """Path and name of the modules of a package that contain a word. Reads every file once."""
    for directory, folders, files in os.walk(tree.directory / package):
        folders.sort()
        for file in sorted(files):
            if not file.endswith(".py"):
                continue
            path = Path(directory, file)
            try:
                data = read_bytes(path)
            except UnreadableSource:
                continue
            if any(word in data for word in words):
                relative = path.relative_to(tree.directory).as_posix()
                name = relative.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
                yield relative, name
