"""The index tier: every file of a root scanned by bytes, a few of them chosen for parsing."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dcplint import disk
from dcplint.contracts.contract import Contract, Pack
from dcplint.contracts.model import Gate
from dcplint.processes import spread
from dcplint.program.modules import Broken, module_names, package_of
from dcplint.source import skim
from dcplint.source.discovery import discover
from dcplint.source.roots import Root
from dcplint.source.scan import Pairs, Scan, Scanner, closure
from dcplint.source.text import UnreadableSource, check_text, read_bytes, skim_bytes


@dataclass(slots=True)
class Index:
    """What the scan of one root found.

    scans: by relative path. modules: relative path by dotted name; names: the other way round.
    nested: separate distributions inside the root. unsaved: contents that stand in for files.
    """

    root: Root
    scanner: Scanner
    scans: dict[str, Scan]
    modules: dict[str, str]
    names: dict[str, str]
    nested: tuple[Path, ...]
    unsaved: dict[str, bytes] = field(default_factory=dict)
    broken: list[Broken] = field(default_factory=list)
    _aliases: dict[str, Pairs] = field(default_factory=dict)
    _importing: dict[str, dict[str, frozenset[bytes]]] = field(default_factory=dict)

    def read(self, relative: str) -> bytes:
        """The bytes of a file, with plain line ends. Raises UnreadableSource."""
        data = self.unsaved.get(relative)
        return read_bytes(self._path(relative)) if data is None else data

    def _skim(self, relative: str) -> bytes:
        """The same, where it is remembered what comes of it."""
        data = self.unsaved.get(relative)
        return skim_bytes(self._path(relative)) if data is None else data

    def _path(self, relative: str) -> str:
        return f"{self.root.directory}/{relative}"

    def scanned(self, files: list[str]) -> list[Scan | UnreadableSource]:
        """What a scan of each of the files gives."""
        return [self._scan(relative) for relative in files]

    def _scan(self, relative: str) -> Scan | UnreadableSource:
        try:
            data = self._skim(relative)
            check_text(data)
        except UnreadableSource as error:
            return error
        scan = self.scanner.scan(data)
        if relative not in self.unsaved:
            skim.scanned(self._path(relative), self.scanner, scan)
        return scan

    def containing(self, words: Collection[bytes]) -> Iterator[str]:
        """The modules that contain one of `words`, whatever the scan searched for."""
        for path in sorted(self.names):
            try:
                data = self._skim(path)
            except UnreadableSource:
                continue
            found = skim.mentions(data, words)
            if path not in self.unsaved:
                skim.mentioned(self._path(path), words, found)
            if found:
                yield path

    def mentioning(self, word: bytes) -> tuple[str, ...]:
        """Files that contain `word`, one of those searched for."""
        return tuple(path for path, found in self.scans.items() if word in found.words)

    def imports(self, pack: Pack) -> bool:
        """Whether any file imports the pack's package."""
        return bool(self.importing(pack.package))

    def importing(self, package: str) -> dict[str, frozenset[bytes]]:
        """Files that import `package`, with the names by which they reach it."""
        if package not in self._importing:
            imports = Imports(package)
            paths = self.mentioning(imports.word)
            found = ((path, imports.names(self.read(path))) for path in paths)
            self._importing[package] = {path: names for path, names in found if names is not None}
        return self._importing[package]

    def aliases(self, path: str) -> Pairs:
        """(new name, names it may stand for) of a file's assignments."""
        if path not in self._aliases:
            self._aliases[path] = self.scanner.aliases(self._skim(path))
            if path not in self.unsaved:
                skim.aliased(self._path(path), self.scanner, self._aliases[path])
        return self._aliases[path]

    def holds(self, pack: Pack) -> bool:
        """Whether the root holds the engine itself: its package, with a module of its contract."""
        modules = {c.name.rpartition(".")[0] for c in pack.classes}
        return pack.package in self.modules and any(name in self.modules for name in modules)

    def candidates(self, contract: Contract, engine_in_tree: bool) -> tuple[str, ...]:
        """Files to parse: they may define a class with a role, or set or read a capability."""
        asked = {"impl", *(capability.role for capability in contract.capabilities)}
        asked |= {accessor.role for accessor in contract.accessors}
        hooked = {hook.function.rpartition(".")[0] for g in contract.gates for hook in g.hooks}
        asked |= {c.role for c in contract.classes if c.name in hooked}
        classes = [c for c in contract.classes if c.role in asked]
        dotted = [name for c in classes for name in (c.name, *c.aliases)]
        roots = {name.rpartition(".")[2].encode() for name in dotted}
        roots |= {accessor.name.encode() for accessor in contract.accessors}
        if not engine_in_tree:
            # Any name taken from the engine may be a class with a role; only linking can tell.
            for names in self.importing(contract.pack.package).values():
                roots |= names
        reached = closure(self.scans, roots, self.aliases)
        words = {capability.name.encode() for capability in contract.capabilities}
        words |= gate_words(contract.gates)
        return tuple(
            path
            for path, found in self.scans.items()
            if words & found.words or any(name in reached for name, _ in found.headers)
        )


