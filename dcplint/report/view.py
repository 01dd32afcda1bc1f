"""How a report is to look."""

from __future__ import annotations

from dataclasses import dataclass

import click

from dcplint.findings.model import Severity

SEVERITY_COLORS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}


@dataclass(frozen=True, slots=True)
class View:
    """The reader's screen and wishes. `summary`: whether the closing lines are wanted."""

    color: bool = False
    width: int = 100
    summary: bool = True

    def paint(self, text: str, color: str | None = None, *, bold: bool = False) -> str:
        """The text in a colour, where colours are wanted."""
        wanted = self.color and (color or bold)
        return click.style(text, fg=color, bold=bold or None) if wanted else text
