"""Classes that replace a method by which the engine reaches a gate."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from dcplint.contracts.model import Gate, Site
from dcplint.facts.model import FunctionFacts
from dcplint.program.dcp_use import raises, refuses
from dcplint.program.gates.asking import DEPTH, Asking
from dcplint.program.gates.places import names_above
from dcplint.program.program import Method, Program
from dcplint.program.symbols import ClassSymbol
from dcplint.source.location import Tree
from dcplint.source.tree import Definition, walk


@dataclass(frozen=True, slots=True)
class Override:
    """A class that replaces a method by which the engine reaches a gate.

    silent: the returns that nothing asked before; all of them where `asks` is false. stands_in:
    the class is built on what the engine's own is built on, and not on that.
    """

    gate: Gate
    hook: Site
    symbol: ClassSymbol
    method: FunctionFacts
    asks: bool
    silent: tuple[ast.Return, ...]
    stands_in: bool = False


def overrides(program: Program) -> Iterator[Override]:
    """The overrides, in the checked tree, of every method that a gate counts on.

    One that raises under DCP lets nothing through: there is nothing to ask of.
    """
    told: set[tuple[ClassSymbol, str]] = set()
    for gate in program.contract.gates:
        for hook in gate.hooks:
            owner, _, name = hook.function.rpartition(".")
            if program.contract.effective not in hook.releases:
                continue
            for symbol in _heirs(program, owner):
                method = next((m for m in symbol.facts.methods if m.name == name), None)
                if method is None or (symbol, hook.function) in told:
                    continue
                told.add((symbol, hook.function))
                node = program.function(symbol.module, method)
                if node is None or raises(program, Method(symbol, method), gate.argument):
                    continue
                asking = Asking(program, symbol, gate, name)
                asks = asking.asks(symbol.module, node, DEPTH)
                silent = tuple(asking.silent_returns(node))
                if (not asks or silent) and _is_refused_beside(program, symbol):
                    continue
                yield Override(gate, hook, symbol, method, asks, silent)
    yield from _replaced_gates(program)
    yield from _stand_ins(program)


def _replaced_gates(program: Program) -> Iterator[Override]:
    """The overrides of a gate itself that ask nothing, of classes that may not be able to do DCP.

    Whoever reads what the gate is told of DCP decides by it.
    """
    for gate in program.contract.gates:
        owner, _, name = gate.function.rpartition(".")
        capability = program.contract.capability(gate.role, gate.capability)
        if gate.argument is None or capability is None:
            continue
        for symbol in _heirs(program, owner):
            method = next((m for m in symbol.facts.methods if m.name == name), None)
            if method is None or program.promise(symbol, capability).holds() is True:
                continue
            node = program.function(symbol.module, method)
            if node is None or _mentions(node, gate.argument) or not _lets_through(node):
                continue
            asking = Asking(program, symbol, gate, name)
            if asking.asks(symbol.module, node, DEPTH) or _is_refused_beside(program, symbol):
                continue
            if not raises(program, Method(symbol, method), gate.argument):
                yield Override(gate, Site(gate.function, gate.releases, gate.source),
                               symbol, method, False, ())  # fmt: skip


def _mentions(node: Definition, name: str) -> bool:
    """Whether a function reads something of that name: a variable, an attribute, a key."""
    return any(
        name in (getattr(inner, "id", ""), getattr(inner, "attr", ""), getattr(inner, "value", ""))
        for inner in walk(node)
        if isinstance(inner, (ast.Name, ast.Attribute, ast.Constant))
    )


def _lets_through(node: Definition) -> bool:
    """Whether a function returns anything but reasons against."""
    returned = [inner.value for inner in walk(node) if isinstance(inner, ast.Return)]
    return any(
        value is not None and not (isinstance(value, (ast.List, ast.Tuple)) and value.elts)
        for value in returned
    )


def _is_refused_beside(program: Program, symbol: ClassSymbol) -> bool:
    """Whether another method of a class of the checked tree refuses DCP, or of one above it."""
    return any(
        refuses(program, Method(entry, facts))
        for entry in program.mro(symbol).classes
        if entry.module.tree is Tree.PROJECT
        for facts in entry.facts.methods
    )


def _stand_ins(program: Program) -> Iterator[Override]:
    """Classes that do in the engine's place what a gate counts on, and ask it nowhere."""
    built_on = {c.name: frozenset(c.bases) for c in program.contract.classes}
    hooks = [(gate, hook) for gate in program.contract.gates for hook in gate.hooks]
    owners = {hook.function.rpartition(".")[0] for _, hook in hooks}
    told: set[ClassSymbol] = set()
    for gate, hook in hooks:
        owner, _, name = hook.function.rpartition(".")
        bases = built_on.get(owner, frozenset())
        if not bases or program.contract.effective not in hook.releases:
            continue
        for symbol in (symbol for module in program.checked for symbol in module.classes):
            method = next((m for m in symbol.facts.methods if m.name == name), None)
            if method is None or symbol in told:
                continue
            ancestry = names_above(program, symbol)
            if ancestry & owners or not ancestry & bases:
                continue
            told.add(symbol)
            if raises(program, Method(symbol, method), gate.argument):
                continue
            asking = Asking(program, symbol, gate, name)
            bodies = (program.function(symbol.module, m) for m in symbol.facts.methods)
            if not any(asking.asks(symbol.module, body, DEPTH) for body in bodies if body):
                yield Override(gate, hook, symbol, method, False, (), stands_in=True)


def _heirs(program: Program, owner: str) -> Iterator[ClassSymbol]:
    for module in program.checked:
        for symbol in module.classes:
            entries = program.mro(symbol).classes
            if any(entry.dotted == owner for entry in entries[1:]):
                yield symbol
