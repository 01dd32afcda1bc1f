"""What the tests on a path say: of the value that is traced, and of each other.

A walk goes backwards, so a test that is met later was taken earlier: what it said is carried back
over assignments (`ok` becomes `n > 0` before `ok = n > 0`) and dropped where a name in it is given
a value that says nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from dcplint.facts.expressions import dotted_name
from dcplint.source.tree import copied, walk

Path = tuple[str | int, ...]
"""A variable, then attribute names. A number is an element of a sequence, `*` any element."""

Known = dict[str, bool]
"""Tests whose value is known, by their dump."""

_MOST = 8  # tests kept in mind at once
_PURE = frozenset({"isinstance", "len", "hasattr", "bool", "callable"})


@dataclass(frozen=True)
class Conditions:
    """Tests with the value each had, by dump: at most one of each."""

    tests: tuple[tuple[str, ast.expr, bool], ...] = ()

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Conditions) and self.key == other.key

    @cached_property
    def key(self) -> frozenset[tuple[str, bool]]:
        """What makes two sets of conditions the same."""
        return frozenset((dump, holds) for dump, _, holds in self.tests)

    @property
    def known(self) -> dict[str, bool]:
        """The value of each test by its dump."""
        return {dump: holds for dump, _, holds in self.tests}

    def value(self, test: ast.expr) -> bool | None:
        """The value that `test` is known to have."""
        return self.known.get(dumped(test)) if self.tests else None

    def given(
        self,
        test: ast.expr,
        holds: bool,
        telling: frozenset[str] | None = None,
        truth: Callable[[ast.expr], bool | None] = lambda test: None,
    ) -> Conditions | None:
        """These and `test`; None where they contradict each other.

        telling: the tests worth keeping in mind, by dump; all where it is left out. truth: what
        is known of tests anyway.
        """
        tests = {dump: (part, value) for dump, part, value in self.tests}
        known = self.known
        for atom, value in atoms(test, holds, lambda t: known.get(dumped(t), truth(t))):
            dump = dumped(atom)
            if dump in tests:
                if tests[dump][1] is not value:
                    return None
            elif telling is not None and dump not in telling:
                continue
            elif len(tests) < _MOST and not _is_varying(atom):
                tests[dump] = (atom, value)
        return Conditions(tuple((dump, *rest) for dump, rest in tests.items()))

    def before_binding(self, name: str, value: ast.expr | None) -> Conditions | None:
        """What held before `name` (dotted) was given `value`; None where that cannot have been.

        value: None where what it was given is not known.
        """
        if not any(concerns(test, name) for _, test, _ in self.tests):
            return self
        found = Conditions(tuple(t for t in self.tests if not concerns(t[1], name)))
        if value is None or "." in name or _is_varying(value):
            return found
        for _, test, holds in self.tests:
            if concerns(test, name):
                before = _substituted(test, name, value)
                tested = null_test(before)
                if tested is None and isinstance(before, ast.Compare) and _is_none_test(before):
                    if not isinstance(before.left, (ast.IfExp, ast.BoolOp, ast.Call, ast.Await)):
                        # A display or an operation is never None; the constant None is.
                        is_none = (
                            isinstance(before.left, ast.Constant) and before.left.value is None
                        )
                        if is_none is not (isinstance(before.ops[0], (ast.Is, ast.Eq)) is holds):
                            return None
                    continue
                if isinstance(before, ast.Constant):
                    if bool(before.value) is not holds:
                        return None
                    continue
                more = found.given(before, holds)
                if more is None:
                    return None
                found = more
        return found

    def without(self, attribute: str) -> Conditions:
        """These, except those that read `attribute` of anything."""
        kept = tuple(t for t in self.tests if attribute not in attributes(t[1]))
        return self if len(kept) == len(self.tests) else Conditions(kept)

    def says(self, path: Path) -> bool | None:
        """Whether `path` is not None (True) or is None (False), as far as they tell."""
        for _, test, holds in self.tests:
            tested = null_test(test)
            if tested is not None and tested[0] == path:
                return tested[1] is not holds
            if holds and path_of(test) == path:
                return True
        return None


def atoms(
    test: ast.expr, holds: bool, truth: Callable[[ast.expr], bool | None]
) -> Iterator[tuple[ast.expr, bool]]:
    """The parts of `test` that must have been so for it to have come out as `holds`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from atoms(test.operand, not holds, truth)
    elif isinstance(test, ast.BoolOp):
        deciding = isinstance(test.op, ast.Or)
        parts = test.values
        if deciding is holds:
            # One part decided; which, is known where the others are known not to have.
            parts = [p for p in parts if truth(p) is not (not deciding)]
        if len(parts) == 1 or deciding is not holds:
            for part in parts:
                yield from atoms(part, holds, truth)
    elif isinstance(test, ast.NamedExpr):
        yield from atoms(test.target, holds, truth)
    elif not isinstance(test, ast.Constant):
        yield test, holds


_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.Is: ast.IsNot, ast.In: ast.NotIn, ast.Lt: ast.GtE, ast.Gt: ast.LtE,
}  # fmt: skip
_OPPOSITE |= {other: one for one, other in _OPPOSITE.items()}


