"""Where attributes are read: `x.name`, `x.name()`, `getattr(x, "name")`, `case C(name=…)`."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from dcplint.facts.expressions import dotted_name, shorten
from dcplint.facts.model import ReadFact


def reads_in(tree: ast.Module, words: frozenset[str], lines: Sequence[int]) -> Iterator[ReadFact]:
    """Every read in `tree` of an attribute named in `words`, in source order.

    lines: the lines in which any of the words occurs, ascending; the rest is not looked at.
    """
    stack: list[tuple[ast.AST, str, bool]] = [(tree, "", False)]
    while stack:
        node, scope, called = stack.pop()
        if isinstance(node, ast.Attribute):
            if node.attr in words and isinstance(node.ctx, ast.Load):
                yield _fact(node.attr, node.value, node, scope, called)
        elif isinstance(node, ast.Call) and dotted_name(node.func) in ("getattr", "hasattr"):
            name = node.args[1] if len(node.args) > 1 else None
            if isinstance(name, ast.Constant) and name.value in words:
                yield _fact(str(name.value), node.args[0], node, scope, called)
        elif isinstance(node, ast.MatchClass):
            for attribute in words.intersection(node.kwd_attrs):
                yield _fact(attribute, node.cls, node, scope, False)
        elif isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            scope = f"{scope}.{node.name}" if scope else node.name
        if not _is_copy(node):
            callee = node.func if isinstance(node, ast.Call) else None
            children = [c for c in ast.iter_child_nodes(node) if _touches(c, lines)]
            stack += ((child, scope, child is callee) for child in reversed(children))


def _touches(node: ast.AST, lines: Sequence[int]) -> bool:
    first = getattr(node, "lineno", None)
    if first is None:
        return True  # operators and the like, which hold nothing, or parts that have no place
    if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        first = min([first, *(d.lineno for d in node.decorator_list)])
    index = bisect_left(lines, first)
    return index < len(lines) and lines[index] <= (getattr(node, "end_lineno", None) or first)


def _is_copy(node: ast.AST) -> bool:
    """`self.name = other.name` hands the attribute on and asks nothing."""
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Attribute)
        and any(isinstance(t, ast.Attribute) and t.attr == node.value.attr for t in node.targets)
    )


def _fact(
    name: str, receiver: ast.expr, node: ast.expr | ast.pattern, scope: str, called: bool
) -> ReadFact:
    accessor = ""
    if isinstance(receiver, ast.Call) and isinstance(receiver.func, ast.Attribute):
        accessor = receiver.func.attr
    place = (node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)
    return ReadFact(name, shorten(receiver), accessor, called, scope, place)
