"""SARIF 2.1.0, for code scanning.

Evidence becomes `relatedLocations` and, ending at the flagged place, a code flow. Paths of the
checked tree are relative to its repository; those of engine source and of packs to bases that only
the machine of the run could tell, so every region carries its text.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from dcplint import __version__
from dcplint.findings.fingerprint import flagged
from dcplint.findings.model import Edit, Evidence, Finding, Fix, Location, Severity, Tree
from dcplint.report.address import page_of
from dcplint.report.escape import printable
from dcplint.report.json import confirmation_to_json
from dcplint.report.model import Report
from dcplint.report.view import View

if TYPE_CHECKING:
    from dcplint.checks.base import Registered

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_BASES = {
    Tree.PROJECT: ("REPOSITORY", "The root of the repository that was checked."),
    Tree.ENGINE: ("ENGINE", "The engine's source: where it is installed, or --engine-path."),
    Tree.PACK: ("PACKS", "The folder of the contract pack."),
}
_PROBLEMS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "recommendation"}


def render(report: Report, view: View) -> Iterator[str]:
    """The lines of the report."""
    document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [_run(report)]}
    yield from json.dumps(document, indent=2).splitlines()


def _run(report: Report) -> dict[str, Any]:
    from dcplint.checks.base import all_rules  # not for `--help`, which lists the formats

    rules = all_rules()
    index = {registered.rule.code: number for number, registered in enumerate(rules)}
    driver = {
        "name": "dcplint",
        "semanticVersion": __version__,
        "informationUri": f"pkg:pypi/dcplint@{__version__}",
        "rules": [_rule(registered) for registered in rules],
    }
    return {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {name: {"description": _text(of)} for name, of in _BASES.values()},
        "results": [_result(report, f, index[f.code]) for f in report.findings],
        "properties": {
            "engines": [f"{e.name} {e.release} ({e.source})" for e in report.engines],
        },
    }


def _rule(registered: Registered) -> dict[str, Any]:
    rule = registered.rule
    headline, _, page = registered.documentation.strip().partition("\n")
    page_address = page_of(rule.code)
    return {
        "id": rule.code,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": _text(headline),
        "fullDescription": _text(f"dcplint {rule.summary}."),
        "help": {
            "text": registered.documentation.strip(),
            "markdown": f"# {rule.code} {rule.name}\n\n{headline}\n{page}",
        },
        **({"helpUri": page_address} if page_address else {}),
        "defaultConfiguration": {"level": rule.severity.value, "enabled": rule.default},
        "properties": {
            "tags": ["decode-context-parallelism"],
            "problem.severity": _PROBLEMS[rule.severity],
        },
    }


def _result(report: Report, finding: Finding, rule: int) -> dict[str, Any]:
    flagged = _location(report, finding.location)
    if finding.symbol:
        flagged["logicalLocations"] = [{"fullyQualifiedName": finding.symbol}]
    said = report.confirmations.get(finding.fingerprint)
    result = {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": finding.severity.value,
        "message": _text(printable(report.message(finding)) + "."),
        "locations": [flagged],
        "partialFingerprints": {"dcplint/v1": finding.fingerprint},
        "properties": {
            "confidence": finding.confidence.value,
            "confirmation": confirmation_to_json(said) if said else None,
        },
    }
    if finding.evidence:
        steps = [_step(report, step) for step in finding.evidence]
        last = {**_location(report, finding.location), "message": result["message"]}
        result["relatedLocations"] = [{"id": n, **step} for n, step in enumerate(steps, 1)]
        result["codeFlows"] = [
            {"threadFlows": [{"locations": [{"location": place} for place in (*steps, last)]}]}
        ]
    if finding.fix and finding.fix.edits:
        result["fixes"] = [_fix(report, finding.fix)]
    return result


def _step(report: Report, step: Evidence) -> dict[str, Any]:
    message = _text(printable(f"{step.role.label}: {step.message}") + ".")
    return {**_location(report, step.location), "message": message}


def _fix(report: Report, fix: Fix) -> dict[str, Any]:
    edits: dict[Location, list[Edit]] = {}
    for edit in fix.edits:
        edits.setdefault(Location(edit.location.path, 1), []).append(edit)
    changes = [
        {
            "artifactLocation": _artifact(report, file),
            "replacements": [_replacement(edit) for edit in of_file],
        }
        for file, of_file in edits.items()
    ]
    return {
        "description": _text(printable(fix.description) + "."),
        "artifactChanges": changes,
        "properties": {"applicability": fix.applicability.value},
    }


def _replacement(edit: Edit) -> dict[str, Any]:
    return {
        "deletedRegion": _region(edit.location),
        "insertedContent": {"text": edit.replacement},
    }


def _location(report: Report, place: Location) -> dict[str, Any]:
    region = _region(place)
    region["snippet"] = _text(flagged(report.lines(place), place))
    return {"physicalLocation": {"artifactLocation": _artifact(report, place), "region": region}}


def _artifact(report: Report, place: Location) -> dict[str, str]:
    path = quote(os.fsencode(report.repository_path(place)), safe="/")
    return {"uri": path, "uriBaseId": _BASES[place.tree][0]}


def _region(place: Location) -> dict[str, Any]:
    return {
        "startLine": place.line,
        "startColumn": place.column,
        "endLine": place.end_line,
        "endColumn": place.end_column,
    }


def _text(text: str) -> dict[str, str]:
    return {"text": text}
