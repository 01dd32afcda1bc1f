"""JUnit XML, for services that show test results: a suite per file, a failed test per finding.

A note never fails, so it is a test that passed and printed something.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from itertools import groupby

from dcplint.findings.model import Finding, Severity
from dcplint.report.escape import printable
from dcplint.report.model import Report
from dcplint.report.view import View


def render(report: Report, view: View) -> Iterator[str]:
    """The lines of the report."""
    yield '<?xml version="1.0" encoding="utf-8"?>'
    yield f'<testsuites name="dcplint"{_counts(report.findings)} time="{report.seconds:.3f}">'
    for path, found in groupby(report.findings, lambda f: report.repository_path(f.location)):
        findings = tuple(found)
        yield f"  <testsuite{_attributes(name=path)}{_counts(findings)}>"
        for finding in findings:
            yield from _test(report, finding, path)
        yield "  </testsuite>"
    if not report.findings:
        # Services take a report without any test for a failed run.
        yield '  <testsuite name="dcplint" tests="1" failures="0" errors="0">'
        yield '    <testcase name="no findings" classname="dcplint"/>'
        yield "  </testsuite>"
    yield "</testsuites>"


def _test(report: Report, finding: Finding, path: str) -> Iterator[str]:
    place = finding.location
    name = f"{finding.code} {finding.name} at line {place.line}, column {place.column}"
    yield f"    <testcase{_attributes(name=name, classname=path, file=path, line=place.line)}>"
    text = "\n".join(_lines(report, finding))
    if finding.severity is Severity.NOTE:
        yield f"      <system-out>{escape(text, quote=False)}</system-out>"
    else:
        attributes = _attributes(message=report.message(finding), type=finding.severity.value)
        yield f"      <failure{attributes}>{escape(text, quote=False)}</failure>"
    yield "    </testcase>"


def _lines(report: Report, finding: Finding) -> Iterator[str]:
    yield printable(report.message(finding))
    for step in finding.evidence:
        place = f"{report.repository_path(step.location)}:{step.location.line}"
        yield printable(f"{step.role.label}: {step.message} ({place})")


def _counts(findings: Iterable[Finding]) -> str:
    severities = [finding.severity for finding in findings]
    failures = len(severities) - severities.count(Severity.NOTE)
    return _attributes(tests=len(severities) or 1, failures=failures, errors=0)


def _attributes(**values: str | int) -> str:
    # XML has no way to write most control characters.
    return "".join(f' {key}="{escape(printable(str(v)))}"' for key, v in values.items())
