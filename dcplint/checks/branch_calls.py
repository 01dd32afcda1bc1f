"""The branches of impls that only DCP takes, with the calls inside them and beside them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from dcplint.facts.expressions import dotted_name
from dcplint.flow.functions import callee_name
from dcplint.program.guards import Guards
from dcplint.program.program import Method, Program
from dcplint.program.symbols import ClassSymbol
from dcplint.source.tree import walk

_SHARED = 0.7  # of the arguments, by which two calls are of the same kernel under two names
_ENOUGH = 8


@dataclass(frozen=True, slots=True)
class Call:
    """A call with keyword arguments, and the method that makes it."""

    method: Method
    node: ast.Call

    @property
    def given(self) -> dict[str, ast.expr]:
        """The keyword arguments."""
        return {k.arg: k.value for k in self.node.keywords if k.arg is not None}

    @property
    def is_open(self) -> bool:
        """Whether it passes more than is written."""
        return any(k.arg is None for k in self.node.keywords)


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch that only DCP takes, with the code beside it."""

    inside: tuple[Call, ...]
    beside: tuple[Call, ...]
    mentions: frozenset[str]


def branches(program: Program, symbol: ClassSymbol) -> Iterator[Branch]:
    """The branches of `symbol`'s own methods that only DCP takes."""
    vocabulary = program.contract.vocabulary
    lines = program.modules.text(symbol.module.tree, symbol.path).lines
    for facts in symbol.facts.methods:
        text = "\n".join(lines[facts.lines[0] - 1 : facts.lines[1]])
        if facts.name == "__init__" or not any(size in text for size in vocabulary.sizes):
            continue
        method = Method(symbol, facts)
        node = program.function(symbol.module, facts)
        if node is None:
            continue
        guards = Guards(vocabulary, partial(program.canonical, method))
        for inner in walk(node):
            if isinstance(inner, ast.stmt):
                guards.learn(inner)
        for inner in walk(node):
            if isinstance(inner, ast.If):
                for body, when in ((inner.body, True), (inner.orelse, False)):
                    if body and guards.is_exclusive(inner.test, when):
                        yield _branch(program, method, node, body)


def _branch(program: Program, method: Method, node: ast.AST, body: list[ast.stmt]) -> Branch:
    within = [inner for statement in body for inner in walk(statement)]
    inside = [Call(method, n) for n in within if isinstance(n, ast.Call)]
    mentioned = set(within)
    for call in list(inside):
        dotted = dotted_name(call.node.func) or ""
        owner, _, name = dotted.rpartition(".")
        found = program.method(method.owner, name) if owner == "self" else None
        function = program.function(found.owner.module, found.facts) if found else None
        if found is not None and function is not None:
            nodes = list(walk(function))
            mentioned |= set(nodes)
            inside += [Call(found, n) for n in nodes if isinstance(n, ast.Call)]
    beside = [Call(method, n) for n in walk(node) if isinstance(n, ast.Call) and n not in within]
    attributes = {n.attr for n in mentioned if isinstance(n, ast.Attribute)}
    names = {n.id for n in mentioned if isinstance(n, ast.Name)}
    return Branch(tuple(inside), tuple(beside), frozenset(attributes | names))


def is_same_kernel(call: Call, sibling: Call) -> bool:
    """Whether two calls run one kernel: by name, or by most of their arguments."""
    mine, other = call.given.keys(), sibling.given.keys()
    if callee_name(call.node) == callee_name(sibling.node):
        return bool(mine)
    shared = mine & other
    return len(shared) >= _ENOUGH and len(shared) >= _SHARED * len(mine)
