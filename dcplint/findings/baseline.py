"""Findings that are accepted as they are.

A baseline is a text file with one JSON object a line, sorted: two branches that accept findings
touch different lines, and of a merge conflict any choice of lines, both sides' included, is a valid
baseline. Its fingerprint alone makes an entry; path and symbol are for people, and up to date from
when it was written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dcplint.errors import UserError
from dcplint.findings.model import Finding

STALE = "DCP005"


_HEADER = {"dcplint-baseline": 1}
_FINGERPRINT = re.compile("[0-9a-f]{16}")
_CONFLICT = ("<<<<<<<", "|||||||", "=======", ">>>>>>>")


@dataclass(frozen=True, slots=True)
class Entry:
    """One accepted finding. line: where it stands in the file, 0 for one not yet written."""

    code: str
    path: str
    symbol: str
    fingerprint: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.code} in {self.symbol or 'the module'} of {self.path}"


@dataclass(frozen=True, slots=True)
class Baseline:
    """A baseline file. path: as locations have it, relative to the index root."""

    path: str
    entries: tuple[Entry, ...]


def entry_of(finding: Finding) -> Entry:
    """The entry that accepts a finding."""
    return Entry(finding.code, finding.location.path, finding.symbol, finding.fingerprint)


def read_entries(text: str, shown: str) -> tuple[Entry, ...]:
    """The entries of a baseline. Raises UserError, which speaks of the file as `shown`."""
    entries = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(_CONFLICT):
            raise UserError(
                f"{shown}, line {number}: a merge conflict; lines of both sides may stay"
            )
        if line.strip():
            entry = _read(line, f"{shown}, line {number}", number)
            entries += [entry] if entry else []
    return tuple(entries)


def _read(line: str, where: str, number: int) -> Entry | None:
    try:
        value = json.loads(line)
        if list(value) == list(_HEADER):
            if value != _HEADER:
                raise UserError(f"{where}: written by a newer dcplint")
            return None
        code, path, symbol, fingerprint = (
            value[key] for key in ("code", "path", "symbol", "fingerprint")
        )
        if not all(isinstance(part, str) for part in (code, path, symbol)):
            raise TypeError(line)
        if not _FINGERPRINT.fullmatch(fingerprint):
            raise ValueError(line)
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        raise UserError(
            f"{where}: not a line of a baseline; `dcplint baseline` writes one"
        ) from error
    return Entry(code, path, symbol, fingerprint, number)


def written(entries: Iterable[Entry]) -> Iterator[str]:
    """The lines of a baseline file, without line ends."""
    yield json.dumps(_HEADER)
    keyed = {entry.fingerprint: entry for entry in entries}
    for entry in sorted(keyed.values(), key=lambda e: (e.path, e.symbol, e.code, e.fingerprint)):
        yield json.dumps(
            {
                "code": entry.code,
                "path": entry.path,
                "symbol": entry.symbol,
                "fingerprint": entry.fingerprint,
            }
        )
