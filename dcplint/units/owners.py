"""The classes of what an attribute is read from, by what class bodies declare too."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dcplint.facts.expressions import dotted_name
from dcplint.flow.functions import Function
from dcplint.flow.listing import Classes
from dcplint.flow.types import bounded, classes_of
from dcplint.flow.universe import Universe
from dcplint.program.program import Program
from dcplint.program.symbols import ClassSymbol
from dcplint.source.tree import walk


def owners(universe: Universe, function: Function, node: ast.expr) -> Classes:
    """The classes that `node` may be an instance of; empty where that cannot be told."""
    found = classes_of(universe, function, node)
    if found or not isinstance(node, ast.Attribute):
        return found
    # `metadata.decode`: what the class of `metadata` declares for it.
    outer = owners(universe, function, node.value)
    given = (c for owner in outer for c in declared(universe.program, owner, node.attr))
    return tuple(dict.fromkeys(given))


def declared(program: Program, owner: ClassSymbol, name: str) -> Iterator[ClassSymbol]:
    """The classes that an annotation in a class body names, a type argument filled in."""
    linker = program.linker
    argument = ""
    for entry in program.mro(owner).classes:
        for fact in entry.facts.attributes:
            if fact.name != name or not fact.annotation:
                continue
            for word in _words(fact.annotation):
                found = linker.name(entry.module, word, entry.facts.scopes)
                if not isinstance(found, ClassSymbol) and word != "None":
                    given = linker.name(owner.module, argument, owner.facts.scopes)
                    found = given if isinstance(given, ClassSymbol) else found
                yield from bounded(found)
            return
        argument = _type_argument(program, entry) or argument


def _type_argument(program: Program, symbol: ClassSymbol) -> str:
    """`T` of a class whose only generic base is `Base[T]`."""
    text = program.modules.text(symbol.module.tree, symbol.path)
    found = []
    for line, column, end_line, end_column in symbol.facts.base_positions:
        written = text.between(line, line).encode()[column:end_column].decode()
        if line == end_line and written.endswith("]"):
            found.append(written.partition("[")[2][:-1].strip("'\" "))
    return found[0] if len(found) == 1 else ""


def _words(annotation: str) -> Iterator[str]:
    """The names in an annotation (`C | None`, `Optional[C]`, `"C"`)."""
    try:
        tree = ast.parse(annotation.strip("'\""), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in walk(tree):
        if isinstance(node, (ast.Name, ast.Attribute)):
            dotted = dotted_name(node)
            if dotted is not None:
                yield dotted
