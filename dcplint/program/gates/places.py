"""What the looks at gates share: where code stands, what it calls, what classes derive from."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dcplint.contracts.model import Gate
from dcplint.facts.extract import Place, local_bindings
from dcplint.facts.model import Binding, FunctionFacts, Source
from dcplint.program.program import Program
from dcplint.program.symbols import ClassSymbol, Module
from dcplint.source.tree import Definition, walk


def names_above(program: Program, symbol: ClassSymbol) -> frozenset[str]:
    """The dotted names of a class and of all that it derives from, whether they can be read or not.

    What cannot be read is called by what it is imported as.
    """
    found: set[str] = set()
    for entry in program.mro(symbol).classes:
        imported = {
            binding.name: binding.target
            for binding in entry.module.facts.bindings
            if binding.source is Source.IMPORT
        }
        found.add(entry.dotted)
        for base in entry.facts.bases:
            root, _, rest = (base.text or "").partition(".")
            if root in imported:
                found.add(f"{imported[root]}.{rest}" if rest else imported[root])
    return frozenset(found)


def askings(
    program: Program, gate: Gate
) -> Iterator[tuple[Module, FunctionFacts, Definition, ast.Call]]:
    """The calls in the checked tree by the name of a gate that is told what to ask of."""
    name = gate.function.rpartition(".")[2]
    for module in program.checked if gate.argument else ():
        for facts, node in containing(program, module, frozenset({f".{name}("})):
            for call in calls(node):
                if isinstance(call.func, ast.Attribute) and call.func.attr == name:
                    yield module, facts, node, call


def containing(
    program: Program, module: Module, signs: frozenset[str], also: str = ""
) -> Iterator[tuple[FunctionFacts, Definition]]:
    """The functions of a module with one of `signs`, and with `also`, in their text."""
    text = program.modules.text(module.tree, module.facts.path)
    if not any(sign in text.text for sign in signs):
        return
    for facts in functions(module):
        own = text.between(*facts.lines)
        if any(sign in own for sign in signs) and also in own:
            node = program.function(module, facts)
            if node is not None:
                yield facts, node


def functions(module: Module) -> Iterator[FunctionFacts]:
    """The functions and the methods of a module."""
    yield from module.facts.functions
    for symbol in module.classes:
        yield from symbol.facts.methods


def enclosing(module: Module, facts: FunctionFacts) -> ClassSymbol | None:
    """The class whose method a function is."""
    owner = facts.qualname.rpartition(".")[0]
    return next((s for s in module.classes if s.facts.qualname == owner), None)


def scopes_of(
    node: ast.FunctionDef | ast.AsyncFunctionDef | None, module: Module
) -> tuple[tuple[Binding, ...], ...]:
    """What the function itself binds: it may import the class where it asks it."""
    facts = module.facts
    place = Place(facts.path, facts.name, facts.is_package)
    return (local_bindings(node, place),) if node is not None else ()


def notes(node: Definition) -> dict[str, ast.expr | None]:
    """The annotations of a function's parameters and variables."""
    spec = node.args
    found = {a.arg: a.annotation for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)}
    for inner in walk(node):
        if isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
            found[inner.target.id] = inner.annotation
    return found


def calls(node: ast.AST) -> Iterator[ast.Call]:
    """The calls in a tree."""
    return (inner for inner in walk(node) if isinstance(inner, ast.Call))


def last_name(call: ast.Call) -> str:
    """The last name of what is called."""
    callee = call.func
    if isinstance(callee, ast.Attribute):
        return callee.attr
    return callee.id if isinstance(callee, ast.Name) else ""
