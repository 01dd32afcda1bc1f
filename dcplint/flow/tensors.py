"""What is known of a tensor from the expression that makes it: whose type it takes, which sizes."""

from __future__ import annotations

import ast

from dcplint.facts.expressions import dotted_name
from dcplint.flow.functions import callee_name

_SIZED = frozenset({"empty", "zeros", "ones", "full", "rand", "randn"})
_LIKE = frozenset(f"{name}_like" for name in _SIZED)
_NEW = frozenset({"new_empty", "new_zeros", "new_ones", "new_full"})
_HALF = frozenset({"torch.float16", "torch.half", "torch.bfloat16"})


def is_made(node: ast.expr | None) -> bool:
    """Whether `node` allocates a tensor."""
    if not isinstance(node, ast.Call):
        return False
    name = callee_name(node)
    return name in _NEW or (name in _SIZED | _LIKE and _is_torch(node.func))


def _is_torch(callee: ast.expr) -> bool:
    return (dotted_name(callee) or "").partition(".")[0] == "torch"


def dtype(node: ast.expr | ast.AugAssign) -> ast.expr | None:
    """The type that an allocation, or a conversion, states.

    A tensor stands for its own type. None where it states none.
    """
    if not isinstance(node, ast.Call):
        return None
    name = callee_name(node)
    stated = next((k.value for k in node.keywords if k.arg == "dtype"), None)
    if isinstance(node.func, ast.Attribute) and not is_made(node):
        if name in ("half", "bfloat16"):
            return ast.Attribute(ast.Name("torch"), name)
        if name in ("to", "type", "type_as", "view_as"):
            return stated or (node.args[0] if node.args else None)
        return None
    if stated is None and name in _LIKE and node.args:
        return node.args[0]
    if stated is None and name in _NEW and isinstance(node.func, ast.Attribute):
        return node.func.value
    return stated


def is_half(stated: ast.expr) -> bool:
    """Whether a type is one of half precision."""
    return dotted_name(stated) in _HALF


def sizes(node: ast.Call) -> tuple[ast.expr, ...] | None:
    """The sizes an allocation states, outermost first; None where it takes another's."""
    name = callee_name(node)
    if name in _LIKE or not is_made(node):
        return None
    given = next((k.value for k in node.keywords if k.arg == "size"), None)
    first = given or (node.args[0] if node.args else None)
    if isinstance(first, (ast.Tuple, ast.List)):
        return tuple(first.elts)
    if first is None or name in ("full", "new_full"):
        return None
    return tuple(node.args)


def holds_nothing(node: ast.expr) -> bool:
    """Whether an allocation has no elements at all."""
    given = sizes(node) if isinstance(node, ast.Call) else None
    return any(isinstance(size, ast.Constant) and size.value == 0 for size in given or ())
