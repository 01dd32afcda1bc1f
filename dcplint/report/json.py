"""For programs: `rules/finding.schema.json` describes it.

`schema_version` changes when a key is removed or changes its meaning, not when one is added.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from dcplint import __version__
from dcplint.findings.model import Edit, Evidence, Finding, Fix, Location, Severity
from dcplint.report.address import page_of
from dcplint.report.model import Engine, Report
from dcplint.report.view import View

if TYPE_CHECKING:
    from dcplint.harness.model import Confirmation

SCHEMA_VERSION = 1


def render(report: Report, view: View) -> Iterator[str]:
    """The lines of the report. Pure ASCII: undecodable bytes in paths survive as surrogates."""
    yield from json.dumps(_report(report), indent=2).splitlines()


def _report(report: Report) -> dict[str, Any]:
    engines = [_engine(engine) for engine in report.engines]
    codes = Counter(finding.code for finding in report.findings)
    severities = Counter(finding.severity for finding in report.findings)
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "dcplint", "version": __version__},
        "engine": engines[0] if engines else None,
        "other_engines": engines[1:],
        "findings": [_finding(finding, report) for finding in report.findings],
        "summary": {
            "files": report.files,
            "findings": len(report.findings),
            "accepted": report.accepted,
            "by_code": dict(sorted(codes.items())),
            "by_severity": {severity.value: severities[severity] for severity in Severity},
            "seconds": round(report.seconds, 3),
        },
    }


def _engine(engine: Engine) -> dict[str, Any]:
    return {"name": engine.name, "release": engine.release, "source": engine.source}


def _finding(finding: Finding, report: Report) -> dict[str, Any]:
    said = report.confirmations.get(finding.fingerprint)
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.value,
        "confidence": finding.confidence.value,
        "message": finding.message,
        **_span(finding.location),
        "symbol": finding.symbol,
        "fingerprint": finding.fingerprint,
        "evidence": [_evidence(step) for step in finding.evidence],
        "fix": _fix(finding.fix) if finding.fix else None,
        "confirmation": confirmation_to_json(said) if said else None,
        "help_uri": page_of(finding.code),
    }


def _evidence(step: Evidence) -> dict[str, Any]:
    tree = {"tree": step.location.tree.value}
    return {**_span(step.location), **tree, "message": step.message, "role": step.role.value}


def _fix(fix: Fix) -> dict[str, Any]:
    return {
        "description": fix.description,
        "applicability": fix.applicability.value,
        "edits": [_edit(edit) for edit in fix.edits],
    }


def _edit(edit: Edit) -> dict[str, Any]:
    return {**_span(edit.location), "replacement": edit.replacement}


def _span(place: Location) -> dict[str, Any]:
    return {
        "path": place.path,
        "line": place.line,
        "column": place.column,
        "end_line": place.end_line,
        "end_column": place.end_column,
    }


def confirmation_to_json(confirmation: Confirmation) -> dict[str, Any]:
    """As `rules/finding.schema.json` has it. JSON has no infinities, so they become null."""
    measured = confirmation.measured
    return {
        "verdict": confirmation.verdict.value,
        "reason": confirmation.reason,
        "execution": confirmation.execution.value,
        "ranks": confirmation.ranks,
        "environment": confirmation.environment,
        "substituted": list(confirmation.substituted),
        "stubbed": list(confirmation.stubbed),
        "measured": measured if measured is not None and math.isfinite(measured) else None,
        "tolerance": confirmation.tolerance,
        "control": confirmation.control,
        "seed": confirmation.seed,
        "repro": confirmation.repro or None,
    }
