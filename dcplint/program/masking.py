"""Configuration that is made to say one rank while a gate is asked, and set back afterwards."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from dcplint.contracts.model import Gate
from dcplint.facts.expressions import dotted_name
from dcplint.program.asking import containing, last_name
from dcplint.program.program import Program
from dcplint.program.symbols import Module
from dcplint.source.tree import Definition, walk


@dataclass(frozen=True, slots=True)
class Masked:
    """A size of DCP that is set to 1 around a call which leads to a gate.

    symbol: the function. hidden: the assignment that hides the size, restored: the one that sets
    it back. call: what asks in between.
    """

    gate: Gate
    module: Module
    symbol: str
    hidden: ast.Assign
    restored: ast.Assign
    call: ast.Call


def masked(program: Program, gate: Gate) -> Iterator[Masked]:
    """The places in the checked tree where the gate cannot see DCP, as the size says 1."""
    sizes = program.contract.vocabulary.sizes
    signs = frozenset(f".{size} = 1" for size in sizes)
    sites = (gate.function, *(s.function for s in (*gate.callers, *gate.hooks)))
    asking = frozenset(dotted.rpartition(".")[2] for dotted in sites)
    for module in program.checked:
        for facts, node in containing(program, module, signs):
            for hidden, restored in _masks(node, frozenset(sizes)):
                calls = _between(node, hidden, restored, asking)
                if any(isinstance(inner, ast.Yield) for inner in walk(node)):
                    used = frozenset({f"{node.name}("})
                    users = containing(program, module, used)
                    calls += [c for _, user in users for c in _within(user, node.name, asking)]
                if calls:
                    yield Masked(gate, module, facts.qualname, hidden, restored, calls[0])


def _masks(node: Definition, sizes: frozenset[str]) -> Iterator[tuple[ast.Assign, ast.Assign]]:
    """The assignments of 1 to a size of something, each with the later one that sets it back."""
    given: dict[str, list[ast.Assign]] = {}
    for inner in walk(node):
        if isinstance(inner, ast.Assign) and len(inner.targets) == 1:
            dotted = dotted_name(inner.targets[0]) or ""
            if "." in dotted and dotted.rpartition(".")[2] in sizes:
                given.setdefault(dotted, []).append(inner)
    for assignments in given.values():
        first, *later = sorted(assignments, key=lambda statement: statement.lineno)
        if _is_one(first.value):
            yield from ((first, last) for last in later[-1:] if not _is_one(last.value))


def _is_one(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value == 1


def _between(
    node: Definition, hidden: ast.Assign, restored: ast.Assign, asking: frozenset[str]
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
