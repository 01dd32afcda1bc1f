"""Where impls merge outputs themselves, and which base a merge over ranks is told."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from dcplint.contracts.model import Term
from dcplint.facts.expressions import dotted_name
from dcplint.flow.bases import Based, Bases, is_scaled
from dcplint.flow.dispatch import receiver_name
from dcplint.flow.functions import Function, argument, callee_name, default, written_keywords
from dcplint.flow.graph import Role
from dcplint.flow.mappings import may_pass
from dcplint.flow.origins import Frame, Origin
from dcplint.flow.outputs import OutputFlow
from dcplint.flow.universe import Universe
from dcplint.program.symbols import ClassSymbol

Use = tuple[Function, ast.stmt, ast.Call]


@dataclass(frozen=True, slots=True)
class Merge:
    """A merge over ranks. stated: the call that says which base, in `function`.

    operands: those of its arguments whose base is known. is_converted: some argument has had
    arithmetic done to it.
    """

    function: Function
    stated: ast.Call
    natural: bool
    operands: tuple[Based, ...]
    is_converted: bool


@dataclass(frozen=True, slots=True)
class Merging:
    """Where a method merges by what `term` describes.

    named: that function, as it is named there. stated: the call that takes the arguments which
    stay the same. uses: the calls that take the outputs and their LSEs; the same one, mostly.
    """

    term: Term
    named: tuple[Function, ast.expr]
    stated: tuple[Function, ast.Call]
    uses: tuple[Use, ...]


def merges(flow: OutputFlow, symbol: ClassSymbol) -> Iterator[Merge]:
    """The merges over ranks that `symbol` sets up and that say their base."""
    terms = tuple(t for t in flow.kernels.described("merges") if t.base or t.always)
    for merging in mergings(flow, symbol, terms):
        term, (teller, call) = merging.term, merging.stated
        natural = term.always == "e" if term.always else _stated(flow, merging, str(term.base))
        if natural is not None:
            origins = [origin for use in merging.uses for origin in operands(flow, symbol, use)]
            based = tuple(Bases(flow.kernels, flow.scenario.lookup).of(origins))
            yield Merge(teller, call, natural, based, any(is_scaled(o.done) for o in origins))


@dataclass(frozen=True, slots=True)
class Untold:
    """A call by a function that is told a base, of another one that then goes by its `default`."""

    function: Function
    call: ast.Call
    callee: Function
    default: ast.expr


def untold(universe: Universe, name: str) -> Iterator[Untold]:
    """Where the base that a merge is told is not passed on.

    name: the parameter that says it, of both functions. One that looks at it itself may have
    converted the LSE.
    """
    for function in universe.mentioning(name):
        if name not in function.parameters or _looks_at(function, name):
            continue
        for statement, made in function.calls.items():
            for call in made:
                callees = universe.callees(function, call, statement)
                kept = [_kept_default(callee, call, name) for callee in callees]
                if kept and all(kept) and kept[0] is not None:
                    yield Untold(function, call, callees[0], kept[0])


def _looks_at(function: Function, name: str) -> bool:
    """Whether it does anything with a parameter but pass it on."""
    passed = {
        id(given)
        for made in function.calls.values()
        for call in made
        for given in (*call.args, *(keyword.value for keyword in call.keywords))
    }
    return any(
        isinstance(node, ast.Name) and node.id == name and id(node) not in passed
        for nodes in function.own_nodes.values()
        for node in nodes
    )


def _kept_default(callee: Function, call: ast.Call, name: str) -> ast.expr | None:
    kept = default(callee, name) if name in callee.parameters else None
    return kept if argument(callee, call, name) is kept else None


def mergings(flow: OutputFlow, symbol: ClassSymbol, terms: tuple[Term, ...]) -> Iterator[Merging]:
    """Where methods of `symbol`'s own merge by one of the `terms`.

    Those of the module's functions that such methods call, too.
    """
    words = flow.program.spellings(frozenset(term.name.rpartition(".")[2] for term in terms))
    for facts in (*symbol.facts.methods, *symbol.module.facts.functions):
        text = flow.universe.text(symbol.module, facts)
        if not any(word in text for word in words):
            continue
        top = flow.universe.function(symbol.module, facts)
        if top is None or (top.owner is None and not any(_called(flow, symbol, top))):
            continue
        for function in (top, *top.nested):
            for statement, made in function.calls.items():
                for call in made:
                    yield from _merge(flow, symbol, terms, (function, statement, call))
            for statement in function.homes:
                yield from _kept(flow, symbol, terms, function, statement)


def _merge(
    flow: OutputFlow, symbol: ClassSymbol, terms: tuple[Term, ...], use: Use
) -> Iterator[Merging]:
    function, statement, call = use
    bound = callee_name(call) == "partial" and bool(call.args)
    for merge in _choices(call.args[0] if bound else call.func):
        term = flow.kernels.merge(function, merge)
        if term in terms:
            uses = tuple(_uses(flow, symbol, function, statement)) if bound else (use,)
            yield Merging(term, (function, merge), (function, call), uses)


def _kept(
    flow: OutputFlow,
    symbol: ClassSymbol,
    terms: tuple[Term, ...],
    function: Function,
    statement: ast.stmt,
) -> Iterator[Merging]:
    """The merges by what `statement` keeps as it is: each use says the base, or leaves it."""
    if not isinstance(statement, ast.Assign):
        return
    for merge in _choices(statement.value):
        term = flow.kernels.merge(function, merge) if dotted_name(merge) is not None else None
        if term in terms:
            for use in _uses(flow, symbol, function, statement):
                yield Merging(term, (function, merge), (use[0], use[2]), (use,))


def _choices(node: ast.expr) -> Iterator[ast.expr]:
    """What `a if test else b` chooses among."""
    if isinstance(node, ast.IfExp):
        yield from _choices(node.body)
        yield from _choices(node.orelse)
    else:
        yield node


def _stated(flow: OutputFlow, merging: Merging, name: str) -> bool | None:
    """The base that a call says, or leaves to the merge's default; None where it is not known."""
    (function, merge), (teller, call) = merging.named, merging.stated
    given = next((k.value for k in written_keywords(call) if k.arg == name), None)
    if given is None and may_pass(flow.scenario.lookup, teller, call, name):
        return None
    if given is None:
        found = flow.universe.callees(function, ast.Call(merge, [], []))
        given = default(found[0], name) if len(found) == 1 else None
    value = given.value if isinstance(given, ast.Constant) else None
    return value if isinstance(value, bool) else None


