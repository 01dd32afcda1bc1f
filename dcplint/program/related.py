"""The modules that some rules need: those that name a contract field, or compute with a rank."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from dcplint import disk
from dcplint.contracts.contract import Contract, Pack
from dcplint.facts.model import FunctionFacts
from dcplint.program.index import Index
from dcplint.program.modules import Modules, SourceTree
from dcplint.program.symbols import Module
from dcplint.source.location import Tree
from dcplint.source.scan import closure
from dcplint.source.text import UnreadableSource

# What stands around a rank that is computed with; looked for only where its name stands, which
# costs a thousandth of searching for the whole expression.
_WINDOW = 120  # bytes before the name
_OPERATED_ON = re.compile(rb"\)*\s*(?:[-+*/%<>]|[=!]=)")
_OPERATOR = re.compile(rb"(?:[-+*/%<>]=?|[=!]=)\s*\(*(?:self\.)?\Z")
_RENAMING = re.compile(rb"(?:\A|\n)[ \t]+[\w.]+ = (?:[\w.]+\.)?\Z")
# By position: the parameter may be called anything.
_HANDED_ON = re.compile(rb"[(,]\s*(?:[\w.]+\.)?\Z")
_ENDING = re.compile(rb"\s*[,)]")
_WORD_ENDS = re.compile(rb"\w\Z")
_OVERLOADS = frozenset({"default", "out"})  # as torch calls the variants of an operator


def field_words(pack: Pack) -> frozenset[bytes]:
    """What a module mentions that has to do with a contract field, a length or DCP's own ranks.

    Not the records that lengths lie in: those of some engines are handed to every function.
    """
    owners = [fact.record for fact in pack.fields]
    owners += [fact.function for fact in pack.localizers]
    owners += [fact.function for fact in pack.arguments]
    owners += pack.vocabulary.merges
    owners += pack.vocabulary.groups
    owners += pack.vocabulary.members
    words = {_telling(owner) for owner in owners}
    return frozenset(word.encode() for word in words | {field.name for field in pack.fields})


def _telling(dotted: str) -> str:
    """The name by which a module mentions what `dotted` names: few others mention that too."""
    *owners, name = dotted.split(".")
    return owners[-1] if owners and name in _OVERLOADS else name


def rank_words(pack: Pack) -> frozenset[bytes]:
    """What a module that computes with a rank mentions: its names, as constants of kernels too,
    or what gives the group."""
    ranks = pack.vocabulary.ranks
    names = frozenset(word.encode() for rank in ranks for word in (rank, rank.upper()))
    return names | _getters(pack)


def computes_with(index: Index, pack: Pack) -> bool:
    """Whether a file takes from the engine what holds a contract field or a length, the group that
    DCP's ranks form, or what knows of the blocks of the KV cache."""
    records = {name for fact in pack.blocks for name in (fact.record, *fact.kinds)}
    words = field_words(pack) | {name.rpartition(".")[2].encode() for name in records}
    taken = index.importing(pack.package).items()
    return any(words & names and not is_test(path) for path, names in taken)


def _getters(pack: Pack) -> frozenset[bytes]:
    return frozenset(name.rpartition(".")[2].encode() for name in pack.vocabulary.groups)


def ranked_modules(index: Index, modules: Modules, contract: Contract) -> Iterator[Module]:
    """The modules of the checked tree that compute with a rank, or may give it another name."""
    words = rank_words(contract.pack)
    getters = _getters(contract.pack)
    attributes = [name.encode() for name in contract.vocabulary.group_ranks]
    names = index.names
    paths = {path for word in words for path in index.mentioning(word)}
    for path in sorted(paths):
        data = index.read(path)
        if not any(_is_computed_with(data, word) for word in words - getters):
            asks = any(name in data for name in attributes)
            if not asks or not any(getter in data for getter in getters):
                continue
        module = modules.load(modules.trees[0], path, names[path])
        if module is not None:
            yield module


def _is_computed_with(data: bytes, word: bytes) -> bool:
    """Whether `word` stands beside an operator somewhere, or may be given another name."""
    at = data.find(word)
    while at >= 0:
        end = at + len(word)
        before = data[max(at - _WINDOW, 0) : at]
        if _ends_here(data, end):
            if _OPERATED_ON.match(data, end) and not _WORD_ENDS.search(before):
                return True
            if _OPERATOR.search(before):
                return True
            if _ENDING.match(data, end) and _HANDED_ON.search(before):
                return True
            if data[end : end + 1] in (b"\n", b"\r", b"") and _RENAMING.search(before):
                return True
        at = data.find(word, end)
    return False


