"""From what the checks yield to what is reported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from dcplint.findings import suppress
from dcplint.findings.catalogue import Catalogue
from dcplint.findings.fingerprint import with_fingerprints
from dcplint.findings.model import Finding, Location
from dcplint.findings.policy import Policy


def settle(
    found: Iterable[Finding],
    *,
    catalogue: Catalogue,
    policy: Policy,
    sources: Iterable[tuple[str, str]],
    lines: Callable[[Location], Sequence[str]],
    in_focus: Callable[[str], bool] = lambda path: True,
) -> tuple[Finding, ...]:
    """What is left to report of `found`, in report order.

    Fingerprints, drops what is not selected, applies suppressions, severities and the threshold,
    and adds the findings on the suppressions themselves (DCP002 to DCP004).

    sources: path and text of the project files that contain `suppress.MARKER`, the only ones
    that can hold a suppression. in_focus: whether a file's suppressions are themselves to be
    judged; those of the others are followed all the same.
    """

    def is_on(code: str, path: str) -> bool:
        return code in policy.codes and code not in policy.ignored_in(path)

    suppressions: dict[str, list[suppress.Suppression]] = {}
    about: list[Finding] = []
    for path, text in sources:
        suppressions[path], problems = suppress.read(path, text, catalogue)
        about += problems if in_focus(path) else ()
    wanted = [f for f in found if is_on(f.code, f.location.path)]
    left, idle = suppress.apply(wanted, suppressions)
    # A rule that is off cannot tell whether its suppressions are needed.
    about += (
        suppress.unused(s, catalogue)
        for s in idle
        if is_on(s.code, s.location.path) and in_focus(s.location.path)
    )
    left += (f for f in about if is_on(f.code, f.location.path))
    graded = [_graded(f, catalogue, policy) for f in left]
    reaching = [f for f in graded if f.severity.rank <= policy.min_severity.rank]
    return tuple(with_fingerprints(reaching, lines))


def _graded(finding: Finding, catalogue: Catalogue, policy: Policy) -> Finding:
    wish = policy.severities.get(finding.code)
    if wish is None:
        return finding
    if finding.severity.rank > catalogue.rule(finding.code).severity.rank:
        # The rule knows this one to be harmless; raising the rule does not raise it.
        wish = max(wish, finding.severity, key=lambda severity: severity.rank)
    return replace(finding, severity=wish)