def _uses(
    flow: OutputFlow, symbol: ClassSymbol, function: Function, statement: ast.stmt
) -> Iterator[Use]:
    """The calls of what `statement` keeps: an attribute of the instance, or a variable."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    for name in filter(None, map(dotted_name, targets)):
        owner, _, attribute = name.rpartition(".")
        if not owner:
            users = [function]
        elif owner == receiver_name(function):
            methods = [
                (entry.module, f)
                for entry in flow.program.mro(symbol).classes
                for f in entry.facts.methods
            ]
            texts = (m for m in methods if f".{attribute}(" in flow.universe.text(*m))
            users = [f for m in texts if (f := flow.universe.function(*m)) is not None]
        else:
            continue
        for user in users:
            spelled = f"{receiver_name(user)}.{attribute}" if owner else attribute
            for place, made in user.calls.items():
                yield from ((user, place, c) for c in made if dotted_name(c.func) == spelled)


def operands(flow: OutputFlow, symbol: ClassSymbol, use: Use) -> Iterator[Origin]:
    """What the arguments of a merge are; in a helper, what the class's methods hand it."""
    function, statement, call = use
    origins = flow.origins(symbol)
    for place in function.graph.at(statement):
        for operand in _spread(call):
            found = origins.before(Frame(function), place, operand) or ()
            if any(origin.place.role is Role.ENTRY for origin in found):
                for frame in _called(flow, symbol, function):
                    found = (*found, *(origins.before(frame, place, operand) or ()))
            yield from found


def _spread(call: ast.Call) -> Iterator[ast.expr]:
    """The arguments of a call; of `*pair` the output and the LSE."""
    for given in (*call.args, *(keyword.value for keyword in call.keywords)):
        if isinstance(given, ast.Starred):
            yield from (ast.Subscript(given.value, ast.Constant(index)) for index in range(2))
        else:
            yield given


def _called(flow: OutputFlow, symbol: ClassSymbol, function: Function) -> Iterator[Frame]:
    """The calls of a function by methods that an instance of `symbol` has."""
    classes = flow.program.mro(symbol).classes
    for site in flow.universe.callers(function):
        if site.function.owner in classes:
            for place in site.nodes:
                yield Frame(function, site.call, place, Frame(site.function))
