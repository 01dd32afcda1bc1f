"""What a module shows of itself: `__all__`, and whether it binds names behind its source's back."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dcplint.facts.expressions import dotted_name
from dcplint.facts.statements import statements

_DYNAMIC = frozenset({"globals", "exec", "vars"})


def exports(tree: ast.Module) -> tuple[str, ...] | None:
    """`__all__`, however it is put together from literals; None where it is not, or not at all."""
    found: list[str] | None = None
    for statement, _ in statements(tree.body):
        for replaces, value in _parts(statement):
            names = _literal_names(value)
            if names is None or (found is None and not replaces):
                return None
            found = names if replaces else [*(found or ()), *names]
    return None if found is None else tuple(found)


def _parts(node: ast.stmt) -> Iterator[tuple[bool, ast.expr]]:
    """(whether it replaces what was there, value) for each statement about `__all__`."""
    if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if any(map(_is_all, targets)):
            yield True, node.value
    elif isinstance(node, ast.AugAssign) and _is_all(node.target):
        yield False, node.value
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        call = node.value
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if isinstance(call.func, ast.Attribute) and _is_all(call.func.value) and call.args:
            if method == "append":
                yield False, ast.List([call.args[0]], ast.Load())
            else:
                yield False, call.args[0]


def _is_all(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "__all__"


def _literal_names(node: ast.expr) -> list[str] | None:
    try:
        names = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None
    if isinstance(names, (list, tuple)) and all(isinstance(name, str) for name in names):
        return list(names)
    return None


def is_open(tree: ast.Module) -> bool:
    """Whether module-level code hands its own namespace out, so that names may appear unseen."""
    return any(
        isinstance(statement, (ast.Expr, ast.Assign)) and _uses_namespace(statement)
        for statement, _ in statements(tree.body)
    )


def _uses_namespace(statement: ast.Expr | ast.Assign) -> bool:
    queue: list[ast.expr] = [statement.value]
    if isinstance(statement, ast.Assign):
        queue += [t for t in statement.targets if isinstance(t, (ast.Subscript, ast.Attribute))]
    while queue:
        node = queue.pop()
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id in _DYNAMIC:
                return True
            queue += (node.func, *node.args)
        elif isinstance(node, (ast.Attribute, ast.Subscript)):
            if isinstance(node, ast.Subscript) and _is_own_module(node):
                return True
            queue.append(node.value)
    return False


def _is_own_module(node: ast.Subscript) -> bool:
    return dotted_name(node.value) == "sys.modules" and dotted_name(node.slice) == "__name__"
