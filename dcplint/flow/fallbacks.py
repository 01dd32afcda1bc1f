"""Branches that derive a value where it is None, in whichever form they are written."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from dcplint.contracts.model import ContractField
from dcplint.facts.expressions import dotted_name
from dcplint.flow.conditions import Path, conjuncts, null_test
from dcplint.flow.functions import Function
from dcplint.flow.trace import Tracer


@dataclass(frozen=True, eq=False)
class Fallback:
    """A branch that makes up a field's value where it is None.

    path: what is tested, a field of a record or a local that holds it. test: the expression that
    tests it, which comes out as `when` for the value to be derived. derived: what is put in its
    place.
    """

    field: ContractField
    function: Function
    statement: ast.stmt
    test: ast.expr
    when: bool
    derived: ast.expr
    path: Path


def can_derive(tracer: Tracer, fallback: Fallback) -> bool:
    """Whether the derivation can run, as far as the function itself tells."""
    truth = tracer.scenario.truth(fallback.function, fallback.test)
    can_run = tracer.can_run(fallback.function, fallback.statement)
    return can_run and truth is not (not fallback.when)


def fallbacks_in(
    field: ContractField, function: Function, statement: ast.stmt
) -> Iterator[Fallback]:
    """What a statement derives where something is None, whatever that is."""
    if isinstance(statement, ast.If):
        for part in conjuncts(statement.test):
            tested = null_test(part)
            if tested is None:
                continue
            path, when_none = tested
            branch = statement.body if when_none else _otherwise(function, statement)
            derived = _derived(branch, path, field)
            if derived is not None:
                test = statement.test
                yield Fallback(field, function, statement, test, when_none, derived, path)
        return
    for node in function.own_nodes[statement]:
        if isinstance(node, ast.IfExp):
            tested = null_test(node.test)
            if tested is not None:
                path, when_none = tested
                value = node.body if when_none else node.orelse
                if _is_derivation(value):
                    yield Fallback(field, function, statement, node.test, when_none, value, path)
        elif isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
            dotted = dotted_name(node.values[0])
            if dotted is not None and _is_derivation(node.values[-1]):
                path = tuple(dotted.split("."))
                value = node.values[-1]
                yield Fallback(field, function, statement, node.values[0], False, value, path)


def _otherwise(function: Function, statement: ast.If) -> list[ast.stmt]:
    """What runs where a test fails: the `else`, or what follows a body that leaves."""
    if statement.orelse or not isinstance(statement.body[-1], (ast.Return, ast.Raise)):
        return statement.orelse
    home = function.homes[statement]
    return home.block[home.index + 1 :]


def _derived(branch: list[ast.stmt], path: Path, field: ContractField) -> ast.expr | None:
    """What a branch puts in place of `path`: a value assigned to it, or returned for it."""
    for node in branch:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                dotted = dotted_name(target)
                if dotted is None or not _is_derivation(node.value):
                    continue
                written = tuple(dotted.split("."))
                if written == path or written[-1] == field.name:
                    return node.value
                if written == path[:-1] and _replaces(node.value, field.name):
                    return node.value
        elif isinstance(node, ast.Return) and _is_derivation(node.value):
            return node.value
        elif isinstance(node, ast.If):
            found = _derived(node.body, path, field) or _derived(node.orelse, path, field)
            if found is not None:
                return found
    return None


def _replaces(value: ast.expr, name: str) -> bool:
    return isinstance(value, ast.Call) and any(keyword.arg == name for keyword in value.keywords)


def _is_derivation(value: ast.expr | None) -> bool:
    """Whether a value is worked out: by a call, arithmetic, or as a part of something."""
    if isinstance(value, (ast.IfExp, ast.Await)):
        return True
    return isinstance(value, (ast.Call, ast.BinOp, ast.Subscript))
