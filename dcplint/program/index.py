"""The index tier: every file of a root scanned by bytes, a few of them chosen for parsing."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from dcplint.contracts.model import Contract, Pack
from dcplint.program.modules import Broken, module_names
from dcplint.source.discovery import discover
from dcplint.source.roots import Root
from dcplint.source.scan import Scan, Scanner, closure
from dcplint.source.text import UnreadableSource, decode, read_bytes


@dataclass(slots=True)
class Index:
    """What the scan of one root found.

    scans and modules: by relative path, and relative path by dotted name. nested: separate
    distributions inside the root. marked: files that contain the marker asked for.
    """

    root: Root
    scans: dict[str, Scan]
    modules: dict[str, str]
    nested: tuple[Path, ...]
    broken: list[Broken] = field(default_factory=list)

    def mentioning(self, word: bytes) -> tuple[str, ...]:
        """Files that contain `word`, one of those searched for."""
        return tuple(path for path, found in self.scans.items() if word in found.words)

    def imports(self, pack: Pack) -> bool:
        """Whether any file imports the pack's package."""
        return any(self.mentioning(word) for word in import_words(pack))

    def holds(self, pack: Pack) -> bool:
        """Whether the root holds the engine itself: its package, with a module of its contract."""
        modules = {c.name.rpartition(".")[0] for c in pack.classes}
        return pack.package in self.modules and any(name in self.modules for name in modules)

    def candidates(self, contract: Contract, engine_in_tree: bool) -> tuple[str, ...]:
        """Files to parse: they may define a class with a role, or set or read a capability."""
        pack = contract.pack
        asked = {capability.role for capability in contract.capabilities}
        asked |= {accessor.role for accessor in contract.accessors}
        hooked = {hook.function.rpartition(".")[0] for g in contract.gates for hook in g.hooks}
        asked |= {c.role for c in contract.classes if c.name in hooked}
        classes = [c for c in contract.classes if c.role in asked]
        dotted = [name for c in classes for name in (c.name, *c.aliases)]
        roots = {name.rpartition(".")[2].encode() for name in dotted}
        roots |= {accessor.name.encode() for accessor in contract.accessors}
        if not engine_in_tree:
            # Any name taken from the engine may be a class with a role; only linking can tell.
            for path in {p for word in import_words(pack) for p in self.mentioning(word)}:
                for _, bases in self.scans[path].headers:
                    roots |= bases
        reached = closure(self.scans.values(), roots)
        words = {capability.name.encode() for capability in contract.capabilities}
        return tuple(
            path
            for path, found in self.scans.items()
            if words & found.words or any(name in reached for name, _ in found.headers)
        )


def build_index(
    root: Root,
    scanner: Scanner,
    exclude: tuple[str, ...] = (),
    unsaved: dict[str, bytes] | None = None,
) -> Index:
    """Scan every file of `root` for class headers, aliases and the scanner's words."""
    found = discover(root.directory, exclude, root.only)
    explicit = {p.relative_to(root.directory).as_posix() for p in root.focus if p.is_file()}
    files = sorted({*found.files, *explicit, *(unsaved or {})})
    index = Index(root, {}, module_names(files), tuple(found.nested))
    for directory, reason in found.unreadable:
        error = UnreadableSource(f"cannot be read: {reason}")
        index.broken.append(Broken(directory, error))
    for relative in files:
        try:
            data = (unsaved or {}).get(relative)
            if data is None:
                data = read_bytes(root.directory / relative)
            _check_text(data)
        except UnreadableSource as error:
            index.broken.append(Broken(relative, error))
        else:
            index.scans[relative] = scanner.scan(data)
    return index


def import_words(pack: Pack) -> tuple[bytes, bytes]:
    """How an import of the pack's package begins."""
    package = pack.package.encode()
    return (b"from " + package, b"import " + package)


def _check_text(data: bytes) -> None:
    """Raises UnreadableSource where `data` is not Python source text; cheap for UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        decode(data)
    if b"\0" in data:
        decode(data)
