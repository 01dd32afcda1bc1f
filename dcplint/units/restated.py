"""Operations that are written as calls or in place, restated as the expressions they compute.

`x += v`, `x.add_(v)` and `torch.add(x, v)` are all `x + v`, `f(…, out=x)` gives `x` what `f(…)` is,
and a call of a lambda is its body. What is restated is the same object each time it is asked for,
so that it is evaluated once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from dcplint.flow.conditions import substituted
from dcplint.flow.functions import Function, callee_name, given_once
from dcplint.units.localizers import Localizers, passed
from dcplint.units.operations import FILLING

_ZERO = ast.Constant(0)


@dataclass
class Restated:
    """Restates operations, each once."""

    localizers: Localizers
    _sums: dict[ast.AST, ast.expr] = field(default_factory=dict)
    _results: dict[ast.Call, ast.expr] = field(default_factory=dict)
    _inlined: dict[ast.Call, ast.expr | None] = field(default_factory=dict)

    def sum(
        self, place: ast.AST, left: ast.expr, operator: ast.operator, right: ast.expr
    ) -> ast.expr:
        """What an operation that stands at `place` computes of its operands."""
        if place not in self._sums:
            self._sums[place] = ast.copy_location(ast.BinOp(left, operator, right), place)
        return self._sums[place]

    def writes(self, function: Function, call: ast.Call) -> Iterator[tuple[ast.expr, ast.expr]]:
        """What a call writes into, and what: `x.copy_(v)`, `f(…, out=x)`, a localizer's output."""
        localizer = self.localizers.run_by(function, call)
        if localizer is not None:
            out = passed(call, localizer, localizer.out) if localizer.out else None
            if out is not None:
                yield out, call
            return
        out = next((k.value for k in call.keywords if k.arg == "out"), None)
        if out is not None:
            yield out, self._result(call)
        callee = call.func
        if isinstance(callee, ast.Attribute) and callee.attr in FILLING:
            if callee.attr == "zero_":
                yield callee.value, _ZERO
            elif callee.attr in ("add_", "sub_") and call.args:
                operator = ast.Add() if callee.attr == "add_" else ast.Sub()
                yield callee.value, self.sum(call, callee.value, operator, call.args[0])
            elif call.args:
                yield callee.value, call.args[0]

    def _result(self, call: ast.Call) -> ast.expr:
        """What a call with an output computes, without it."""
        if call not in self._results:
            self._results[call] = ast.copy_location(ast.Call(call.func, call.args, []), call)
        return self._results[call]

    def inlined(self, function: Function, call: ast.Call) -> ast.expr | None:
        """What a call comes to of a variable that holds a lambda."""
        if call not in self._inlined:
            self._inlined[call] = None
            made = given_once(function, callee_name(call))
            plain = not call.keywords and not any(isinstance(a, ast.Starred) for a in call.args)
            if isinstance(made, ast.Lambda) and plain and len(made.args.args) == len(call.args):
                names = (parameter.arg for parameter in made.args.args)
                given = dict(zip(names, call.args, strict=True))
                self._inlined[call] = substituted(made.body, given)
        return self._inlined[call]
