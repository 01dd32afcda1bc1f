"""The finding: one fault, at one place, with the chain of evidence that proves it."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field


class Severity(enum.Enum):
    """How much a finding matters; `note` never fails a run."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    @property
    def rank(self) -> int:
        """0 for the gravest: sorting by it puts errors first."""
        return ("error", "warning", "note").index(self.value)


class Confidence(enum.Enum):
    """How sure the analysis is that the finding is right."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Tree(enum.Enum):
    """Which tree a location's path is relative to."""

    PROJECT = "project"  # the checked tree
    ENGINE = "engine"  # engine source outside the checked tree, read and never imported
    PACK = "pack"  # a contract pack, standing in for engine source that is not at hand


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A span of source. Lines and columns are 1-based; columns count code points.

    `path` is relative to the root of its tree and uses `/`. `end_column` is exclusive.
    """

    path: str
    line: int
    column: int = 1
    end_line: int = 0
    end_column: int = 0
    tree: Tree = field(default=Tree.PROJECT, compare=False)

    def __post_init__(self) -> None:
        if not self.end_line:
            object.__setattr__(self, "end_line", self.line)
        if not self.end_column:
            object.__setattr__(self, "end_column", self.column)


class Role(enum.Enum):
    """What part a piece of evidence plays in the argument."""

    ORIGIN = "origin"  # where the value comes from
    MRO = "mro"  # a class the lookup walked through
    GUARD = "guard"  # the condition that dominates
    PRODUCER = "producer"
    CONSUMER = "consumer"
    GATE = "gate"  # engine code that reads the capability and refuses
    CONTEXT = "context"  # anything else the reader needs


@dataclass(frozen=True, slots=True)
class Evidence:
    """One step of the argument, in reading order."""

    message: str
    location: Location
    role: Role = Role.CONTEXT


class Applicability(enum.Enum):
    """Whether a fix may be applied without a look."""

    SAFE = "safe"
    UNSAFE = "unsafe"


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the text at `location` (end exclusive) by `replacement`."""

    location: Location
    replacement: str


@dataclass(frozen=True, slots=True)
class Fix:
    """A change that removes the finding."""

    description: str
    applicability: Applicability
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault. Built by a rule's `Rule.finding`, which fills in code, name and defaults.

    `symbol` is the dotted name inside the module (`Outer.method`, `make.<locals>.Impl`), empty
    for a module-level finding. `fingerprint` is filled in by `findings.fingerprint`.
    """

    code: str
    name: str
    severity: Severity
    confidence: Confidence
    message: str
    location: Location
    symbol: str = ""
    evidence: tuple[Evidence, ...] = ()
    fix: Fix | None = None
    fingerprint: str = ""

    def sort_key(self) -> tuple[str, int, int, str, str]:
        """Deterministic report order: by place, then code."""
        place = self.location
        return (place.path, place.line, place.column, self.code, self.message)