def implied(test: ast.expr, holds: bool) -> Known:
    """What tests are once `test` has come out as `holds`."""
    found: Known = {}
    for atom, value in atoms(test, holds, lambda _: None):
        found[dumped(atom)] = value
        if isinstance(atom, ast.Compare) and len(atom.ops) == 1:
            operator = _OPPOSITE[type(atom.ops[0])]()
            found[dumped(ast.Compare(atom.left, [operator], atom.comparators))] = not value
    return found


def telling(tests: Iterable[ast.expr], settable: frozenset[str]) -> frozenset[str]:
    """Of all tests of a function, by dump, those that can contradict something on the way.

    These are tests made twice, and tests of one variable, which `settable` says may be given a
    value that decides them.
    """
    found: set[str] = set()
    met: set[str] = set()
    for test in tests:
        for atom in _leaves(test):
            dump = dumped(atom)
            tested = null_test(atom)
            path = tested[0] if tested else path_of(atom)
            plain = path is not None and len(path) == 1
            if dump in met or ((plain or isinstance(atom, ast.Call)) and names(atom) & settable):
                found.add(dump)
            met.add(dump)
    return frozenset(found)


def _leaves(test: ast.expr) -> Iterator[ast.expr]:
    if isinstance(test, ast.BoolOp):
        for part in test.values:
            yield from _leaves(part)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _leaves(test.operand)
    elif isinstance(test, ast.NamedExpr):
        yield test.target
    else:
        yield test


def null_test(test: ast.expr) -> tuple[Path, bool] | None:
    """(path, True) for `path is None`, (path, False) for `path is not None`, also negated."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = null_test(test.operand)
        return (inner[0], not inner[1]) if inner else None
    if not isinstance(test, ast.Compare) or not _is_none_test(test):
        return None
    left = test.left.target if isinstance(test.left, ast.NamedExpr) else test.left
    path = path_of(left)
    return None if path is None else (path, isinstance(test.ops[0], (ast.Is, ast.Eq)))


def _is_none_test(test: ast.Compare) -> bool:
    right = test.comparators[0]
    return (
        len(test.ops) == 1
        and isinstance(right, ast.Constant)
        and right.value is None
        and isinstance(test.ops[0], (ast.Is, ast.IsNot, ast.Eq, ast.NotEq))
    )


def speaks_of(test: ast.expr, path: Path) -> bool:
    """Whether a part of `test` is about `path` itself."""
    for atom in _leaves(test):
        tested = null_test(atom)
        if (tested[0] if tested else path_of(atom)) == path:
            return True
    return False


def path_of(node: ast.expr) -> Path | None:
    """`a.b.c` as a path."""
    dotted = dotted_name(node)
    return None if dotted is None else tuple(dotted.split("."))


def names(test: ast.expr) -> frozenset[str]:
    """The variables that `test` reads."""
    return _words(test)[0]


def attributes(test: ast.expr) -> frozenset[str]:
    """The attributes that `test` reads."""
    return _words(test)[1]


@lru_cache(maxsize=4096)
def _words(test: ast.expr) -> tuple[frozenset[str], frozenset[str]]:
    nodes = list(walk(test))
    return (
        frozenset(n.id for n in nodes if isinstance(n, ast.Name)),
        frozenset(n.attr for n in nodes if isinstance(n, ast.Attribute)),
    )


def spelled(node: ast.AST) -> str:
    """What two expressions that say the same have in common; quicker than `ast.dump`."""
    dotted = dotted_name(node)
    if dotted is not None:
        return dotted
    parts = [_part(getattr(node, name, None)) for name in node._fields if name != "ctx"]
    return f"{node.__class__.__name__}({', '.join(parts)})"


def _part(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_part, value))}]"
    return spelled(value) if isinstance(value, ast.AST) else repr(value)


@lru_cache(maxsize=8192)
def dumped(test: ast.expr) -> str:
    """The same of a test, which is asked for again and again."""
    return spelled(test)


def concerns(test: ast.expr, name: str) -> bool:
    """Whether binding `name` (dotted) changes what `test` reads."""
    root, _, attribute = name.rpartition(".")
    return attribute in attributes(test) if root else name in names(test)


@lru_cache(maxsize=4096)
def _is_varying(test: ast.expr) -> bool:
    """Whether evaluating `test` twice may give two answers."""
    return any(
        isinstance(node, (ast.Await, ast.Yield, ast.YieldFrom))
        or (isinstance(node, ast.Call) and dotted_name(node.func) not in _PURE)
        for node in walk(test)
    )


def _substituted(test: ast.expr, name: str, value: ast.expr) -> ast.expr:
    return substituted(test, {name: value})


def substituted(node: ast.expr, values: dict[str, ast.expr]) -> ast.expr:
    """A copy of `node` with expressions in place of variables."""

    class _Substitute(ast.NodeTransformer):
        def visit_Name(self, name: ast.Name) -> ast.expr:
            return values.get(name.id, name)

    found: ast.expr = _Substitute().visit(copied(node))
    return found


def conjuncts(test: ast.expr) -> Iterator[ast.expr]:
    """The parts of a test that must all hold."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        for value in test.values:
            yield from conjuncts(value)
    else:
        yield test
