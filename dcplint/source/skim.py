"""What is asked of files that a run only skims, so that a later run can ask it again.

Nothing else of such a file counts. Only what answering needs is imported here: an earlier run's
outcome is to be given before anything else is.
"""

from __future__ import annotations

from collections.abc import Iterable

from dcplint import disk
from dcplint.source.scan import Pairs, Scan, Scanner
from dcplint.source.text import UnreadableSource, check_text, plain_lines

_SCAN, _ALIASES, _MENTION = "scan", "aliases", "mention"


def scanned(path: str, scanner: Scanner, scan: Scan) -> None:
    """Have it remembered what a scan of a file gave."""
    if disk.is_remembering():
        disk.learned(path, (_SCAN, *scanner.sought), _of_scan(scan))


def aliased(path: str, scanner: Scanner, aliases: Pairs) -> None:
    """Have it remembered which aliases a scanner found in a file."""
    if disk.is_remembering():
        disk.learned(path, (_ALIASES, *scanner.sought), _of_pairs(aliases))


def mentioned(path: str, words: Iterable[bytes], found: bool) -> None:
    """Have it remembered whether a file mentions one of some words."""
    disk.learned(path, (_MENTION, *(word.decode() for word in words)), str(found))


def ask(question: disk.Question, data: bytes) -> str | None:
    """What a file of these bytes answers to one of the questions above; None of what is no text."""
    kind, *sought = question
    data = plain_lines(data)
    try:
        check_text(data)
    except UnreadableSource:
        return None
    if kind == _MENTION:
        return str(mentions(data, [word.encode() for word in sought]))
    scanner = Scanner.seeking(sought)
    if kind == _SCAN:
        return _of_scan(scanner.scan(data))
    return _of_pairs(scanner.aliases(data))


def mentions(data: bytes, words: Iterable[bytes]) -> bool:
    """Whether one of the words occurs."""
    return any(word in data for word in words)


def _of_scan(scan: Scan) -> str:
    names = (sorted(scan.imported), scan.has_star, sorted(scan.words))
    return disk.digest(repr((_sorted(scan.headers), _sorted(scan.renamed), names)).encode())


def _of_pairs(pairs: Pairs) -> str:
    return disk.digest(repr(_sorted(pairs)).encode())


def _sorted(pairs: Pairs) -> list[tuple[bytes, list[bytes]]]:
    return [(name, sorted(sources)) for name, sources in pairs]
