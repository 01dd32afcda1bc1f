"""Numbers of heads that are multiplied by the DCP size, and have been before."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from dcplint.checks.base import Context
from dcplint.flow.functions import Function
from dcplint.flow.scenario import Meaning
from dcplint.source.location import Tree

_STEPS = 4  # names in terms of names
_HEADS = re.compile(r"(?:\b|_)(?:q_?|qo_?|kv_?)?heads?\w*(?:\(|\Z)")
_TIMES_HEADS = re.compile(r"(?s)head.*\*|\*.*head")


@dataclass(frozen=True, slots=True)
class Product:
    """A product of `heads` and the DCP size. before: the products that `heads` is, and where."""

    function: Function
    node: ast.AST
    heads: ast.expr
    before: tuple[Meaning, ...]


def multiplied_twice(context: Context) -> Iterator[Product]:
    """Every such product that runs under DCP."""
    for function in dict.fromkeys(context.fields.universe.matching(_TIMES_HEADS.search)):
        if function.module.tree is not Tree.PROJECT:
            continue
        for statement, nodes in function.own_nodes.items():
            for node in [n for n in nodes if isinstance(n, ast.BinOp)]:
                heads = _gathered(context, function, node)
                before = _before(context, function, heads) if heads is not None else ()
                if heads is not None and before and isinstance(statement, ast.stmt):
                    if context.fields.tracer.can_run(function, statement):
                        yield Product(function, node, heads, before)


def _gathered(context: Context, function: Function, node: ast.AST) -> ast.expr | None:
    """What a product with the DCP size multiplies, where it is a number of heads."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return None
    scenario = context.fields.tracer.scenario
    for heads, size in ((node.left, node.right), (node.right, node.left)):
        if _HEADS.search(ast.unparse(heads)) and scenario.is_size(function, size):
            return heads
    return None


def _before(context: Context, function: Function, heads: ast.expr) -> tuple[Meaning, ...]:
    """The products with the DCP size that a number of heads is; none where it may be another."""
    found = []
    queue = [(*meaning, _STEPS) for meaning in _meanings(context, function, heads)]
    for where, value, steps in queue:  # grows as it is read
        if _gathered(context, where, value) is not None:
            found.append((where, value))
        elif steps and (further := _meanings(context, where, value)):
            queue += [(*meaning, steps - 1) for meaning in further]
        else:
            return ()
    return tuple(found)


def _meanings(context: Context, function: Function, node: ast.expr) -> list[Meaning]:
    return context.fields.tracer.scenario.meanings(function, node)
