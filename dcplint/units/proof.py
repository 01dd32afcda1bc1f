"""Whether an expression is the number of tokens that one rank holds, by enumeration.

`local(L) = (L // (N*I)) * I + clamp(L % (N*I) - r*I, 0, I)`: token `i` lives on rank
`(i // I) % N`. Of a cache that keeps one entry for k tokens, `local(L // k)`; where whole entries
lie in a chunk (`I % k == 0`), the chunk may be counted in entries, and `local(L) // k` is the same.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product
from operator import attrgetter

from dcplint.flow.functions import callee_name
from dcplint.source.tree import children, walk
from dcplint.units.evaluate import NotArithmetic, Value, arithmetic, is_comparison
from dcplint.units.roles import Role, is_block_size, is_longest, role

_LENGTHS = (*range(25), 48, 63, 64, 65)
_SIZES = (2, 3, 4, 8)
_INTERLEAVES = (1, 2, 16)
_NEEDED = frozenset({Role.LENGTH, Role.SIZE, Role.RANK})
_RATIOS = (2, 4)
_CHUNKS = (1, 4)  # in a block
_MOST = 120  # nodes of an expression worth evaluating


class Fault(enum.Enum):
    """What is wrong with a formula."""

    WRONG = "wrong"  # for the interleave size it takes, or for 1 where it takes none
    NO_INTERLEAVE = "interleave"  # right for an interleave size of 1, and takes none
    RATIO = "ratio"  # right without a ratio, and where chunks hold whole entries


@dataclass(frozen=True, slots=True)
class Point:
    """One case of an enumeration."""

    length: int
    size: int
    rank: int
    interleave: int
    ratio: int = 1
    block: int = 1

    @property
    def entries(self) -> frozenset[int]:
        """The numbers of entries that the rank may hold: by chunks of entries, or of tokens."""
        if self.ratio == 1:
            return frozenset({self.local})
        whole = replace(self, length=self.length // self.ratio, ratio=1)
        if self.interleave % self.ratio:
            return frozenset({whole.local})
        return frozenset(
            {whole.local, replace(whole, interleave=self.interleave // self.ratio).local}
        )

    @property
    def local(self) -> int:
        """The number of tokens that the rank holds."""
        span = self.size * self.interleave
        rest = self.length % span - self.rank * self.interleave
        return self.length // span * self.interleave + min(max(rest, 0), self.interleave)

    @property
    def cap(self) -> int:
        """The largest number of tokens that any rank holds, in whole chunks."""
        return -(-self.length // (self.size * self.interleave)) * self.interleave

    @property
    def owner(self) -> int:
        """The rank that holds the token which `length` tokens come before."""
        return self.length // self.interleave % self.size


VALUES: Mapping[Role, Value[Point]] = {
    Role.LENGTH: attrgetter("length"),
    Role.INDEX: attrgetter("length"),
    Role.SIZE: attrgetter("size"),
    Role.RANK: attrgetter("rank"),
    Role.INTERLEAVE: attrgetter("interleave"),
    Role.RATIO: attrgetter("ratio"),
    Role.BLOCK: attrgetter("block"),
}
"""The value of each part in a case."""


@dataclass(frozen=True, slots=True)
class Counterexample:
    """The smallest case in which a formula gives another number than the local length."""

    fault: Fault
    point: Point
    value: int

    def __str__(self) -> str:
        p = self.point
        case = f"L={p.length}, N={p.size}, r={p.rank}, I={p.interleave}"
        if p.ratio != 1:
            case += f", k={p.ratio}"
        return f"{case}: {self.value}, should be {min(p.entries)}"


@dataclass(frozen=True, slots=True)
class Formula:
    """An expression over one length, the world size, the rank, and perhaps the interleave size.

    parts: which of them go into it. at: its value in a case. holds: whether a case reaches it.
    """

    parts: Set[Role]
    at: Value[Point]
    holds: Value[Point] = lambda point: True

    @property
    def takes_interleave(self) -> bool:
        """Whether the interleave size goes into it."""
        return Role.INTERLEAVE in self.parts

    def is_meant_as_local(self) -> bool:
        """Whether it looks like a local length: it depends on the rank and is mostly right."""
        few = [p for p in points((1,)) if p.size <= 4]
        for step in (17, 1):  # a few first: most expressions are nothing of the kind
            some = few[::step]
            if 2 * sum(self.at(point) == point.local for point in some) < len(some):
                return False
        # The same number for every rank is another quantity: a cap, or a size.
        return any(
            self.at(Point(length, 4, 0, 1)) != self.at(Point(length, 4, 3, 1))
            for length in range(9)
        )

    def counterexample(self, knows_interleave: bool, whole: bool = False) -> Counterexample | None:
        """The smallest case in which it is wrong. Cases of an empty sequence come last.

        knows_interleave: whether the engine has an interleave size other than 1 at all.
        whole: whether chunks are known to hold whole entries of a compressed cache.
        """
        own = _INTERLEAVES if self.takes_interleave else (1,)
        found = self._wrong(own)
        if found is not None:
            return Counterexample(Fault.WRONG, found, self.at(found))
        if not self.takes_interleave and knows_interleave:
            found = self._wrong(_INTERLEAVES)
            if found is not None:
                return Counterexample(Fault.NO_INTERLEAVE, found, self.at(found))
        if not whole and self._divides_late(own):
            found = self._wrong(own, _RATIOS)
            if found is not None:
                return Counterexample(Fault.RATIO, found, self.at(found))
        return None

    def _divides_late(self, interleaves: tuple[int, ...]) -> bool:
        """Whether it is `local(L) // k`."""
        if Role.RATIO not in self.parts:
            return False
        return all(self.at(p) == p.local // p.ratio for p in points(interleaves, _RATIOS))

    def _wrong(self, interleaves: tuple[int, ...], ratios: tuple[int, ...] = (1,)) -> Point | None:
        empty: Point | None = None
        for point in points(interleaves, ratios):
            if self.holds(point) and self.at(point) not in point.entries:
                if point.length:
                    return point
                empty = empty or point
        return empty


def points(
    interleaves: tuple[int, ...] = _INTERLEAVES, ratios: tuple[int, ...] = (1,)
) -> Iterator[Point]:
    """The cases of an enumeration, the smallest first."""
    for length in _LENGTHS:
        for size in _SIZES:
            for interleave, ratio in product(interleaves, ratios):
                for rank in range(size):
                    yield Point(length, size, rank, interleave, ratio)


def divided_late() -> Counterexample:
    """The smallest case in which `local(L) // k` is not the number of entries that a rank holds."""
    return next(
        Counterexample(Fault.RATIO, point, point.local // point.ratio)
        for point in points((1,), _RATIOS)
        if point.local // point.ratio not in point.entries
    )


def piece_example() -> str:
    """The smallest case in which `local(e - s)` is not what a rank holds of the tokens from s to e.

    That is `local(e) - local(s)`.
    """
    for end in _LENGTHS:
        for start in range(end):
            for size in _SIZES:
                for rank in range(size):
                    before, after, whole = (
                        Point(length, size, rank, 1).local for length in (start, end, end - start)
                    )
                    if whole != after - before:
                        case = f"s={start}, e={end}, N={size}, r={rank}, I=1"
                        return f"{case}: {whole}, should be {after - before}"
    raise AssertionError


def twice_example() -> str:
    """The smallest case in which `local(local(L))` is not `local(L)`."""
    point = next(p for p in points((1,)) if replace(p, length=p.local).local != p.local)
    twice = replace(point, length=point.local).local
    return str(Counterexample(Fault.WRONG, point, twice))


@dataclass(frozen=True, slots=True)
class OwnerExample:
    """The smallest case in which a place leads to another rank than its owner."""

    point: Point
    value: int

    def __str__(self) -> str:
        p = self.point
        case = f"i={p.length}, N={p.size}, I={p.interleave}"
        if p.block != 1:
            case += f", B={p.block}"
        return f"{case}: rank {self.value}, should be rank {p.owner}"


def is_cap(node: ast.expr) -> bool:
    """Whether `node` is `ceil(L / (N*I)) * I`, or that for an interleave size of 1."""
    found = _read(node, {Role.LENGTH, Role.SIZE}, {Role.INTERLEAVE})
    if found is None:
        return False
    cases = points(_INTERLEAVES if found.takes_interleave else (1,))
    try:
        return all(found.at(point) == point.cap for point in cases)
    except NotArithmetic:
        return False


def wrong_owner(node: ast.expr) -> OwnerExample | None:
    """The smallest case in which `node`, the owner of a token at interleave size 1, is not it.

    None for what is right, and for what is meant as something else. A block may go into it, of
    which a rank holds whole chunks: then that of the token is the same one in each block.
    """
    found = _read(node, {Role.INDEX, Role.SIZE}, {Role.INTERLEAVE, Role.BLOCK})
    if found is None:
        return None
    chunks = _CHUNKS if Role.BLOCK in found.parts else ()
    try:
        if any(found.at(p) != p.owner for p in _in_blocks((1,), chunks)):
            return None
        for point in _in_blocks(_INTERLEAVES, chunks):
            if found.at(point) != point.owner:
                return OwnerExample(point, found.at(point))
    except NotArithmetic:
        return None
    return None


def _in_blocks(interleaves: tuple[int, ...], chunks: tuple[int, ...]) -> Iterator[Point]:
    """The cases of an enumeration, with blocks of so many chunks; without any, as they are."""
    for point in points(interleaves):
        yield from (replace(point, block=point.interleave * count) for count in chunks)
        if not chunks:
            yield point


def _candidates(node: ast.expr) -> set[int]:
    """The parts of an expression, by identity, in which all occurs that a formula needs."""
    found: set[int] = set()
    _collect(node, found)
    return found


def _collect(node: ast.AST, found: set[int]) -> set[Role]:
    """The parts that occur in `node`; what has all a formula needs goes into `found`."""
    part = role(node) if isinstance(node, ast.expr) else None
    if part is None and isinstance(node, ast.expr) and is_longest(node):
        part = Role.LENGTH
    if part is not None:
        return {part}
    parts: set[Role] = set()
    for inner in children(node):
        parts |= _collect(inner, found)
    if parts >= _NEEDED:
        found.add(id(node))
    return parts


def formula(node: ast.expr) -> Formula | None:
    """`node` as a formula, where nothing but one length and the layout goes into it."""
    return _read(node, _NEEDED, {Role.INTERLEAVE, Role.RATIO})


def _reached(node: ast.expr, tests: tuple[ast.expr, ...]) -> Formula | None:
    """`node` as a formula for the cases in which the tests hold, about the same length."""
    layout = {Role.INTERLEAVE, Role.RATIO}
    holds = _read(ast.BoolOp(ast.And(), [*tests]), {Role.RANK}, _NEEDED | layout)
    found = formula(node)
    if holds is None or found is None or formula(ast.BoolOp(ast.And(), [*tests, node])) is None:
        return None
    return replace(found, holds=holds.at)


def _read(node: ast.expr, needed: Set[Role], allowed: Set[Role]) -> Formula | None:
    """`node` as arithmetic over each of the parts `needed`, and perhaps of those `allowed`."""
    parts: dict[Role, set[str]] = {}
    places: dict[int, Value[Point]] = {}
    waiting: list[ast.AST] = [node]
    count = 0
    while waiting:
        count += 1
        inner = waiting.pop()
        if count > _MOST:
            return None
        part = role(inner) if isinstance(inner, ast.expr) else None
        if part is None and isinstance(inner, ast.expr):
            if Role.BLOCK in allowed and is_block_size(inner):
                part = Role.BLOCK
            elif Role.RANK in needed and is_longest(inner):
                part = Role.LENGTH
        if part is None:
            waiting += children(inner)
        else:
            parts.setdefault(part, set()).add(ast.dump(inner))
            places[id(inner)] = VALUES[part]
    if needed - parts.keys() or parts.keys() - needed - allowed:
        return None
    if any(len(names) > 1 for names in parts.values()):
        return None
    found = Formula(parts.keys(), arithmetic(node, lambda inner: places.get(id(inner))))
    try:
        found.at(Point(5, 2, 1, 1))
    except NotArithmetic:
        return None
    return found


def local_lengths(node: ast.expr) -> Iterator[ast.expr]:
    """The largest parts of an expression that are meant as local lengths."""
    yield from _outermost(node, _candidates(node))


def _outermost(node: ast.AST, worth: set[int]) -> Iterator[ast.expr]:
    if isinstance(node, ast.expr):
        if id(node) not in worth:
            return
        if _is_meant_as_local(node):
            # A right formula inside says that what is around it is meant, but for a ratio.
            example = counterexample(node, False)
            if example is not None and example.fault is Fault.RATIO:
                yield node
                return
            inner = [part for child in children(node) for part in _outermost(child, worth)]
            rights = [part for part in inner if counterexample(part, False) is None]
            yield from rights or [node]
            return
        if _chooses_by_rank(node):
            # Each side need only be right where it is chosen, which may be beyond telling.
            if formula(node) is None:
                yield node
            return
    for child in children(node):
        yield from _outermost(child, worth)


def _chooses_by_rank(node: ast.expr) -> bool:
    """Whether it is one of two things as a comparison with the rank comes out."""
    if isinstance(node, ast.IfExp):
        return compares_rank(node.test)
    if isinstance(node, ast.Call) and len(node.args) == 3:
        return callee_name(node) == "where" and compares_rank(node.args[0])
    return False


def compares_rank(node: ast.expr) -> bool:
    """Whether the rank's value goes into a comparison; that it is None is no such one."""
    return any(
        is_comparison(inner)
        and any(isinstance(part, ast.expr) and role(part) is Role.RANK for part in walk(inner))
        for inner in walk(node)
    )


