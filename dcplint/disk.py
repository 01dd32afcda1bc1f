"""Reading the disk, and remembering what was read.

What a run learns of the disk it learns through these functions, so that a later run can ask
whether all of it is still so (`Seen.holds`) and give the earlier answer again. Nothing is imported
here that takes time: that later run is to be over before anything else is.

A file is known by its content. Its size, times and number on disk are the first chance: where they
are as they were, nobody looks inside; where they are not, as in every fresh checkout, the content
decides. The same goes for the entries of a folder. Most files a run only skims; of those, what it
learned decides (`learned`), and a change anywhere else in them counts as none.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

# What hashlib has, without OpenSSL, which takes longer to load than all the rest.
try:
    from _blake2 import blake2b
except ImportError:  # another Python than CPython
    from hashlib import blake2b

if TYPE_CHECKING:
    from typing import Any

Path = str | os.PathLike[str]
Record = list[object]
"""What was seen at a path: a mark for the first chance (or None), and what the second compares."""
Question = tuple[str, ...]
"""What was asked of a file: the kind of question, and words that it takes."""
Asking = Callable[[Question, bytes], "str | None"]
"""From a question and a file's bytes to the answer; None where there is none."""

# Half the cost of open() for small files, of which an engine has thousands.
_READ = os.O_RDONLY | getattr(os, "O_BINARY", 0)
_NOT_THERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES})
_CLOCK = 2_000_000_000  # ns; a file changed this recently may change again without a trace


class Seen:
    """What was read. files, folders and kinds by absolute path; folders by pattern, too.

    whole: the files of which all counts. answers: of the others, by question, what was learned.
    """

    def __init__(self) -> None:
        self.files: dict[str, Record] = {}
        self.whole: set[str] = set()
        self.answers: dict[Question, dict[str, str]] = {}
        self.folders: dict[str, Record] = {}
        self.kinds: dict[str, str] = {}
        self.links: dict[str, str] = {}
        self._youngest = time.time_ns() - _CLOCK

    def mark(self, found: os.stat_result) -> list[int] | None:
        """What tells without a look inside that a file is as it was; None where nothing does."""
        if max(found.st_mtime_ns, found.st_ctime_ns) > self._youngest:
            return None
        return _mark(found)

    def plain(self) -> dict[str, object]:
        """Itself, for JSON."""
        asked = list(self.answers.values())
        files: dict[str, object] = dict(self.files)
        for path in self.files.keys() - self.whole:
            files[path] = [*self.files[path], [answered.get(path) for answered in asked]]
        return {
            "files": files,
            "questions": list(self.answers),
            "folders": self.folders,
            "kinds": self.kinds,
            "links": self.links,
        }


_seen: Seen | None = None


@contextmanager
def remembering(wanted: bool = True) -> Iterator[Seen]:
    """Have what is read in the block remembered, if that is wanted: it takes time."""
    global _seen
    seen = Seen()
    before, _seen = _seen, seen if wanted else None
    try:
        yield seen
    finally:
        _seen = before


def remember(seen: Seen) -> None:
    """Have what another process has read remembered as well."""
    if _seen is not None:
        _seen.files |= seen.files
        _seen.whole |= seen.whole
        for question, answered in seen.answers.items():
            _seen.answers.setdefault(question, {}).update(answered)
        _seen.folders |= seen.folders
        _seen.kinds |= seen.kinds
        _seen.links |= seen.links


def read(path: Path) -> bytes:
    """The bytes of a file, of which all counts. Raises OSError."""
    if _seen is not None:
        _seen.whole.add(os.path.abspath(path))
    return skim(path)


def skim(path: Path) -> bytes:
    """The bytes of a file, of which only that counts which is `learned` of it. Raises OSError."""
    try:
        handle = os.open(path, _READ)
        try:
            found = os.fstat(handle)
            size = found.st_size
            data = os.read(handle, size + 1)
            while len(data) < size and (more := os.read(handle, size - len(data))):
                data += more
        finally:
            os.close(handle)
    except OSError as error:
        if _seen is not None:
            _seen.files[os.path.abspath(path)] = [None, error.errno]
        raise
    if _seen is not None:
        _seen.files[os.path.abspath(path)] = [_seen.mark(found), digest(data)]
    return data


def is_remembering() -> bool:
    """Whether anybody wants to know what was read."""
    return _seen is not None


def learned(path: Path, question: Question, answer: str) -> None:
    """Have it remembered what a file that was skimmed answers to a question."""
    if _seen is not None:
        _seen.answers.setdefault(question, {})[os.path.abspath(path)] = answer


def entries(directory: Path) -> list[os.DirEntry[str]]:
    """The entries of a folder that may matter: folders, links, Python and what steers the walk.

    Bytecode and the like comes and goes; it is not seen at all. Raises OSError.
    """
    if _seen is None:
        return _entries(directory)
    key = os.path.abspath(directory)
    try:
        mark = _seen.mark(os.stat(directory))
        found = _entries(directory)
    except OSError as error:
        _seen.folders[key] = [None, error.errno]
        raise
    _seen.folders[key] = [mark, _listed(found)]
    return found


