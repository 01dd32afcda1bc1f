"""What a class does with DCP: whether its constructor refuses it, whether its methods serve it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from dcplint.facts.expressions import dotted_name, shorten
from dcplint.facts.model import Position
from dcplint.facts.positions import position
from dcplint.program.guards import Guards, running
from dcplint.program.program import Method, Program
from dcplint.program.symbols import ClassSymbol
from dcplint.source.location import Tree
from dcplint.source.tree import walk

_HELPERS = 2  # methods that a constructor calls, and methods that those call


@dataclass(frozen=True, slots=True)
class Use:
    """One place where a class serves DCP, or refuses it. `what` says so in words."""

    method: Method
    position: Position
    what: str


def refusal(program: Program, symbol: ClassSymbol) -> Use | None:
    """Where the constructor of `symbol` refuses DCP, whatever else holds; None where it doesn't."""
    found = (
        _refused_in(program, symbol, method, _HELPERS) for method in _constructors(program, symbol)
    )
    return next(filter(None, found), None)


def raises(program: Program, method: Method, switch: str | None = None) -> bool:
    """Whether a method always raises where DCP is on, be it anywhere else or not.

    switch: what tells the method of DCP, besides what tells everybody.
    """
    switches = (switch,) if switch is not None else ()
    return _refused_in(program, method.owner, method, _HELPERS, True, switches) is not None


def refuses(program: Program, method: Method) -> bool:
    """Whether a method raises wherever DCP is on, and lets others through."""
    return _refused_in(program, method.owner, method, _HELPERS) is not None


def _refused_in(
    program: Program,
    symbol: ClassSymbol,
    method: Method,
    helpers: int,
    anyway: bool = False,
    switches: tuple[str, ...] = (),
) -> Use | None:
    """Where `method`, run for an instance of `symbol`, refuses DCP, or a method it always calls.

    anyway: what is refused without DCP as well counts. switches: see `raises`.
    """
    node = program.function(method.owner.module, method.facts)
    if node is None:
        return None
    guards = _guards(program, method, switches)
    for step in running(node, guards):
        if not step.certain:
            continue
        refuses = isinstance(step.node, ast.Raise) and (step.opened or anyway)
        if isinstance(step.node, ast.Assert):
            refuses = guards.truth(step.node.test) is False
        if refuses:
            return Use(method, position(step.node), "refuses DCP in the constructor")
        name = own_call(node, step.node) if helpers else None
        called = program.method(symbol, name) if name is not None else None
        if called is not None:
            use = _refused_in(program, symbol, called, helpers - 1, anyway, switches)
            if use is not None:
                return use
    return None


def own_call(function: ast.FunctionDef | ast.AsyncFunctionDef, statement: ast.stmt) -> str | None:
    """The method of its own instance that `statement` of a method calls, and does no more."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    positional = (*function.args.posonlyargs, *function.args.args)
    receiver = call.func.value
    if not positional or not isinstance(receiver, ast.Name):
        return None
    return call.func.attr if receiver.id == positional[0].arg else None


def _constructors(program: Program, symbol: ClassSymbol) -> Iterator[Method]:
    """`__init__` as it runs for `symbol`: its own, and those that it calls in turn."""
    for owner in program.attributes.constructors(symbol, "__init__"):
        for facts in owner.facts.methods:
            if facts.name == "__init__" and owner.module.tree is not Tree.PACK:
                yield Method(owner, facts)


_Work = tuple[ast.AST, str]
"""What does DCP's work, and what that is, in words."""


def service(program: Program, symbol: ClassSymbol) -> Use | None:
    """The first place where a method of `symbol`'s own does DCP's work; None where none does.

    Work is a merge over ranks, a collective of the DCP group, arithmetic with the rank, or a
    branch that only DCP opens and that computes something. Storing the sizes, passing them on
    and refusing is not. Methods of mixins that it alone brings along are its own.
    """
    kept: set[str] = set()  # attributes that hold the DCP group
    weak: Use | None = None  # tells least of what DCP is done for
    methods = [
        Method(owner, facts) for owner in _own(program, symbol) for facts in owner.facts.methods
    ]
    for method in sorted(methods, key=lambda method: method.facts.name != "__init__"):
        if method.owner is not symbol and program.method(symbol, method.facts.name) != method:
            continue
        if not _mentions_dcp(program, method, kept):
            continue
        node = program.function(method.owner.module, method.facts)
        if node is None:
            continue
        guards = _guards(program, method)
        guards.groups |= kept
        use, hint = _work(program, node, guards)
        if use is not None:
            return Use(method, position(use[0]), use[1])
        if hint is not None and weak is None:
            weak = Use(method, position(hint[0]), hint[1])
        kept |= {name for name in guards.groups if "." in name}
    return weak


