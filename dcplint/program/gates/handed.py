"""Classes that are handed over where a gate would have judged them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from dcplint.contracts.model import Bypass, Gate
from dcplint.facts.expressions import dotted_name
from dcplint.facts.model import Binding
from dcplint.program.dcp_use import raises
from dcplint.program.gates.places import calls, last_name, names_above, scopes_of
from dcplint.program.program import Method, Program
from dcplint.program.symbols import ClassSymbol, Module, Symbol
from dcplint.program.telling import tells
from dcplint.source.tree import Definition


@dataclass(frozen=True, slots=True)
class Handed:
    """A call that hands over a class which a gate would have judged. symbol: the function."""

    gate: Gate
    way: Bypass
    module: Module
    symbol: str
    handed: ClassSymbol
    call: ast.Call


def handed(program: Program) -> Iterator[Handed]:
    """The calls in the checked tree that leave a gate out by what they pass."""
    for gate in program.contract.gates:
        for way in gate.bypasses:
            if program.contract.effective in way.releases:
                for module in program.checked:
                    yield from _handed_in(program, module, gate, way)


def _handed_in(program: Program, module: Module, gate: Gate, way: Bypass) -> Iterator[Handed]:
    text = program.modules.text(module.tree, module.facts.path)
    sign = f"{way.argument}="
    if sign not in text.text:
        return
    owned = [(facts, None) for facts in module.facts.functions]
    for facts, owner in (*owned, *((m, c) for c in module.classes for m in c.facts.methods)):
        if sign not in text.between(*facts.lines):
            continue
        node = program.function(module, facts)
        scopes = scopes_of(node, module)
        for call in calls(node) if node is not None else ():
            for keyword in call.keywords:
                passed = dotted_name(keyword.value)
                if keyword.arg != way.argument or passed is None:
                    continue
                found = program.linker.name(module, passed, scopes)
                if isinstance(found, ClassSymbol) and gate.role in program.roles(found):
                    if owner and raises(program, Method(owner, facts), gate.argument):
                        continue
                    if node and _is_asked_before(program, module, node, call, gate, found):
                        continue
                    if _constructs(program, module, owner, call, scopes, way):
                        yield Handed(gate, way, module, facts.qualname, found, call)


def _is_asked_before(
    program: Program,
    module: Module,
    node: Definition,
    call: ast.Call,
    gate: Gate,
    handed: ClassSymbol,
) -> bool:
    """Whether a function has asked the gate of a class before it hands that on in `call`."""
    scopes = scopes_of(node, module)
    return any(
        last_name(asked) == gate.function.rpartition(".")[2]
        and (asked.lineno, asked.col_offset) < (call.lineno, call.col_offset)
        and isinstance(asked.func, ast.Attribute)
        and program.linker.name(module, dotted_name(asked.func.value) or "", scopes) is handed
        and tells(node, asked, gate.argument)
        for asked in calls(node)
    )


def _constructs(
    program: Program,
    module: Module,
    owner: ClassSymbol | None,
    call: ast.Call,
    scopes: tuple[tuple[Binding, ...], ...],
    way: Bypass,
) -> bool:
    """Whether a call makes an instance of the class whose constructor takes the argument."""
    wanted = way.function.rpartition(".")[0]
    callee = call.func
    made: Symbol | None = None
    if isinstance(callee, ast.Attribute) and callee.attr == "__init__":
        if isinstance(callee.value, ast.Call) and dotted_name(callee.value.func) == "super":
            made = owner
    else:
        dotted = dotted_name(callee)
        made = program.linker.name(module, dotted, scopes) if dotted is not None else None
    if not isinstance(made, ClassSymbol):
        return getattr(made, "dotted", "") == wanted
    return wanted in names_above(program, made)
