"""A git revision as a tree of its own. Neither the work tree nor the index is touched."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from dcplint.errors import UserError

# Python, and what tells which project and which engine release a tree is.
_WANTED = re.compile(
    r"(?:.*/)?(?:[^/]+\.py|pyproject\.toml|dcplint\.toml|\.gitignore|requirements[^/]*\.txt"
    r"|requirements/[^/]+\.txt|[^/]+\.dist-info/(?:METADATA|RECORD))",
    re.DOTALL,
)
_FILE_MODES = ("100644", "100755")
_SUBMODULE_MODE = "160000"


def commit_of(name: str, directory: Path) -> str | None:
    """The commit that a revision names in the checkout around `directory`, or None.

    `A...B` is the one that A and B have come from.
    """
    one, dots, other = name.partition("...")
    if dots:
        found = _git(directory, "merge-base", "--", one or "HEAD", other or "HEAD")
    else:
        options = ("--verify", "--quiet", "--end-of-options")
        found = _git(directory, "rev-parse", *options, f"{name}^{{commit}}")
    return None if found is None else found.decode().strip()


def checkout_of(directory: Path) -> Path:
    """The root of the checkout around `directory`. Raises UserError."""
    found = _git(directory, "rev-parse", "--show-toplevel")
    if found is None:
        raise UserError(f"{directory}: not in a git checkout")
    return Path(found.decode(errors="surrogateescape").removesuffix("\n"))


def unpack(commit: str, checkout: Path, target: Path) -> None:
    """Write the files of a commit that dcplint reads to the empty folder `target`.

    Those of a submodule, too, where it is checked out and has the commit. Raises UserError where
    git does not.
    """
    # By this the folder is the root of a project, as the checkout is.
    (target / ".git").mkdir(parents=True)
    names, submodules = {}, {}
    for mode, name, item in _entries(commit, checkout):
        if mode in _FILE_MODES and _WANTED.fullmatch(name):
            names[name] = item
        elif mode == _SUBMODULE_MODE and (checkout / name / ".git").exists():
            submodules[name] = item
    request = "".join(f"{blob}\n" for blob in names.values()).encode()
    content = _git(checkout, "cat-file", "--batch", stdin=request)
    if content is None:
        raise UserError(f"{commit}: git cannot read its files")
    position = 0
    for name in names:
        header_end = content.index(b"\n", position)
        size = int(content[position:header_end].rpartition(b" ")[2])
        start = header_end + 1
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content[start : start + size])
        position = start + size + 1
    for name, inner in submodules.items():
        if commit_of(inner, checkout / name) is not None:
            unpack(inner, checkout / name, target / name)


def _entries(commit: str, checkout: Path) -> Iterator[tuple[str, str, str]]:
    """Mode, path and object of whatever a commit holds, but folders."""
    listing = _git(checkout, "ls-tree", "-r", "-z", "--full-tree", commit)
    if listing is None:
        raise UserError(f"{commit}: git cannot list its files")
    for entry in filter(None, listing.decode(errors="surrogateescape").split("\0")):
        about, _, name = entry.partition("\t")
        yield about.partition(" ")[0], name, about.rpartition(" ")[2]


def _git(directory: Path, *args: str, stdin: bytes = b"") -> bytes | None:
    """What git prints; None where it fails. Raises UserError where there is no git."""
    try:
        done = subprocess.run(
            ["git", "-C", str(directory), *args], input=stdin, capture_output=True, check=False
        )
    except FileNotFoundError as error:
        raise UserError("comparing revisions takes git, which is not installed") from error
    return done.stdout if done.returncode == 0 else None
