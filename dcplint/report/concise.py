"""One line a finding: `path:line:column: CODE message`."""

from __future__ import annotations

from collections.abc import Iterator

from dcplint.report.escape import printable
from dcplint.report.model import Report
from dcplint.report.summary import summary
from dcplint.report.view import SEVERITY_COLORS, View


def render(report: Report, view: View) -> Iterator[str]:
    """The lines of the report."""
    for finding in report.findings:
        place = finding.location
        path = view.paint(printable(report.path(place)), bold=True)
        code = view.paint(finding.code, SEVERITY_COLORS[finding.severity], bold=True)
        yield f"{path}:{place.line}:{place.column}: {code} {printable(report.message(finding))}"
    if view.summary:
        yield summary(report)
