"""Objects that are made instances of another class than gates have judged."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from dcplint.facts.expressions import dotted_name
from dcplint.program.dcp_use import raises
from dcplint.program.gates.places import enclosing, functions, scopes_of
from dcplint.program.index import REPLACING
from dcplint.program.program import Method, Program
from dcplint.program.symbols import ClassSymbol, Module
from dcplint.source.tree import walk


@dataclass(frozen=True, slots=True)
class Replaced:
    """A statement that gives an object another class than gates have judged."""

    module: Module
    symbol: str
    by: ClassSymbol
    node: ast.Assign


def replaced(program: Program, role: str) -> Iterator[Replaced]:
    """The statements in the checked tree that set `__class__` to a class of a role."""
    sign = REPLACING.decode()
    for module in program.checked:
        text = program.modules.text(module.tree, module.facts.path)
        if sign not in text.text:
            continue
        for facts in functions(module):
            if sign not in text.between(*facts.lines):
                continue
            node = program.function(module, facts)
            for inner in walk(node) if node is not None else ():
                if isinstance(inner, ast.Assign) and any(map(_is_class_of, inner.targets)):
                    dotted = dotted_name(inner.value)
                    found = program.linker.name(module, dotted or "", scopes_of(node, module))
                    if isinstance(found, ClassSymbol) and role in program.roles(found):
                        owner = enclosing(module, facts)
                        if owner is not None and raises(program, Method(owner, facts)):
                            continue
                        yield Replaced(module, facts.qualname, found, inner)


def _is_class_of(target: ast.expr) -> bool:
    return isinstance(target, ast.Attribute) and target.attr == "__class__"
