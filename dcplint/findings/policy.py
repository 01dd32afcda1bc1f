"""What the user decided about findings: which to report, and how gravely."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache

from pathspec import GitIgnoreSpec

from dcplint.findings.catalogue import Catalogue
from dcplint.findings.model import Severity


@dataclass(frozen=True, slots=True)
class Policy:
    """Decisions on findings, resolved to codes.

    codes: the rules that are on. per_file_ignores: gitignore-style pattern, codes.
    severities: replaces a rule's default severity.
    """

    codes: frozenset[str]
    per_file_ignores: tuple[tuple[str, frozenset[str]], ...] = ()
    severities: Mapping[str, Severity] = field(default_factory=dict)
    min_severity: Severity = Severity.NOTE

    def ignored_in(self, path: str) -> frozenset[str]:
        """The codes that `per-file-ignores` turns off in a project file."""
        matching = (codes for pattern, codes in self.per_file_ignores if _matches(pattern, path))
        return frozenset().union(*matching)


def selected(
    catalogue: Catalogue,
    *,
    select: Iterable[str] | None = None,
    extend_select: Iterable[str] = (),
    ignore: Iterable[str] = (),
) -> frozenset[str]:
    """The codes that are on.

    The longer selector wins (`--ignore DCP1 --select DCP101` leaves DCP101 on), a tie goes to
    `ignore`. Without `select`, the rules that are on by default are. Raises UnknownRule.
    """
    wanted = {rule.code: 0 for rule in catalogue if rule.default} if select is None else {}
    _weigh(catalogue, (*(select or ()), *extend_select), wanted)
    refused: dict[str, int] = {}
    _weigh(catalogue, ignore, refused)
    return frozenset(code for code, weight in wanted.items() if weight > refused.get(code, -1))


def _weigh(catalogue: Catalogue, words: Iterable[str], weights: dict[str, int]) -> None:
    for word in words:
        codes = catalogue.family(word)
        for code in codes:
            # A name is as exact as the whole code, however long it is.
            weights[code] = max(weights.get(code, 0), min(len(word), len(code)))


@cache
def _spec(pattern: str) -> GitIgnoreSpec:
    return GitIgnoreSpec.from_lines([pattern])


def _matches(pattern: str, path: str) -> bool:
    return _spec(pattern).match_file(path)