def _own(program: Program, symbol: ClassSymbol) -> Iterator[ClassSymbol]:
    """A class and those of its bases that play no role, but for what comes with one that does."""
    yield symbol
    bases = program.mro(symbol).classes[1:]
    playing = [base for base in bases if program.roles(base)]
    taken = {entry for base in playing for entry in program.mro(base).classes}
    for base in bases:
        if base not in taken and base.module.tree is not Tree.PACK:
            yield base


def _guards(program: Program, method: Method, switches: tuple[str, ...] = ()) -> Guards:
    vocabulary = program.contract.vocabulary
    vocabulary = replace(vocabulary, switches=(*vocabulary.switches, *switches))
    return Guards(vocabulary, lambda dotted: program.canonical(method, dotted))


def _mentions_dcp(program: Program, method: Method, kept: set[str]) -> bool:
    vocabulary = program.contract.vocabulary
    words = {*vocabulary.sizes, *vocabulary.switches, *vocabulary.ranks, *kept}
    words |= program.spellings(
        frozenset(name.rpartition(".")[2] for name in (*vocabulary.groups, *vocabulary.merges))
    )
    words |= {derived.name for derived in program.contract.derived}
    source = program.modules.source(method.owner.module, method.facts)
    return any(word in source for word in words)


def _work(
    program: Program, function: ast.FunctionDef | ast.AsyncFunctionDef, guards: Guards
) -> tuple[_Work | None, _Work | None]:
    """The first of DCP's work in a function, and what only tells that there is some."""
    vocabulary = program.contract.vocabulary
    merges = {name.rpartition(".")[2] for name in vocabulary.merges}
    derived = {d.name for d in program.contract.derived}
    weak: _Work | None = None
    for step in running(function, guards):
        if step.exclusive and isinstance(step.node, ast.Return):
            if isinstance(step.node.value, ast.Tuple):
                given = shorten(step.node.value)
                weak = weak or (step.node, f"returns {given} only where DCP is on")
        for node in _own_expressions(step.node):
            if isinstance(node, ast.Call):
                callee = node.func
                name = guards.canonical(dotted_name(callee) or "").rpartition(".")[2]
                if name in merges:
                    return (node, f"merges over ranks with {name}()"), weak
                collective = isinstance(callee, ast.Attribute) and (
                    callee.attr in vocabulary.collectives and guards.is_group(callee.value)
                )
                if collective:
                    return (node, f"exchanges tensors over the DCP group ({shorten(node)})"), weak
                if step.exclusive and function.name != "__init__" and not _is_plumbing(step.node):
                    weak = weak or (node, f"computes {shorten(node)} only where DCP is on")
            if isinstance(node, ast.BinOp) and any(map(guards.is_rank, (node.left, node.right))):
                return (node, f"computes with the DCP rank ({shorten(node)})"), weak
            if isinstance(node, ast.Attribute) and node.attr in derived and _is_read(node):
                return (node, f"asks {shorten(node)}"), weak
    return None, weak


def _is_read(node: ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Load)


def _is_plumbing(node: ast.stmt) -> bool:
    """A refusal, or a message: nothing that computes attention."""
    if isinstance(node, (ast.Raise, ast.Assert)):
        return True
    call = node.value if isinstance(node, ast.Expr) else None
    callee = dotted_name(call.func) if isinstance(call, ast.Call) else None
    return callee is not None and callee.partition(".")[0] in (
        "logger",
        "logging",
        "warnings",
        "print",
    )


def _own_expressions(node: ast.stmt) -> Iterator[ast.AST]:
    """The expressions of a statement, without those of the statements inside it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.stmt, ast.ExceptHandler, ast.match_case)):
            yield from walk(child)


def delegates_to_parent(program: Program, method: Method) -> bool:
    """Whether a method calls the method it overrides."""
    node = program.function(method.owner.module, method.facts)
    if node is None:
        return False
    for inner in walk(node):
        if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
            owner = inner.func.value
            calls_super = isinstance(owner, ast.Call) and dotted_name(owner.func) == "super"
            names_base = isinstance(owner, ast.Name) and any(
                base.text.rpartition(".")[2] == owner.id for base in method.owner.facts.bases
            )
            if inner.func.attr == method.facts.name and (calls_super or names_base):
                return True
    return False
