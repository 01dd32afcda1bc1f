"""Local lengths that are advanced or rewound: `local(L) - k` is not `local(L - k)`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Set
from itertools import islice

from dcplint.checks.base import Context
from dcplint.checks.length_changes import Change, held
from dcplint.facts.expressions import shorten
from dcplint.flow.functions import Function, callee_name
from dcplint.flow.graph import Node
from dcplint.source.location import Tree
from dcplint.units.lattice import Space, Value, shifts_local
from dcplint.units.operations import ADDING, CHOOSING, loaded, operands
from dcplint.units.roles import SIDES

_SUMS = (ast.BinOp, ast.AugAssign, ast.Call)
_IN_PLACE: dict[str, ast.operator] = {"add_": ast.Add(), "sub_": ast.Sub()}
_CHOICES = 3  # choices among choices
_ADDED = re.compile(r"[-+]|\b(?:add|sub)")
_SHIFTED = {
    "+": "L=8, N=4, r=3, I=1, k=1: 3, should be 2",
    "-": "L=8, N=4, r=0, I=1, k=1: 1, should be 2",
}


def shifts(context: Context) -> Iterator[Change]:
    """The places where a local length is moved, each once."""
    told: set[ast.AST] = set()
    for found in (_advanced(context), _moved(context)):
        for change in found:
            if change.node not in told:
                told.add(change.node)
                yield change


def _sum(node: ast.AST) -> ast.BinOp | None:
    """What `node` adds to something or takes from it, in place or not, as a sum."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        return node
    if isinstance(node, ast.AugAssign) and isinstance(node.op, (ast.Add, ast.Sub)):
        return ast.BinOp(loaded(node.target), node.op, node.value)
    if isinstance(node, ast.Call):
        name, given = callee_name(node), operands(node)
        if name in _IN_PLACE and len(given) == 2:
            return ast.BinOp(given[0], _IN_PLACE[name], given[1])
        if name in ADDING and len(given) == 2:
            return ast.BinOp(given[0], ast.Add() if name == "add" else ast.Sub(), given[1])
    return None


# A field that gets what it held, and something more or less


def _advanced(context: Context) -> Iterator[Change]:
    """`x.dcp_local_seq_lens += k`: the local length of a longer sequence is another one."""
    fields = {f.name for f in context.contract.fields if f.localises or "local" in f.name}
    functions = (f for name in sorted(fields) for f in context.fields.universe.mentioning(name))
    for function in dict.fromkeys(functions):
        if function.module.tree is not Tree.PROJECT:
            continue
        for statement, nodes in function.own_nodes.items():
            for node in (statement, *nodes):
                for target, value in _stores(node):
                    for at in function.graph.at(statement):
                        if _is_of_field(context, function, at, target, fields):
                            yield from _shifted(context, function, at, value, fields)


def _stores(node: ast.AST) -> Iterator[tuple[ast.expr, ast.AST]]:
    """What a node writes into something, and what is written."""
    if isinstance(node, ast.AugAssign):
        yield loaded(node.target), node
    elif isinstance(node, ast.Assign):
        yield from ((target, node.value) for target in node.targets if not _is_variable(target))
    elif isinstance(node, ast.Call):
        callee = node.func
        if isinstance(callee, ast.Attribute) and len(node.args) == 1:
            if callee.attr in _IN_PLACE:
                yield callee.value, node
            elif callee.attr == "copy_":
                yield callee.value, node.args[0]
        for keyword in node.keywords:
            if keyword.arg == "out":
                yield keyword.value, node
            elif keyword.arg:
                yield ast.Attribute(node.func, keyword.arg, ast.Load()), keyword.value


def _is_variable(target: ast.expr) -> bool:
    return isinstance(target, (ast.Name, ast.Tuple, ast.List, ast.Starred))


