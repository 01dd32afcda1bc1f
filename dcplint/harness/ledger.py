"""What a run did not take from the engine: named where it is used, and told in the verdict.

A *stub* stands in for something around the attention code (a config value, a library, an op that
stores rows); a *substitute* stands in for an attention kernel, of which the run then says nothing.
"""

from __future__ import annotations

_stubbed: dict[str, None] = {}
_substituted: dict[str, None] = {}


def note_stub(name: str) -> None:
    """`name` was asked of a stub."""
    _stubbed[name] = None


def note_substitute(name: str) -> None:
    """The attention kernel `name` was replaced by a reference in torch."""
    _substituted[name] = None


def stubbed() -> tuple[str, ...]:
    """All stubs asked so far in this process, in order."""
    return tuple(_stubbed)


def substituted() -> tuple[str, ...]:
    """All kernels replaced so far in this process, in order."""
    return tuple(_substituted)


class Unavailable(Exception):
    """The code needs what is not on this machine: a compiled op, a library, a card."""
