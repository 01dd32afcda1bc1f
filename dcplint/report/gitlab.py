"""GitLab's code quality report: findings beside the lines of a merge request."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from dcplint.findings.model import Finding, Severity
from dcplint.report.escape import printable
from dcplint.report.model import Report
from dcplint.report.view import View

_SEVERITIES = {Severity.ERROR: "critical", Severity.WARNING: "major", Severity.NOTE: "info"}


def render(report: Report, view: View) -> Iterator[str]:
    """The lines of the report."""
    issues = [_issue(report, finding) for finding in report.findings]
    yield from json.dumps(issues, indent=2).splitlines()


def _issue(report: Report, finding: Finding) -> dict[str, Any]:
    place = finding.location
    return {
        "description": f"{finding.code} {printable(report.message(finding))}",
        "check_name": finding.name,
        "fingerprint": finding.fingerprint,
        "severity": _SEVERITIES[finding.severity],
        "location": {
            "path": report.repository_path(place),
            "lines": {"begin": place.line, "end": place.end_line},
        },
    }