def _ends_here(data: bytes, end: int) -> bool:
    return not _WORD_ENDS.search(data[end : end + 1])


def related_modules(index: Index, modules: Modules, contract: Contract) -> Iterator[Module]:
    """The modules that a contract field passes through, of the checked tree and of engine source.

    Those that mention a field or its record; those of a plugin whose classes derive from the
    engine's among these, and may leave out what a method did that they replace; then those that
    call a function which takes a field as an argument: such a call leaves the field out without a
    word of it. Tests are no part of the engine: they make batches that no runner makes.
    """
    found: dict[tuple[Tree, str], Module] = {}
    package = contract.pack.package
    project = modules.trees[0]

    def loaded(tree: SourceTree, sources: Iterable[tuple[str, str]]) -> Iterator[Module]:
        for path, name in sources:
            if (tree.tree, path) in found or is_test(path):
                continue
            module = modules.load(tree, path, name)
            if module is not None:
                found[tree.tree, path] = module
                yield module

    words = field_words(contract.pack)
    for tree in modules.trees:
        if tree is project:
            yield from loaded(tree, _scanned(index, words))
        else:
            yield from loaded(tree, _mentioning(tree, dict(_package(tree, package)), words))
    yield from loaded(project, _deriving(index, found.values()))
    calls = _carriers(contract, found.values())
    for tree in modules.trees if calls else ():
        if tree is project:
            yield from loaded(tree, ((p, index.names[p]) for p in index.containing(calls)))
        else:
            yield from loaded(tree, _mentioning(tree, dict(_package(tree, package)), calls))


def _deriving(index: Index, found: Iterable[Module]) -> list[tuple[str, str]]:
    """Path and name of the modules with classes that may derive from the engine's among `found`."""
    engine = [module for module in found if module.tree is Tree.ENGINE]
    roots = {symbol.facts.name.encode() for module in engine for symbol in module.classes}
    reached = closure(index.scans, roots, index.aliases) if roots else frozenset()
    return [
        (path, index.names[path])
        for path, scan in sorted(index.scans.items())
        if any(not reached.isdisjoint(bases) for _, bases in scan.headers)
    ]


def is_test(path: str) -> bool:
    """Whether a module is one of tests."""
    *folders, file = path.split("/")
    return "tests" in folders or file.startswith("test_") or file == "conftest.py"


def _carriers(contract: Contract, found: Iterable[Module]) -> frozenset[bytes]:
    """How the functions of `found` that take a contract field by its name are called."""
    names = {field.name for field in contract.fields}
    return frozenset(
        f"{facts.name}(".encode()
        for module in found
        for facts in _functions(module)
        if names.intersection(facts.parameters) and not facts.name.startswith("__")
    )


def _functions(module: Module) -> Iterator[FunctionFacts]:
    yield from module.facts.functions
    for symbol in module.classes:
        yield from symbol.facts.methods


def _scanned(index: Index, words: frozenset[bytes]) -> Iterator[tuple[str, str]]:
    """Path and name of the modules in which the scan found a word."""
    for path in sorted({path for word in words for path in index.mentioning(word)}):
        yield path, index.names[path]


def _mentioning(
    tree: SourceTree, names: Mapping[str, str], words: frozenset[bytes]
) -> Iterator[tuple[str, str]]:
    """Path and name of those of the modules in `names` that contain a word."""
    for path, name in sorted(names.items()):
        try:
            data = tree.read(path)
        except UnreadableSource:
            continue
        if any(word in data for word in words):
            yield path, name


def _package(tree: SourceTree, package: str) -> Iterator[tuple[str, str]]:
    """Path and name of every module of a package."""
    waiting = [package]
    while waiting:
        folder = waiting.pop()
        try:
            entries = disk.entries(tree.directory / folder)
        except OSError:
            continue
        waiting += (f"{folder}/{e.name}" for e in entries if e.is_dir(follow_symlinks=False))
        for entry in entries:
            path = f"{folder}/{entry.name}"
            if path.endswith(".py"):
                yield path, path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
