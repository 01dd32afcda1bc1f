"""Lowering expressions to what linking can use."""

from __future__ import annotations

import ast
from collections.abc import Set
from functools import lru_cache

from dcplint.facts.model import Expression

_SHORT = 80
_BY_ARGUMENTS = frozenset({"cast", "type"})  # calls whose arguments say what they give


def lower(node: ast.expr) -> Expression:
    """The linkable part of `node`; what cannot be linked keeps its text for messages."""
    try:
        return _lower(node)
    except RecursionError:
        return Expression("other", "…")


def _lower(node: ast.expr) -> Expression:
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
        options = (lower(node.body), lower(node.orelse))
        return Expression("choice", shorten(node.test), options=options)
    if isinstance(node, ast.Subscript):
        return Expression("subscript", dotted_name(node.value) or shorten(node.value))
    if isinstance(node, ast.Call):
        return _call(node)
    if isinstance(node, ast.Attribute) and (module := _imported(node)):
        return Expression("absolute", module)
    return Expression("other", shorten(node))


def _call(node: ast.Call) -> Expression:
    """`getattr(x, "name")` reads as `x.name`; other calls keep the callee."""
    callee = dotted_name(node.func)
    if callee == "getattr" and len(node.args) >= 2:
        owner, name = dotted_name(node.args[0]), node.args[1]
        if owner and isinstance(name, ast.Constant) and isinstance(name.value, str):
            found = Expression("name", f"{owner}.{name.value}")
            if len(node.args) == 2:
                return found
            return Expression("default", shorten(node), options=(found, lower(node.args[2])))
    if module := _imported(node):
        return Expression("absolute", module)
    if callee is None:
        callee = _callee_of_result(node.func)
    if callee.rpartition(".")[2] == "TypeVar":
        bounds = [keyword.value for keyword in node.keywords if keyword.arg == "bound"]
        return Expression("call", callee, arguments=tuple(map(lower, bounds or node.args[1:])))
    telling = callee.rpartition(".")[2] in _BY_ARGUMENTS
    return Expression("call", callee, arguments=tuple(map(lower, node.args)) if telling else ())


def _callee_of_result(node: ast.expr) -> str:
    """`a.f().g` as `?.g`: only the method's name is known."""
    return f"?.{node.attr}" if isinstance(node, ast.Attribute) else shorten(node)


def _imported(node: ast.expr) -> str | None:
    """`a.b.C` for `import_module("a.b").C`, where the module is named by a literal."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not (isinstance(node, ast.Call) and len(node.args) == 1):
        return None
    callee, name = dotted_name(node.func) or "", node.args[0]
    if callee.rpartition(".")[2] != "import_module" or not isinstance(name, ast.Constant):
        return None
    if not isinstance(name.value, str) or name.value.startswith("."):
        return None
    return ".".join((name.value, *reversed(parts)))


def without(names: Set[str], value: Expression) -> Expression:
    """`value` with what rests on one of `names`, variables of a function, marked as such."""
    if value.kind == "literal":
        return value
    if value.options:
        options = tuple(without(names, option) for option in value.options)
        return Expression(value.kind, value.text, options=options)
    if value.text.partition(".")[0] in names:
        return Expression("local", value.text)
    return value


def dotted_name(node: ast.AST) -> str | None:
    """`a.b.c` for nested attributes of a name, else None."""
    if isinstance(node, ast.Name):
        return node.id
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
        text = dotted_name(node) or _unparsed(node)
    except RecursionError:
        return "…"
    return text if len(text) <= _SHORT else text[: _SHORT - 1] + "…"


@lru_cache(maxsize=4096)
def _unparsed(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())


def number(node: ast.expr) -> int | None:
    """The whole number that is written there."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = number(node.operand)
        return None if inner is None else -inner
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    return None
