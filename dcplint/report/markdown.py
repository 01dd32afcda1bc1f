"""Markdown, for a comment on a change or the summary of a job: a table, the evidence folded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate, takewhile

from dcplint.findings.model import Evidence, Finding, Severity
from dcplint.report.escape import printable
from dcplint.report.model import Report
from dcplint.report.summary import summary
from dcplint.report.view import View

_SIGNS = {Severity.ERROR: "❌", Severity.WARNING: "⚠️", Severity.NOTE: "ℹ️"}
_CODE = re.compile(r"`[^`]*`")
# What Markdown, and the HTML in it, would take for more than text. Within a word `_` is text.
_MARKUP = re.compile(r"[\\`*{}\[\]<>#|~&$]|(?<![^\W_])_|_(?![^\W_])")


def render(report: Report, view: View) -> Iterator[str]:
    """The lines of the report."""
    if view.summary:
        yield f"**{_prose(summary(report))}**"
        yield ""
    if report.findings:
        yield "| | where | finding |"
        yield "|---|---|---|"
        yield from (_row(report, f) for f in sorted(report.findings, key=lambda f: f.severity.rank))


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


def _row(report: Report, finding: Finding) -> str:
    place = finding.location
    where = _code(f"{report.repository_path(place)}:{place.line}")
    text = f"**{finding.code}** {finding.name}<br>{_prose(report.message(finding))}"
    if finding.evidence:
        steps = "".join(f"<li>{_step(report, step)}</li>" for step in finding.evidence)
        text += f"<details><summary>evidence</summary><ul>{steps}</ul></details>"
    return f"| {_SIGNS[finding.severity]} {finding.severity.value} | {where} | {text} |"


def _step(report: Report, step: Evidence) -> str:
    place = step.location
    where = _code(f"{report.repository_path(place)}:{place.line}")
    return f"{step.role.label}: {_prose(step.message)} ({where})"


def _prose(text: str) -> str:
    """The text with its code spans, and nothing else in it, set as markup."""
    shown, position = "", 0
    text = printable(text)
    for span in _CODE.finditer(text):
        shown += _MARKUP.sub(r"\\\g<0>", text[position : span.start()]) + _code(span.group()[1:-1])
        position = span.end()
    return shown + _MARKUP.sub(r"\\\g<0>", text[position:])


def _code(text: str) -> str:
    """A code span in a table's cell: nothing in it is markup but the bar."""
    text = printable(text).replace("|", "\\|")
    ticks = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    edge = " " if text.startswith("`") or text.endswith("`") or text != text.strip() else ""
    return f"{ticks}{edge}{text}{edge}{ticks}"
