"""`dcplint diff`: what a change does, as text, markdown and JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

from dcplint import __version__
from dcplint.compare.capabilities import CapabilityChange, Effect
from dcplint.compare.findings import FindingChanges
from dcplint.compare.states import Promise
from dcplint.findings.model import Finding
from dcplint.program.attributes import Kind
from dcplint.report.escape import printable
from dcplint.report.markup import code, prose, table
from dcplint.report.model import Report
from dcplint.report.view import SEVERITY_COLORS, View

SCHEMA_VERSION = 1
MARKER = "<!-- dcplint diff -->"  # by which a workflow finds its own comment again
_COMMENT = 60_000  # characters; GitHub takes 65,536

_EFFECT_COLORS = {
    Effect.LOST: "red",
    Effect.GAINED: "green",
    Effect.UNCLEAR: "magenta",
    Effect.BASE: "yellow",
}


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two trees: what the user calls it, and the report on it."""

    name: str
    report: Report

    @property
    def title(self) -> str:
        """Its name, with the engine releases that it was judged against."""
        engines = ", ".join(f"{e.name} {e.release}" for e in self.report.engines)
        return printable(f"{self.name} ({engines})" if engines else self.name)


@dataclass(frozen=True, slots=True)
class Difference:
    """What there is to say of two trees."""

    base: Side
    head: Side
    capabilities: tuple[CapabilityChange, ...]
    findings: FindingChanges

    @property
    def failed(self) -> bool:
        """Whether a capability is lost, or a finding graver than a note is new."""
        return self.findings.failed or any(change.is_loss for change in self.capabilities)


def text(difference: Difference, view: View) -> Iterator[str]:
    """Capabilities in groups that changed alike, then the findings."""
    yield view.paint(f"{difference.base.title} → {difference.head.title}", bold=True)
    for capability, changes in groupby(difference.capabilities, lambda c: c.capability):
        yield ""
        yield view.paint(capability, bold=True)
        for (effect, what), alike in groupby(changes, lambda c: (c.effect, _what(c))):
            group = list(alike)
            label = view.paint(effect.value, _EFFECT_COLORS.get(effect), bold=True)
            asked = dict.fromkeys(map(_asked, group))
            common = next(iter(asked)) if len(asked) == 1 else ""
            told = "; ".join(filter(None, (what, common)))
            yield f"  {label} ({len(group)}): {told}" if told else f"  {label} ({len(group)})"
            width = max(len(c.state.qualname) for c in group)
            for change in group:
                name = printable(change.state.qualname)
                yield f"    {name:<{width}}  {_line(change, difference, not common)}"
    for title, color, findings in _finding_groups(difference):
        yield ""
        yield view.paint(f"{title} ({len(findings)})", color, bold=True)
        for finding, place in findings:
            severity = view.paint(finding.severity.value, SEVERITY_COLORS[finding.severity])
            yield f"  {place}: {severity} {finding.code} {printable(finding.message)}"
    yield ""
    yield _totals(difference)


def _what(change: CapabilityChange) -> str:
    """What a group of changes has in common."""
    if change.before is None or change.after is None:
        return ""
    return f"{_says(change.before)} → {_says(change.after)}"


def _says(promise: Promise, owner: bool = False) -> str:
    """A promise and who makes it; with the class it is inherited from where `owner` is set."""
    if promise.kind is Kind.UNKNOWN:
        return "unknown"
    value = repr(promise.value)
    if promise.kind is Kind.DEFAULT:
        return f"{value} by {promise.owner}'s default"
    if promise.kind is Kind.EXPLICIT:
        return f"{value}, said by itself"
    return f"{value}, inherited from {promise.owner}" if owner else f"{value}, inherited"


def _line(change: CapabilityChange, difference: Difference, asked: bool) -> str:
    """Where a class is, what is special about it, and, if wanted, who asks it."""
    after = change.after
    side = difference.base if after is None else difference.head
    place = side.report.path(change.state.location)
    parts = [f"{printable(place)}:{change.state.location.line}"]
    if change.moved_from:
        parts.append(f"was in {change.moved_from}")
    if after is not None:
        if change.before is None:
            parts.append(_says(after, owner=True))
        elif after.kind is Kind.INHERITED:
            parts.append(f"from {after.owner}")
        elif after.kind is Kind.UNKNOWN:
            parts.append(printable(after.reason))
    if asked and (told := _asked(change)):
        parts.append(told)
    return "  ".join(parts)


def _asked(change: CapabilityChange) -> str:
    """Which gates ask the class; nothing of classes that are gone, or only there to derive from."""
    promise = change.after
    if promise is None or change.effect is Effect.BASE:
        return ""
    if promise.asked:
        return f"asked at {', '.join(promise.asked)}"
    return f"not asked: {promise.unasked}"


def _finding_groups(
    difference: Difference,
) -> Iterator[tuple[str, str | None, list[tuple[Finding, str]]]]:
    """(title, colour, findings with their places) of what there is any of."""
    found, head = difference.findings, difference.head.report

    def placed(findings: Iterable[Finding], report: Report) -> list[tuple[Finding, str]]:
        return [(f, _place(f, report)) for f in findings]

    moves = [
        (b, f"{_place(a, difference.base.report)} → {_place(b, head)}") for a, b in found.moved
    ]
    graver = [(b, f"{_place(b, head)} (was {a.severity.value})") for a, b in found.graver]
    groups: list[tuple[str, str | None, list[tuple[Finding, str]]]] = [
        ("new findings", "red", placed(found.new, head)),
        ("graver findings", "red", graver),
        ("moved findings", None, moves),
        ("fixed findings", "green", placed(found.fixed, difference.base.report)),
    ]
    return (group for group in groups if group[2])


