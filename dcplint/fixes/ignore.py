"""Suppression comments for findings that somebody has looked at: `--add-ignore REASON`."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from dcplint.errors import UserError
from dcplint.findings.comments import statements
from dcplint.findings.model import Edit, Finding, Location, Tree
from dcplint.findings.suppress import UNSUPPRESSIBLE, gives_reason
from dcplint.fixes.files import CannotEdit
from dcplint.fixes.passes import Fixed, Linted, edited

_INDENT = re.compile(r"[ \t\f]*")


def check_reason(reason: str) -> None:
    """Raises UserError for what would be no reason, or more than the rest of one comment."""
    if not gives_reason(reason):
        raise UserError("--add-ignore wants a reason: the next reader has nothing else to go by")
    if not reason.isprintable() or "dcplint:" in reason:
        raise UserError("--add-ignore: a reason is one line, and no comment of ours itself")


def add_ignores(linted: Linted, may_edit: Callable[[Path], bool], reason: str) -> Fixed:
    """Suppress what was found in the files that may be edited, each with the reason."""
    found: dict[str, list[Finding]] = {}
    for finding in linted.findings:
        place = finding.location
        if place.tree is Tree.PROJECT and finding.code not in UNSUPPRESSIBLE:
            found.setdefault(place.path, []).append(finding)
    outcome = Fixed()
    for name, findings in found.items():
        path = linted.root / name
        if not may_edit(path):
            continue
        lines = linted.lines(findings[0].location)
        covered = list(_comments(findings, "\n".join(lines), reason))
        edits = [edit for edit, _ in covered]
        try:
            if edits:
                outcome.after[path] = edited(outcome, path, edits, linted)
                outcome.findings[path] = [f for _, of_edit in covered for f in of_edit]
        except (CannotEdit, OSError) as error:
            outcome.leave(path, error)
    return outcome


def _comments(
    findings: Iterable[Finding], text: str, reason: str
) -> Iterator[tuple[Edit, list[Finding]]]:
    """A comment above each statement with findings, and the findings it is for.

    On a line of its own it covers all of the statement, whatever stands in or behind that already.
    """
    lines = text.split("\n")
    spans = list(statements(text))
    firsts = [span.first for span in spans]
    by_line: dict[int, list[Finding]] = {}
    for finding in findings:
        position = bisect_right(firsts, finding.location.line) - 1
        if position >= 0 and finding.location.line <= spans[position].last:
            by_line.setdefault(firsts[position], []).append(finding)
    for line, here in sorted(by_line.items()):
        indent = _INDENT.match(lines[line - 1])
        codes = ", ".join(sorted({finding.code for finding in here}))
        comment = f"{indent[0] if indent else ''}# dcplint: ignore[{codes}] {reason}\n"
        yield Edit(Location(here[0].location.path, line), comment), here
