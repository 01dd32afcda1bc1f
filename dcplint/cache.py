"""Whole runs, kept: what `dcplint check` printed, and what it had read of the disk to say so.

A run is found by its key: the command line, the working directory, what of the environment changes
the output, this very dcplint and Python. It counts only if all that it saw is as it was
(`disk.holds`). Asking takes no import that takes time, so that nothing else need be imported when
there is an answer.

Whatever is wrong with the cache (a full disk, no permission, a damaged or planted file) costs the
answer and nothing else. Entries are JSON with a checksum in front, written beside their place and
moved there whole, readable by their owner only; one that belongs to somebody else is not read.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress

from dcplint import __version__, disk

DIRECTORY = "DCPLINT_CACHE_DIR"
_FORMAT = 2
_SUFFIX = ".run"
_ENDINGS = (_SUFFIX, f"{_SUFFIX}.part")
_BINARY = getattr(os, "O_BINARY", 0)
_MOST_BYTES = 64 * 2**20  # of all entries; the ones longest unused go first
_LARGEST = 16 * 2**20
# What of the environment a run shows: colours, width, format, encoding; where it also writes.
_ENVIRONMENT = (
    "CI",
    "COLUMNS",
    "GITHUB_ACTIONS",
    "GITHUB_STEP_SUMMARY",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LINES",
    "NO_COLOR",
    "PYTHONIOENCODING",
    "PYTHONUTF8",
    "TERM",
)


class Kept:
    """The outcome of a run: what went to standard output and to standard error, and the status."""

    def __init__(self, out: str, err: str, status: int) -> None:
        self.out = out
        self.err = err
        self.status = status


def default_directory(environ: Mapping[str, str] = os.environ) -> str | None:
    """Where entries lie unless told otherwise; None where there is no home."""
    named = environ.get(DIRECTORY)
    if named:
        return named
    if sys.platform == "win32":
        base = environ.get("LOCALAPPDATA", "")
    elif sys.platform == "darwin":
        base = os.path.join(os.path.expanduser("~"), "Library", "Caches")
    else:
        base = environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "dcplint") if os.path.isabs(base) else None


def asked_directory(args: Sequence[str]) -> str | None:
    """The directory that a command line names or leaves to be the default; None for no cache."""
    directory = default_directory()
    for position, word in enumerate(args):
        if word == "--no-cache":
            return None
        if word == "--cache-dir":
            directory = args[position + 1] if position + 1 < len(args) else None
        elif word.startswith("--cache-dir="):
            directory = word.partition("=")[2]
    return directory or None


def key(args: Sequence[str]) -> str:
    """What stands for everything but the disk that a run depends on."""
    screen = None
    if sys.stdout.isatty():
        with suppress(OSError, ValueError):
            screen = list(os.get_terminal_size(sys.stdout.fileno()))
    environment = [os.environ.get(name) for name in _ENVIRONMENT]
    told = [_FORMAT, list(args), os.getcwd(), environment, screen, sys.version, sys.path, _self()]
    return disk.digest(json.dumps(told).encode("utf-8", "surrogateescape"))


def _self() -> list[object]:
    """This dcplint: its version, and of its files the names, sizes and, in a checkout, times.

    Files of an installed wheel bear the time of the installation, which says nothing.
    """
    package = os.path.dirname(os.path.abspath(__file__))
    installed = os.path.isdir(os.path.join(package, "_rules"))
    rules = os.path.join(package if installed else os.path.dirname(package), "rules")
    found: list[object] = [__version__]
    waiting = [package] if installed else [package, rules]
    while waiting:
        folder = waiting.pop()
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda e: e.name):
                if entry.is_dir():
                    if entry.name != "__pycache__":
                        waiting.append(entry.path)
                elif entry.name.endswith((".py", ".yaml", ".json")):
                    status = entry.stat()
                    found += (entry.path, status.st_size, installed or status.st_mtime_ns)
    return found


def load(directory: str, name: str, ask: disk.Asking) -> Kept | None:
    """The run kept under that key, if everything it read is still so."""
    path = os.path.join(directory, name + _SUFFIX)
    data = _own(path)
    if data is None:
        return None
    checksum, _, body = data.partition(b"\n")
    if checksum != disk.digest(body).encode():
        return None
    try:
        entry = json.loads(body)
        out, err, status, seen = entry["out"], entry["err"], entry["status"], entry["seen"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    texts = isinstance(out, str) and isinstance(err, str)
    if not texts or type(status) is not int or not disk.holds(seen, ask):
        return None
    with suppress(OSError):
        os.utime(path)
    return Kept(out, err, status)


def store(directory: str, name: str, kept: Kept, seen: disk.Seen) -> None:
    """Keep a run. Where that cannot be done, it is not kept."""
    entry = {"out": kept.out, "err": kept.err, "status": kept.status, "seen": seen.plain()}
    try:
        body = json.dumps(entry, separators=(",", ":")).encode()
    except (UnicodeEncodeError, ValueError):
        return
    if len(body) > _LARGEST:
        return
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        _write(directory, name + _SUFFIX, disk.digest(body).encode() + b"\n" + body)
        _prune(directory)
    except OSError:
        return


def clean(directory: str) -> int:
    """Remove all entries, and the directory if nothing else is in it. How many there were.

    Raises OSError.
    """
    if not os.path.isdir(directory):
        return 0
    names = [name for name in os.listdir(directory) if name.endswith(_ENDINGS)]
    for name in names:
        with suppress(FileNotFoundError):  # another run was quicker
            os.unlink(os.path.join(directory, name))
    with suppress(OSError):
        os.rmdir(directory)
    return len(names)


def _own(path: str) -> bytes | None:
    """The bytes of an entry; None where there is none, or not one of ours."""
    try:
        # Not to wait for a writer, should somebody have put a pipe there.
        handle = os.open(path, _BINARY | os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(handle)
            foreign = hasattr(os, "getuid") and status.st_uid != os.getuid()
            if foreign or status.st_size > _LARGEST + 100:
                return None
            return file.read()
    except (OSError, ValueError):
        return None


def _write(directory: str, name: str, data: bytes) -> None:
    path = os.path.join(directory, name)
    part = f"{path.removesuffix(_SUFFIX)}.{os.urandom(4).hex()}{_SUFFIX}.part"
    handle = os.open(part, _BINARY | os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(part, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(part)
        raise


def _prune(directory: str) -> None:
    """Remove the entries longest unused, and what broken runs left, beyond what may be kept."""
    with os.scandir(directory) as entries:
        found = [(e.stat(), e.path) for e in entries if e.name.endswith(_ENDINGS)]
    total = sum(status.st_size for status, _ in found)
    for status, path in sorted(found, key=lambda item: item[0].st_mtime_ns):
        if total <= _MOST_BYTES:
            break
        with suppress(OSError):
            os.unlink(path)
            total -= status.st_size
