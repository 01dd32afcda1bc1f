"""Conditions as clauses over named tests, and whether they can hold together.

A test is named by its text, with the objects that carry the values left out: `self.flag`,
`metadata.flag`, `kwargs["flag"]` and a parameter `flag` that is stored under its name are one
test. That lets what a constructor refuses speak of what a method asks later. It is used only to
rule paths out.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from dcplint.source.tree import copied

Literal = tuple[str, bool]
Clause = frozenset[Literal]
Clauses = tuple[Clause, ...]
Truth = Callable[[ast.expr], bool | None]
Name = Callable[[ast.expr], str]

_NEVER: Clauses = (frozenset(),)
_LIMIT = 16
_SHAPES = frozenset({"shape", "dtype", "device", "ndim", "size", "numel"})
_NEGATED: dict[type[ast.cmpop], ast.cmpop] = {
    ast.IsNot: ast.Is(),
    ast.NotEq: ast.Eq(),
    ast.NotIn: ast.In(),
}


def clauses(test: ast.expr, holds: bool, truth: Truth, name: Name) -> Clauses:
    """The clauses that say that `test` came out as `holds`, with what is known put in."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return clauses(test.operand, not holds, truth, name)
    if isinstance(test, ast.BoolOp):
        parts = [clauses(part, holds, truth, name) for part in test.values]
        if isinstance(test.op, ast.And) is holds:
            return tuple(clause for part in parts for clause in part)
        return _either(parts)
    known = truth(test)
    if known is not None:
        return () if known is holds else _NEVER
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in _NEGATED:
        test = ast.Compare(test.left, [_NEGATED[type(test.ops[0])]], test.comparators)
        holds = not holds
    asked = _as_flag(test)
    if asked is not None:
        return clauses(asked[0], asked[1] is holds, truth, name)
    return (frozenset({(name(test), holds)}),)


def _as_flag(test: ast.expr) -> tuple[ast.expr, bool] | None:
    """What `flag is True` or `flag == False` asks of which flag."""
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.Is, ast.Eq)):
        right = test.comparators[0]
        if len(test.ops) == 1 and isinstance(right, ast.Constant) and type(right.value) is bool:
            return test.left, right.value
    return None


def _either(parts: list[Clauses]) -> Clauses:
    """The clauses of a disjunction; nothing is said where that would be too much to write down."""
    found: list[Clause] = list(_NEVER)
    for part in parts:
        found = [a | b for a in found for b in part]
        if len(found) > _LIMIT:
            return ()
    return tuple(found)


def can_hold(parts: Iterable[Clause]) -> bool:
    """Whether the clauses can hold together, by setting what is forced and trying the rest."""
    remaining = {c for c in parts if not any((name, not holds) in c for name, holds in c)}
    while True:
        if frozenset() in remaining:
            return False
        forced = next((next(iter(c)) for c in remaining if len(c) == 1), None)
        if forced is None:
            break
        remaining = _with(remaining, forced)
    if not remaining:
        return True
    shortest = min(remaining, key=lambda c: (len(c), sorted(c)))
    name, holds = min(shortest)
    return can_hold(_with(remaining, (name, holds))) or can_hold(
        _with(remaining, (name, not holds))
    )


def _with(parts: set[Clause], literal: Literal) -> set[Clause]:
    opposite = (literal[0], not literal[1])
    return {clause - {opposite} for clause in parts if literal not in clause}


class Bare(ast.NodeTransformer):
    """Leaves out the objects that carry values, and puts in what variables stand for."""

    def __init__(self, meaning: Callable[[str], ast.expr | None]) -> None:
        self.meaning = meaning

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """`a.b.flag` is `flag`, unless it speaks of a tensor's shape."""
        if node.attr in _SHAPES or not _is_dotted(node):
            self.generic_visit(node)  # changes its parts
            return node
        return ast.Name(node.attr)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """`kwargs["flag"]` is `flag`."""
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            return ast.Name(node.slice.value)
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A variable is what it was given."""
        return self.meaning(node.id) or node


def _is_dotted(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def bare_text(bare: Bare, test: ast.expr) -> str:
    """What names `test`."""
    try:
        return ast.unparse(bare.visit(copied(test)))
    except RecursionError:
        return "…"
