"""Statements of one scope: the conditions they stand under, the names and attributes they bind."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial

from dcplint.facts.expressions import dotted_name, shorten
from dcplint.facts.model import COMPUTED, Condition
from dcplint.source.tree import TRY, is_try, walk

Conditions = tuple[Condition, ...]
_BROAD = frozenset(
    {"ImportError", "ModuleNotFoundError", "Exception", "BaseException", "AttributeError"}
)
_COMPOUND = (
    ast.If,
    ast.With,
    ast.AsyncWith,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.Match,
    *TRY,
)
_SETATTRS = frozenset({"setattr", "object.__setattr__", "type.__setattr__"})


class Branch:
    """The condition of one block. Its text is made when a fact wants it: few blocks hold one."""

    __slots__ = ("_condition", "_make")

    def __init__(self, make: Callable[[], Condition]) -> None:
        self._make = make
        self._condition: Condition | None = None

    @property
    def condition(self) -> Condition:
        """The condition, the same object each time."""
        if self._condition is None:
            self._condition = self._make()
        return self._condition


Under = tuple[Branch, ...]


def conditions(under: Under) -> Conditions:
    """What must hold for a statement under these branches to run."""
    return tuple(branch.condition for branch in under) if under else ()


def statements(body: Iterable[ast.stmt], under: Under = ()) -> Iterator[tuple[ast.stmt, Under]]:
    """Every statement of one scope with the branches it stands under, in source order."""
    stack = [(iter(body), under)]
    while stack:
        rest, around = stack[-1]
        node = next(rest, None)
        if node is None:
            stack.pop()
            continue
        yield node, around
        if isinstance(node, _COMPOUND):
            for inner, branch in reversed(list(_blocks(node))):
                stack.append((iter(inner), (*around, branch) if branch else around))


def _blocks(node: ast.stmt) -> Iterator[tuple[list[ast.stmt], Branch | None]]:
    """The blocks inside a statement that belong to the same scope and can run."""
    if isinstance(node, ast.If):
        yield from _branches(node)
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        yield node.body, None
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        loop = node
        yield (
            node.body,
            _branch(lambda: f"for {shorten(loop.target)} in {shorten(loop.iter)}", "loop"),
        )
        yield node.orelse, None
    elif isinstance(node, ast.While):
        test = node.test
        yield node.body, _branch(lambda: shorten(test), "loop")
        yield node.orelse, None
    elif isinstance(node, ast.Match):
        for case in node.cases:
            yield case.body, Branch(partial(_matches, node.subject, case.pattern))
    elif is_try(node):
        yield from _attempts(node)


def _branch(text: Callable[[], str], kind: str) -> Branch:
    return Branch(lambda: Condition(text(), kind=kind))


def _matches(subject: ast.expr, pattern: ast.pattern) -> Condition:
    return Condition(f"{shorten(subject)} matches {shorten(pattern)}")


def _branches(node: ast.If) -> Iterator[tuple[list[ast.stmt], Branch | None]]:
    if isinstance(node.test, ast.Constant):
        yield node.body if node.test.value else node.orelse, None
        return
    held = Branch(lambda: _test(node.test))
    yield node.body, held
    if node.orelse:
        yield (
            node.orelse,
            Branch(lambda: replace(held.condition, negated=not held.condition.negated)),
        )


def _attempts(node: ast.Try) -> Iterator[tuple[list[ast.stmt], Branch | None]]:
    """The blocks of `try`, and under what each runs."""
    survives = any(map(_catches_import_error, node.handlers))
    yield node.body, _branch(lambda: "try", "guarded") if survives else None
    for handler in node.handlers:
        yield handler.body, Branch(partial(_caught, handler))
    yield node.orelse, None
    yield node.finalbody, None


def _caught(handler: ast.ExceptHandler) -> Condition:
    text = shorten(handler.type) if handler.type else "any exception"
    return Condition(text, kind="import-error" if _catches_import_error(handler) else "handler")


def _test(test: ast.expr) -> Condition:
    negated = False
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, negated = test.operand, not negated
    name = (dotted_name(test) or "").rpartition(".")[2]
    return Condition(shorten(test), negated, "type-checking" if name == "TYPE_CHECKING" else "test")


def _catches_import_error(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any((dotted_name(c) or "").rpartition(".")[2] in _BROAD for c in caught)


# What a statement binds

Bound = tuple[ast.expr, "ast.expr | None"]
"""A target (a name, an attribute, a subscript) and the value it gets, None where that varies."""


def bound(node: ast.stmt) -> Iterator[Bound]:
    """The targets that the statement itself binds, without imports and definitions."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from pairs(target, node.value)
        yield from _walrus(node.value)
    elif isinstance(node, ast.AnnAssign):
        if node.value is not None:
            yield node.target, node.value
    elif isinstance(node, ast.AugAssign):
        yield node.target, ast.BinOp(node.target, node.op, node.value)
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        yield from _unpacked(node.target)
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        for item in node.items:
            if item.optional_vars is not None:
                yield from _unpacked(item.optional_vars)
    elif isinstance(node, (ast.If, ast.While)):
        yield from _walrus(node.test)
    elif isinstance(node, ast.Expr):
        yield from _walrus(node.value)
    elif isinstance(node, ast.Match):
        for case in node.cases:
            for inner in walk(case.pattern):
                name = getattr(inner, "name", None) or getattr(inner, "rest", None)
                if isinstance(name, str):
                    yield ast.Name(name), None


