"""Walking a root: every Python file that git would not ignore, in a stable order.

Directory symlinks are not followed, nor file symlinks within the root: what they show is indexed
where it lies, or is another project's. Virtual environments are skipped; unpacked distributions
are reported as roots of their own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dcplint import disk
from dcplint.source.ignore import Patterns

_ENVIRONMENT = "pyvenv.cfg"  # the file that makes a directory a virtual environment
_SKIPPED = frozenset({"__pycache__", "node_modules"})


@dataclass(slots=True)
class Discovery:
    """files: paths relative to the root, with `/`, sorted. nested: separate distributions.

    unreadable: (relative directory, the system's reason).
    """

    files: list[str] = field(default_factory=list)
    nested: list[Path] = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Ignore:
    """One ignore file: patterns that apply below `base` (relative to the root, ends in `/`).

    prefix: path of the root below an ignore file that lies above it.
    """

    base: str
    patterns: Patterns
    prefix: str = ""

    def verdict(self, relative: str) -> bool | None:
        """True: ignored, False: re-included, None: says nothing."""
        return self.patterns.verdict(self.prefix + relative[len(self.base) :])


def discover(
    directory: Path, exclude: tuple[str, ...] = (), only: tuple[str, ...] = ()
) -> Discovery:
    """Walk `directory`.

    exclude: gitignore patterns relative to it, which win over every ignore file. only: top-level
    entries to look at, where not all.
    """
    walk = _Walk(str(directory), Patterns.of(exclude) if exclude else None, frozenset(only))
    walk.run(tuple(_inherited(directory)))
    found = walk.found
    found.files.sort()
    found.nested.sort()
    found.unreadable.sort()
    return found


def is_ignored(root: Path, target: Path) -> bool:
    """Whether walking `root` would leave the directory `target` out."""
    ignores = list(_inherited(root))
    relative = ""
    for part in target.relative_to(root).parts:
        ignores += _ignore_file(root / relative, relative)
        relative += f"{part}/"
        if part.startswith(".") or part in _SKIPPED or _ignored(relative, ignores):
            return True
        if disk.is_file(root / relative / _ENVIRONMENT):
            return True
    return False


def is_excluded(folder: Path, exclude: tuple[str, ...], target: Path) -> bool:
    """Whether the patterns of `folder` leave out `target` or a directory it lies in."""
    try:
        parts = target.resolve().relative_to(folder.resolve()).parts
    except ValueError:
        return False
    patterns = Patterns.of(exclude)
    above = ("/".join(parts[:count]) + "/" for count in range(1, len(parts)))
    own = "/".join(parts) + "/" * target.is_dir()
    return any(map(patterns.verdict, (*above, own)))


@dataclass(slots=True)
class _Walk:
    """One walk, without recursion: a tree may be deeper than Python's stack."""

    root: str
    exclude: Patterns | None
    only: frozenset[str]
    found: Discovery = field(default_factory=Discovery)
    waiting: list[tuple[str, Sequence[_Ignore]]] = field(default_factory=list)

    def run(self, inherited: Sequence[_Ignore]) -> None:
        self.waiting.append(("", inherited))
        while self.waiting:
            base, ignores = self.waiting.pop()
            try:
                self._directory(base, disk.entries(f"{self.root}/{base}"), ignores)
            except OSError as error:
                reason = error.strerror or str(error)
                self.found.unreadable.append((base.rstrip("/") or ".", reason))

    def _directory(
        self, base: str, entries: list[os.DirEntry[str]], ignores: Sequence[_Ignore]
    ) -> None:
        names = {entry.name for entry in entries}
        if base and _ENVIRONMENT in names:
            return
        if base and any(name.endswith(".dist-info") for name in names):
            self.found.nested.append(Path(self.root, base))
            return
        if ".gitignore" in names:
            ignores = (*ignores, *_ignore_file(Path(self.root, base), base))
        for entry in entries:
            if base or not self.only or entry.name in self.only:
                self._entry(base + entry.name, entry, ignores)

    def _entry(self, relative: str, entry: os.DirEntry[str], ignores: Sequence[_Ignore]) -> None:
        if entry.is_dir(follow_symlinks=False):
            skipped = entry.name.startswith(".") or entry.name in _SKIPPED
            if not skipped and not self._is_out(f"{relative}/", ignores):
                self.waiting.append((f"{relative}/", ignores))
        elif (
            entry.name.endswith(".py")
            and self._is_file(entry)
            and not self._is_out(relative, ignores)
        ):
            self.found.files.append(relative)

    def _is_file(self, entry: os.DirEntry[str]) -> bool:
        if not entry.is_symlink():
            return entry.is_file()
        target = Path(entry.path)
        try:
            inside = Path(disk.realpath(target)).is_relative_to(Path(self.root).resolve())
            return not inside and disk.is_file(target)
        except (OSError, RuntimeError):
            return False  # a loop of symlinks

    def _is_out(self, relative: str, ignores: Sequence[_Ignore]) -> bool:
        excluded = self.exclude.verdict(relative) if self.exclude else None
        return _ignored(relative, ignores) if excluded is None else excluded


def _ignored(relative: str, ignores: Sequence[_Ignore]) -> bool:
    """The innermost ignore file that speaks of the path decides, as in git."""
    for ignore in reversed(ignores):
        verdict = ignore.verdict(relative)
        if verdict is not None:
            return verdict
    return False


def _inherited(directory: Path) -> Iterator[_Ignore]:
    """Ignore files that lie outside `directory` in its git checkout, from its point of view."""
    checkout = next((p for p in (directory, *directory.parents) if disk.exists(p / ".git")), None)
    if checkout is None:
        return
    prefix = "" if checkout == directory else f"{directory.relative_to(checkout).as_posix()}/"
    if prefix and is_ignored(checkout, directory):
        return  # what was asked for by name is not dropped, nor any of it
    lines = _lines(_git_directory(checkout) / "info" / "exclude")
    if lines:
        yield _Ignore("", Patterns.of(lines), prefix)
    for parent in reversed(directory.parents):
        if parent.is_relative_to(checkout):
            prefix = f"{directory.relative_to(parent).as_posix()}/"
            for ignore in _ignore_file(parent, ""):
                yield _Ignore("", ignore.patterns, prefix)


def _git_directory(checkout: Path) -> Path:
    """Where git keeps the checkout's own settings; a linked worktree shares its repository's."""
    git = checkout / ".git"
    if disk.is_file(git):
        for line in _lines(git)[:1]:
            git = checkout / line.removeprefix("gitdir:").strip()
    for line in _lines(git / "commondir")[:1]:
        git /= line.strip()
    return git


def _ignore_file(directory: Path, base: str) -> Iterator[_Ignore]:
    path = directory / ".gitignore"
    if disk.is_file(path):
        yield _Ignore(base, Patterns.of(_lines(path)))


def _lines(path: Path) -> tuple[str, ...]:
    try:
        return tuple(disk.read(path).decode(errors="replace").splitlines())
    except OSError:
        return ()
