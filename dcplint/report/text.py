"""For people: every claim beside its source."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from dcplint.findings.model import Confidence, Evidence, Finding, Location, Role, Tree
from dcplint.report.escape import printable
from dcplint.report.frame import frame
from dcplint.report.model import Report
from dcplint.report.summary import fixable, summary
from dcplint.report.view import SEVERITY_COLORS, View

# Steps that carry the argument are shown with their source, the others in a line.
_FRAMED = frozenset({Role.ORIGIN, Role.GUARD, Role.PRODUCER, Role.CONSUMER, Role.GATE})
_LEAST_ROOM = 24  # below that a frame shows nothing
_EDGE_COLOR, _STEP_COLOR, _HELP_COLOR = "blue", "cyan", "green"


def render(report: Report, view: View) -> Iterator[str]:
    """The lines of the report."""
    for finding in report.findings:
        yield from _Block(report, view, finding).lines()
        yield ""
    if view.summary:
        yield from fixable(report)
        codes = {finding.code for finding in report.findings}
        if codes:
            code = codes.pop() if len(codes) == 1 else "CODE"
            yield f"For more about a rule: dcplint rule {code}"
        yield summary(report)


class _Block:
    """One finding on the page."""

    def __init__(self, report: Report, view: View, finding: Finding) -> None:
        self.report = report
        self.view = view
        self.finding = finding
        framed = (step.location for step in finding.evidence if self.is_framed(step))
        # Numbers of all frames are aligned.
        self.digits = max(len(str(place.end_line)) for place in (finding.location, *framed))

    def is_framed(self, step: Evidence) -> bool:
        return step.role in _FRAMED and len(self.report.lines(step.location)) >= step.location.line

    def lines(self) -> Iterator[str]:
        finding = self.finding
        color = SEVERITY_COLORS[finding.severity]
        label = f"{finding.severity.value}[{finding.code} {finding.name}]"
        yield from self.said(label, color, finding.message, bold=True)
        scope = f" in {printable(finding.symbol)}" if finding.symbol else ""
        yield from self.source(finding.location, "^", color, scope)
        framed = True  # whether the last thing printed is a frame
        for step in finding.evidence:
            if framed:
                yield self.edge("|")
            framed = self.is_framed(step)
            if framed:
                yield from self.said(step.role.value, _STEP_COLOR, step.message)
                yield from self.source(step.location, "-", _STEP_COLOR)
            else:
                yield from self.remark(step)
        closing = list(self.closing())
        if closing and framed:
            yield self.edge("|")
        yield from closing

    def closing(self) -> Iterator[str]:
        """How sure it is, and what helps."""
        if self.finding.confidence is not Confidence.HIGH:
            yield f"{self.edge('=')} confidence: {self.finding.confidence.value}"
        if self.finding.fix:
            yield from self.said("help", _HELP_COLOR, self.finding.fix.description)

    def said(self, label: str, color: str, message: str, *, bold: bool = False) -> Iterator[str]:
        """`label: message`, wrapped."""
        first, *rest = self.wrapped(f"{label}: ", "  ", message)
        paint = self.view.paint
        yield paint(label, color, bold=True) + paint(first.removeprefix(label), bold=bold)
        yield from (paint(line, bold=bold) for line in rest)

    def source(self, place: Location, mark: str, color: str, scope: str = "") -> Iterator[str]:
        """`--> path:line:column`, and the frame below it."""
        arrow = self.view.paint(f"{' ' * self.digits}-->", _EDGE_COLOR, bold=True)
        path = printable(self.report.path(place))
        yield f"{arrow} {path}:{place.line}:{place.column}{self.tree(place)}{scope}"
        room = max(self.view.width - self.digits - len(" | "), _LEAST_ROOM)
        rows = list(frame(self.report.lines(place), place, mark=mark, room=room))
        if rows:
            yield self.edge("|")
        for row in rows:
            text = row.text if row.number else self.view.paint(row.text, color, bold=True)
            yield f"{self.edge('|', row.number)} {text}".rstrip()

    def remark(self, step: Evidence) -> Iterator[str]:
        """`= mro: message (path:line)`, wrapped."""
        place, where = step.location, ""
        if place != self.finding.location:
            where = f" ({self.report.path(place)}:{place.line}{self.tree(place, ', ', '')})"
        indent = " " * (self.digits + len(" = "))
        first, *rest = self.wrapped(indent, indent, f"{step.role.label}: {step.message}{where}")
        yield f"{self.edge('=')} {first.removeprefix(indent)}"
        yield from rest

    def tree(self, place: Location, before: str = " (", after: str = ")") -> str:
        """Which tree the place is in, where that is not the checked one."""
        if place.tree is Tree.PROJECT:
            return ""
        engines = self.report.engines
        engine = f"{engines[0].name} {engines[0].release}" if len(engines) == 1 else "engine"
        return f"{before}{printable(engine) if place.tree is Tree.ENGINE else 'pack'}{after}"

    def wrapped(self, first: str, others: str, text: str) -> list[str]:
        return textwrap.wrap(
            printable(text),
            self.view.width,
            initial_indent=first,
            subsequent_indent=others,
            break_long_words=False,
            break_on_hyphens=False,
        ) or [first]

    def edge(self, sign: str, number: int | None = None) -> str:
        text = f"{number or ''}".rjust(self.digits) + f" {sign}"
        return self.view.paint(text, _EDGE_COLOR, bold=True)
