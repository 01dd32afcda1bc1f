"""How messages put things."""

from __future__ import annotations

from collections.abc import Collection


def said_of(names: Collection[object], verb: str) -> str:
    """Names and what they do: `A reads`, `A, B read`."""
    return f"{', '.join(map(str, names))} {verb}{'s' if len(names) == 1 else ''}"