def _place(finding: Finding, report: Report) -> str:
    return f"{printable(report.path(finding.location))}:{finding.location.line}"


def _totals(difference: Difference) -> str:
    """`supports_dcp: 20 lost, 11 declared. Findings: 1 new, 39 fixed.`"""
    parts = []
    for capability, changes in groupby(difference.capabilities, lambda c: c.capability):
        counts = Counter(change.effect for change in changes)
        said = ", ".join(f"{counts[e]} {e.value}" for e in Effect if counts[e])
        parts.append(f"{capability}: {said}.")
    found = difference.findings
    counted = {
        "new": found.new, "graver": found.graver, "moved": found.moved, "fixed": found.fixed
    }  # fmt: skip
    said = ", ".join(f"{len(those)} {word}" for word, those in counted.items() if those)
    parts.append(f"Findings: {said or 'none new'}, {found.unchanged} as before.")
    return " ".join(parts if difference.capabilities else ["No capability changes.", *parts])


def markdown(difference: Difference, _: View) -> Iterator[str]:
    """A comment for a pull request: the totals, and tables that fit into one."""
    head = [
        MARKER,
        f"### dcplint: {prose(difference.base.title)} → {prose(difference.head.title)}",
        "",
        prose(_totals(difference)),
    ]
    yield from head
    room = _COMMENT - sum(map(len, head))
    for block in _blocks(difference):
        size = sum(len(line) + 1 for line in block)
        if size > room:
            yield ""
            yield "The rest does not fit into a comment; `dcplint diff` shows it."
            return
        room -= size
        yield from block


def _blocks(difference: Difference) -> Iterator[list[str]]:
    for capability, group in groupby(difference.capabilities, lambda c: c.capability):
        changes = list(group)
        yield [
            "",
            f"<details{' open' if any(c.is_loss for c in changes) else ''}>"
            f"<summary><code>{capability}</code>: {len(changes)} changes</summary>",
            "",
            *table(
                ("", "class", "before", "after", "gate"),
                (_row(change, difference) for change in changes),
            ),
            "",
            "</details>",
        ]
    for title, _, findings in _finding_groups(difference):
        yield [
            "",
            f"<details{' open' if title.startswith(('new', 'graver')) else ''}>"
            f"<summary>{len(findings)} {title}</summary>",
            "",
            *table(
                ("", "rule", "place", ""),
                (
                    (f.severity.value, f.code, prose(place), prose(f.message))
                    for f, place in findings
                ),
            ),
            "",
            "</details>",
        ]


def _row(change: CapabilityChange, difference: Difference) -> tuple[str, ...]:
    side = difference.base if change.after is None else difference.head
    place = f"{side.report.path(change.state.location)}:{change.state.location.line}"
    return (
        f"**{change.effect.value}**" if change.is_loss else change.effect.value,
        f"{code(change.state.qualname)}<br>{prose(place)}",
        *(prose(_says(p, owner=True)) if p else "–" for p in (change.before, change.after)),
        prose(_asked(change)),
    )


def as_json(difference: Difference, _: View) -> Iterator[str]:
    """`rules/diff.schema.json` describes it."""
    found = difference.findings
    document = {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "dcplint", "version": __version__},
        "base": _side(difference.base),
        "head": _side(difference.head),
        "capabilities": [_change(change) for change in difference.capabilities],
        "findings": {
            "new": [_finding(f) for f in found.new],
            "fixed": [_finding(f) for f in found.fixed],
            "moved": [{**_finding(b), "before": _finding(a)} for a, b in found.moved],
            "graver": [{**_finding(b), "before": _finding(a)} for a, b in found.graver],
        },
        "unchanged_findings": found.unchanged,
        "failed": difference.failed,
    }
    yield from json.dumps(document, indent=2).splitlines()


def _side(side: Side) -> dict[str, Any]:
    engines = [asdict(engine) for engine in side.report.engines]
    return {"name": side.name, "engines": engines, "files": side.report.files}


def _change(change: CapabilityChange) -> dict[str, Any]:
    after = change.after
    return {
        "capability": change.capability,
        "change": change.effect.value,
        "class": change.state.qualname,
        "module": change.state.module,
        "moved_from": change.moved_from or None,
        "path": change.state.location.path,
        "line": change.state.location.line,
        "level": change.state.level,
        "before": _promise(change.before),
        "after": _promise(after),
        "cause": change.cause,
        "asked_by": list(after.asked) if after else [],
        "not_asked_because": (after.unasked or None) if after else None,
    }


def _promise(promise: Promise | None) -> dict[str, Any] | None:
    if promise is None:
        return None
    place = promise.location
    return {
        "value": promise.value,
        "origin": promise.kind.value,
        "class": promise.owner or None,
        "path": place.path if place else None,
        "line": place.line if place else None,
        "tree": place.tree.value if place else None,
        "reason": promise.reason or None,
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.value,
        "message": finding.message,
        "path": finding.location.path,
        "line": finding.location.line,
        "column": finding.location.column,
        "symbol": finding.symbol,
        "fingerprint": finding.fingerprint,
    }


FORMATS: dict[str, Callable[[Difference, View], Iterator[str]]] = {
    "text": text,
    "markdown": markdown,
    "json": as_json,
}
