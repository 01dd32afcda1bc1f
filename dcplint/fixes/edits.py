"""The edits that make a change.

Only the class or function around a change is parsed, at its own lines, and rewritten by LibCST.
What differs afterwards is the edit: whatever a change does not touch keeps every byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import takewhile

import libcst as cst

from dcplint.findings.changes import (
    Change,
    CloneValue,
    DropFallback,
    PassArgument,
    StateAttribute,
)
from dcplint.findings.model import Edit, Finding, Location, Tree
from dcplint.fixes.argument import pass_argument
from dcplint.fixes.attribute import state_attribute
from dcplint.fixes.clone import clone_value
from dcplint.fixes.fallback import drop_fallback
from dcplint.source.concrete import parse_concrete
from dcplint.source.outline import outline

Lines = Callable[[Location], Sequence[str]]


def with_edits(findings: Iterable[Finding], lines: Lines) -> tuple[Finding, ...]:
    """The findings, with the edits of each fix worked out.

    A fix that cannot be made here, or lies outside the checked tree, is dropped.
    """
    return tuple(_with_edits(finding, lines) for finding in findings)


def _with_edits(finding: Finding, lines: Lines) -> Finding:
    fix = finding.fix
    if fix is None or fix.edits:
        return finding
    edit = make_edit(fix.change, lines(fix.change.scope))
    return replace(finding, fix=replace(fix, edits=(edit,)) if edit is not None else None)


def make_edit(change: Change, lines: Sequence[str]) -> Edit | None:
    """The edit that makes `change` in a file of `lines`; None where it cannot be made."""
    scope = change.scope
    if scope.tree is not Tree.PROJECT or scope.end_line > len(lines):
        return None
    module = _parse(change, lines)
    changed = _changed(change, module, lines) if module is not None else None
    if module is None or changed is None:
        return None
    return _difference(module.code.split("\n"), changed.code.split("\n"), lines, scope)


def _parse(change: Change, lines: Sequence[str]) -> cst.Module | None:
    """The lines of the scope, and one above them."""
    text = "\n".join(lines[change.scope.line - 1 : change.scope.end_line]) + "\n"
    if isinstance(change, StateAttribute):
        text = outline(text, ()).text  # what its methods do is of no interest
    # An indented class or function needs a block to stand in.
    opening = "if 1:" if text[:1] in " \t" else ""
    return parse_concrete(f"{opening}\n{text}")


def _above(scope: Location) -> int:
    """How many lines of the file stand above the first of the module that is parsed."""
    return scope.line - 2


def _changed(change: Change, module: cst.Module, lines: Sequence[str]) -> cst.Module | None:
    if isinstance(change, StateAttribute):
        return state_attribute(change, module, lines)
    at, above = change.at, _above(change.scope)
    moved = replace(change, at=replace(at, line=at.line - above, end_line=at.end_line - above))
    if isinstance(moved, PassArgument):
        return pass_argument(moved, module)
    if isinstance(moved, DropFallback):
        return drop_fallback(moved, module)
    assert isinstance(moved, CloneValue)
    return clone_value(moved, module)


def _difference(
    old: Sequence[str], new: Sequence[str], lines: Sequence[str], scope: Location
) -> Edit | None:
    """The smallest run of lines in which two texts differ; within one line, of characters."""
    path = scope.path
    before = _common(old, new)
    after = _common(old[before:][::-1], new[before:][::-1])
    gone, come = old[before : len(old) - after], new[before : len(new) - after]
    first = _above(scope) + before + 1
    if not gone and not come:
        return None
    if len(gone) == len(come) == 1:
        start = _common(gone[0], come[0])
        end = _common(gone[0][start:][::-1], come[0][start:][::-1])
        span = Location(path, first, start + 1, first, len(gone[0]) - end + 1)
        return Edit(span, come[0][start : len(come[0]) - end])
    last = first + len(gone) - 1
    if last < len(lines):
        return Edit(Location(path, first, 1, last + 1, 1), "".join(f"{line}\n" for line in come))
    # The file ends here, and without a line end.
    end = len(lines[last - 1]) + 1
    if first == 1:
        return Edit(Location(path, 1, 1, last, end), "\n".join(come))
    above = Location(path, first - 1, len(lines[first - 2]) + 1, last, end)
    return Edit(above, "".join(f"\n{line}" for line in come))


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many items two sequences begin with alike."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
