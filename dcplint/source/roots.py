"""Index roots: which tree a path is judged in.

A path says what is reported; the root says what is read to judge it. The root of a path is the
nearest directory with a `[tool.dcplint]` configuration, else the nearest git checkout, else the
directory itself, or that which holds the file. A separate distribution inside a root (an unpacked
release, an installed environment), or a path that the root ignores, is its own root, so that two
releases side by side do not mix.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from dcplint import disk
from dcplint.errors import UserError


@dataclass(frozen=True, slots=True)
class Root:
    """directory: what is indexed. focus: files and directories in it that are reported.

    only: the top-level entries to look at, where not all: in a directory that holds several
    distributions (site-packages) those that belong to the focus; in one that is nobody's project,
    such as a home directory, the modules and packages that lie beside the files of the focus.
    """

    directory: Path
    focus: tuple[Path, ...]
    only: tuple[str, ...] = ()


def find_roots(paths: tuple[Path, ...]) -> tuple[Root, ...]:
    """The roots that `paths` lie in, in the order given, each with its share of the paths.

    Raises UserError for a path that does not exist or cannot be reached.
    """
    roots: dict[_Home, list[Path]] = {}
    known: dict[Path, _Home] = {}  # a hook gives thousands of files in a few directories
    for path in paths:
        target = _target(path)
        directory = target if disk.is_dir(target) else target.parent
        if directory not in known:
            known[directory] = _home_of(directory)
        roots.setdefault(known[directory], []).append(target)
    return tuple(_root(home, tuple(focus)) for home, focus in roots.items())


def root_of_file(file: Path) -> Root:
    """The root of a file that need not be there. Raises UserError where its folder is not."""
    directory = _target(file.parent)
    return _root(_home_of(directory), (directory / file.name,))


def nested_root(directory: Path) -> Root:
    """The root of a separate distribution met while walking another root."""
    return Root(directory, (directory,))


class _Home(NamedTuple):
    """Where paths belong. known: whether anything says so, or nothing but where they lie."""

    directory: Path
    known: bool


def _target(path: Path) -> Path:
    try:
        path.stat()
        disk.exists(path)
        return Path(disk.realpath(path))
    except (OSError, RuntimeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no such file or directory"
        raise UserError(f"{path}: {reason[0].lower()}{reason[1:]}") from error


def _root(home: _Home, focus: tuple[Path, ...]) -> Root:
    directory = home.directory
    if directory in focus:
        return Root(directory, focus)
    asked = {path.relative_to(directory).parts[0] for path in focus}
    if len(distributions(directory)) > 1:
        return Root(directory, focus, tuple(sorted(asked)))
    if not home.known:
        return Root(directory, focus, tuple(sorted(asked.union(_importable(directory)))))
    return Root(directory, focus)


def _importable(directory: Path) -> Iterator[str]:
    """The names of the modules and packages that lie in a directory."""
    with suppress(OSError):
        for entry in disk.entries(directory):
            if entry.name.endswith(".py") or disk.is_file(Path(entry.path, "__init__.py")):
                yield entry.name


def _home_of(directory: Path) -> _Home:
    ancestors = (directory, *directory.parents)
    project = next((a for a in ancestors if _is_configured(a)), None) or next(
        (a for a in ancestors if disk.exists(a / ".git")), None
    )
    inside = ancestors[: ancestors.index(project)] if project else ancestors
    separate = next((a for a in inside if distributions(a)), None)
    if separate is not None:
        return _Home(separate, known=True)
    if project is None:
        return _Home(directory, known=False)
    from dcplint.source.discovery import is_ignored

    if is_ignored(project, directory):
        return _Home(directory, known=False)
    return _Home(project, known=True)


def _is_configured(directory: Path) -> bool:
    try:
        if disk.is_file(directory / "dcplint.toml"):
            return True
        return b"[tool.dcplint" in disk.read(directory / "pyproject.toml")
    except OSError:
        return False


def distributions(directory: Path) -> tuple[str, ...]:
    """Names of the `*.dist-info` folders in `directory`."""
    return tuple(disk.glob(directory, "*.dist-info"))
