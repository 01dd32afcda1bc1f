"""The identity of a finding across edits.

A fingerprint is 16 hexadecimal digits of a SHA-256 over

1. the code,
2. the symbol, or the path where there is none: a renamed file keeps its findings' identity,
3. the flagged text (the whole line where the span is empty) without white space, line
   continuations, commas before a closing bracket and the choice of quotes: a moved or reformatted
   finding stays the same,
4. a counter over findings that agree in all of these, in report order.

Messages, lines and severities are left out, so rewording and engine releases change nothing. The
counter makes equal findings a multiset: fixing one of three leaves the other two known.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from dcplint.findings.model import Finding, Location

_LAYOUT = re.compile(r"\\(?=\n)|\s+")
_TRAILING_COMMA = re.compile(r",(?=[)\]}])")


def with_fingerprints(
    found: Iterable[Finding], lines: Callable[[Location], Sequence[str]]
) -> list[Finding]:
    """The findings in report order, each with its fingerprint."""
    seen: Counter[tuple[str, str, str]] = Counter()
    result = []
    for finding in sorted(found, key=Finding.sort_key):
        text = flagged(lines(finding.location), finding.location)
        identity = (finding.code, finding.symbol or finding.location.path, _normalised(text))
        result.append(replace(finding, fingerprint=_digest(*identity, str(seen[identity]))))
        seen[identity] += 1
    return result


def flagged(lines: Sequence[str], span: Location) -> str:
    """The text of a span, or the whole line where it is empty."""
    rows = list(lines[span.line - 1 : span.end_line])
    if rows and (span.line, span.column) != (span.end_line, span.end_column):
        # The end first: on one line, cutting the start would shift it.
        if len(rows) == span.end_line - span.line + 1:
            rows[-1] = rows[-1][: span.end_column - 1]
        rows[0] = rows[0][span.column - 1 :]
    return "\n".join(rows)


def _normalised(text: str) -> str:
    return _TRAILING_COMMA.sub("", _LAYOUT.sub("", text)).replace("'", '"')


def _digest(*parts: str) -> str:
    whole = "\0".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(whole).hexdigest()[:16]
