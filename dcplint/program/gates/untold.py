"""Calls of a gate that leave out what makes it ask of DCP."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from dcplint.contracts.model import Gate
from dcplint.facts.expressions import dotted_name
from dcplint.facts.model import FunctionFacts
from dcplint.program.gates.places import askings, enclosing, notes, scopes_of
from dcplint.program.program import Program
from dcplint.program.symbols import ClassSymbol, Module
from dcplint.program.telling import tells
from dcplint.source.tree import Definition, walk

_TYPES = frozenset({"type", "Type", "typing.Type"})


@dataclass(frozen=True, slots=True)
class Untold:
    """A call of a gate that leaves out the argument which makes it ask. symbol: the function."""

    gate: Gate
    module: Module
    symbol: str
    backend: ClassSymbol
    call: ast.Call


def untold(program: Program) -> Iterator[Untold]:
    """The calls of gates, on classes of the gate's role, that cannot ask of DCP."""
    for gate in program.contract.gates:
        for module, facts, node, call in askings(program, gate):
            if _hands_on(node, call):
                backend = enclosing(module, facts) if _could_tell(node, gate) else None
            else:
                backend = _asked(program, module, facts, node, call)
            if backend is not None and gate.role in program.roles(backend):
                if not tells(node, call, gate.argument):
                    yield Untold(gate, module, facts.qualname, backend, call)


def _asked(
    program: Program, module: Module, facts: FunctionFacts, node: Definition, call: ast.Call
) -> ClassSymbol | None:
    """The class that a gate is called on: by its name, or a variable noted as `type[C]`."""
    owner = (dotted_name(call.func) or "").rpartition(".")[0]
    note = notes(node).get(owner)
    if owner.startswith("self."):
        note = _attribute_note(program, enclosing(module, facts), owner)
    owner = _class_noted(note) or owner
    named = program.linker.name(module, owner, scopes_of(node, module))
    return named if isinstance(named, ClassSymbol) else None


def _class_noted(note: ast.expr | None) -> str:
    """`C`, where a note says `type[C]`, in quotes or without, or nothing at all."""
    if isinstance(note, ast.Constant) and isinstance(note.value, str):
        return _class_noted(_parsed(note.value))
    if isinstance(note, ast.BinOp) and isinstance(note.op, ast.BitOr):
        found = {_class_noted(side) for side in (note.left, note.right)} - {""}
        return found.pop() if len(found) == 1 else ""
    if not isinstance(note, ast.Subscript):
        return ""
    outer = dotted_name(note.value) or ""
    if outer.rpartition(".")[2] == "Optional":
        return _class_noted(note.slice)
    inner: ast.expr | None = note.slice
    if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
        inner = _parsed(inner.value)
    return (dotted_name(inner) or "") if outer in _TYPES and inner is not None else ""


def _attribute_note(program: Program, symbol: ClassSymbol | None, dotted: str) -> ast.expr | None:
    """The annotation of an attribute, where the class gives it one or sets it to a parameter."""
    for facts in symbol.facts.methods if symbol is not None else ():
        method = program.function(symbol.module, facts) if symbol is not None else None
        for inner in walk(method) if method is not None else ():
            if isinstance(inner, ast.AnnAssign) and dotted_name(inner.target) == dotted:
                return inner.annotation
            if isinstance(inner, ast.Assign) and isinstance(inner.value, ast.Name):
                if method is not None and dotted in map(dotted_name, inner.targets):
                    return notes(method).get(inner.value.id)
    return None


def _parsed(annotation: str) -> ast.expr | None:
    try:
        return ast.parse(annotation, mode="eval").body
    except SyntaxError:
        return None


def _hands_on(node: Definition, call: ast.Call) -> bool:
    """Whether a method asks its parent's gate: `super().m(…)` in `m`."""
    return (
        isinstance(call.func, ast.Attribute)
        and call.func.attr == node.name
        and isinstance(call.func.value, ast.Call)
        and dotted_name(call.func.value.func) == "super"
    )


def _could_tell(node: Definition, gate: Gate) -> bool:
    """Whether a method is told the gate's argument, and makes no use of it itself."""
    spec = node.args
    names = {a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)}
    read = {inner.id for inner in walk(node) if isinstance(inner, ast.Name)}
    if spec.kwarg is not None and gate.argument not in names:
        return spec.kwarg.arg not in read
    return gate.argument in names and gate.argument not in read
