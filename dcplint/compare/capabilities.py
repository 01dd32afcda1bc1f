"""Which promises a change makes, breaks or moves."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dcplint.compare.states import ClassState, Promise
from dcplint.program.attributes import Kind


class Effect(enum.Enum):
    """What happens to a promise, in the order of reports."""

    BASE = "base"  # a base of the engine says something else, which is the cause of others
    LOST = "lost"  # it was true and is false
    GAINED = "gained"  # it was false and is true
    UNCLEAR = "unclear"  # it cannot be told any more
    CLEAR = "clear"  # it can be told now
    DECLARED = "declared"  # the class itself says now what was a default or inherited
    INHERITED = "inherited"  # as before, but another class says it
    UNDECLARED = "undeclared"  # as before, but the class no longer says it itself
    NEW = "new"  # the class is new
    REMOVED = "removed"  # the class is gone


@dataclass(frozen=True, slots=True)
class CapabilityChange:
    """One promise of one class, before and after; None where the class or capability is not there.

    cause: the class that makes it so. moved_from: the module it was in, where that is another one.
    """

    capability: str
    effect: Effect
    state: ClassState
    before: Promise | None
    after: Promise | None
    cause: str
    moved_from: str = ""

    @property
    def is_loss(self) -> bool:
        """Whether something that had to be promised deliberately is promised no more."""
        return self.effect is Effect.LOST and self.before is not None and self.before.deliberate


def capability_changes(
    base: Sequence[ClassState], head: Sequence[ClassState]
) -> tuple[CapabilityChange, ...]:
    """Every promise that differs, by capability, effect, and place.

    Classes that leave methods to others make no promise of their own, and are left out.
    """
    found = [
        change
        for old, new in _pairs(base, head)
        for change in _changes(old, new)
        if change.state.level != "abstract"
    ]
    effects = list(Effect)
    capabilities = list(dict.fromkeys(p.capability for s in (*head, *base) for p in s.promises))

    def order(change: CapabilityChange) -> tuple[object, ...]:
        said = (change.before, change.after)
        alike = tuple((p.kind.value, repr(p.value)) if p else ("", "") for p in said)
        effect = effects.index(change.effect)
        return (capabilities.index(change.capability), effect, alike, change.state.location)

    return tuple(sorted(found, key=order))


def _pairs(
    base: Sequence[ClassState], head: Sequence[ClassState]
) -> Iterator[tuple[ClassState | None, ClassState | None]]:
    """The same class before and after: of one name, or of one that only changed its module."""
    before = {(state.module, state.qualname): state for state in base}
    after = {(state.module, state.qualname): state for state in head}
    gone = [state for key, state in before.items() if key not in after]
    come = [state for key, state in after.items() if key not in before]
    once = Counter(s.qualname for s in gone), Counter(s.qualname for s in come)
    moved = {s.qualname: s for s in gone if once[0][s.qualname] == 1 and once[1][s.qualname] == 1}
    for key, state in after.items():
        yield before.get(key) or moved.get(state.qualname), state
    yield from ((s, None) for s in gone if moved.get(s.qualname) is not s)


def _changes(old: ClassState | None, new: ClassState | None) -> Iterator[CapabilityChange]:
    state = new or old
    assert state is not None
    moved_from = old.module if old and new and old.module != new.module else ""
    for name in dict.fromkeys(p.capability for s in (new, old) if s for p in s.promises):
        before = old.promise(name) if old else None
        after = new.promise(name) if new else None
        if old and new and (before is None or after is None):
            continue  # the capability itself came or went with the release
        effect = _effect(state, before, after)
        if effect is not None:
            cause = _cause(state, before, after)
            yield CapabilityChange(name, effect, state, before, after, cause, moved_from)


def _effect(state: ClassState, before: Promise | None, after: Promise | None) -> Effect | None:
    if before is None or after is None:
        said = before or after
        if said is None or not said.deliberate:
            return None
        return Effect.REMOVED if after is None else Effect.NEW
    if state.level == "base":
        speaks = Kind.EXPLICIT in (before.kind, after.kind)
        differs = (before.value, before.kind) != (after.value, after.kind)
        return Effect.BASE if speaks and differs else None
    is_known = before.kind is not Kind.UNKNOWN, after.kind is not Kind.UNKNOWN
    if is_known != (True, True):
        return {(True, False): Effect.UNCLEAR, (False, True): Effect.CLEAR}.get(is_known)
    if before.value != after.value:
        return Effect.GAINED if after.value else Effect.LOST
    if (before.kind, before.owner) == (after.kind, after.owner):
        return None
    if after.kind is Kind.EXPLICIT:
        return Effect.DECLARED
    return Effect.UNDECLARED if before.kind is Kind.EXPLICIT else Effect.INHERITED


def _cause(state: ClassState, before: Promise | None, after: Promise | None) -> str:
    """Whose statement makes the difference."""
    if before is None or after is None:
        return state.qualname
    if after.kind is Kind.DEFAULT and before.kind in (Kind.EXPLICIT, Kind.INHERITED):
        return before.owner  # it no longer says it
    return after.owner or before.owner
