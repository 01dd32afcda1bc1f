"""What a run found out, ready to be shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from dcplint.findings.baseline import Entry
from dcplint.findings.model import Finding, Location, Severity, Tree
from dcplint.report.escape import printable

if TYPE_CHECKING:
    from dcplint.harness.model import Confirmation

# The lines of the file a location lies in, without line ends; empty where it cannot be read.
# Lines end at LF, CRLF and CR only (not where str.splitlines would cut: form feeds, U+2028).
Lines = Callable[[Location], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Engine:
    """The engine release a tree was checked against, and how it was found."""

    name: str
    release: str
    source: str

    @property
    def title(self) -> str:
        """What heads the part of the output that is about it."""
        return f"{self.name} {self.release} ({self.source})"


def place_of(location: Location) -> str:
    """A path with its line, and which tree it is in where that is not the project."""
    place = f"{printable(location.path)}:{location.line}"
    return place if location.tree is Tree.PROJECT else f"{place} ({location.tree.value})"


@dataclass(frozen=True, slots=True)
class Report:
    """The result of one run.

    findings: settled (see `findings.settle`). notices: one sentence each, for stderr.
    errors: one sentence for each part of the run that failed while the rest went on, with its
    traceback in `tracebacks`.
    engines: one per checked tree, without repeats. files: how many were looked at.
    prefix: what leads from the working directory to the project root (`plugins/mine/`, `../`, or
    nothing); people are shown it before project paths, machines get paths without it.
    repository: what leads from the root of the repository to the project root; services that show
    findings beside the source know files by their path in the repository.
    accepted: how many findings the baseline holds back. known: its entries but for stale ones.
    confirmations: what the harness said of a finding, by its fingerprint.
    root: the directory that project paths are relative to.
    outside: the path of a location in the engine or a pack as seen from the working directory.
    """

    findings: tuple[Finding, ...]
    lines: Lines
    engines: tuple[Engine, ...] = ()
    notices: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    tracebacks: tuple[str, ...] = ()
    files: int = 0
    seconds: float = 0.0
    prefix: str = ""
    repository: str = ""
    accepted: int = 0
    known: tuple[Entry, ...] = ()
    confirmations: Mapping[str, Confirmation] = field(default_factory=dict)
    root: Path = Path()
    outside: Callable[[Location], str] = attrgetter("path")

    def path(self, location: Location) -> str:
        """The path of a location as seen from the working directory."""
        if location.tree is Tree.PROJECT:
            return self.prefix + location.path
        return self.outside(location)

    def repository_path(self, location: Location) -> str:
        """The path of a location as seen from the root of the repository, if it is in it."""
        return (self.repository if location.tree is Tree.PROJECT else "") + location.path

    def message(self, finding: Finding) -> str:
        """What a finding says, and what the harness says of it."""
        said = self.confirmations.get(finding.fingerprint)
        if said is None:
            return finding.message
        verdict = f"{said.verdict.value}, {said.execution.value}: {said.reason}"
        return f"{finding.message} [{verdict}]"

    @property
    def failed(self) -> bool:
        """Whether anything graver than a note was found."""
        return any(finding.severity is not Severity.NOTE for finding in self.findings)
