"""Which findings a change brings, removes and moves, by their fingerprints."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from dcplint.findings.model import Finding, Severity


@dataclass(frozen=True, slots=True)
class FindingChanges:
    """Findings of two runs, each in report order.

    moved and graver are pairs of before and after: in another file, or of a graver severity.
    """

    new: tuple[Finding, ...]
    fixed: tuple[Finding, ...]
    moved: tuple[tuple[Finding, Finding], ...]
    graver: tuple[tuple[Finding, Finding], ...]
    unchanged: int

    @property
    def failed(self) -> bool:
        """Whether anything graver than a note is new, or has become so."""
        come = (*self.new, *(after for _, after in self.graver))
        return any(finding.severity is not Severity.NOTE for finding in come)


def finding_changes(base: Iterable[Finding], head: Iterable[Finding]) -> FindingChanges:
    """Compare two runs. A finding is the same where code and fingerprint are.

    What is left of a rule in one symbol on either side is the same too: its text was edited. So is
    what says the same of two symbols of one file: it was renamed.
    """
    before = {(f.code, f.fingerprint): f for f in base}
    after = {(f.code, f.fingerprint): f for f in head}
    pairs = [(before.pop(key), after.pop(key)) for key in list(after) if key in before]
    for is_same in (_is_edited, _is_renamed):
        for key, finding in list(after.items()):
            same = next((k for k, f in before.items() if is_same(f, finding)), None)
            if same is not None:
                pairs.append((before.pop(same), after.pop(key)))
    pairs.sort(key=lambda pair: pair[1].sort_key())
    moved = tuple((a, b) for a, b in pairs if a.location.path != b.location.path)
    graver = tuple((a, b) for a, b in pairs if b.severity.rank < a.severity.rank)
    return FindingChanges(
        new=tuple(after.values()),
        fixed=tuple(before.values()),
        moved=moved,
        graver=graver,
        unchanged=len(pairs) - len({id(b) for _, b in (*moved, *graver)}),
    )


def _is_edited(one: Finding, other: Finding) -> bool:
    return bool(one.symbol) and (one.code, one.symbol) == (other.code, other.symbol)


def _is_renamed(one: Finding, other: Finding) -> bool:
    return (
        (one.code, one.location.path) == (other.code, other.location.path)
        and bool(one.symbol and other.symbol)
        and _unnamed(one) == _unnamed(other)
    )


def _unnamed(finding: Finding) -> str:
    """What a finding says, whatever its symbol is called."""
    name = finding.symbol.rpartition(".")[2]
    return re.sub(rf"\b(?:\w+\.)*{re.escape(name)}\b", "", finding.message)
