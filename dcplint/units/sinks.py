"""The places where a length of one unit is due: arguments of kernels, and fields of records."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain

from dcplint.contracts.model import KernelArgument, Length, Source
from dcplint.facts.expressions import dotted_name
from dcplint.flow.dataclasses import constructor_argument
from dcplint.flow.definitions import definitions
from dcplint.flow.functions import (
    CallSite,
    Function,
    argument,
    callee_name,
    given_once,
    written_keywords,
)
from dcplint.flow.graph import Role
from dcplint.flow.listing import Classes
from dcplint.flow.types import classes_of, narrowed
from dcplint.program.symbols import ClassSymbol
from dcplint.source.location import Tree
from dcplint.source.tree import walk
from dcplint.units.effort import MOST_CALLS, MOST_SITES
from dcplint.units.flow import UnitFlow
from dcplint.units.lattice import UNITS, Counts, Space, Unit
from dcplint.units.operations import KEEPING, operands


@dataclass(frozen=True, slots=True)
class Sink:
    """An expression that is given to something that wants `unit`. taker: what that is, in words."""

    function: Function
    statement: ast.stmt
    node: ast.expr
    unit: Unit
    taker: str
    source: Source


def argument_sinks(flow: UnitFlow) -> Iterator[Sink]:
    """What the checked tree passes for the arguments that the pack names, each expression once."""
    seen: set[tuple[ast.expr, str]] = set()  # one mapping may be passed to several kernels
    for fact in flow.universe.program.contract.arguments:
        name = fact.function.rpartition(".")[2]
        for spelling in sorted(flow.universe.program.spellings(frozenset({name}))):
            calls = flow.universe.calls_of(spelling)
            for site in chain(calls, flow.universe.launches_of(spelling)):
                if site.function.module.tree is not Tree.PROJECT:
                    continue
                if not _is_call_of(flow, site, fact):
                    continue
                statement, call = _written_out(site, fact.argument)
                passed = _passed(flow, site.function, call, fact)
                if passed is not None and (passed, fact.unit) not in seen:
                    seen.add((passed, fact.unit))
                    taker = f"`{name}({fact.argument}=…)`"
                    unit = UNITS[fact.unit]
                    yield Sink(site.function, statement, passed, unit, taker, fact.source)


def handed_in(flow: UnitFlow, sink: Sink, depth: int = MOST_CALLS) -> Iterator[Sink]:
    """What each caller of a helper passes for a parameter that the helper hands on as it is.

    Not where what else is passed decides whether it hands it on.
    """
    function, name = sink.function, _handed_on(sink)
    if not depth or not name or not _is_as_passed(sink, name):
        return
    sites = flow.universe.callers(function)
    if len(sites) > MOST_SITES or _hangs_on_parameters(function, sink.statement):
        return
    for site in sites:
        passed = argument(function, site.call, name)
        if passed is not None and site.function.module.tree is Tree.PROJECT:
            through = replace(sink, function=site.function, statement=site.statement, node=passed)
            if not _handed_on(through) or not _hangs_on_parameters(site.function, site.statement):
                yield through
                yield from handed_in(flow, through, depth - 1)


def _handed_on(sink: Sink) -> str:
    """The parameter that a sink is all, rows or another copy of; empty where it is none."""
    node = sink.node
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if callee_name(node) not in KEEPING:
                return ""
            node = node.func.value
        else:
            return ""
    return node.id if node.id in sink.function.parameters else ""


def _is_as_passed(sink: Sink, name: str) -> bool:
    """Whether a parameter still holds at a sink what it was given."""
    places = sink.function.graph.at(sink.statement)
    found = [d for place in places for d in definitions(sink.function, place, name)]
    return bool(found) and all(at.role is Role.ENTRY for _, at, _ in found)


def _hangs_on_parameters(function: Function, statement: ast.stmt) -> bool:
    """Whether a test of what a function was given decides whether it comes to a statement."""
    given = {*function.parameters[1:]} if function.owner else {*function.parameters}
    leaving = (s for s in function.homes if isinstance(s, ast.Return) and s is not statement)
    for stays in (statement, *leaving):
        home = function.homes[stays]
        while home.parent is not None:
            test = getattr(home.parent, "test", getattr(home.parent, "subject", None))
            names = walk(test) if isinstance(test, ast.expr) else ()
            if any(isinstance(n, ast.Name) and n.id in given for n in names):
                return True
            home = function.homes[home.parent]
    return False


def _written_out(site: CallSite, argument: str) -> tuple[ast.stmt, ast.Call]:
    """A call with what it passes by `**arguments` in place of that, where this is one mapping that
    is only added to by name; and the statement in which its `argument` stands."""
    function, call = site.function, site.call
    for keyword in call.keywords:
        if keyword.arg is not None or not isinstance(keyword.value, ast.Name):
            continue
        name = keyword.value.id
        made = given_once(function, name)
        used = function.mentions.get(name, ())
        if made is None:
            continue
        homes = (s for s in used if isinstance(s, ast.Assign) and s.value is made)
        home: ast.stmt = next(homes)
        written = [(home, entry) for entry in written_keywords(_passing(made))]
        for statement in used:
            added = _added(statement, name)
            if added is not None:
                written += [(statement, entry) for entry in added]
            elif _takes_part(statement, name) or _hands_on(statement, name):
                written.append((statement, ast.keyword(None, keyword.value)))
        if all(entry.arg for _, entry in written):
            places = [statement for statement, entry in written if entry.arg == argument]
            entries = [entry for _, entry in written]
            if len(places) > 1:
                continue  # which of them is in force is not asked
            keywords = [k for k in call.keywords if k is not keyword] + entries
            made_out = ast.copy_location(ast.Call(call.func, call.args, keywords), call)
            return (places or [site.statement])[0], made_out
    return site.statement, call


def _passing(mapping: ast.expr) -> ast.Call:
    return ast.Call(ast.Name("dict"), [], [ast.keyword(None, mapping)])


def _added(statement: ast.stmt, name: str) -> list[ast.keyword] | None:
    """What a statement adds to a mapping: `x["name"] = v`, `x.update(name=v)`; None for others."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        if isinstance(target, ast.Subscript) and dotted_name(target.value) == name:
            key = target.slice
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                return [ast.keyword(key.value, statement.value)]
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and dotted_name(call.func) == f"{name}.update":
        if not call.args:
            return list(written_keywords(call))
    return None


