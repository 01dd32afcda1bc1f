"""Functions: signature, what they return, what they set on their first parameter."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dcplint.facts.expressions import dotted_name, lower, without
from dcplint.facts.loops import spelled_names
from dcplint.facts.model import COMPUTED, AttributeFact, Expression, FunctionFacts, Setting
from dcplint.facts.positions import first_line, header_position, last_line, position
from dcplint.facts.statements import Under, bound, conditions, settings, statements
from dcplint.source.tree import FUNCTIONS, Definition, walk

VARYING = Expression("other", "a value that varies")


def function_facts(
    node: Definition,
    qualname: str,
    ends: dict[int, int],
    under: Under,
    decorates: bool,
) -> FunctionFacts:
    """The facts of a function as far as its header goes.

    decorates: it may decorate classes, so what it sets on them is asked for too.
    """
    return FunctionFacts(
        name=node.name,
        qualname=qualname,
        position=header_position(node),
        lines=(first_line(node), last_line(node, ends)),
        decorators=tuple(lower(d) for d in node.decorator_list),
        parameters=parameters(node),
        sets=tuple(set_on_first_parameter(node, Setting.DECORATOR)) if decorates else (),
        conditions=conditions(under),
    )


def parameters(node: Definition) -> tuple[str, ...]:
    """Names of all parameters, in order."""
    spec = node.args
    ordered = [*spec.posonlyargs, *spec.args, *([spec.vararg] if spec.vararg else [])]
    ordered += [*spec.kwonlyargs, *([spec.kwarg] if spec.kwarg else [])]
    return tuple([argument.arg for argument in ordered])


def variables(node: Definition) -> frozenset[str]:
    """Names that are local to the function: what they hold depends on the call."""
    names = set(parameters(node))
    for statement, _ in statements(node.body):
        names.update(t.id for t, _ in bound(statement) if isinstance(t, ast.Name))
        if isinstance(statement, (ast.Global, ast.Nonlocal)):
            names.difference_update(statement.names)
    return frozenset(names)


def set_on_first_parameter(node: Definition, setting: Setting) -> Iterator[AttributeFact]:
    """What a function sets on its first parameter: the instance, the class, the decorated class.

    Functions inside it run later, or as the decorator that it returns: their `scope` says so.
    """
    yield from _set_in(node, setting, {*parameters(node)[:1], *_instances(node)}, node.name)


def _set_in(
    node: Definition, setting: Setting, owners: set[str], scope: str
) -> Iterator[AttributeFact]:
    # A class reached through an instance is another way to the same attribute, at run time.
    through_class = {f"{owner}.__class__" for owner in owners}
    local: frozenset[str] | None = None
    for statement, under in statements(node.body):
        if isinstance(statement, FUNCTIONS):
            inner = owners - set(parameters(statement))
            if setting is Setting.DECORATOR:
                inner |= {*parameters(statement)[:1]}
            yield from _set_in(statement, setting, inner, f"{scope}.<locals>.{statement.name}")
        for owner, name, value in settings(statement):
            if owner not in owners and owner not in through_class:
                continue
            local = variables(node) if local is None else local
            for attribute in _names(node, statement, name):
                yield AttributeFact(
                    attribute,
                    setting,
                    position(statement),
                    without(local, lower(value)) if value is not None else VARYING,
                    scope=scope if owner in owners else f"{scope} on the class",
                    conditions=conditions(under),
                )


def _names(node: Definition, statement: ast.stmt, name: str) -> tuple[str, ...]:
    """The attributes that a statement sets: of a name that is computed, those of its loop."""
    if name == COMPUTED and isinstance(statement, ast.Expr):
        call = statement.value
        if isinstance(call, ast.Call):
            return spelled_names(node, call.args[1]) or (name,)
    return (name,)


def _instances(node: Definition) -> Iterator[str]:
    """In `__new__`, names that hold the new instance."""
    if node.name != "__new__":
        return
    for statement, _ in statements(node.body):
        for target, value in bound(statement):
            if isinstance(target, ast.Name) and _is_new_instance(value):
                yield target.id


def _is_new_instance(value: ast.expr | None) -> bool:
    return (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr == "__new__"
    )


def returned(node: Definition) -> Expression:
    """What a function returns, where that is one expression on every path."""
    values: dict[Expression, None] = {}
    for statement, _ in statements(node.body):
        if isinstance(statement, ast.Return):
            value = lower(statement.value) if statement.value is not None else None
            values[value or Expression("literal")] = None
        elif _yields(statement):
            return Expression("other", "a generator")
    if not values:
        return Expression("other", "no return statement")
    if _falls_through(node.body):
        values[Expression("literal")] = None
    if len(values) == 1:
        return next(iter(values))
    return Expression("choice", options=tuple(values))


def _yields(statement: ast.stmt) -> bool:
    value = getattr(statement, "value", None)
    return isinstance(value, (ast.Yield, ast.YieldFrom))


def _falls_through(body: list[ast.stmt]) -> bool:
    """Whether control can reach the end of `body`, as far as its last statement tells."""
    while True:
        last = body[-1]
        if isinstance(last, (ast.Return, ast.Raise)):
            return False
        if isinstance(last, ast.If) and last.orelse:
            if _falls_through(last.body):
                return True
            body = last.orelse
        elif isinstance(last, (ast.With, ast.AsyncWith)):
            body = last.body
        elif isinstance(last, ast.Try):
            blocks = [last.orelse or last.body, *(handler.body for handler in last.handlers)]
            if last.finalbody and not _falls_through(last.finalbody):
                return False
            return any(map(_falls_through, blocks))
        elif isinstance(last, ast.Match):
            cases = last.cases
            wild = isinstance(cases[-1].pattern, ast.MatchAs) and cases[-1].pattern.pattern is None
            wild = wild and cases[-1].guard is None
            return not wild or any(_falls_through(case.body) for case in cases)
        elif isinstance(last, ast.While):
            endless = isinstance(last.test, ast.Constant) and bool(last.test.value)
            return not endless or any(isinstance(n, ast.Break) for n in walk(last))
        else:
            return True


def is_property(node: Definition) -> bool:
    """Whether reading the attribute calls the function."""
    names = {(dotted_name(d) or "").rpartition(".")[2] for d in node.decorator_list}
    return bool(names & {"property", "cached_property", "classproperty"})


def is_accessor_of(node: Definition) -> bool:
    """Whether it is a setter or deleter, which leaves what reading the property gives."""
    return any(
        (dotted_name(d) or "") in (f"{node.name}.setter", f"{node.name}.deleter")
        for d in node.decorator_list
    )
