"""What was found in one root, with its paths as paths of the run; see `Checked.prefix`."""

from __future__ import annotations

from dataclasses import replace

from dcplint.compare.states import ClassState
from dcplint.findings.model import Evidence, Finding, Fix, Location, Tree
from dcplint.program.matrix import Row


def finding(found: Finding, prefix: str) -> Finding:
    """A finding, its evidence and its fix."""
    if not prefix:
        return found
    return replace(
        found,
        location=location(found.location, prefix),
        evidence=tuple(
            Evidence(e.message, location(e.location, prefix), e.role) for e in found.evidence
        ),
        fix=_fix(found.fix, prefix) if found.fix else None,
    )


def _fix(fix: Fix, prefix: str) -> Fix:
    change = fix.change
    scope, at = location(change.scope, prefix), location(change.at, prefix)
    return replace(fix, change=replace(change, scope=scope, at=at))


def state(found: ClassState, prefix: str) -> ClassState:
    """What a class promises."""
    promises = tuple(
        replace(p, location=location(p.location, prefix)) if p.location else p
        for p in found.promises
    )
    return replace(found, location=location(found.location, prefix), promises=promises)


def row(found: Row, prefix: str) -> Row:
    """A line of the capability matrix."""
    cells = tuple(
        replace(c, location=location(c.location, prefix)) if c.location else c for c in found.cells
    )
    return replace(found, location=location(found.location, prefix), cells=cells)


def location(place: Location, prefix: str) -> Location:
    """A place in the checked tree; those elsewhere stay as they are."""
    if place.tree is not Tree.PROJECT:
        return place
    return replace(place, path=prefix + place.path)
