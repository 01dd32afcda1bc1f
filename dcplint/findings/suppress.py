"""Suppression comments.

`# dcplint: ignore[DCP101] reason` covers the findings that begin in the statement it stands in or
behind, or, on a line of its own, in the next one, decorators included; of a compound statement
that is the header, not the body. `# dcplint: ignore-file[DCP101] reason` covers the file, wherever
it stands. `# dcplint: ignore-subclasses[DCP101] reason` on a class covers its header and all that
is found in classes which derive from it, whatever file these are in. Brackets hold codes or names,
with commas between.

Suppressions are themselves checked: DCP002 reports one that nothing needs, DCP003 one that gives
no reason, DCP004 one that cannot be understood. Those three, and DCP005 on the baseline, answer to
`ignore` and `per-file-ignores` alone, else a comment could excuse itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from dcplint.findings.baseline import STALE
from dcplint.findings.catalogue import Catalogue, UnknownRule
from dcplint.findings.comments import Comment, comments
from dcplint.findings.model import Finding, Location

# Any file that holds a suppression contains these bytes: Python source is a superset of ASCII.
MARKER = b"dcplint:"

# The headers of the classes that a finding's class derives from, nearest first.
Bases = Callable[[Finding], Iterable[Location]]

UNUSED, UNREASONED, INVALID = "DCP002", "DCP003", "DCP004"
UNSUPPRESSIBLE = frozenset({UNUSED, UNREASONED, INVALID, STALE})

_DIRECTIVE = re.compile(r"#\s*dcplint:\s*(?P<body>.*?)\s*(?=#\s*dcplint:|$)")
_BODY = re.compile(
    r"ignore(?:-(?P<scope>file|subclasses))?(?![\w-])\s*(?:\[(?P<rules>[^\]]*)\](?P<reason>.*))?",
    re.DOTALL,
)
_OTHER_COMMENT = re.compile(r"(?:^|\s)#(?:\s.*)?$", re.DOTALL)
_WORD = re.compile(r"[^\s,](?:[^,]*[^\s,])?")
_USAGE = "write `# dcplint: ignore[DCP101] reason`"


@dataclass(frozen=True, slots=True)
class Suppression:
    """One rule named in one comment.

    `last` is 0 where the whole file is covered. heirs: whether subclasses are.
    """

    code: str
    location: Location
    first: int
    last: int
    heirs: bool = False

    def covers(self, code: str, line: int) -> bool:
        """Whether findings of that rule on that line of this file are suppressed."""
        return self.code == code and (not self.last or self.first <= line <= self.last)


def gives_reason(text: str) -> bool:
    """Whether what follows the brackets says anything, other comments aside."""
    return bool(re.search(r"\w", _OTHER_COMMENT.sub("", text)))


def read(path: str, source: str, catalogue: Catalogue) -> tuple[list[Suppression], list[Finding]]:
    """The suppressions in a file, narrowest first, and what is wrong with how they are written."""
    suppressions: list[Suppression] = []
    problems: list[Finding] = []
    for comment in comments(source) if MARKER.decode() in source else ():
        for directive in _DIRECTIVE.finditer(comment.text):
            for item in _read(path, comment, directive, catalogue):
                if isinstance(item, Suppression):
                    suppressions.append(item)
                else:
                    problems.append(item)
    suppressions.sort(key=lambda s: (not s.last, s.heirs))
    return suppressions, problems


def _read(
    path: str, comment: Comment, directive: re.Match[str], catalogue: Catalogue
) -> Iterator[Suppression | Finding]:
    def place(start: int, end: int) -> Location:
        column = comment.column
        return Location(path, comment.line, column + start, comment.line, column + end)

    def problem(code: str, message: str, where: Location) -> Finding:
        return catalogue.rule(code).finding(message, where)

    whole = place(directive.start(), directive.end())
    text, offset = directive["body"], directive.start("body")
    body = _BODY.match(text)
    if not body:
        yield problem(INVALID, f"{text!r} is not understood: {_USAGE}", whole)
        return
    words = list(_WORD.finditer(body["rules"] or ""))
    if not words:
        kind = f"ignore-{body['scope']}" if body["scope"] else "ignore"
        yield problem(INVALID, f"`{kind}` must name the rules it is about: {_USAGE}", whole)
        return
    if not gives_reason(body["reason"]):
        yield problem(UNREASONED, f"this suppression gives no reason: {_USAGE}", whole)
    for word in words:
        start = offset + body.start("rules") + word.start()
        where = place(start, start + len(word.group()))
        try:
            code = catalogue.rule(word.group()).code
        except UnknownRule as unknown:
            yield problem(INVALID, str(unknown), where)
            continue
        if code in UNSUPPRESSIBLE:
            message = f"{code} is about dcplint's own and cannot be suppressed by a comment"
            yield problem(INVALID, message, where)
        elif body["scope"] == "file":
            yield Suppression(code, where, 0, 0)
        else:
            heirs = body["scope"] == "subclasses"
            yield Suppression(code, where, comment.first, comment.last, heirs)


def apply(
    found: Iterable[Finding],
    suppressions: dict[str, list[Suppression]],
    bases: Bases = lambda finding: (),
) -> tuple[list[Finding], list[Suppression]]:
    """The findings that no suppression covers, and the suppressions that none needed."""
    used: set[Suppression] = set()
    left: list[Finding] = []
    inherited = {path: [s for s in here if s.heirs] for path, here in suppressions.items()}
    any_inherited = any(inherited.values())
    for finding in found:
        own = [(finding.location, suppressions)]
        above = ((place, inherited) for place in bases(finding)) if any_inherited else ()
        match = next(
            (
                s
                for place, known in (*own, *above)
                for s in known.get(place.path, ())
                if s.covers(finding.code, place.line)
            ),
            None,
        )
        if match:
            used.add(match)
        else:
            left.append(finding)
    every = (s for here in suppressions.values() for s in here)
    return left, [s for s in every if s not in used]


def unused(suppression: Suppression, catalogue: Catalogue) -> Finding:
    """The finding on a suppression that nothing needed."""
    rule = catalogue.rule(suppression.code)
    message = f"nothing here violates {rule.code} ({rule.name}): remove it from the comment"
    return catalogue.rule(UNUSED).finding(message, suppression.location)
