"""Names that a loop runs through, where the loop spells them out."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dcplint.facts.statements import bound, statements
from dcplint.source.tree import Definition, walk

_DISPLAYS = (ast.Tuple, ast.List, ast.Set)
_READING = frozenset({"items", "keys", "values", "get"})


def spelled_names(node: Definition, variable: ast.expr) -> tuple[str, ...] | None:
    """The strings that a loop's variable stands for in a function; None where that is not told.

    `for name in ("a", "b")`, `for name, value in (("a", 1),)` and the keys of a dictionary that
    is written out in the function.
    """
    if not isinstance(variable, ast.Name):
        return None
    names: list[str] = []
    for target, iterable in _bindings(node, variable.id):
        found = _run_through(node, target, iterable, variable.id) if iterable is not None else None
        if found is None:
            return None
        names += found
    return tuple(dict.fromkeys(names)) or None


def _bindings(node: Definition, name: str) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """(target, iterable) of each loop that binds a name; no iterable for what is no loop."""
    for statement, _ in statements(node.body):
        if any(isinstance(t, ast.Name) and t.id == name for t, _ in bound(statement)):
            if isinstance(statement, ast.For):
                yield statement.target, statement.iter
            else:
                yield ast.Name(name), None


def _run_through(
    node: Definition, target: ast.expr, iterable: ast.expr, name: str
) -> list[str] | None:
    index: int | None = None
    if isinstance(target, ast.Tuple):
        index = next((i for i, e in enumerate(target.elts) if _is(e, name)), None)
        if index is None:
            return None
    if isinstance(iterable, ast.Call) and isinstance(iterable.func, ast.Attribute):
        held = _written_out(node, iterable.func.value)
        pairs = iterable.func.attr == "items"
        if iterable.args or not isinstance(held, ast.Dict) or index != (0 if pairs else None):
            return None
        return _strings(held.keys) if iterable.func.attr in ("items", "keys") else None
    held = _written_out(node, iterable)
    if isinstance(held, ast.Dict):
        return _strings(held.keys) if index is None else None
    if isinstance(held, _DISPLAYS):
        return _strings([e if index is None else _element(e, index) for e in held.elts])
    return None


def _written_out(node: Definition, value: ast.expr) -> ast.expr | None:
    """The value itself, or what a variable is given once and what nothing adds to."""
    if not isinstance(value, ast.Name):
        return value
    given = [v for s, _ in statements(node.body) for t, v in bound(s) if _is(t, value.id)]
    if len(given) != 1 or any(_may_change(inner, value.id) for inner in walk(node)):
        return None
    return given[0]


def _may_change(inner: ast.AST, name: str) -> bool:
    """Whether a node may put something into what a variable holds."""
    if isinstance(inner, ast.Subscript):
        return _is(inner.value, name) and not isinstance(inner.ctx, ast.Load)
    if isinstance(inner, ast.Attribute):
        return _is(inner.value, name) and inner.attr not in _READING
    if isinstance(inner, ast.Call):
        given = (*inner.args, *(keyword.value for keyword in inner.keywords))
        return any(_is(argument, name) for argument in given)
    return False


def _element(node: ast.expr, index: int) -> ast.expr | None:
    if isinstance(node, (ast.Tuple, ast.List)) and index < len(node.elts):
        return node.elts[index]
    return None


def _strings(nodes: list[ast.expr | None] | list[ast.expr]) -> list[str] | None:
    found = [n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return found if len(found) == len(nodes) else None


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
