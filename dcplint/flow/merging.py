"""Where impls merge the ranks' outputs themselves, and which base the merge is told."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from dcplint.contracts.model import Term
from dcplint.facts.expressions import dotted_name
from dcplint.flow.bases import Based, Bases, is_scaled
from dcplint.flow.dispatch import receiver_name
from dcplint.flow.functions import Function, callee_name, default, written_keywords
from dcplint.flow.graph import Role
from dcplint.flow.mappings import may_pass
from dcplint.flow.origins import Frame, Origin
from dcplint.flow.outputs import OutputFlow
from dcplint.program.symbols import ClassSymbol


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


def merges(flow: OutputFlow, symbol: ClassSymbol) -> Iterator[Merge]:
    """The merges that methods of `symbol`'s own set up and that say their base.

    Those of the module's functions that such methods call, too.
    """
    named = {
        term.name.rpartition(".")[2] for term in flow.kernels.described_merges if _has_base(term)
    }
    words = flow.program.spellings(frozenset(named))
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
                    yield from _merge(flow, symbol, function, statement, call)
            for statement in function.homes:
                yield from _kept(flow, symbol, function, statement)


def _has_base(term: Term) -> bool:
    return bool(term.base or term.always)


def _merge(
    flow: OutputFlow, symbol: ClassSymbol, function: Function, statement: ast.stmt, call: ast.Call
) -> Iterator[Merge]:
    bound = callee_name(call) == "partial" and bool(call.args)
    uses = [(function, statement, call)]
    if bound:
        uses = list(_uses(flow, symbol, function, statement))
    for merge in _choices(call.args[0] if bound else call.func):
        yield from _told(flow, symbol, (function, merge), (function, call), uses)


def _kept(
    flow: OutputFlow, symbol: ClassSymbol, function: Function, statement: ast.stmt
) -> Iterator[Merge]:
    """The merges by what `statement` keeps as it is: each use says the base, or leaves it."""
    if not isinstance(statement, ast.Assign):
        return
    for merge in _choices(statement.value):
        if dotted_name(merge) is not None and flow.kernels.merge(function, merge) is not None:
            for use in _uses(flow, symbol, function, statement):
                yield from _told(flow, symbol, (function, merge), (use[0], use[2]), [use])


def _choices(node: ast.expr) -> Iterator[ast.expr]:
    """What `a if test else b` chooses among."""
    if isinstance(node, ast.IfExp):
        yield from _choices(node.body)
        yield from _choices(node.orelse)
    else:
        yield node


def _told(
    flow: OutputFlow,
    symbol: ClassSymbol,
    named: tuple[Function, ast.expr],
    stated: tuple[Function, ast.Call],
    uses: list[tuple[Function, ast.stmt, ast.Call]],
) -> Iterator[Merge]:
    """The merge that is `named` in one function and told its base by a call in another, or there.

    Nothing where it is not known which base that is.
    """
    function, merge = named
    term = flow.kernels.merge(function, merge)
    if term is None or not _has_base(term):
        return
    teller, call = stated
    natural = term.always == "e" if term.always else _stated(flow, named, stated, str(term.base))
    if natural is None:
        return
    origins = [origin for use in uses for origin in _operands(flow, symbol, *use)]
    based = tuple(Bases(flow.kernels, flow.scenario.lookup).of(origins))
    yield Merge(teller, call, natural, based, any(is_scaled(o.done) for o in origins))


def _stated(
    flow: OutputFlow,
    named: tuple[Function, ast.expr],
    stated: tuple[Function, ast.Call],
    name: str,
) -> bool | None:
    """The base that a call says, or leaves to the merge's default; None where it is not known."""
    (function, merge), (teller, call) = named, stated
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
) -> Iterator[tuple[Function, ast.stmt, ast.Call]]:
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


def _operands(
    flow: OutputFlow, symbol: ClassSymbol, function: Function, statement: ast.stmt, call: ast.Call
) -> Iterator[Origin]:
    """What the arguments of a merge are; in a helper, what the class's methods hand it."""
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