def _shifted(
    context: Context, function: Function, at: Node, value: ast.AST, fields: Set[str]
) -> Iterator[Change]:
    """Where `value` is what such a field holds, and something more or less that is not local."""
    for place, node in _choices(context, function, at, value, _CHOICES):
        change = _sum(node)
        if change is None:
            continue
        sides = [(change.left, change.right)]
        if isinstance(change.op, ast.Add):
            sides.append((change.right, change.left))
        for whole, step in sides:
            if _is_of_field(context, function, place, whole, fields):
                known = context.units.before_node(function, place, step)
                if not isinstance(known, Value) or known.unit.space is not Space.LOCAL:
                    sign = "+" if isinstance(change.op, ast.Add) else "-"
                    yield Change(
                        function,
                        node,
                        f"`{function.qualname}` changes the local length "
                        f"`{shorten(_part_of(whole))}` by {shorten(step)}: "
                        f"local(L {sign} k) is not local(L) {sign} k ({_SHIFTED[sign]})",
                    )
                    return


def _choices(
    context: Context, function: Function, at: Node, value: ast.AST, steps: int
) -> Iterator[tuple[Node, ast.AST]]:
    """What `value` may be, one of several by a test: `where(live, x - k, x)`, `max(x - k, 0)`."""
    if isinstance(value, ast.expr) and _sum(value) is None:
        at, value = held(context, function, at, value)
    if isinstance(value, ast.IfExp):
        chosen = [value.body, value.orelse]
    elif isinstance(value, ast.Call) and callee_name(value) in CHOOSING:
        chosen = operands(value)[1 if callee_name(value) == "where" else 0 :]
    else:
        yield at, value
        return
    for choice in chosen if steps else ():
        yield from _choices(context, function, at, choice, steps - 1)


def _is_of_field(
    context: Context, function: Function, at: Node, node: ast.expr, fields: Set[str]
) -> bool:
    """Whether `node` is one of these attributes, or a variable for what lies there."""
    whole = _part_of(node)
    if isinstance(whole, ast.Attribute):
        owner = whole.value if whole.attr in SIDES else whole
        return isinstance(owner, ast.Attribute) and owner.attr in fields
    if not isinstance(whole, ast.Name):
        return False
    values = [value for _, value in context.units.given(function, at, whole.id)]
    parts = [_part_of(value) for value in values]
    return bool(parts) and all(
        isinstance(part, ast.Attribute) and _is_of_field(context, function, at, part, fields)
        for part in parts
    )


def _part_of(node: ast.expr) -> ast.expr:
    """What `node` is a part of."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


# Any local length, by tokens of this step


def _moved(context: Context) -> Iterator[Change]:
    """`localise(L) - k + i`: the local length of a row is that of the row's own global length."""
    contract = context.contract
    steps = {n.name for n in contract.lengths if n.unit.startswith("quer")} | {"arange", "range"}
    sign = re.compile("|".join(rf"\b{name}\b" for name in sorted(steps)))
    for function in context.spread.functions(sign, _ADDED):
        for statement, nodes in function.own_nodes.items():
            sums = [n for n in (statement, *nodes) if isinstance(n, _SUMS)]
            found = (c for node in sums for c in _by_steps(context, function, statement, node))
            yield from islice(found, 1)  # the rest of the sum is the same fault


def _by_steps(
    context: Context, function: Function, statement: ast.stmt, node: ast.AST
) -> Iterator[Change]:
    shift = _sum(node)
    if shift is None or isinstance(shift.left, ast.Constant):
        return
    if isinstance(shift.right, ast.Constant) or not context.spread.may_be_local(function, shift):
        return
    left = context.units.value(function, statement, shift.left)
    right = context.units.value(function, statement, shift.right) if left else None
    if shifts_local(left, right) and context.fields.tracer.can_run(function, statement):
        sign = "+" if isinstance(shift.op, ast.Add) else "-"
        yield Change(
            function,
            node,
            f"`{function.qualname}` moves a local length by tokens of this step in "
            f"`{shorten(node)}`: local(L {sign} k) is not local(L) {sign} k ({_SHIFTED[sign]})",
        )