def _is_meant_as_local(node: ast.expr) -> bool:
    found = formula(node)
    try:
        return found is not None and found.is_meant_as_local()
    except NotArithmetic:
        return False


def counterexample(
    node: ast.expr,
    ignores_interleave: bool,
    whole: bool = False,
    tests: tuple[ast.expr, ...] = (),
) -> Counterexample | None:
    """The smallest case in which `node` is not the local length; see `Formula.counterexample`.

    ignores_interleave: whether an interleave size that it does not take may be other than 1.
    tests: what holds in the cases that count; None where that cannot be evaluated.
    """
    spelled = tuple(_Spelled(ast.dump(test), test) for test in tests)
    return _counterexample(_Spelled(ast.dump(node), node), ignores_interleave, whole, spelled)


@dataclass(frozen=True, slots=True)
class _Spelled:
    """An expression; the same as another that is spelled alike."""

    text: str
    node: ast.expr = field(compare=False)


@lru_cache(maxsize=1_000)
def _counterexample(
    said: _Spelled, ignores_interleave: bool, whole: bool, tests: tuple[_Spelled, ...]
) -> Counterexample | None:
    node = said.node
    found = _reached(node, tuple(test.node for test in tests)) if tests else formula(node)
    try:
        return found.counterexample(ignores_interleave, whole) if found is not None else None
    except NotArithmetic:
        return None
