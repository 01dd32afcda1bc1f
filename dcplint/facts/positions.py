"""Where a node of a tree stands."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dcplint.facts.model import Position

_KEYWORDS = {ast.ClassDef: "class ", ast.FunctionDef: "def ", ast.AsyncFunctionDef: "async def "}


def position(node: ast.AST) -> Position:
    """Where `node` stands, as `ast` counts."""
    line = getattr(node, "lineno", 1)
    column = getattr(node, "col_offset", 0)
    return (
        line,
        column,
        getattr(node, "end_lineno", None) or line,
        getattr(node, "end_col_offset", None) or column,
    )


def header_position(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> Position:
    """The span of `class Name` or `def name`: what a finding on it should underline."""
    end = node.col_offset + len(_KEYWORDS[type(node)]) + len(node.name.encode())
    return (node.lineno, node.col_offset, node.lineno, end)


def first_line(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The line its source starts in, decorators included."""
    return min([node.lineno, *(d.lineno for d in node.decorator_list)])


def last_line(node: ast.stmt, ends: dict[int, int]) -> int:
    """The line its source ends in. ends: the real last line of functions whose body is blanked."""
    while True:
        found = ends.get(node.lineno)
        if found is not None and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return found
        inner = [child for child in _statements_in(node) if child is not node]
        if not inner:
            return node.end_lineno or node.lineno
        node = max(inner, key=lambda child: child.lineno)


def _statements_in(node: ast.stmt) -> Iterator[ast.stmt]:
    """The statements directly inside `node`, those of handlers and cases included."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        elif isinstance(child, (ast.ExceptHandler, ast.match_case)):
            yield from child.body
