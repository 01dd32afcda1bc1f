"""Configuration that is made to say one rank while a gate is asked, and set back afterwards."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from dcplint.contracts.model import Gate
from dcplint.facts.expressions import dotted_name
from dcplint.program.gates.places import containing, last_name
from dcplint.program.program import Program
from dcplint.program.symbols import Module
from dcplint.source.tree import Definition, walk

_SETTING = frozenset({"setattr", "__setattr__"})


@dataclass(frozen=True, slots=True)
class Masked:
    """A size of DCP that is set to 1 around a call which leads to a gate.

    symbol: the function. hidden: the statement that hides the size, restored: the one that sets
    it back. size: what is set to 1, as written. call: what asks in between.
    """

    gate: Gate
    module: Module
    symbol: str
    hidden: ast.stmt
    restored: ast.stmt
    size: str
    call: ast.Call


def masked(program: Program, gate: Gate) -> Iterator[Masked]:
    """The places in the checked tree where the gate cannot see DCP, as the size says 1."""
    sizes = program.contract.vocabulary.sizes
    spelt = (".{} = 1", "{}=1", '"{}", 1)', "'{}', 1)")
    signs = frozenset(way.format(size) for size in sizes for way in spelt)
    sites = (gate.function, *(s.function for s in (*gate.callers, *gate.hooks)))
    asking = frozenset(dotted.rpartition(".")[2] for dotted in sites)
    for module in program.checked:
        for facts, node in containing(program, module, signs):
            for hidden, restored, size in _masks(node, frozenset(sizes)):
                calls = _between(node, hidden, restored, asking)
                if any(isinstance(inner, ast.Yield) for inner in walk(node)):
                    used = frozenset({f"{node.name}("})
                    users = containing(program, module, used)
                    calls += [c for _, user in users for c in _within(user, node.name, asking)]
                if calls:
                    yield Masked(gate, module, facts.qualname, hidden, restored, size, calls[0])


def _masks(node: Definition, sizes: frozenset[str]) -> Iterator[tuple[ast.stmt, ast.stmt, str]]:
    """What sets a size of something to 1, with the later statement that sets it back."""
    given: dict[str, list[tuple[ast.stmt, str]]] = {}
    for inner in walk(node):
        stored = _stored(inner)
        if stored is not None:
            statement, dotted, value = stored
            given.setdefault(dotted, []).append((statement, _hides(dotted, value, sizes)))
    for stores in given.values():
        stores.sort(key=lambda store: store[0].lineno)
        first = next((index for index, store in enumerate(stores) if store[1]), len(stores))
        last = stores[-1]
        if first < len(stores) - 1 and not last[1]:
            yield (stores[first][0], last[0], stores[first][1])


def _stored(node: ast.AST) -> tuple[ast.stmt, str, ast.expr] | None:
    """(statement, dotted name, value) of what gives an attribute another value."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        dotted = dotted_name(node.targets[0]) or ""
        return (node, dotted, node.value) if "." in dotted else None
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        call = node.value
        if last_name(call) in _SETTING and len(call.args) == 3:
            owner, name, value = call.args
            holder = dotted_name(owner)
            if isinstance(name, ast.Constant) and isinstance(name.value, str) and holder:
                return node, f"{holder}.{name.value}", value
    return None


def _hides(dotted: str, value: ast.expr, sizes: frozenset[str]) -> str:
    """The size that a store makes 1: of what it stores into, or of a record that it replaces."""
    if dotted.rpartition(".")[2] in sizes:
        return dotted if _is_one(value) else ""
    for inner in ast.walk(value):
        if isinstance(inner, ast.keyword) and inner.arg in sizes and _is_one(inner.value):
            return inner.arg
    return ""


def _is_one(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value == 1


def _between(
    node: Definition, hidden: ast.stmt, restored: ast.stmt, asking: frozenset[str]
) -> list[ast.Call]:
    """The calls of what is called one of `asking`, while the size is hidden."""
    lines = range(hidden.lineno + 1, restored.lineno)
    return [call for call in _askings(node, asking) if call.lineno in lines]


def _within(node: Definition, manager: str, asking: frozenset[str]) -> Iterator[ast.Call]:
    """The same in the body of `with manager(…):`."""
    for inner in walk(node):
        if isinstance(inner, (ast.With, ast.AsyncWith)):
            contexts = (item.context_expr for item in inner.items)
            if any(isinstance(c, ast.Call) and last_name(c) == manager for c in contexts):
                for statement in inner.body:
                    yield from _askings(statement, asking)


def _askings(node: ast.AST, asking: frozenset[str]) -> Iterator[ast.Call]:
    calls = (inner for inner in walk(node) if isinstance(inner, ast.Call))
    return (call for call in calls if last_name(call) in asking)
