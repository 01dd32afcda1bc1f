"""A tree-walking evaluator of integer arithmetic, as Python, torch, numpy and Triton write it.

Nothing of the source is executed: each node is looked at, and what is not known ends the
evaluation. Tensors stand for one element, so slicing, moving and reshaping change nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from dcplint.facts.expressions import dotted_name

Leaf = Callable[[ast.expr], int | None]

_LARGEST = 1 << 40
_SAME = frozenset(
    {
        "to", "int", "long", "clone", "cpu", "cuda", "contiguous", "item", "detach", "type",
        "astype", "unsqueeze", "squeeze", "view", "reshape", "expand", "flatten", "numpy", "copy",
        "float", "as_tensor", "from_numpy", "tensor", "asarray", "int32", "int64", "bool",
    }
)  # fmt: skip
_SMALLEST = frozenset({"min", "minimum"})
_LARGER = frozenset({"max", "maximum"})
_MODULES = frozenset({"torch", "np", "numpy", "tl", "triton", "math", "triton.language"})
_QUOTIENTS = frozenset({"cdiv", "ceil_div", "ceildiv", "floor_divide", "floordiv", "div", "divide"})
_OTHERS = frozenset({"remainder", "mod", "round_down", "round_up", "clamp", "clip", "where"})
_BOUNDS = frozenset({"clamp_min", "clamp_max", "divmod"})
ELEMENTWISE = _SAME | _SMALLEST | _LARGER | _QUOTIENTS | _OTHERS | _BOUNDS
"""The last names of the calls that can be evaluated."""


class NotArithmetic(Exception):
    """The expression is more than integer arithmetic over its leaves."""


def evaluate(node: ast.expr, leaf: Leaf) -> int:
    """The value of `node`, with what `leaf` gives for the names in it.

    Raises NotArithmetic for whatever is not integer arithmetic.
    """
    known = leaf(node)
    if known is not None:
        return known
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return int(node.value)
    if isinstance(node, ast.BinOp):
        return _binary(node.op, evaluate(node.left, leaf), evaluate(node.right, leaf))
    if isinstance(node, ast.UnaryOp):
        return _unary(node.op, evaluate(node.operand, leaf))
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right = evaluate(node.left, leaf), evaluate(node.comparators[0], leaf)
        return int(_compare(node.ops[0], left, right))
    if isinstance(node, ast.BoolOp):
        values = [evaluate(value, leaf) for value in node.values]
        deciding = isinstance(node.op, ast.Or)
        return next((v for v in values if bool(v) is deciding), values[-1])
    if isinstance(node, ast.IfExp):
        return evaluate(node.body if evaluate(node.test, leaf) else node.orelse, leaf)
    if isinstance(node, ast.Call):
        return _call(node, leaf)
    if isinstance(node, ast.Subscript):
        return _element(node, leaf)
    raise NotArithmetic


def _element(node: ast.Subscript, leaf: Leaf) -> int:
    """A part of a tensor is arithmetic on that part; of a `divmod` it is one of the two."""
    value, index = node.value, node.slice
    if isinstance(value, ast.Call) and dotted_name(value.func) == "divmod" and len(value.args) == 2:
        left, right = (evaluate(argument, leaf) for argument in value.args)
        if right and isinstance(index, ast.Constant) and index.value in (0, 1):
            return left // right if index.value == 0 else left % right
        raise NotArithmetic
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    if all(isinstance(p, ast.Slice) or _is_none_or_ellipsis(p) for p in parts):
        return evaluate(value, leaf)
    raise NotArithmetic


def _is_none_or_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in (None, ...)


def _binary(operator: ast.operator, left: int, right: int) -> int:
    if isinstance(operator, ast.Add):
        return left + right
    if isinstance(operator, ast.Sub):
        return left - right
    if isinstance(operator, ast.Mult):
        if abs(left) > _LARGEST or abs(right) > _LARGEST:
            raise NotArithmetic
        return left * right
    if isinstance(operator, (ast.FloorDiv, ast.Mod)) and right:
        return left // right if isinstance(operator, ast.FloorDiv) else left % right
    if isinstance(operator, ast.BitAnd):
        return left & right
    if isinstance(operator, ast.BitOr):
        return left | right
    raise NotArithmetic


def _unary(operator: ast.unaryop, value: int) -> int:
    if isinstance(operator, ast.USub):
        return -value
    if isinstance(operator, ast.UAdd):
        return value
    if isinstance(operator, ast.Not):
        return int(not value)
    raise NotArithmetic


def _compare(operator: ast.cmpop, left: int, right: int) -> bool:
    if isinstance(operator, ast.Eq):
        return left == right
    if isinstance(operator, ast.NotEq):
        return left != right
    if isinstance(operator, ast.Lt):
        return left < right
    if isinstance(operator, ast.LtE):
        return left <= right
    if isinstance(operator, ast.Gt):
        return left > right
    if isinstance(operator, ast.GtE):
        return left >= right
    raise NotArithmetic


def _call(call: ast.Call, leaf: Leaf) -> int:
    """A function of a tensor library, or the method of a tensor."""
    callee = call.func
    given = list(call.args)
    if isinstance(callee, ast.Attribute):
        name = callee.attr
        if dotted_name(callee.value) not in _MODULES:
            given.insert(0, callee.value)
    elif isinstance(callee, ast.Name):
        name = callee.id
    else:
        raise NotArithmetic
    keywords = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    name = name.rstrip("_")
    if name in _SAME and given:
        return evaluate(given[0], leaf)
    return _applied(name, given, keywords, leaf)


def _applied(name: str, given: list[ast.expr], keywords: Mapping[str, ast.expr], leaf: Leaf) -> int:
    if name == "clamp_min" or name == "clamp_max":
        bound = given[1] if len(given) > 1 else keywords.get(name[-3:])
        if bound is None or not given:
            raise NotArithmetic
        pair = evaluate(given[0], leaf), evaluate(bound, leaf)
        return max(pair) if name == "clamp_min" else min(pair)
    if name in ("clamp", "clip"):
        return _clamped(given, keywords, leaf)
    values = [evaluate(node, leaf) for node in given]
    if name in _SMALLEST and len(values) > 1:
        return min(values)
    if name in _LARGER and len(values) > 1:
        return max(values)
    if name == "where" and len(values) == 3:
        return values[1] if values[0] else values[2]
    if len(values) != 2 or not values[1]:
        raise NotArithmetic
    left, right = values
    if name in ("cdiv", "ceil_div", "ceildiv"):
        return -(-left // right)
    if name in ("floor_divide", "floordiv") or (name in ("div", "divide") and _floors(keywords)):
        return left // right
    if name in ("remainder", "mod"):
        return left % right
    if name == "round_down":
        return left // right * right
    if name == "round_up":
        return -(-left // right) * right
    raise NotArithmetic


def _floors(keywords: Mapping[str, ast.expr]) -> bool:
    mode = keywords.get("rounding_mode")
    return isinstance(mode, ast.Constant) and mode.value == "floor"


def _clamped(given: list[ast.expr], keywords: Mapping[str, ast.expr], leaf: Leaf) -> int:
    if not given:
        raise NotArithmetic
    low = given[1] if len(given) > 1 else keywords.get("min", keywords.get("a_min"))
    high = given[2] if len(given) > 2 else keywords.get("max", keywords.get("a_max"))
    value = evaluate(given[0], leaf)
    if low is not None and not _is_none_or_ellipsis(low):
        value = max(value, evaluate(low, leaf))
    if high is not None and not _is_none_or_ellipsis(high):
        value = min(value, evaluate(high, leaf))
    return value
