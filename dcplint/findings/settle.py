"""From what the checks yield to what is reported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from dcplint.findings.catalogue import Catalogue
from dcplint.findings.model import Finding, Location
from dcplint.findings.policy import Policy


def settle(
    found: Iterable[Finding],
    *,
    catalogue: Catalogue,
    policy: Policy,
    sources: Iterable[tuple[str, str]],
    lines: Callable[[Location], Sequence[str]],
) -> tuple[Finding, ...]:
    """What is left to report of `found`, in report order.

    Fingerprints, drops what is not selected, applies suppressions, severities and the threshold,
    and adds the findings on the suppressions themselves (DCP002 to DCP004).

    sources: path and text of the project files that contain `suppress.MARKER`, the only ones
    that can hold a suppression.
    """
    raise NotImplementedError
