"""What is known on one way through a function: of values, and of the tests that lead there."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from dcplint.facts.positions import position
from dcplint.flow.clauses import Clauses
from dcplint.flow.functions import Function
from dcplint.flow.trace import State, Step
from dcplint.source.tree import walk


@dataclass(frozen=True, slots=True)
class Value:
    """What is known of a value. meaning: what it was given, for naming tests of it.

    single: it is one value, no tuple or a tuple of one. origin: where it becomes None, or is
    returned as one value. truth: whether it is true, where that is known. method: the method of
    the instance that it is. untold: it is handed on among others, by `*` or `**`.
    """

    state: State = State.UNKNOWN
    elements: tuple[Value, ...] | None = None
    origin: Step | None = None
    truth: bool | None = None
    meaning: ast.expr | None = None
    single: bool = False
    method: ast.Attribute | None = None
    untold: bool = False

    def element(self, index: int) -> Value:
        """One element of a tuple."""
        if self.elements is not None and index < len(self.elements):
            return self.elements[index]
        return Value()


@dataclass(frozen=True, slots=True)
class Way:
    """One way through a function up to some point: its variables and the tests it has passed.

    tests: as written, for people; asked: the same, as nodes. returned: the result, where it has
    left the function.
    """

    env: Mapping[str, Value]
    under: Clauses = ()
    tests: tuple[str, ...] = ()
    asked: tuple[ast.expr, ...] = ()
    returned: Value | None = None


class TooManyWays(Exception):
    """A function has more ways through it than are worth walking."""


def step_at(function: Function, node: ast.AST, text: str) -> Step:
    """A place in a function, and what happens there."""
    return Step(function.module, position(node), text, function.qualname)


def bind(target: ast.expr, value: Value, env: dict[str, Value]) -> None:
    """Give `value` to what stands left of an assignment."""
    if isinstance(target, ast.Name):
        env[target.id] = value
    elif isinstance(target, ast.Subscript):
        env.update({name: Value() for name in stored(target)})
    elif isinstance(target, (ast.Tuple, ast.List)):
        starred = any(isinstance(e, ast.Starred) for e in target.elts)
        for index, element in enumerate(target.elts):
            bind(element, Value() if starred else taken(value, index), env)
    elif isinstance(target, ast.Starred):
        bind(target.value, Value(), env)


def taken(value: Value, index: int) -> Value:
    """An element of what is taken apart: one value, where nothing else is known of it."""
    return Value(single=True) if value.elements is None else value.element(index)


def stored(node: ast.AST) -> set[str]:
    """The variables that `node` gives a value, or whose elements it does."""
    found: set[str] = set()
    for inner in walk(node):
        if isinstance(inner, ast.Subscript) and isinstance(inner.ctx, ast.Store):
            inner = inner.value
        elif not (isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)):
            continue
        if isinstance(inner, ast.Name):
            found.add(inner.id)
    return found
