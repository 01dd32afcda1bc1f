"""Fixing until nothing is left to fix: lint, edit in memory, lint what came of it.

Nothing is written before the last pass, so no pass sees a tree that is half changed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import unified_diff
from pathlib import Path
from typing import Protocol

from dcplint.findings.model import Applicability, Edit, Finding, Location
from dcplint.fixes.files import CannotEdit, EditableText, overlap
from dcplint.source.text import SourceText, UnreadableSource, decode

_MOST_PASSES = 20


class Linted(Protocol):
    """What fixing needs to know of a run."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings, with the edits of their fixes."""

    @property
    def root(self) -> Path:
        """What the paths of project files are relative to."""

    @property
    def lines(self) -> Callable[[Location], Sequence[str]]:
        """The lines of a file as they were linted."""


Lint = Callable[[Mapping[Path, bytes]], Linted]
"""Lints, with the given contents in place of those files."""


@dataclass(slots=True)
class Fixed:
    """What fixing comes to.

    before, after: contents of the files that change. findings: those that a fix was made for, by
    file.
    problems: one sentence for each file that was left alone.
    """

    before: dict[Path, bytes] = field(default_factory=dict)
    after: dict[Path, bytes] = field(default_factory=dict)
    findings: dict[Path, list[Finding]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def leave(self, path: Path, error: CannotEdit | OSError) -> None:
        """Say why a file is left alone."""
        reason = f"cannot be written: {error.strerror}" if isinstance(error, OSError) else error
        self.problems.append(f"{path} is left alone: it {reason}")

    def write(self) -> None:
        """Write the files. One that is no longer what was linted is left alone."""
        for path in sorted(self.after):
            self._write(path)

    def _write(self, path: Path) -> None:
        try:
            if path.read_bytes() != self.before[path]:
                raise CannotEdit("has changed since it was linted")
            path.write_bytes(self.after[path])
        except (CannotEdit, OSError) as error:
            self.leave(path, error)
            del self.after[path], self.findings[path]

    def diff(self, name: Callable[[Path], str]) -> Iterator[str]:
        """The lines of a unified diff, as `git apply` and `patch -p1` take it."""
        for path, data in sorted(self.after.items()):
            old, new = (EditableText.of(d).lines() for d in (self.before[path], data))
            before, after = (_quoted(f"{side}/{name(path)}") for side in "ab")
            for line in unified_diff(old, new, before, after):
                yield line.removesuffix("\n")
                if not line.endswith("\n"):
                    yield "\\ No newline at end of file"


def _quoted(name: str) -> str:
    """A name as git writes it in a diff, where it may hold anything."""
    if name.isprintable() and not set(name) & set('"\\'):
        return f"{name}\t" if " " in name else name  # `patch` would end it at the space
    return f'"{"".join(map(_spelt, os.fsencode(name)))}"'


def _spelt(byte: int) -> str:
    if byte in b'"\\':
        return f"\\{byte:c}"
    return chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}"


@dataclass(slots=True)
class _Batch:
    """The edits that one pass makes in one file, and the findings they are for."""

    edits: list[Edit] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def take(self, finding: Finding, edits: Sequence[Edit]) -> None:
        """Add a fix, unless it touches what another one changes. The same edit is made once."""
        new = [edit for edit in edits if edit not in self.edits]
        if not any(overlap(edit, other) for edit in new for other in self.edits):
            self.edits += new
            self.findings.append(finding)


def below(paths: Iterable[Path]) -> Callable[[Path], bool]:
    """Whether a file is one of `paths`, or lies below one."""
    asked = [path.resolve() for path in paths]
    return lambda path: any(path == a or a in path.parents for a in asked)


def fix(lint: Lint, may_edit: Callable[[Path], bool], *, unsafe: bool) -> Fixed:
    """Make the fixes of what `lint` finds until there are none left.

    Of two fixes that touch the same text the first is made, and the other one in the next pass, if
    it is still called for. No finding is fixed twice.
    """
    outcome = Fixed()
    tried: set[tuple[str, str]] = set()
    for _ in range(_MOST_PASSES):
        linted = lint(outcome.after)
        batches: dict[Path, _Batch] = {}
        for finding in linted.findings:
            edits = _edits(finding, unsafe)
            if edits and (finding.code, finding.fingerprint) not in tried:
                path = linted.root / edits[0].location.path
                if may_edit(path):
                    batches.setdefault(path, _Batch()).take(finding, edits)
        if not batches:
            break
        for path, batch in batches.items():
            tried |= {(finding.code, finding.fingerprint) for finding in batch.findings}
            try:
                outcome.after[path] = edited(outcome, path, batch.edits, linted)
                outcome.findings.setdefault(path, []).extend(batch.findings)
            except (CannotEdit, OSError) as error:
                outcome.leave(path, error)
    return outcome


def _edits(finding: Finding, unsafe: bool) -> tuple[Edit, ...]:
    """The edits of a finding's fix, if it is one that is wanted. All lie in one file."""
    fix = finding.fix
    if fix is None or (fix.applicability is Applicability.UNSAFE and not unsafe):
        return ()
    return fix.edits


def edited(outcome: Fixed, path: Path, edits: Sequence[Edit], linted: Linted) -> bytes:
    """What `edits` make of a file. Raises CannotEdit where it is not what was linted, OSError."""
    if path not in outcome.before:
        outcome.before[path] = path.read_bytes()
    data = outcome.after.get(path, outcome.before[path])
    try:
        now = SourceText(decode(data)).lines
    except UnreadableSource:
        now = []
    if list(linted.lines(edits[0].location)) != now:
        raise CannotEdit("has changed since it was linted")
    return EditableText.of(data).edited(edits)