def _hands_on(statement: ast.stmt, name: str) -> bool:
    """Whether a statement hands a mapping to something that might add to it."""
    return any(
        isinstance(given, ast.Name) and given.id == name
        for node in walk(statement)
        if isinstance(node, ast.Call)
        for given in (*node.args, *(k.value for k in node.keywords if k.arg is not None))
    )


def _takes_part(statement: ast.stmt, name: str) -> bool:
    """Whether a statement reads or sets a part of a variable, or calls a method of it."""
    return any(
        isinstance(node, (ast.Subscript, ast.Attribute))
        and isinstance(node.value, ast.Name)
        and node.value.id == name
        for node in walk(statement)
    )


@dataclass(frozen=True, slots=True)
class Unbound:
    """A kernel call that passes this rank, by `rank`, and leaves out where each query row ends."""

    function: Function
    statement: ast.stmt
    call: ast.Call
    rank: str
    fact: KernelArgument


def unbound_calls(flow: UnitFlow) -> Iterator[Unbound]:
    """Calls of the checked tree that mask by rank and get no global lengths to mask by.

    Without a causal mask, which is asked for by `causal=`, there is nothing to bound.
    """
    contract = flow.universe.program.contract
    ranks = {name: k.rank for k in contract.kernels if k.rank for name in (k.name, *k.aliases)}
    for fact in contract.arguments:
        rank = ranks.get(fact.function)
        if rank is None or UNITS[fact.unit].space is not Space.GLOBAL:
            continue
        name = fact.function.rpartition(".")[2]
        for spelling in sorted(flow.universe.program.spellings(frozenset({name}))):
            for site in flow.universe.calls_of(spelling):
                given = {k.arg: k.value for k in written_keywords(site.call)}
                if None in given or rank not in given or fact.argument in given:
                    continue
                masks = given.get("causal")
                if masks is None or (isinstance(masks, ast.Constant) and not masks.value):
                    continue
                if site.function.module.tree is not Tree.PROJECT or any(
                    isinstance(a, ast.Starred) for a in site.call.args
                ):
                    continue
                if fact.position is not None and fact.position < len(site.call.args):
                    continue
                if _is_call_of(flow, site, fact):
                    yield Unbound(site.function, site.statement, site.call, rank, fact)


def _names(flow: UnitFlow, function: str) -> frozenset[str]:
    """Under which names code may import a function: those of its kernel too."""
    kernels = flow.universe.program.contract.kernels
    named = (frozenset((kernel.name, *kernel.aliases)) for kernel in kernels)
    return next((names for names in named if function in names), frozenset((function,)))


