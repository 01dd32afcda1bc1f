"""Where the DCP size of a guard is taken from: the process group, or a field of the configuration.

A size that is kept in an attribute, a local or a parameter is followed to what it was set to.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from dcplint.facts.expressions import dotted_name
from dcplint.flow.conditions import conjuncts, null_test
from dcplint.flow.fields import FieldFlow
from dcplint.flow.functions import Function
from dcplint.program.symbols import ClassSymbol
from dcplint.source.tree import children

_DEPTH = 5


@dataclass(frozen=True, eq=False)
class Guarded:
    """A statement under a test that DCP decides, and the one source of its size."""

    function: Function
    statement: ast.stmt
    test: ast.expr
    source: str


@dataclass(frozen=True, eq=False)
class Mismatch:
    """An attribute set under a size from one source and used under one from another."""

    owner: ClassSymbol
    attribute: str
    set_at: Guarded
    used_at: Guarded


def mismatches(flow: FieldFlow, owner: ClassSymbol) -> Iterator[Mismatch]:
    """The attributes of a class whose setting and use ask different sources, each once."""
    functions = _functions(flow, owner)
    setting: dict[str, list[Guarded | None]] = {}
    using: dict[str, list[Guarded]] = {}
    for function in functions:
        for statement in function.homes:
            stored, loaded = _attributes(function, statement)
            guarded = _guarded(flow, function, statement) if stored | loaded else None
            for name in stored:
                setting.setdefault(name, []).append(guarded)
            if guarded is None:
                continue
            for name in loaded - stored:
                if not _is_asked_for(function, statement, name):
                    using.setdefault(name, []).append(guarded)
    for name, places in setting.items():
        first = places[0]
        if first is None or any(p is None or p.source != first.source for p in places):
            continue
        used = next((use for use in using.get(name, ()) if use.source != first.source), None)
        if used is not None:
            yield Mismatch(owner, name, first, used)


def _functions(flow: FieldFlow, owner: ClassSymbol) -> list[Function]:
    """The methods of a class that speaks of a size in its own words; none of another."""
    vocabulary = flow.program.contract.vocabulary
    words = {*vocabulary.sizes, *(name.rpartition(".")[2] for name in vocabulary.groups)}
    texts = [flow.universe.text(owner.module, facts) for facts in owner.facts.methods]
    if not any(word in text for text in texts for word in words):
        return []
    found = (flow.universe.function(owner.module, facts) for facts in owner.facts.methods)
    return [function for function in found if function is not None]


def _attributes(function: Function, statement: ast.stmt) -> tuple[set[str], set[str]]:
    """The attributes of its instance that a statement sets to something, and that it reads."""
    value = getattr(statement, "value", None)
    is_none = isinstance(value, ast.Constant) and value.value is None
    stored: set[str] = set()
    loaded: set[str] = set()
    for node in function.own_nodes[statement]:
        if isinstance(node, ast.Attribute) and dotted_name(node.value) == "self":
            if isinstance(node.ctx, ast.Load):
                loaded.add(node.attr)
            elif not is_none:
                stored.add(node.attr)
    return stored, loaded


def _guarded(flow: FieldFlow, function: Function, statement: ast.stmt) -> Guarded | None:
    """The statement under the innermost test around it that DCP decides."""
    node: ast.stmt | None = statement
    while node is not None:
        parent = function.homes[node].parent
        if isinstance(parent, ast.If) and function.homes[node].block is parent.body:
            for part in conjuncts(parent.test):
                if flow.tracer.scenario.truth(function, part) is True:
                    found = set(_sources(flow, function, part, _DEPTH))
                    if len(found) == 1 and None not in found:
                        return Guarded(function, statement, part, str(found.pop()))
        node = parent
    return None


def _is_asked_for(function: Function, statement: ast.stmt, name: str) -> bool:
    """Whether a test around the statement asks whether the attribute is there."""
    node: ast.stmt | None = statement
    while node is not None:
        parent = function.homes[node].parent
        tests = [getattr(inner, "test", None) for inner in (node, parent)]
        for test in tests:
            for part in conjuncts(test) if test is not None else ():
                tested = null_test(part)
                if tested is not None and tested[0] == ("self", name):
                    return True
        node = parent
    return False


def _sources(
    flow: FieldFlow, function: Function, node: ast.expr, depth: int
) -> Iterator[str | None]:
    """What the sizes in an expression go back to; None where that is not known."""
    scenario = flow.tracer.scenario
    if depth == 0:
        yield None
    elif isinstance(node, ast.Constant):
        return
    elif isinstance(node, (ast.Compare, ast.BoolOp, ast.UnaryOp)):
        for part in children(node):
            if isinstance(part, ast.expr):
                yield from _sources(flow, function, part, depth)
    elif scenario.is_group_size(node):
        yield "the DCP group"
    elif meanings := scenario.meanings(function, node):
        for where, value in meanings:
            yield from _sources(flow, where, value, depth - 1)
    elif isinstance(node, ast.Attribute) and not _is_own(node) and scenario.is_size(function, node):
        yield f"`{node.attr}`"
    else:
        yield None


def _is_own(node: ast.Attribute) -> bool:
    return dotted_name(node.value) in ("self", "cls")