def glob(directory: Path, pattern: str) -> list[str]:
    """The names in a folder that match `pattern`, sorted; none where it cannot be read.

    pattern: one `*` with what stands before and behind it.
    """
    names = _matching(directory, pattern)
    if _seen is not None:
        key = f"{os.path.abspath(directory)}\0{pattern}"
        _seen.folders[key] = [_folder_mark(_seen, directory), names]
    return names


def is_file(path: Path) -> bool:
    """Whether `path` leads to a file."""
    return _kind(path) == "file"


def is_dir(path: Path) -> bool:
    """Whether `path` leads to a folder."""
    return _kind(path) == "folder"


def exists(path: Path) -> bool:
    """Whether `path` leads anywhere."""
    return _kind(path) != ""


def realpath(path: Path) -> str:
    """The absolute path without symbolic links."""
    found = os.path.realpath(path)
    if _seen is not None:
        _seen.links[os.path.abspath(path)] = found
    return found


def distributions() -> None:
    """Have it remembered which distributions are installed, and what they declare.

    `importlib.metadata` reads the disk by itself; this is what its answers rest on.
    """
    if _seen is None:
        return
    for folder in sys.path:
        for pattern in ("*.dist-info", "*.egg-info"):
            for name in glob(folder, pattern):
                with suppress(OSError):
                    read(os.path.join(folder, name, "entry_points.txt"))


def digest(data: bytes) -> str:
    """What stands for a content."""
    return blake2b(data, digest_size=16).hexdigest()


def holds(seen: Any, ask: Asking) -> bool:
    """Whether everything in `seen`, as `Seen.plain` gave it, is still so. Never raises.

    ask: what gives answers like those that were `learned`. `seen` comes from a file that anybody
    may have damaged: what makes no sense does not hold.
    """
    try:
        return _holds(seen, ask)
    except (TypeError, KeyError, ValueError, AttributeError, OSError, RecursionError):
        return False


def _holds(seen: dict[str, Any], ask: Asking) -> bool:
    for path, resolved in seen["links"].items():
        if os.path.realpath(path) != resolved:
            return False
    for path, kind in seen["kinds"].items():
        if _kind_of(path) != kind:
            return False
    for path, (mark, expected) in seen["folders"].items():
        directory, _, pattern = path.partition("\0")
        if mark is not None and _mark_of(directory) == mark:
            continue
        if pattern:
            found: object = _matching(directory, pattern)
        else:
            try:
                found = _listed(_entries(directory))
            except OSError as error:
                found = error.errno
        if found != expected:
            return False
    for path, (mark, expected, *answers) in seen["files"].items():
        if mark is not None and _mark_of(path) == mark:
            continue
        try:
            with open(path, "rb") as file:
                data = file.read()
        except OSError as error:
            if error.errno != expected:
                return False
            continue
        if digest(data) != expected:
            if not answers or not _answers(seen["questions"], answers[0], ask, data):
                return False
    return True


def _answers(
    questions: list[list[str]], expected: list[str | None], ask: Asking, data: bytes
) -> bool:
    """Whether a file that was skimmed, and is another now, answers what was asked as it did."""
    asked = [(q, e) for q, e in zip(questions, expected, strict=True) if e is not None]
    return bool(asked) and all(ask(tuple(q), data) == answer for q, answer in asked)


def _mark(found: os.stat_result) -> list[int]:
    return [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino]


def _mark_of(path: Path) -> list[int] | None:
    try:
        return _mark(os.stat(path))
    except OSError:
        return None


def _folder_mark(seen: Seen, directory: Path) -> list[int] | None:
    try:
        return seen.mark(os.stat(directory))
    except OSError:
        return None


def _kind(path: Path) -> str:
    found = _kind_of(path)
    if _seen is not None:
        _seen.kinds[os.path.abspath(path)] = found
    return found


def _kind_of(path: Path) -> str:
    try:
        mode = os.stat(path).st_mode
    except ValueError:  # a NUL byte in the path
        return ""
    except OSError as error:
        if error.errno in _NOT_THERE:
            return ""
        raise
    if stat.S_ISREG(mode):
        return "file"
    return "folder" if stat.S_ISDIR(mode) else "other"


_STEERING = frozenset({".git", ".gitignore", "pyvenv.cfg"})
_SKIPPED = frozenset({"__pycache__", "node_modules"})


def _entries(directory: Path) -> list[os.DirEntry[str]]:
    with os.scandir(directory) as found:
        return [entry for entry in found if _matters(entry)]


def _matters(entry: os.DirEntry[str]) -> bool:
    name = entry.name
    if name.endswith(".py") or name in _STEERING:
        return True
    return name not in _SKIPPED and name[0] != "." and (entry.is_dir() or entry.is_symlink())


def _listed(found: list[os.DirEntry[str]]) -> str:
    """What stands for the entries of a folder: their names, and what they are."""
    kinds = sorted(
        f"{e.name}\0{'link' if e.is_symlink() else 'folder' if e.is_dir() else 'file'}"
        for e in found
    )
    return digest("\n".join(kinds).encode("utf-8", "surrogateescape"))


def _matching(directory: Path, pattern: str) -> list[str]:
    start, _, end = pattern.partition("*")
    try:
        names = os.listdir(directory)
    except OSError:
        return []
    return sorted(n for n in names if n.startswith(start) and n.removeprefix(start).endswith(end))
