"""A bar chart of seconds as SVG, without any library."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

_WIDTH, _LEFT, _RIGHT, _ROW = 760, 270, 90, 26
_OURS, _THEIRS = "#2a6fb0", "#9aa4ad"


def plot(rows: Sequence[tuple[str, float]], title: str, path: Path) -> None:
    """Write a chart of (name, seconds); names that begin with `dcplint` are ours."""
    longest = max(seconds for _, seconds in rows)
    height = 44 + _ROW * len(rows)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        'font-family="sans-serif" font-size="13">',
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="12" y="24" font-weight="bold" fill="#1b1f24">{escape(title)}</text>',
    ]
    for number, (name, seconds) in enumerate(rows):
        y = 40 + number * _ROW
        bar = max((_WIDTH - _LEFT - _RIGHT) * seconds / longest, 1)
        color = _OURS if name.startswith("dcplint") else _THEIRS
        parts += [
            f'<text x="{_LEFT - 10}" y="{y + 13}" text-anchor="end" fill="#1b1f24">'
            f"{escape(name)}</text>",
            f'<rect x="{_LEFT}" y="{y}" width="{bar:.1f}" height="17" fill="{color}"/>',
            f'<text x="{_LEFT + bar + 6:.1f}" y="{y + 13}" fill="#1b1f24">{seconds:.2f} s</text>',
        ]
    path.write_text("\n".join([*parts, "</svg>", ""]), encoding="utf-8")
