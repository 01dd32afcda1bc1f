"""The tables of docs/field-notes.md, one finding after the other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

NOTES = Path(__file__).parents[2] / "docs" / "field-notes.md"
_PLACE = re.compile(r"(\d[\w.]*):(\d+(?:,\d+)*)")


@dataclass(frozen=True, order=True)
class Judged:
    """One finding of one release. verdict: `right` or `wrong`, and why."""

    release: str
    code: str
    path: str
    line: int
    symbol: str
    verdict: str


def judged() -> Iterator[Judged]:
    """Every finding that a table row speaks of.

    A row is `code | symbol | file | releases and lines | verdict`, under a heading that names the
    distribution: `0.28.0:438 0.29.0:445`; several lines of one file are `0.11.1:7,12`.
    """
    distribution = ""
    for line in NOTES.read_text(encoding="utf-8").splitlines():
        if heading := re.fullmatch(r"## (\S+)", line):
            distribution = heading[1]
        cells = [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        if len(cells) == 5 and cells[0].startswith("DCP"):
            code, symbol, path, places, verdict = cells
            for release, numbers in _PLACE.findall(places):
                for number in numbers.split(","):
                    name = f"{distribution}-{release}"
                    yield Judged(name, code, path, int(number), symbol, verdict)
