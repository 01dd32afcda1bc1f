"""Finding modules: by dotted name, over the checked tree, engine source and contract packs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, chain
from pathlib import Path

from dcplint import disk
from dcplint.facts.extract import Place, extract
from dcplint.facts.model import FunctionFacts, ModuleFacts
from dcplint.processes import spread
from dcplint.program.symbols import Module
from dcplint.source.location import Tree
from dcplint.source.parse import check_depth, function_in, parse_function, parse_outline, parse_text
from dcplint.source.text import SourceText, UnreadableSource, decode, read_bytes

_SHARE = 16  # files that one process parses at a time
_Read = tuple[ModuleFacts | None, list[UnreadableSource]]


@dataclass(frozen=True, slots=True)
class Broken:
    """A file of the checked tree that could not be read or parsed."""

    path: str
    error: UnreadableSource


class Words:
    """The words that are asked about: functions that use one keep their bodies in an outline."""

    def __init__(self, words: Iterable[str]) -> None:
        self.words = frozenset(words)

    def occurrences(self, text: str) -> list[int]:
        """The offsets in `text` at which one of the words stands."""
        return sorted(offset for word in self.words for offset in _occurrences(text, word))


def _occurrences(text: str, word: str) -> Iterator[int]:
    position = text.find(word)
    while position >= 0:
        yield position
        position = text.find(word, position + 1)


def _lines_of(text: str, offsets: Sequence[int]) -> list[int]:
    """The 1-based lines in which the sorted `offsets` lie."""
    lines, line, counted = [], 1, 0
    for offset in offsets:
        line += text.count("\n", counted, offset)
        counted = offset
        lines.append(line)
    return lines


@dataclass(slots=True)
class SourceTree:
    """One tree of Python files.

    files: relative paths of the modules by dotted name, where they are listed beforehand; a tree
    without them is looked up on disk, name by name. unsaved: contents that stand in for a file.
    without: top-level packages that are not looked up here.
    """

    directory: Path
    tree: Tree
    files: dict[str, str] | None = None
    unsaved: dict[str, bytes] = field(default_factory=dict)
    without: frozenset[str] = frozenset()
    _located: dict[str, str | None] = field(default_factory=dict)
    _prefixes: frozenset[str] | None = None

    def locate(self, name: str) -> str | None:
        """The relative path of module `name`, or None."""
        if self.files is not None:
            return self.files.get(name)
        if name not in self._located:
            self._located[name] = self._locate(name)
        return self._located[name]

    def _locate(self, name: str) -> str | None:
        if name.partition(".")[0] in self.without:
            return None
        stem = name.replace(".", "/")
        found = (f"{stem}/__init__.py", f"{stem}.py")
        return next((r for r in found if disk.is_file(self.directory / r)), None)

    def is_namespace(self, name: str) -> bool:
        """Whether `name` is a directory of modules without an `__init__.py`."""
        if self.files is not None:
            return name not in self.files and name in self._packages()
        if name.partition(".")[0] in self.without or self.locate(name) is not None:
            return False
        return disk.is_dir(self.directory / name.replace(".", "/"))

    def _packages(self) -> frozenset[str]:
        if self._prefixes is None:
            names = self.files or {}
            self._prefixes = frozenset(
                name[: match.start()] for name in names for match in re.finditer(r"\.", name)
            )
        return self._prefixes

    def read(self, relative: str) -> bytes:
        """The bytes of a file of this tree. Raises UnreadableSource."""
        if relative in self.unsaved:
            return self.unsaved[relative]
        return read_bytes(self.directory / relative)


@dataclass(slots=True)
class Modules:
    """Modules by name, parsed when first asked for.

    virtual: facts of modules that only a pack speaks of. A top-level package belongs to the first
    tree that has it with an `__init__.py`; where none has, its directories in all trees and the
    pack's modules are portions of one namespace, as for Python.
    """

    trees: tuple[SourceTree, ...]
    words: Words
    virtual: dict[str, ModuleFacts] = field(default_factory=dict)
    broken: list[Broken] = field(default_factory=list)
    _described: frozenset[str] | None = None
    _loaded: dict[tuple[Tree, str], Module | None] = field(default_factory=dict)
    _owners: dict[str, tuple[SourceTree, ...]] = field(default_factory=dict)
    _texts: dict[tuple[Tree, str], SourceText] = field(default_factory=dict)
    _sources: dict[tuple[Module, tuple[int, int]], str] = field(default_factory=dict)
    _functions: dict[
        tuple[Module, tuple[int, int]], ast.FunctionDef | ast.AsyncFunctionDef | None
    ] = field(default_factory=dict)
    _whole: dict[Module, ast.Module | UnreadableSource] = field(default_factory=dict)

    def find(self, name: str) -> Module | None:
        """The module called `name`, or None where no tree and no pack has it."""
        for tree in self._trees_of(name):
            relative = tree.locate(name)
            if relative is not None:
                return self.load(tree, relative, name)
        if not self.has_source(name) and name in self.virtual:
            return self._known(Tree.PACK, name, self.virtual[name])
        for tree in self._trees_of(name):
            if tree.is_namespace(name):
                facts = ModuleFacts(name.replace(".", "/"), name, True, (), None, (), ())
                return self._known(tree.tree, name, facts)
        return None

    def _known(self, tree: Tree, name: str, facts: ModuleFacts) -> Module | None:
        return self._loaded.setdefault((tree, name), Module(facts, tree))

    def _trees_of(self, name: str) -> tuple[SourceTree, ...]:
        top = name.partition(".")[0]
        if top not in self._owners:
            regular = (tree for tree in self.trees if tree.locate(top) is not None)
            first = next(regular, None)
            portions = tuple(tree for tree in self.trees if tree.is_namespace(top))
            self._owners[top] = portions if first is None else (first,)
        return self._owners[top]

    def is_own(self, name: str) -> bool:
        """Whether the top-level package of `name` is one of the checked tree."""
        top = name.partition(".")[0]
        return any(tree.tree is Tree.PROJECT for tree in self._trees_of(top))

    def is_file(self, name: str) -> bool:
        """Whether some file is the module `name`, even one that cannot be parsed."""
        return any(tree.locate(name) is not None for tree in self._trees_of(name))

    def has_source(self, name: str) -> bool:
        """Whether the top-level package of `name` is present as source, in full."""
        top = name.partition(".")[0]
        if self.is_file(top):
            return True
        return bool(self._trees_of(top)) and not self._is_virtual(top)

    def is_package(self, name: str) -> bool:
        """Whether `name` is a module or a directory that holds modules."""
        if self.is_file(name) or any(tree.is_namespace(name) for tree in self._trees_of(name)):
            return True
        return self._is_virtual(name)

    def _is_virtual(self, name: str) -> bool:
        if self._described is None:
            parts = (accumulate(n.split("."), "{}.{}".format) for n in self.virtual)
            self._described = frozenset(chain.from_iterable(parts))
        return name in self._described

    def load(self, tree: SourceTree, relative: str, name: str) -> Module | None:
        """The module in file `relative`, or None where it is broken (which is recorded)."""
        key = (tree.tree, relative)
        if key not in self._loaded:
            self._loaded[key] = self._kept(*key, *self._facts(tree, relative, name))
        return self._loaded[key]

    def load_all(self, tree: SourceTree, names: Mapping[str, str], jobs: int) -> list[Module]:
        """The modules in these files, by relative path their names; broken ones are left out.

        jobs: how many processes may share the work.
        """
        files = [file for file in names.items() if (tree.tree, file[0]) not in self._loaded]
        shares = [files[start : start + _SHARE] for start in range(0, len(files), _SHARE)]
        read = spread(partial(self._read, tree), shares, jobs)
        for (relative, _), found in zip(files, chain.from_iterable(read), strict=True):
            self._loaded[tree.tree, relative] = self._kept(tree.tree, relative, *found)
        loaded = (self._loaded[tree.tree, relative] for relative in names)
        return [module for module in loaded if module is not None]

    def _kept(
        self, tree: Tree, relative: str, facts: ModuleFacts | None, errors: list[UnreadableSource]
    ) -> Module | None:
        for error in errors:
            self._note(tree, relative, error)
        return Module(facts, tree) if facts is not None else None

    def _read(self, tree: SourceTree, files: Iterable[tuple[str, str]]) -> list[_Read]:
        """The facts of files, given with their names, and what of them cannot be parsed."""
        return [self._facts(tree, relative, name) for relative, name in files]

    def _facts(self, tree: SourceTree, relative: str, name: str) -> _Read:
        try:
            text = decode(tree.read(relative))
            offsets = self.words.occurrences(text)
            parsed = parse_outline(text, (*offsets, *_occurrences(text, "setattr(")))
        except UnreadableSource as error:
            return None, [error]
        place = Place(relative, name, relative.rpartition("/")[2] == "__init__.py")
        lines = _lines_of(text, offsets)
        facts = extract(parsed.tree, place, parsed.ends, self.words.words, lines)
        return facts, [*parsed.deep]

    def loaded(self, tree: Tree) -> Iterator[Module]:
        """The modules of a tree that have been parsed so far."""
        return (m for (of, _), m in self._loaded.items() if of is tree and m is not None)

    def function(
        self, module: Module, facts: FunctionFacts
    ) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The tree of a function with its body, parsed when first asked for."""
        if module.tree is Tree.PACK:
            return None
        key = (module, facts.lines)
        if key not in self._functions:
            try:
                node = self._parsed_function(module, facts.lines)
                check_depth(node)
                self._functions[key] = node
            except UnreadableSource as error:
                self._note(module.tree, module.facts.path, error)
                self._functions[key] = None
        return self._functions[key]

    def source(self, module: Module, facts: FunctionFacts) -> str:
        """The source of the function that `facts` describes."""
        key = (module, facts.lines)
        if key not in self._sources:
            text = self.text(module.tree, module.facts.path)
            self._sources[key] = text.between(*facts.lines)
        return self._sources[key]

    def _parsed_function(
        self, module: Module, lines: tuple[int, int]
    ) -> ast.FunctionDef | ast.AsyncFunctionDef:
        text = self.text(module.tree, module.facts.path)
        try:
            return parse_function(text.between(*lines), *lines)
        except UnreadableSource:
            # What an outline takes for the function may be too little; the whole text tells.
            if module not in self._whole:
                self._whole[module] = _parsed(text.text)
            whole = self._whole[module]
            if isinstance(whole, UnreadableSource):
                raise whole from None
            return function_in(whole, *lines)

    def check(self, relative: str) -> None:
        """Note what is wrong with a file of the checked tree, which nothing else has asked for."""
        tree = self.trees[0]
        try:
            parse_text(decode(tree.read(relative)))
        except UnreadableSource as error:
            self._note(tree.tree, relative, error)

    def _note(self, tree: Tree, relative: str, error: UnreadableSource) -> None:
        if tree is Tree.PROJECT:
            self.broken.append(Broken(relative, error))

    def text(self, tree: Tree, relative: str) -> SourceText:
        """The text of a file, for messages; empty where it cannot be read."""
        key = (tree, relative)
        if key not in self._texts:
            owner = next((t for t in self.trees if t.tree is tree), None)
            try:
                self._texts[key] = SourceText(decode(owner.read(relative)) if owner else "")
            except UnreadableSource:
                self._texts[key] = SourceText("")
        return self._texts[key]


