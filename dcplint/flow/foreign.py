"""What classes of other projects an object may be an instance of, by the names they have there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Protocol

from dcplint.facts.expressions import dotted_name
from dcplint.flow.functions import Function
from dcplint.flow.types import annotation_names, attribute_settings
from dcplint.flow.universe import Universe
from dcplint.program.symbols import ClassSymbol

_DEPTH = 4


class Names(Protocol):
    """Tells the absolute names that a dotted name may stand for in a function."""

    universe: Universe

    def names(self, function: Function, dotted: str) -> frozenset[str]:
        """Those names, each with the modules before it."""


def foreign_classes(
    names: Names, function: Function, node: ast.expr, depth: int = _DEPTH
) -> frozenset[str]:
    """The classes by an annotation, or by what makes the object; none where one isn't known."""
    found: list[frozenset[str]] = []
    for where, value, annotation in _settings(names, function, node) if depth else ():
        if annotation is not None:
            noted = (names.names(where, name) for name in annotation_names(annotation))
            found.append(frozenset().union(*noted))
        elif isinstance(value, ast.Call):
            made = names.universe.callees(where, value)
            returned = [(f, f.node.returns) for f in made if f.node.returns is not None]
            dotted = dotted_name(value.func)
            if made and len(returned) == len(made):
                noted = (names.names(f, name) for f, r in returned for name in annotation_names(r))
                found.append(frozenset().union(*noted))
            else:
                found.append(names.names(where, dotted) if dotted and not made else frozenset())
        elif value is not None and not _is_none(value):
            found.append(foreign_classes(names, where, value, depth - 1))
    return frozenset().union(*found) if all(found) else frozenset()


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _settings(
    names: Names, function: Function, node: ast.expr
) -> Iterator[tuple[Function, ast.expr | None, ast.expr | None]]:
    """(function, value, annotation) of what gives a variable or an attribute what it holds."""
    if isinstance(node, ast.Call):
        yield function, node, None
    elif isinstance(node, ast.Attribute):
        is_own = isinstance(node.value, ast.Name) and node.value.id == "self"
        if is_own and function.owner is not None:
            for owner in _with_heirs(names.universe, function.owner):  # a subclass may set another
                given = attribute_settings(names.universe, owner, node.attr)
                noted = [setting for setting in given if setting[2] is not None]
                yield from noted or given
    elif isinstance(node, ast.Name):
        spec = function.node.args
        for parameter in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs):
            if parameter.arg == node.id:
                yield function, None, parameter.annotation
        for at in function.mentions.get(node.id, ()):
            if isinstance(at, ast.AnnAssign) and dotted_name(at.target) == node.id:
                yield function, at.value, at.annotation
            elif isinstance(at, ast.Assign):
                if any(dotted_name(target) == node.id for target in at.targets):
                    yield function, at.value, None


def _with_heirs(universe: Universe, owner: ClassSymbol) -> tuple[ClassSymbol, ...]:
    """A class, and those that derive from it."""
    classes = dict.fromkeys(entry.owner for entry in universe.entries)
    return tuple(c for c in classes if c is not None and owner in universe.ancestry(c))
