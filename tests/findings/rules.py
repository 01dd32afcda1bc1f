"""A small catalogue: the tool rules and two others."""

from dcplint.checks import (
    dcp002_unused_suppression,
    dcp003_suppression_without_reason,
    dcp004_invalid_suppression,
    dcp005_stale_baseline_entry,
)
from dcplint.checks.base import Rule
from dcplint.findings.catalogue import Catalogue
from dcplint.findings.model import Finding, Location, Severity

IMPLICIT = Rule("DCP101", "implicit-capability", "flags a", Severity.WARNING, "0.1.0", "none: a")
LENGTH = Rule("DCP303", "open-coded-length", "flags b", Severity.ERROR, "0.1.0", "none: b")
CATALOGUE = Catalogue(
    (
        dcp002_unused_suppression.RULE,
        dcp003_suppression_without_reason.RULE,
        dcp004_invalid_suppression.RULE,
        dcp005_stale_baseline_entry.RULE,
        IMPLICIT,
        LENGTH,
    )
)
EVERY_CODE = frozenset(rule.code for rule in CATALOGUE)


def at(line: int, column: int = 1, *, rule: Rule = IMPLICIT, path: str = "a.py") -> Finding:
    return rule.finding("m", Location(path, line, column))
