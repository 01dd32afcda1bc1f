"""Integer arithmetic, as Python, torch, numpy and Triton write it, made ready to be evaluated.

Nothing of the source is executed: each node is looked at once and becomes a function of the case at
hand, since formulas are evaluated in thousands of cases. Tensors stand for one element, so slicing,
moving and reshaping change nothing.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import TypeVar

from dcplint.facts.expressions import dotted_name

C = TypeVar("C")
Value = Callable[[C], int]
"""What an expression is in a case. Raises NotArithmetic where it is no integer."""

Leaf = Callable[[ast.expr], "Value[C] | None"]
"""What a name stands for, and whatever else is known without looking into it."""

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
_COMPARING: dict[str, Callable[[int, int], int]] = {
    name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")
}
ELEMENTWISE = _SAME | _SMALLEST | _LARGER | _QUOTIENTS | _OTHERS | _BOUNDS | _COMPARING.keys()
"""The last names of the calls that can be evaluated."""


class NotArithmetic(Exception):
    """The expression is more than integer arithmetic over its leaves."""


_PLAIN: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
}
_COMPARED: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def _times(left: int, right: int) -> int:
    if abs(left) > _LARGEST or abs(right) > _LARGEST:
        raise NotArithmetic
    return left * right


def _quotient(left: int, right: int) -> int:
    if not right:
        raise NotArithmetic
    return left // right


def _rest(left: int, right: int) -> int:
    if not right:
        raise NotArithmetic
    return left % right


def _ceiling(left: int, right: int) -> int:
    return -_quotient(-left, right)


_PLAIN |= {ast.Mult: _times, ast.FloorDiv: _quotient, ast.Mod: _rest}
_OF_TWO: dict[str, Callable[[int, int], int]] = {
    **_COMPARING,
    **dict.fromkeys(("cdiv", "ceil_div", "ceildiv"), _ceiling),
    **dict.fromkeys(("floor_divide", "floordiv"), _quotient),
    **dict.fromkeys(("remainder", "mod"), _rest),
    "round_down": lambda left, right: _quotient(left, right) * right,
    "round_up": lambda left, right: _ceiling(left, right) * right,
}


def arithmetic(node: ast.expr, leaf: Leaf[C]) -> Value[C]:
    """What `node` is, with what `leaf` gives for the names in it.

    Parts that are no arithmetic matter only where they are evaluated.
    """
    try:
        return _arithmetic(node, leaf)
    except NotArithmetic:
        return _fails


def _fails(case: object) -> int:
    raise NotArithmetic


def _arithmetic(node: ast.expr, leaf: Leaf[C]) -> Value[C]:
    known = leaf(node)
    if known is not None:
        return known
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        value = int(node.value)
        return lambda case: value
    if isinstance(node, ast.BinOp) and type(node.op) in _PLAIN:
        return _of_two(_PLAIN[type(node.op)], node.left, node.right, leaf)
    if isinstance(node, ast.UnaryOp):
        return _unary(node.op, _arithmetic(node.operand, leaf))
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARED:
        return _of_two(_COMPARED[type(node.ops[0])], node.left, node.comparators[0], leaf)
    if isinstance(node, ast.BoolOp):
        return _either(isinstance(node.op, ast.Or), [arithmetic(v, leaf) for v in node.values])
    if isinstance(node, ast.IfExp):
        test = _arithmetic(node.test, leaf)
        body, orelse = arithmetic(node.body, leaf), arithmetic(node.orelse, leaf)
        return lambda case: body(case) if test(case) else orelse(case)
    if isinstance(node, ast.Call):
        return _call(node, leaf)
    if isinstance(node, ast.Subscript):
        return _element(node, leaf)
    raise NotArithmetic


def _of_two(
    work: Callable[[int, int], int], left: ast.expr, right: ast.expr, leaf: Leaf[C]
) -> Value[C]:
    one, other = _arithmetic(left, leaf), _arithmetic(right, leaf)
    return lambda case: int(work(one(case), other(case)))


def _unary(operator: ast.unaryop, value: Value[C]) -> Value[C]:
    if isinstance(operator, ast.USub):
        return lambda case: -value(case)
    if isinstance(operator, ast.UAdd):
        return value
    if isinstance(operator, ast.Not):
        return lambda case: int(not value(case))
    raise NotArithmetic


def _either(deciding: bool, values: list[Value[C]]) -> Value[C]:
    """`a or b`, where a true value decides; `a and b`, where a false one does."""

    def value(case: C) -> int:
        found = 0
        for each in values:
            found = each(case)
            if bool(found) is deciding:
                break
        return found

    return value


def _element(node: ast.Subscript, leaf: Leaf[C]) -> Value[C]:
    """A part of a tensor is arithmetic on that part; of a `divmod` it is one of the two."""
    value, index = node.value, node.slice
    if isinstance(value, ast.Call) and dotted_name(value.func) == "divmod" and len(value.args) == 2:
        if isinstance(index, ast.Constant) and index.value in (0, 1):
            return _of_two(_rest if index.value else _quotient, value.args[0], value.args[1], leaf)
        raise NotArithmetic
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    if all(isinstance(p, ast.Slice) or _is_none_or_ellipsis(p) for p in parts):
        return _arithmetic(value, leaf)
    if is_comparison(index):
        return _arithmetic(value, leaf)
    raise NotArithmetic


def is_comparison(node: ast.AST) -> bool:
    """Whether it compares numbers, be it by a method of a tensor; not whether it is None."""
    if isinstance(node, ast.Compare):
        return not all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops)
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr in _COMPARING
    return False


def _is_none_or_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in (None, ...)


def _call(call: ast.Call, leaf: Leaf[C]) -> Value[C]:
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
        return _arithmetic(given[0], leaf)
    return _applied(name, given, keywords, leaf)


def _applied(
    name: str, given: list[ast.expr], keywords: Mapping[str, ast.expr], leaf: Leaf[C]
) -> Value[C]:
    if name == "clamp_min" or name == "clamp_max":
        bound = given[1] if len(given) > 1 else keywords.get(name[-3:])
        if bound is None or not given:
            raise NotArithmetic
        return _of_two(max if name == "clamp_min" else min, given[0], bound, leaf)
    if name in ("clamp", "clip"):
        return _clamped(given, keywords, leaf)
    values = [_arithmetic(node, leaf) for node in given]
    if (name in _SMALLEST or name in _LARGER) and len(values) > 1:
        choose = min if name in _SMALLEST else max
        return lambda case: choose(value(case) for value in values)
    if name == "where" and len(values) == 3:
        test, body, orelse = values
        return lambda case: body(case) if test(case) else orelse(case)
    if name in ("div", "divide") and _floors(keywords):
        name = "floordiv"
    if len(values) != 2 or name not in _OF_TWO:
        raise NotArithmetic
    return _of_two(_OF_TWO[name], given[0], given[1], leaf)


def _floors(keywords: Mapping[str, ast.expr]) -> bool:
    mode = keywords.get("rounding_mode")
    return isinstance(mode, ast.Constant) and mode.value == "floor"


def _clamped(given: list[ast.expr], keywords: Mapping[str, ast.expr], leaf: Leaf[C]) -> Value[C]:
    if not given:
        raise NotArithmetic
    low = given[1] if len(given) > 1 else keywords.get("min", keywords.get("a_min"))
    high = given[2] if len(given) > 2 else keywords.get("max", keywords.get("a_max"))
    value = _arithmetic(given[0], leaf)
    bounds = [
        None if bound is None or _is_none_or_ellipsis(bound) else _arithmetic(bound, leaf)
        for bound in (low, high)
    ]
    least, most = bounds

    def clamped(case: C) -> int:
        found = value(case)
        if least is not None:
            found = max(found, least(case))
        return found if most is None else min(found, most(case))

    return clamped
