"""From what the checks yield to what is reported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from dcplint.findings import suppress
from dcplint.findings.baseline import STALE, Baseline, Entry, entry_of
from dcplint.findings.catalogue import Catalogue
from dcplint.findings.fingerprint import with_fingerprints
from dcplint.findings.model import Evidence, Finding, Location, Role, Tree
from dcplint.findings.policy import Policy


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is left to report, in report order, and what the baseline holds back.

    accepted: how many findings would have been reported but for the baseline. known: the
    baseline's entries but for stale ones, as they would be written today.
    """

    findings: tuple[Finding, ...]
    accepted: int = 0
    known: tuple[Entry, ...] = ()


def settle(
    found: Iterable[Finding],
    *,
    catalogue: Catalogue,
    policy: Policy,
    sources: Iterable[tuple[str, str]],
    lines: Callable[[Location], Sequence[str]],
    in_focus: Callable[[str], bool] = lambda path: True,
    bases: suppress.Bases = lambda finding: (),
    baseline: Baseline | None = None,
    complete: bool = True,
) -> Outcome:
    """What is left to report of `found`, in report order.

    Fingerprints, drops what is not selected, applies suppressions, baseline, focus, severities and
    the threshold, and adds the findings on suppressions and baseline themselves (DCP002 to DCP005).

    found: of the whole program, so that a fingerprint does not depend on the focus. sources: path
    and text of the project files that contain `suppress.MARKER`, the only ones that can hold a
    suppression. in_focus: whether the user asked about a file; a finding belongs to the files its
    own line or its evidence lies in (see `_parts`). Suppressions of other files are followed too.
    bases: headers of the classes that a finding's class derives from. complete: whether every
    rule ran, so that what is not found is not there.
    """

    def is_on(code: str, path: str) -> bool:
        return code in policy.codes and code not in policy.ignored_in(path)

    def is_asked_about(finding: Finding) -> bool:
        places = (finding.location, *(step.location for step in _parts(finding)))
        return any(place.tree is Tree.PROJECT and in_focus(place.path) for place in places)

    suppressions: dict[str, list[suppress.Suppression]] = {}
    about: list[Finding] = []
    for path, text in sources:
        suppressions[path], problems = suppress.read(path, text, catalogue)
        about += problems if in_focus(path) else ()
    identified = with_fingerprints(found, lines)
    wanted = [f for f in identified if is_on(f.code, f.location.path)]
    left, idle = suppress.apply(wanted, suppressions, bases)
    # A rule that is off cannot tell whether its suppressions and its accepted findings are needed.
    about += (
        suppress.unused(s, catalogue)
        for s in idle
        if is_on(s.code, s.location.path) and in_focus(s.location.path)
    )
    entries = frozenset(entry.fingerprint for entry in baseline.entries) if baseline else ()
    accepted = [f for f in left if f.fingerprint in entries]
    known = {f.fingerprint: entry_of(f) for f in accepted}
    if baseline:
        idle_entries = [e for e in baseline.entries if e.fingerprint not in known]
        stale = [e for e in idle_entries if is_on(e.code, e.path) and in_focus(e.path) and complete]
        about += (_stale(entry, baseline, catalogue) for entry in stale)
        known |= {e.fingerprint: e for e in idle_entries if e not in stale}
    new = [f for f in left if f.fingerprint not in entries]
    about = [f for f in about if is_on(f.code, f.location.path)]
    reported = [*filter(is_asked_about, new), *with_fingerprints(about, lines)]
    graded = (_graded(f, catalogue, policy) for f in reported)
    reaching = (f for f in graded if f.severity.rank <= policy.min_severity.rank)
    return Outcome(
        findings=tuple(sorted(reaching, key=Finding.sort_key)),
        accepted=sum(map(is_asked_about, accepted)),
        known=tuple(known.values()),
    )


def _parts(finding: Finding) -> Iterator[Evidence]:
    """The steps of a finding that it belongs to.

    What the engine does wrong for readers of its own is the engine's, whoever else reads it.
    """
    engines = finding.location.tree is Tree.ENGINE and any(
        step.role is Role.CONSUMER and step.location.tree is Tree.ENGINE
        for step in finding.evidence
    )
    return (s for s in finding.evidence if not (engines and s.role is Role.CONSUMER))


def _stale(entry: Entry, baseline: Baseline, catalogue: Catalogue) -> Finding:
    message = f"this accepts a finding that is gone: {entry}"
    return catalogue.rule(STALE).finding(message, Location(baseline.path, entry.line))


def _graded(finding: Finding, catalogue: Catalogue, policy: Policy) -> Finding:
    wish = policy.severities.get(finding.code)
    if wish is None:
        return finding
    if finding.severity.rank > catalogue.rule(finding.code).severity.rank:
        # The rule knows this one to be harmless; raising the rule does not raise it.
        wish = max(wish, finding.severity, key=lambda severity: severity.rank)
    return replace(finding, severity=wish)