def _parsed(text: str) -> ast.Module | UnreadableSource:
    try:
        return parse_text(text)
    except UnreadableSource as error:
        return error


def module_names(files: Iterable[str], package: str = "") -> tuple[dict[str, str], dict[str, str]]:
    """Relative paths by dotted name, and the dotted name of each path.

    A package starts at the outermost directory with an `__init__.py`; without one, at the root or
    at `src/`. The plain path is a second name, for namespace packages above that directory.
    package: the package that the root itself is, if it is one; its modules bear its name.
    """
    files = list(files)
    packages = {f.rpartition("/")[0] for f in files if f.endswith("__init__.py")} - {"", "src"}
    above = f"{package}." if package else ""
    primary: dict[str, str] = {}
    secondary: dict[str, str] = {}
    names: dict[str, str] = {}
    for relative in sorted(files, key=lambda relative: relative.count("/")):
        start = 0 if package else _package_start(relative, packages)
        name = f"{above}{_dotted(relative[start:])}".rstrip(".")
        plain = _dotted(relative)
        names[relative] = name if primary.setdefault(name, relative) == relative else plain
        secondary.setdefault(plain, relative)
    return {**secondary, **primary}, names


def package_of(directory: Path) -> str:
    """The dotted name of the package that `directory` is; empty where it is none."""
    parts: list[str] = []
    while disk.is_file(directory / "__init__.py") and directory.name:
        parts.append(directory.name)
        directory = directory.parent
    return ".".join(reversed(parts))


def _package_start(relative: str, packages: set[str]) -> int:
    position = relative.find("/")
    while position >= 0:
        if relative[:position] in packages:
            return relative.rfind("/", 0, position) + 1
        position = relative.find("/", position + 1)
    return len("src/") if relative.startswith("src/") else 0


def _dotted(relative: str) -> str:
    name = relative.removesuffix(".py").replace("/", ".")
    return name.removesuffix(".__init__") if name != "__init__" else ""
