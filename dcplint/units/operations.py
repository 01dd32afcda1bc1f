"""What operations on tensors do to a length, by their names, and what they are applied to."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dcplint.facts.expressions import dotted_name
from dcplint.flow.functions import callee_name

KEEPING = frozenset(
    {
        "to", "int", "long", "clone", "contiguous", "detach", "type", "astype", "unsqueeze",
        "squeeze", "view", "reshape", "expand", "flatten", "copy", "float", "as_tensor",
        "from_numpy", "tensor", "asarray", "int32", "int64", "repeat_interleave", "pin_memory",
        "narrow", "clamp", "clip", "clamp_min", "clamp_max", "list", "tuple",
    }
)  # fmt: skip
READING = frozenset({"cpu", "numpy", "tolist", "item"})
MOVING = frozenset({"cuda"})
CHOOSING = frozenset({"where", "minimum", "maximum", "min", "max"})
FILLING = frozenset({"copy_", "fill_", "zero_", "add_", "sub_"})
ADDING = frozenset({"add", "sub", "subtract"})
DIVIDING = frozenset({"cdiv", "ceil_div", "div", "divide", "floor_divide"})
ROUNDING = frozenset({"cdiv", "ceil_div"})
COUNTING = frozenset({"arange", "range"})

_SAME_NUMBERS = READING | {"to", "int", "long", "clone", "contiguous", "detach", "type", "copy"}
_MODULES = frozenset({"torch", "np", "numpy", "math", "F"})
_NUMBERS = frozenset({"int", "float"})
_PLACING = frozenset({"to", "tensor", "as_tensor", "asarray", "from_numpy"})
_STAYING = frozenset({"dtype", "non_blocking", "copy"})


def operands(call: ast.Call) -> list[ast.expr]:
    """What an elementwise operation is applied to: the receiver of a method first."""
    given = list(call.args)
    callee = call.func
    if isinstance(callee, ast.Attribute) and dotted_name(callee.value) not in _MODULES:
        given.insert(0, callee.value)
    return given


def summands(node: ast.expr) -> Iterator[ast.expr]:
    """The parts of a sum, signs dropped: what a rounded division divides."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        yield from summands(node.left)
        yield from summands(node.right)
    elif isinstance(node, ast.UnaryOp):
        yield from summands(node.operand)
    else:
        yield node


def unpadded(node: ast.expr) -> ast.expr:
    """A list without the numbers that are put behind it: `x` of `x + [0] * n`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and _is_filling(node.right):
        return node.left
    return node


def _is_filling(node: ast.expr) -> bool:
    """Whether a list holds nothing but numbers, however many: `[0]`, `[0] * n`, `n * [0]`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _is_filling(node.left) or _is_filling(node.right)
    return isinstance(node, ast.List) and all(isinstance(e, ast.Constant) for e in node.elts)


def unread(node: ast.expr) -> ast.expr:
    """What `x.tolist()`, `x.to(…)` and their kin hold the numbers of."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if callee_name(node) not in _SAME_NUMBERS or dotted_name(node.func.value) in _MODULES:
            break
        node = node.func.value
    return node


def may_move(call: ast.Call) -> bool:
    """Whether the result can lie elsewhere than what it is made of: `int(x)`, `x.to(device)`."""
    name = callee_name(call)
    if isinstance(call.func, ast.Name):
        return name in _NUMBERS
    if name not in _PLACING:
        return False
    given = [*call.args, *(k.value for k in call.keywords if k.arg not in _STAYING)]
    if name != "to":
        given = given[1:]
    return not all((dotted_name(a) or "").partition(".")[0] in _MODULES for a in given)


def stored_into(node: ast.expr) -> str | None:
    """The dotted name of what a target is, or is a part of."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return dotted_name(node)


def loaded(target: ast.expr) -> ast.expr:
    """What a target holds, as an expression."""
    dotted = dotted_name(target)
    return ast.parse(dotted, mode="eval").body if dotted is not None else target
