"""The rules by code, name and prefix, as users refer to them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import Protocol

from dcplint.findings.model import Confidence, Evidence, Finding, Fix, Location, Severity


class Declared(Protocol):
    """What findings need to know of a rule; `checks.base.Rule` is one."""

    @property
    def code(self) -> str:
        """`DCP101`."""

    @property
    def name(self) -> str:
        """`implicit-capability`."""

    @property
    def severity(self) -> Severity:
        """The severity of its findings, unless one says otherwise."""

    @property
    def default(self) -> bool:
        """Whether it is on without being selected."""

    def finding(
        self,
        message: str,
        location: Location,
        *,
        symbol: str = "",
        severity: Severity | None = None,
        confidence: Confidence = Confidence.HIGH,
        evidence: tuple[Evidence, ...] = (),
        fix: Fix | None = None,
    ) -> Finding:
        """A finding of this rule at `location`."""


class UnknownRule(LookupError):
    """No rule answers to a word; the message says so and suggests the nearest."""


class Catalogue:
    """All rules of a run."""

    def __init__(self, rules: Iterable[Declared]) -> None:
        self._by_code = {rule.code: rule for rule in rules}
        self._by_name = {rule.name: rule for rule in self._by_code.values()}

    def __iter__(self) -> Iterator[Declared]:
        return iter(self._by_code.values())

    def rule(self, word: str) -> Declared:
        """The rule with that code or name. Raises UnknownRule."""
        found = self._by_code.get(word) or self._by_name.get(word)
        if found is None:
            raise UnknownRule(self._unknown(word))
        return found

    def family(self, word: str) -> frozenset[str]:
        """The codes a selector covers: a code, a name, or the prefix of codes (`DCP1`).

        Raises UnknownRule.
        """
        codes = frozenset(code for code in self._by_code if code.startswith(word)) if word else ()
        return frozenset(codes) or frozenset({self.rule(word).code})

    def _unknown(self, word: str) -> str:
        folded = {key.casefold(): key for key in (*self._by_code, *self._by_name)}
        near = difflib.get_close_matches(word.casefold(), folded, n=1)
        hint = f"; did you mean {folded[near[0]]!r}?" if near else "; `dcplint rule` lists all"
        return f"no rule is called {word!r}{hint}"
