"""Index roots: which tree a path is judged in.

A path says what is reported; the root says what is read to judge it. The root of a path is the
nearest directory with a `[tool.dcplint]` configuration, else the nearest git checkout, else the
directory itself. A separate distribution inside a root (an unpacked release, an installed
environment), or a path that the root ignores, is its own root, so that two releases side by side
do not mix.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dcplint import disk
from dcplint.errors import UserError


@dataclass(frozen=True, slots=True)
class Root:
    """directory: what is indexed. focus: files and directories in it that are reported.

    only: in a directory that holds several distributions (site-packages), the top-level entries
    that belong to the focus; empty means everything.
    """

    directory: Path
    focus: tuple[Path, ...]
    only: tuple[str, ...] = ()


def find_roots(paths: tuple[Path, ...]) -> tuple[Root, ...]:
    """The roots that `paths` lie in, in the order given, each with its share of the paths.

    Raises UserError for a path that does not exist or cannot be reached.
    """
    roots: dict[Path, list[Path]] = {}
    known: dict[Path, Path] = {}  # a hook gives thousands of files in a few directories
    for path in paths:
        try:
            path.stat()
            disk.exists(path)
            target = Path(disk.realpath(path))
        except (OSError, RuntimeError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "no such file or directory"
            raise UserError(f"{path}: {reason[0].lower()}{reason[1:]}") from error
        directory = target if disk.is_dir(target) else target.parent
        if directory not in known:
            known[directory] = _root_of(directory)
        roots.setdefault(known[directory], []).append(target)
    return tuple(_root(directory, tuple(focus)) for directory, focus in roots.items())


def nested_root(directory: Path) -> Root:
    """The root of a separate distribution met while walking another root."""
    return _root(directory, (directory,))


def _root(directory: Path, focus: tuple[Path, ...]) -> Root:
    if len(distributions(directory)) < 2 or directory in focus:
        return Root(directory, focus)
    return Root(directory, focus, tuple(sorted({f.relative_to(directory).parts[0] for f in focus})))


def _root_of(directory: Path) -> Path:
    ancestors = (directory, *directory.parents)
    project = next((a for a in ancestors if _is_configured(a)), None) or next(
        (a for a in ancestors if disk.exists(a / ".git")), None
    )
    inside = ancestors[: ancestors.index(project)] if project else ancestors
    separate = next((a for a in inside if distributions(a)), None)
    if separate is not None:
        return separate
    if project is None:
        return directory
    from dcplint.source.discovery import is_ignored

    return directory if is_ignored(project, directory) else project


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
