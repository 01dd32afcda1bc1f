"""The modules a contract field's values pass through: those that name the field or its record."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from dcplint.contracts.model import Contract, Pack
from dcplint.program.index import Index
from dcplint.program.modules import Modules, SourceTree
from dcplint.program.symbols import Module
from dcplint.source.location import Tree
from dcplint.source.text import UnreadableSource, read_bytes


def field_words(pack: Pack) -> frozenset[bytes]:
    """What a module that has to do with a contract field of the pack mentions."""
    records = {field.record.rpartition(".")[2] for field in pack.fields}
    return frozenset(word.encode() for word in records | {field.name for field in pack.fields})


def related_modules(index: Index, modules: Modules, contract: Contract) -> Iterator[Module]:
    """The modules of the checked tree, and of engine source beside it, that mention a field."""
    words = field_words(contract.pack)
    names = {relative: name for name, relative in index.modules.items()}
    paths = dict.fromkeys(path for word in sorted(words) for path in index.mentioning(word))
    for tree in modules.trees:
        if tree.tree is Tree.PROJECT:
            found = ((path, names[path]) for path in sorted(paths))
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
