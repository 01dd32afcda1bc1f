"""The attributes that a class's own source speaks of."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dcplint.facts.expressions import dotted_name, lower, shorten, without
from dcplint.facts.functions import (
    VARYING,
    is_accessor_of,
    is_property,
    returned,
    set_on_first_parameter,
    variables,
)
from dcplint.facts.model import AttributeFact, Expression, Setting
from dcplint.facts.positions import position
from dcplint.facts.statements import Under, bound, conditions, statements
from dcplint.source.tree import FUNCTIONS, Definition

_NOTHING = Expression("other")


def attributes(node: ast.ClassDef) -> Iterator[AttributeFact]:
    """What the body binds, declares and deletes, and what the methods set, in source order."""
    fields = any(_callee(d).endswith("dataclass") for d in node.decorator_list)
    for statement, under in statements(node.body):
        if isinstance(statement, FUNCTIONS):
            if not is_accessor_of(statement):
                yield _defined(statement, under)
            yield from _set_by(statement)
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            yield _annotated(statement, statement.target.id, under, fields)
        elif isinstance(statement, ast.Delete):
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    place = position(statement)
                    yield AttributeFact(
                        target.id, Setting.DELETED, place, _NOTHING, conditions=conditions(under)
                    )
        elif isinstance(statement, (ast.ClassDef, ast.Import, ast.ImportFrom)):
            yield from _other_names(statement, under)
        else:
            yield from _bound(statement, under)


def _callee(decorator: ast.expr) -> str:
    return dotted_name(decorator.func if isinstance(decorator, ast.Call) else decorator) or ""


def _bound(statement: ast.stmt, under: Under) -> Iterator[AttributeFact]:
    for target, value in bound(statement):
        if isinstance(target, ast.Name):
            given = lower(value) if value is not None else VARYING
            place = position(statement)
            yield AttributeFact(
                target.id, Setting.CLASS_BODY, place, given, conditions=conditions(under)
            )


def _annotated(node: ast.AnnAssign, name: str, under: Under, is_field: bool) -> AttributeFact:
    annotation = shorten(node.annotation)
    if node.value is not None:
        setting, value, scope = Setting.CLASS_BODY, lower(node.value), ""
    elif is_field and "ClassVar" not in annotation:
        value = Expression("other", f"the field {name} of a dataclass")
        setting, scope = Setting.INSTANCE, ""
    else:
        setting, value, scope = Setting.ANNOTATION, _NOTHING, ""
    return AttributeFact(name, setting, position(node), value, annotation, scope, conditions(under))


def _defined(node: Definition, under: Under) -> AttributeFact:
    value = returned(node)
    setting = Setting.METHOD
    if is_property(node):
        setting, value = Setting.PROPERTY, without(variables(node), value)
    return AttributeFact(
        node.name, setting, position(node), value, scope=node.name, conditions=conditions(under)
    )


def _set_by(node: Definition) -> Iterator[AttributeFact]:
    if node.name == "__init_subclass__":
        return set_on_first_parameter(node, Setting.DECORATOR)
    is_static = any(dotted_name(d) == "staticmethod" for d in node.decorator_list)
    return iter(()) if is_static else set_on_first_parameter(node, Setting.INSTANCE)


def _other_names(
    node: ast.ClassDef | ast.Import | ast.ImportFrom, under: Under
) -> Iterator[AttributeFact]:
    """Classes and imports in a class body bind attributes too."""
    names = (
        [node.name]
        if isinstance(node, ast.ClassDef)
        else [(alias.asname or alias.name).partition(".")[0] for alias in node.names]
    )
    for name in names:
        value = Expression("other", f"{type(node).__name__.lower()} in the class body")
        yield AttributeFact(
            name, Setting.CLASS_BODY, position(node), value, conditions=conditions(under)
        )
