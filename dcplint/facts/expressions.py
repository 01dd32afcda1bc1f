"""Lowering expressions to what linking can use."""

from __future__ import annotations

import ast

from dcplint.facts.model import Expression

_SHORT = 80


def lower(node: ast.expr) -> Expression:
    """The linkable part of `node`; what cannot be linked keeps its text for messages."""
    dotted = dotted_name(node)
    if dotted is not None:
        return Expression("name", dotted)
    if isinstance(node, ast.Constant):
        return Expression("literal", value=node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = lower(node.operand)
        if inner.kind == "literal":
            return Expression("literal", value=not inner.value)
    if isinstance(node, ast.NamedExpr):
        return lower(node.value)
    if isinstance(node, ast.IfExp):
        return Expression("choice", shorten(node.test), options=(lower(node.body), lower(node.orelse)))
    if isinstance(node, ast.Subscript):
        return Expression("subscript", dotted_name(node.value) or shorten(node.value))
    if isinstance(node, ast.Call):
        return _call(node)
    return Expression("other", shorten(node))


def _call(node: ast.Call) -> Expression:
    """`getattr(x, "name")` reads as `x.name`; other calls keep callee and arguments."""
    callee = dotted_name(node.func)
    if callee == "getattr" and len(node.args) >= 2:
        owner, name = dotted_name(node.args[0]), node.args[1]
        if owner and isinstance(name, ast.Constant) and isinstance(name.value, str):
            return Expression("name", f"{owner}.{name.value}")
    if callee is None:
        callee = _callee_of_result(node.func)
    return Expression("call", callee, arguments=tuple(lower(a) for a in node.args))


def _callee_of_result(node: ast.expr) -> str:
    """`a.f().g` as `?.g`: only the method's name is known."""
    return f"?.{node.attr}" if isinstance(node, ast.Attribute) else shorten(node)


def dotted_name(node: ast.expr) -> str | None:
    """`a.b.c` for nested attributes of a name, else None."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join((node.id, *reversed(parts)))


def shorten(node: ast.AST) -> str:
    """The source of `node` on one line, cut to a readable length."""
    try:
        text = " ".join(ast.unparse(node).split())
    except RecursionError:
        return "…"
    return text if len(text) <= _SHORT else text[: _SHORT - 1] + "…"
