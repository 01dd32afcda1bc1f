"""Walking a root: every Python file that git would not ignore, in a stable order.

Directory symlinks are not followed: what they show is indexed where it lies, or is another
project's. Virtual environments are skipped; unpacked distributions are reported as roots of their
own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

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
    spec: GitIgnoreSpec
    prefix: str = ""

    def verdict(self, relative: str) -> bool | None:
        """True: ignored, False: re-included, None: says nothing."""
        return self.spec.check_file(self.prefix + relative[len(self.base) :]).include


def discover(
    directory: Path, exclude: tuple[str, ...] = (), only: tuple[str, ...] = ()
) -> Discovery:
    """Walk `directory`. `exclude` takes gitignore patterns relative to it."""
    found = Discovery()
    ignores = list(_inherited(directory))
    if exclude:
        ignores.append(_Ignore("", _spec(exclude)))
    _walk(directory, "", ignores, found, frozenset(only))
    found.files.sort()
    found.nested.sort()
    return found


def is_ignored(root: Path, target: Path) -> bool:
    """Whether the ignore files of `root` (and those between) ignore the directory `target`."""
    ignores = list(_inherited(root))
    relative = ""
    for part in target.relative_to(root).parts:
        ignores += _ignore_file(root / relative, relative)
        relative += f"{part}/"
        if part.startswith(".") or part in _SKIPPED or _ignored(relative, ignores):
            return True
    return False


def _walk(
    root: Path, base: str, ignores: list[_Ignore], found: Discovery, only: frozenset[str]
) -> None:
    try:
        entries = sorted(os.scandir(root / base), key=lambda entry: entry.name)
    except OSError as error:
        found.unreadable.append((base.rstrip("/") or ".", error.strerror or str(error)))
        return
    names = {entry.name for entry in entries}
    if base and "pyvenv.cfg" in names:
        return
    if base and any(name.endswith(".dist-info") for name in names):
        found.nested.append(root / base)
        return
    if ".gitignore" in names:
        ignores = [*ignores, *_ignore_file(root / base, base)]
    for entry in entries:
        if only and not base and entry.name not in only:
            continue
        relative = base + entry.name
        if entry.is_dir(follow_symlinks=False):
            if entry.name.startswith(".") or entry.name in _SKIPPED:
                continue
            if not _ignored(f"{relative}/", ignores):
                _walk(root, f"{relative}/", ignores, found, only)
        elif entry.name.endswith(".py") and entry.is_file() and not _ignored(relative, ignores):
            found.files.append(relative)


def _ignored(relative: str, ignores: list[_Ignore]) -> bool:
    """The innermost ignore file that speaks of the path decides, as in git."""
    for ignore in reversed(ignores):
        verdict = ignore.verdict(relative)
        if verdict is not None:
            return verdict
    return False


def _inherited(directory: Path) -> Iterator[_Ignore]:
    """Ignore files above `directory` in the same git checkout, rewritten to its point of view."""
    if (directory / ".git").exists():
        yield from _exclude_file(directory)
        return
    checkout = next((p for p in directory.parents if (p / ".git").exists()), None)
    if checkout is None or is_ignored(checkout, directory):
        return  # what was asked for by name is not dropped, nor any of it
    for parent in (checkout, *_between(checkout, directory)):
        prefix = f"{directory.relative_to(parent).as_posix()}/"
        for ignore in _ignore_file(parent, ""):
            yield _Ignore("", ignore.spec, prefix)


def _between(checkout: Path, directory: Path) -> list[Path]:
    return [p for p in reversed(directory.parents) if p != checkout and checkout in p.parents]


def _exclude_file(checkout: Path) -> Iterator[_Ignore]:
    path = checkout / ".git" / "info" / "exclude"
    if path.is_file():
        yield _Ignore("", _spec(_lines(path)))


def _ignore_file(directory: Path, base: str) -> Iterator[_Ignore]:
    path = directory / ".gitignore"
    if path.is_file():
        yield _Ignore(base, _spec(_lines(path)))


def _lines(path: Path) -> tuple[str, ...]:
    try:
        return tuple(path.read_text(encoding="utf-8", errors="replace").splitlines())
    except OSError:
        return ()


def _spec(patterns: tuple[str, ...]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(patterns)
