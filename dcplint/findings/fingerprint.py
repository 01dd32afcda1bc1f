"""The identity of a finding across edits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from dcplint.findings.model import Finding, Location


def with_fingerprints(
    found: Iterable[Finding], lines: Callable[[Location], Sequence[str]]
) -> list[Finding]:
    """The findings in report order, each with its fingerprint."""
    raise NotImplementedError
