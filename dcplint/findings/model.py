"""The finding: one fault, at one place, with the chain of evidence that proves it."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from dcplint.findings.changes import Change
from dcplint.source.location import Location as Location
from dcplint.source.location import Tree as Tree


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


class Role(enum.Enum):
    """What part a piece of evidence plays in the argument."""

    ORIGIN = "origin"  # where the value comes from
    MRO = "mro"  # a class the lookup walked through
    GUARD = "guard"  # the condition that dominates
    PRODUCER = "producer"
    CONSUMER = "consumer"
    GATE = "gate"  # engine code that reads the capability and refuses
    CONTEXT = "context"  # anything else the reader needs

    @property
    def label(self) -> str:
        """What reports put before the message."""
        return "note" if self is Role.CONTEXT else self.value


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
    """A change that removes the finding.

    edits: empty until somebody has them worked out (`dcplint.fixes`), which takes LibCST: `--fix`,
    `--diff`, and the output formats that show them.
    """

    description: str
    applicability: Applicability
    change: Change
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault. Built by a rule's `Rule.finding`, which fills in code, name and defaults.

    `symbol` is the dotted name inside the module (`Outer.method`, `make.<locals>.Impl`), empty
    for a module-level finding. `fingerprint` is filled in by `findings.fingerprint`.
    `affirmation` is the fix where the harness refutes the finding: what nobody said is then true.
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
    affirmation: Fix | None = None
    fingerprint: str = ""

    def sort_key(self) -> tuple[str, int, int, str, str]:
        """Deterministic report order: by place, then code."""
        place = self.location
        return (place.path, place.line, place.column, self.code, self.message)
