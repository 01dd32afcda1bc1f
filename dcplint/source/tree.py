"""Walking and copying `ast` trees in a fraction of the time `ast.walk` and `copy.deepcopy` take.

Rules walk hundreds of thousands of nodes. Which fields of a class can hold nodes is worked out
once; contexts (`ast.Load`) and operators, which hold nothing, are no nodes here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, TypeGuard, TypeVar

N = TypeVar("N", bound=ast.AST)
Definition = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

# `except*` has a class of its own, with the same fields, which Python 3.10 lacks.
TRY: tuple[type[ast.stmt], ...] = (ast.Try, getattr(ast, "TryStar", ast.Try))

# Fields that hold text, numbers, operators or contexts, whatever the class.
_PLAIN = frozenset(
    {"arg", "asname", "attr", "conversion", "ctx", "id", "is_async", "kind", "kwd_attrs", "level"}
    | {"lineno", "module", "op", "ops", "rest", "simple", "tag", "type_comment", "type_ignores"}
)
_PLAIN_OF = {
    **dict.fromkeys(("Constant", "MatchSingleton"), frozenset({"value"})),
    **dict.fromkeys(("Global", "Nonlocal"), frozenset({"names"})),
    **dict.fromkeys(("FunctionDef", "AsyncFunctionDef", "ClassDef"), frozenset({"name"})),
    **dict.fromkeys(("ExceptHandler", "alias", "MatchAs", "MatchStar"), frozenset({"name"})),
    **dict.fromkeys(("TypeVar", "ParamSpec", "TypeVarTuple"), frozenset({"name"})),
}

_BLOCKS = frozenset({"body", "orelse", "finalbody", "handlers", "cases"})


def _holding(kind: type[ast.AST]) -> tuple[str, ...]:
    """The fields of a class of nodes that can hold nodes."""
    plain = _PLAIN | _PLAIN_OF.get(kind.__name__, frozenset())
    return tuple(name for name in kind._fields if name not in plain)


class _Fields(dict[type[ast.AST], tuple[str, ...]]):
    """The holding fields by class, worked out when a class is first met."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        self[kind] = _holding(kind)
        return self[kind]


class _OwnFields(dict[type[ast.AST], tuple[str, ...]]):
    """The same without those that hold blocks of statements."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        blocks = _BLOCKS if issubclass(kind, (ast.stmt, ast.ExceptHandler, ast.match_case)) else ()
        self[kind] = tuple(name for name in _FIELDS[kind] if name not in blocks)
        return self[kind]


_FIELDS = _Fields()
_OWN_FIELDS = _OwnFields()


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """`node` and every node below it, in the order of `ast.walk`."""
    fields = _FIELDS
    queue: list[ast.AST | None] = [node]
    for inner in queue:  # grows as it is read
        if inner is None:  # a key of `{**a}`, a default that is missing
            continue
        yield inner
        for name in fields[inner.__class__]:
            value = getattr(inner, name, None)
            if value.__class__ is list:
                queue += value
            elif value is not None:
                queue.append(value)


def own_nodes(node: ast.AST) -> list[ast.AST]:
    """The nodes of a statement's own expressions, not of the blocks, functions or classes in it."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return []
    fields = _OWN_FIELDS
    found: list[ast.AST] = []
    queue: list[ast.AST | None] = [node]
    while queue:
        inner = queue.pop()
        if inner is None:
            continue
        found.append(inner)
        for name in fields[inner.__class__]:
            value = getattr(inner, name, None)
            if value.__class__ is list:
                queue += value
            elif value is not None:
                queue.append(value)
    return found[1:]


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes directly below `node`, in the order of `ast.iter_child_nodes`."""
    found: list[ast.AST | None] = []
    for name in _FIELDS[node.__class__]:
        value = getattr(node, name, None)
        if value.__class__ is list:
            found += value
        else:
            found.append(value)
    return [inner for inner in found if inner is not None]


def is_deeper(node: ast.AST, limit: int) -> bool:
    """Whether more than `limit` nodes lie one in another, `node` included.

    An `elif` lies in the `if` above it. Few nodes need a look: what stands on one line holds at
    most two levels a character.
    """
    fields = _FIELDS
    level: list[ast.AST] = [node]
    for room in range(limit, 0, -1):
        below: list[ast.AST] = []
        for outer in level:
            for name in fields[outer.__class__]:
                value = getattr(outer, name, None)
                inner: Any
                for inner in value if value.__class__ is list else (value,):
                    end = getattr(inner, "end_lineno", None)
                    if end is None:
                        below += (inner,) if inner is not None else ()
                    elif end != inner.lineno or inner.end_col_offset - inner.col_offset >= room / 2:
                        below.append(inner)
        if not below:
            return False
        level = below
    return True


def copied(node: N) -> N:
    """A copy of a tree, to be changed. Contexts, operators and plain values are shared."""
    kind = node.__class__
    copy = kind.__new__(kind)
    found = copy.__dict__
    found.update(node.__dict__)
    for name in _FIELDS[kind]:
        value = found.get(name)
        if value.__class__ is list:
            found[name] = [copied(v) if v is not None else None for v in value]
        elif value is not None:
            found[name] = copied(value)
    return copy


def is_try(node: ast.AST) -> TypeGuard[ast.Try]:
    """Whether the statement is `try`, `except*` included."""
    return isinstance(node, TRY)
