"""Workflow commands: annotations on a pull request.

GitHub keeps 10 errors, 10 warnings and 10 notices of a step, and 4,096 characters of a message.
What is beyond that stands in the log as plain lines; a job's summary has room for all of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from dcplint.findings.model import Evidence, Finding, Severity
from dcplint.report.escape import printable
from dcplint.report.model import Report
from dcplint.report.summary import summary
from dcplint.report.view import View

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
_KEPT = 10
_LIMIT = 4096
_MORE = "\n..."


def render(report: Report, view: View) -> Iterator[str]:
    """The lines of the report."""
    room = dict.fromkeys(Severity, _KEPT)
    left = []
    for finding in sorted(report.findings, key=lambda f: f.severity.rank):
        if room[finding.severity]:
            room[finding.severity] -= 1
            yield _command(report, finding)
        else:
            left.append(finding)
    if left:
        yield f"::group::{len(left):,} more, for which GitHub has no room beside the code"
        yield from (_line(report, finding) for finding in left)
        yield "::endgroup::"
    if view.summary:
        yield summary(report)


def _command(report: Report, finding: Finding) -> str:
    place = finding.location
    properties = {
        "file": report.repository_path(place),
        "line": place.line,
        "endLine": place.end_line,
    }
    if place.line == place.end_line:
        # GitHub refuses columns on a span of several lines.
        properties |= {"col": place.column, "endColumn": place.end_column}
    properties["title"] = f"{finding.code} {finding.name}"
    listed = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
    return f"::{_COMMANDS[finding.severity]} {listed}::{_message(report, finding)}"


def _line(report: Report, finding: Finding) -> str:
    """A line of the log, which cannot be taken for a command whatever it holds."""
    place = f"{report.repository_path(finding.location)}:{finding.location.line}"
    text = f"{finding.severity.value} {place}: {finding.code} {report.message(finding)}"
    return printable(text).replace("##[", "## [")


def _message(report: Report, finding: Finding) -> str:
    """The message and as many whole lines of evidence as fit, escaped."""
    lines = [
        printable(report.message(finding)),
        *(_step(report, step) for step in finding.evidence),
    ]
    escaped = [_data(line) for line in lines]
    newline, more = _data("\n"), _data(_MORE)
    if len(newline.join(escaped)) <= _LIMIT:
        return newline.join(escaped)
    room = _LIMIT - len(more)
    text = escaped[0]
    if len(text) > room:
        cut = text[:room]
        # Not inside an escape: a percent sign stands for nothing else here.
        return cut[: cut.rindex("%")] + more if "%" in cut[-2:] else cut + more
    for line in escaped[1:]:
        if len(text) + len(newline) + len(line) > room:
            break
        text += newline + line
    return text + more


def _step(report: Report, step: Evidence) -> str:
    place = step.location
    return printable(
        f"{step.role.label}: {step.message} ({report.repository_path(place)}:{place.line})"
    )


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