def pairs(target: ast.expr, value: ast.expr | None) -> Iterator[Bound]:
    """`a, b = x, y` element by element; a target that cannot be paired gets no value."""
    if not isinstance(target, (ast.Tuple, ast.List)):
        yield target.value if isinstance(target, ast.Starred) else target, value
        return
    values: list[ast.expr | None] = [None] * len(target.elts)
    if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
        starred = any(isinstance(e, ast.Starred) for e in (*value.elts, *target.elts))
        if not starred:
            values = list(value.elts)
    for inner, right in zip(target.elts, values, strict=True):
        yield from pairs(inner, right)


def _unpacked(target: ast.expr) -> Iterator[Bound]:
    return pairs(target, None)


def _walrus(node: ast.expr) -> Iterator[Bound]:
    """`(name := value)` where it is sure to run or close to it: not inside comprehensions."""
    queue = [node]
    while queue:
        node = queue.pop()
        if isinstance(node, ast.NamedExpr):
            yield node.target, node.value
            queue.append(node.value)
        elif isinstance(node, ast.BoolOp):
            queue += node.values
        elif isinstance(node, ast.Compare):
            queue += (node.left, *node.comparators)
        elif isinstance(node, ast.UnaryOp):
            queue.append(node.operand)
        elif isinstance(node, ast.Call):
            queue += node.args


def settings(node: ast.stmt) -> Iterator[tuple[str, str, ast.expr | None]]:
    """(owner, attribute, value) for `owner.attribute = value` and the other ways to say it.

    These are `setattr(owner, "attribute", …)` and `owner.__dict__["attribute"] = …`. A class taken
    from its instance (`type(x)`, `x.__class__`) is the owner `x.__class__`.
    """
    for target, value in bound(node):
        if isinstance(target, ast.Attribute) and (owner := _owner(target.value)):
            yield owner, target.attr, value
        elif isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
            owner = dotted_name(target.value) or ""
            if owner.endswith(".__dict__") and isinstance(target.slice.value, str):
                yield owner.removesuffix(".__dict__"), target.slice.value, value
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield from _setattr_call(node.value)


def _setattr_call(call: ast.Call) -> Iterator[tuple[str, str, ast.expr]]:
    if (dotted_name(call.func) or "") not in _SETATTRS or len(call.args) != 3:
        return
    owner, name = _owner(call.args[0]), call.args[1]
    if owner:
        known = name.value if isinstance(name, ast.Constant) else COMPUTED
        yield owner, str(known), call.args[2]


def _owner(node: ast.expr) -> str | None:
    if isinstance(node, ast.Call) and dotted_name(node.func) == "type" and len(node.args) == 1:
        inner = dotted_name(node.args[0])
        return f"{inner}.__class__" if inner else None
    return dotted_name(node)
