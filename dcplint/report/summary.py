"""The closing line, and the counts behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dcplint.findings.model import Applicability, Severity
from dcplint.report.escape import printable
from dcplint.report.model import Report
from dcplint.report.view import SEVERITY_COLORS, View


def summary(report: Report) -> str:
    """`Found 3 errors and 36 warnings in 3,231 files, checked against vllm 0.29.0 (…).`."""
    count = Counter(finding.severity for finding in report.findings)
    counts = [_plural(count[severity], severity.value) for severity in Severity if count[severity]]
    found = f"Found {_joined(counts)}" if counts else "No findings"
    against = [f"{engine.name} {engine.release} ({engine.source})" for engine in report.engines]
    checked = f", checked against {printable(_joined(against))}" if against else ""
    if not counts and not against:
        them = "it" if report.files == 1 else "them"
        checked = f": nothing in {them} takes part in the attention of an engine that dcplint knows"
    accepted = f" ({report.accepted:,} in the baseline)" if report.accepted else ""
    return f"{found}{accepted} in {_plural(report.files, 'file')}{checked}."


def fixable(report: Report) -> Iterator[str]:
    """`Fixable: 2 with --fix and 1 more with --fix --unsafe-fixes.`, if any is."""
    count = Counter(f.fix.applicability for f in report.findings if f.fix is not None)
    safe, unsafe = count[Applicability.SAFE], count[Applicability.UNSAFE]
    parts = [f"{safe:,} with --fix"] if safe else []
    if unsafe:
        parts.append(f"{unsafe:,}{' more' if safe else ''} with --fix --unsafe-fixes")
    if parts:
        yield f"Fixable: {_joined(parts)}."


def statistics(report: Report, view: View) -> Iterator[str]:
    """How often each rule reports, most often first, in place of the findings."""
    count = Counter((f.code, f.name, f.severity) for f in report.findings)
    order = sorted(count, key=lambda key: (-count[key], key[0], key[2].rank))
    digits = max((len(f"{n:,}") for n in count.values()), default=0)
    names = max((len(name) for _, name, _ in order), default=0)
    for code, name, severity in order:
        number = f"{count[code, name, severity]:,}".rjust(digits)
        word = view.paint(severity.value, SEVERITY_COLORS[severity])
        yield f"{number}  {view.paint(code, bold=True)}  {name.ljust(names)}  {word}"
    if view.summary:
        yield summary(report)


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _joined(parts: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))