def _is_call_of(flow: UnitFlow, site: CallSite, fact: KernelArgument) -> bool:
    function, call = site.function, site.call
    owner_name, _, name = fact.function.rpartition(".")
    if flow.universe.called(function, call) in _names(flow, fact.function):
        return True
    # A method, called on an instance of its class or of one that derives from it.
    if callee_name(call) != name or not isinstance(call.func, ast.Attribute):
        return False
    receiver = call.func.value
    if isinstance(receiver, ast.Call) and dotted_name(receiver.func) == "super" and function.owner:
        owners: Classes = (function.owner,)
    else:
        owners = _classes(flow, function, site.statement, receiver)
    return any(
        entry.dotted == owner_name
        for owner in owners
        for entry in flow.universe.program.mro(owner).classes
    )


def _classes(flow: UnitFlow, function: Function, statement: ast.stmt, node: ast.expr) -> Classes:
    """The classes of what `statement` speaks of, as tests before it tell, or what it was given."""
    tested = narrowed(flow.universe, function, statement, node)
    return tested or classes_of(flow.universe, function, node)


def _passed(
    flow: UnitFlow, function: Function, call: ast.Call, fact: KernelArgument
) -> ast.expr | None:
    given = {k.arg for k in written_keywords(call)}
    if None in given or (fact.given is not None and fact.given not in given):
        return None
    for keyword in written_keywords(call):
        if keyword.arg == fact.argument:
            return keyword.value
    for callee in flow.universe.callees(function, call):
        return argument(callee, call, fact.argument)
    if fact.position is not None and fact.position < len(call.args):
        plain = call.args[: fact.position + 1]
        if not any(isinstance(a, ast.Starred) for a in plain):
            return plain[-1]
    return None


def field_sinks(flow: UnitFlow) -> Iterator[Sink]:
    """What the checked tree stores into the attributes that hold an exact length."""
    for fact in flow.universe.program.contract.lengths:
        if UNITS[fact.unit].counts is not Counts.SEQUENCE or UNITS[fact.unit].bound:
            continue
        yield from _constructed(flow, fact)
        yield from _replaced(flow, fact)
        yield from _assigned(flow, fact)


def _constructed(flow: UnitFlow, fact: Length) -> Iterator[Sink]:
    program = flow.universe.program
    record = program.linker.absolute(fact.record)
    if not isinstance(record, ClassSymbol):
        return
    for site in flow.scenario.lookup.constructions(record):
        if site.function.module.tree is Tree.PROJECT:
            passed = constructor_argument(flow.universe, site.call, record, fact.name)
            if passed is not None:
                yield _field_sink(site.function, site.statement, passed, fact)


def _replaced(flow: UnitFlow, fact: Length) -> Iterator[Sink]:
    """`record.replace(field=…)` and `dataclasses.replace(record, field=…)`."""
    for site in flow.universe.calls_of("replace"):
        passed = next((k.value for k in site.call.keywords if k.arg == fact.name), None)
        if passed is None or site.function.module.tree is not Tree.PROJECT:
            continue
        records = operands(site.call)[:2]
        if any(_carries(flow, site.function, site.statement, r, fact) for r in records):
            yield _field_sink(site.function, site.statement, passed, fact)


def _assigned(flow: UnitFlow, fact: Length) -> Iterator[Sink]:
    for function in flow.universe.mentioning(f".{fact.name} ="):
        if function.module.tree is not Tree.PROJECT:
            continue
        for statement in function.homes:
            targets = statement.targets if isinstance(statement, ast.Assign) else []
            for target in targets:
                if not isinstance(target, ast.Attribute) or target.attr != fact.name:
                    continue
                if _carries(flow, function, statement, target.value, fact):
                    assert isinstance(statement, ast.Assign)
                    yield _field_sink(function, statement, statement.value, fact)


def _carries(
    flow: UnitFlow, function: Function, statement: ast.stmt, node: ast.expr, fact: Length
) -> bool:
    owners = _classes(flow, function, statement, node)
    return any(
        entry.dotted == fact.record
        for owner in owners
        for entry in flow.universe.program.mro(owner).classes
    )


def _field_sink(function: Function, statement: ast.stmt, node: ast.expr, fact: Length) -> Sink:
    taker = f"`{fact.record.rpartition('.')[2]}.{fact.name}`"
    return Sink(function, statement, node, UNITS[fact.unit], taker, fact.source)