REPLACING = b".__class__ = "  # as formatters write what replaces an object's class


def gate_words(gates: Iterable[Gate]) -> frozenset[bytes]:
    """What a module mentions that asks a gate which has to be told of DCP, or gets past one."""
    asked = {gate.function.rpartition(".")[2] for gate in gates if gate.argument}
    return frozenset(name.encode() for name in asked) | ({REPLACING} if asked else set())


_SHARE = 200  # files that one process scans at a time; fewer are not worth a second process


class Imports:
    """Finds the imports of one package in a file's bytes."""

    def __init__(self, package: str) -> None:
        self.word = package.encode()
        name = re.escape(self.word)
        self._imported = re.compile(
            rb"^(?:\xef\xbb\xbf)?[ \t]*(?:from[ \t]+"
            + name
            + rb"(?:\.[\w.]+)?[ \t\\\n]+import[ \t]*"
            rb"(\([^)]*\)|(?:[^\n\\]|\\.)*)|import[ \t]([^\n]*\b" + name + rb"\b[^\n]*))",
            re.MULTILINE | re.DOTALL,
        )
        self._by_name = re.compile(rb"import_module\(\s*[\"']" + name + rb"\b")

    def names(self, data: bytes) -> frozenset[bytes] | None:
        """The names by which a file reaches the package; None where it does not import it."""
        found: list[bytes] = []
        for match in self._imported.finditer(data):
            found += _WORD.findall(match.group(1) or match.group(2))
        if self._by_name.search(data):
            found.append(self.word)
        return frozenset(found) if found else None


_WORD = re.compile(rb"[\w\x80-\xff]+")


def build_index(
    root: Root,
    scanner: Scanner,
    exclude: tuple[str, ...] = (),
    unsaved: dict[str, bytes] | None = None,
    jobs: int = 1,
) -> Index:
    """Scan every file of `root` for class headers, aliases and the scanner's words.

    jobs: how many processes may share the work, where there is enough of it.
    """
    found = discover(root.directory, exclude, root.only)
    explicit = {p.relative_to(root.directory).as_posix() for p in root.focus if disk.is_file(p)}
    # What an editor has not saved yet may not be there yet.
    new = {path for path in unsaved or {} if not disk.exists(root.directory / path)}
    files = sorted({*found.files, *explicit, *new})
    modules, names = module_names(files, package_of(root.directory))
    index = Index(root, scanner, {}, modules, names, tuple(found.nested), unsaved or {})
    for directory, reason in found.unreadable:
        error = UnreadableSource(f"cannot be read: {reason}")
        index.broken.append(Broken(directory, error))
    shares = [files[start : start + _SHARE] for start in range(0, len(files), _SHARE)]
    for share, scans in zip(shares, spread(index.scanned, shares, jobs), strict=True):
        for relative, scan in zip(share, scans, strict=True):
            if isinstance(scan, Scan):
                index.scans[relative] = scan
            else:
                index.broken.append(Broken(relative, scan))
    return index


def import_words(pack: Pack) -> tuple[bytes, ...]:
    """What a file that imports the pack's package contains."""
    return (pack.package.encode(),)
