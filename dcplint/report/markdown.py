"""Markdown, for a comment on a change or the summary of a job: a table, the evidence folded."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, takewhile

from dcplint.findings.model import Evidence, Finding, Severity
from dcplint.report.markup import code, prose, table
from dcplint.report.model import Report
from dcplint.report.summary import summary
from dcplint.report.view import View

_SIGNS = {Severity.ERROR: "❌", Severity.WARNING: "⚠️", Severity.NOTE: "ℹ️"}


def render(report: Report, view: View) -> Iterator[str]:
    """The lines of the report."""
    if view.summary:
        yield f"**{prose(summary(report))}**"
        yield ""
    if report.findings:
        gravest_first = sorted(report.findings, key=lambda f: f.severity.rank)
        yield from table(("", "where", "finding"), (_row(report, f) for f in gravest_first))


def within(lines: Iterator[str], size: int) -> Iterator[str]:
    """As many whole lines as fit into `size` bytes of UTF-8, and what to say where some do not."""
    last = "\nThere is more than fits here: the log has all of it."
    listed = list(lines)
    sizes = list(accumulate(len(line.encode("utf-8", "replace")) + 1 for line in listed))
    if not sizes or sizes[-1] <= size:
        yield from listed
        return
    room = size - len(last.encode()) - 1
    if room < 0:
        return
    fitting = takewhile(lambda pair: pair[1] <= room, zip(listed, sizes, strict=True))
    yield from (line for line, _ in fitting)
    yield last


def _row(report: Report, finding: Finding) -> tuple[str, str, str]:
    place = finding.location
    where = code(f"{report.repository_path(place)}:{place.line}")
    text = f"**{finding.code}** {finding.name}<br>{prose(report.message(finding))}"
    if finding.evidence:
        steps = "".join(f"<li>{_step(report, step)}</li>" for step in finding.evidence)
        text += f"<details><summary>evidence</summary><ul>{steps}</ul></details>"
    return f"{_SIGNS[finding.severity]} {finding.severity.value}", where, text


def _step(report: Report, step: Evidence) -> str:
    place = step.location
    where = code(f"{report.repository_path(place)}:{place.line}")
    return f"{step.role.label}: {prose(step.message)} ({where})"
