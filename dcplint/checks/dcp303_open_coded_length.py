"""Arithmetic that is meant as the length of one rank's shard, and is not.

## What it flags
An expression over a length, the DCP world size, the rank and perhaps the interleave size that gives
this rank's number of tokens most of the time. It is evaluated over lengths, world sizes, ranks and
interleave sizes against `(L // (N*I)) * I + clamp(L % (N*I) - r*I, 0, I)`; the finding shows the
smallest case that differs. Python, torch, numpy and Triton spellings are followed through local
variables. Where the engine has an interleave size and the formula takes none, that is the fault.
Also the engine's own helper where it is not told that size. A local length that is advanced or
rewound, in place or row by row: `local(L) - k` is not `local(L - k)`. And one that is divided by
the ratio of a compressed cache where no code asks for chunks of whole entries: `local(L) // k` is
`local(L // k)` only if `I % k == 0`. And what a kernel gets for this rank's length, or a bound
of it, worked out from a global length and the world size without the rank, where it is too low or
another on some rank.

## Why it breaks
A rank then reads a slot that it never wrote, or leaves out one that it holds. Nothing crashes: the
answer is off at lengths that divide evenly, or at the interleave size nobody tested.

## Bad
```python
class MyImpl(AttentionImpl):
    def local_lens(self, seq_lens):
        rest = (seq_lens - 1) % self.dcp_world_size
        return seq_lens // self.dcp_world_size + (self.dcp_rank <= rest)
```

## Good
```python
class MyImpl(AttentionImpl):
    def local_lens(self, seq_lens, interleave):
        rounds = seq_lens // (self.dcp_world_size * interleave)
        rest = seq_lens % (self.dcp_world_size * interleave)
        return rounds * interleave + (rest - self.dcp_rank * interleave).clamp(0, interleave)
```

## How it is confirmed
The expression's own function runs for every length of a small batch on every rank.

## Known limits
An expression with anything else in it, or two lengths, is left alone: what cannot be evaluated is
unknown. Names tell which part a variable plays, save for rank and size, which are followed from the
process group and the configuration. Arithmetic without the rank (caps, workspace sizes, topology)
is another quantity. A formula without the interleave size is left alone where its module,
a class above its own or a caller tests that size at all, whatever the test is for.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Set
from dataclasses import dataclass, replace

from dcplint.checks.base import Context, Rule
from dcplint.checks.length_evidence import runs_under_dcp, wanted
from dcplint.contracts.model import Localizer
from dcplint.facts.expressions import shorten
from dcplint.facts.model import Position
from dcplint.facts.positions import position
from dcplint.findings.model import Evidence, Finding, Role, Severity
from dcplint.flow.functions import CallSite, Function, callee_name
from dcplint.flow.graph import Node
from dcplint.flow.origins import Frame
from dcplint.source.location import Tree
from dcplint.units.caps import misfits
from dcplint.units.expressions import written
from dcplint.units.flow import KEEPING, loaded, operands
from dcplint.units.interleave import Interleaving
from dcplint.units.lattice import LENGTHS, Space, Value, shifts_local
from dcplint.units.proof import (
    Counterexample,
    Fault,
    counterexample,
    divided_late,
    local_lengths,
    piece_example,
    points,
)
from dcplint.units.ranks import Ranks
from dcplint.units.roles import Role as Part
from dcplint.units.roles import role

RULE = Rule(
    code="DCP303",
    name="open-coded-length",
    summary="flags arithmetic meant as a rank's local length that gives another number",
    severity=Severity.ERROR,
    since="0.1.0",
    probe="the function that holds the expression, for every length of a small batch on every rank",
)

_DIVIDES = re.compile(r"//|%|divmod|cdiv|div\(|divide\(")
_RIGHT = "(L // (N*I)) * I + clamp(L % (N*I) - r*I, 0, I)"
_FAULTS = {
    Fault.WRONG: "is not it",
    Fault.NO_INTERLEAVE: "ignores the interleave size",
    Fault.RATIO: "divides by a ratio that a chunk need not be a multiple of",
}
_WHOLE = re.compile(r"interleave\w*\)?\s*%")  # whether a chunk is a multiple of a ratio is asked
_DIVIDED = re.compile(r"//|\b(?:floor_divide|div|divide)_?\(")
_SMALLEST = frozenset({"min", "minimum"})
_IN_PLACE: dict[str, ast.operator] = {"add_": ast.Add(), "sub_": ast.Sub()}
_STEPS = 4  # variables in terms of variables
_FLOORS = frozenset({"floor_divide", "div", "divide"})
_SHIFTED = {
    "+": "L=8, N=4, r=3, I=1, k=1: 3, should be 2",
    "-": "L=8, N=4, r=0, I=1, k=1: 1, should be 2",
}


@dataclass(frozen=True, slots=True)
class _Wrong:
    """A formula that is wrong, and where it stands."""

    node: ast.expr
    place: Position
    example: Counterexample


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding per expression that is wrong, and per local length changed in place."""
    ranks = context.ranks
    takes_chunks = bool(context.contract.vocabulary.interleaves)
    interleaving = context.interleaving if takes_chunks else None
    for function in ranks.functions(_DIVIDES):
        whole = bool(_WHOLE.search(surroundings(context, function)))
        for wrong in _wrong(function, ranks, interleaving, whole):
            yield _finding(context, function, wrong)
    yield from _changed(context)
    yield from _moved(context)
    yield from _divided(context)
    yield from _pieces(context)
    outside = Interleaving(context.fields.universe) if takes_chunks else None
    yield from _singly(context, outside)
    yield from _rankless(context, outside)


def surroundings(context: Context, function: Function) -> str:
    """The function's text, and its class's: where an interleave size would be looked at."""
    text = context.ranks.text(function)
    owner = function.owner
    if owner is not None:
        lines = context.program.modules.text(owner.module.tree, owner.path).lines
        for method in owner.facts.methods:
            text += "\n".join(lines[method.lines[0] - 1 : method.lines[1]])
    return text.lower().replace("repeat_interleave", "")


def _wrong(
    function: Function, ranks: Ranks, interleaving: Interleaving | None, whole: bool
) -> Iterator[_Wrong]:
    """The wrong formulas of a function, each once."""
    found: dict[Position, _Wrong] = {}
    right: set[Position] = set()
    for entry in written(function, ranks):
        for node in local_lengths(entry.meaning):
            place = position(node) if hasattr(node, "lineno") else position(entry.node)
            example = counterexample(node, interleaving is not None, whole)
            if interleaving is not None and example is not None:
                if example.fault is Fault.NO_INTERLEAVE:
                    if not interleaving.may_vary(function, entry, node):
                        example = counterexample(node, False, whole)
            if example is None:
                right.add(place)
            else:
                found.setdefault(place, _Wrong(node, place, example))
    yield from (wrong for place, wrong in sorted(found.items()) if place not in right)


def _finding(context: Context, function: Function, wrong: _Wrong) -> Finding:
    place = context.program.location(function.module, wrong.place)
    what = _FAULTS[wrong.example.fault]
    return RULE.finding(
        f"`{function.qualname}` computes this rank's local length, and the formula {what}: "
        f"{wrong.example}",
        place,
        symbol=function.qualname,
        evidence=(
            Evidence(f"with its variables put in: {shorten(wrong.node)}", place, Role.ORIGIN),
            Evidence(f"the local length is {_RIGHT}", place),
        ),
    )


# Local lengths that are advanced or rewound


def _changed(context: Context) -> Iterator[Finding]:
    """`x.dcp_local_seq_lens += k`: the local length of a longer sequence is another one."""
    for name in _local_fields(context):
        for function in context.fields.universe.mentioning(name):
            for statement, nodes in function.own_nodes.items():
                for node in (statement, *nodes):
                    change = _in_place(node)
                    if change is None:
                        continue
                    if _is_of_field(context, function, statement, change.left, {name}):
                        yield _shifted(context, function, node, change)


def _local_fields(context: Context) -> list[str]:
    return sorted(f.name for f in context.contract.fields if f.localises or "local" in f.name)


def _in_place(node: ast.AST) -> ast.BinOp | None:
    """What a statement or a call adds to or takes from something where it lies, as a sum."""
    if isinstance(node, ast.AugAssign) and isinstance(node.op, (ast.Add, ast.Sub)):
        return ast.BinOp(node.target, node.op, node.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and len(node.args) == 1:
        if node.func.attr in _IN_PLACE:
            return ast.BinOp(node.func.value, _IN_PLACE[node.func.attr], node.args[0])
    return None


def _is_of_field(
    context: Context, function: Function, statement: ast.stmt, node: ast.expr, names: Set[str]
) -> bool:
    """Whether `node` is one of these attributes, or a variable for that very tensor."""
    target = _whole(node)
    if not isinstance(target, ast.Name):
        return isinstance(target, ast.Attribute) and target.attr in names
    places = function.graph.at(statement)
    held = [value for at in places for _, value in context.units.given(function, at, target.id)]
    parts = [_whole(value) for value in held]
    return bool(parts) and all(isinstance(p, ast.Attribute) and p.attr in names for p in parts)


def _whole(node: ast.expr) -> ast.expr:
    """What `node` is a part of."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def _localising(context: Context, sign: re.Pattern[str]) -> Iterator[Function]:
    """The functions of the checked tree that localise lengths or read local ones, by their text."""
    contract = context.contract
    sources = {z.function.rpartition(".")[2] for z in contract.localizers}
    sources |= {n.name for n in contract.lengths if n.unit == "local"}
    seen: set[Function] = set()
    for name in sorted(sources) if contract.localizers else ():
        for spelling in sorted(context.program.spellings(frozenset({name}))):
            for function in context.fields.universe.mentioning(spelling, sign):
                if function not in seen and function.module.tree is Tree.PROJECT:
                    seen.add(function)
                    yield function


def _moved(context: Context) -> Iterator[Finding]:
    """`localise(L) - k + i`: the local length of a row is that of the row's own global length."""
    contract = context.contract
    steps = {n.name for n in contract.lengths if n.unit.startswith("quer")} | {"arange", "range"}
    sign = re.compile("|".join(rf"\b{name}\b" for name in sorted(steps)))
    for function in _localising(context, sign):
        yield from _moved_in(context, function)


def _moved_in(context: Context, function: Function) -> Iterator[Finding]:
    fields = {*_local_fields(context)}
    for statement in function.homes:
        for node in (statement, *function.own_nodes[statement]):
            change = _in_place(node)
            shift = change or node
            if not isinstance(shift, ast.BinOp) or not isinstance(shift.op, (ast.Add, ast.Sub)):
                continue
            if isinstance(shift.left, ast.Constant) or isinstance(shift.right, ast.Constant):
                continue
            if change is not None and _is_of_field(
                context, function, statement, change.left, fields
            ):
                continue  # told by what it is
            moved = loaded(shift.left) if shift is change else shift.left
            left = context.units.value(function, statement, moved)
            right = context.units.value(function, statement, shift.right) if left else None
            if shifts_local(left, right) and context.fields.tracer.can_run(function, statement):
                sign = "+" if isinstance(shift.op, ast.Add) else "-"
                yield RULE.finding(
                    f"`{function.qualname}` moves a local length by tokens of this step in "
                    f"`{shorten(node)}`: local(L {sign} k) is not local(L) {sign} k "
                    f"({_SHIFTED[sign]})",
                    context.program.location(function.module, position(node)),
                    symbol=function.qualname,
                )
                break


def _shifted(context: Context, function: Function, node: ast.AST, change: ast.BinOp) -> Finding:
    sign = "+" if isinstance(change.op, ast.Add) else "-"
    return RULE.finding(
        f"`{function.qualname}` changes the local length `{shorten(_whole(change.left))}` by "
        f"{shorten(change.right)}: local(L {sign} k) is not local(L) {sign} k ({_SHIFTED[sign]})",
        context.program.location(function.module, position(node)),
        symbol=function.qualname,
    )


# Local lengths that are divided


def _divided(context: Context) -> Iterator[Finding]:
    """`localise(L) // k`: what a rank holds of a cache that keeps one entry for k tokens."""
    for function in _localising(context, _DIVIDED):
        if _WHOLE.search(surroundings(context, function)):
            continue
        for statement in function.homes:
            found = next(_divisions(context, function, statement), None)
            if found is not None and _can_divide(context, function, statement):
                length, ratio = found
                yield RULE.finding(
                    f"`{function.qualname}` divides the local length `{shorten(length)}` by "
                    f"`{shorten(ratio)}`, which a chunk need not be a multiple of: "
                    f"local(L) // k is not local(L // k) ({divided_late()})",
                    context.program.location(function.module, position(statement)),
                    symbol=function.qualname,
                )


def _divisions(
    context: Context, function: Function, statement: ast.stmt
) -> Iterator[tuple[ast.expr, ast.expr]]:
    """(length, ratio) of the divisions of exact local lengths that a statement does."""
    for length, ratio in _quotients(function, statement):
        if _is_ratio(context, function, statement, ratio):
            value = context.units.value(function, statement, length)
            if isinstance(value, Value) and value.unit.bound is False:
                if value.unit.space is Space.LOCAL and value.unit.counts in LENGTHS:
                    yield length, ratio


def _quotients(function: Function, statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    """(dividend, divisor) of the divisions that round down."""
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.FloorDiv):
        yield loaded(statement.target), statement.value
    for node in function.own_nodes[statement]:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv):
            yield node.left, node.right
        elif isinstance(node, ast.Call) and callee_name(node).rstrip("_") in _FLOORS:
            given = operands(node)
            if len(given) == 2:
                yield given[0], given[1]


def _is_ratio(context: Context, function: Function, statement: ast.stmt, node: ast.expr) -> bool:
    """Whether an expression is a ratio by its name, or a variable that was given one."""
    if not isinstance(node, ast.Name) or role(node) is not None:
        return role(node) is Part.RATIO
    places = function.graph.at(statement)
    values = [value for at in places for _, value in context.units.given(function, at, node.id)]
    return bool(values) and all(role(value) is Part.RATIO for value in values)


def _can_divide(context: Context, function: Function, statement: ast.stmt) -> bool:
    """Whether a statement runs under DCP, with a ratio that its class does not refuse then."""
    if not context.fields.tracer.can_run(function, statement):
        return False
    owner = function.owner
    return owner is None or any(
        context.outputs.refused.allows(owner, Frame(function), place)
        for place in function.graph.at(statement)
    )


# Pieces of a sequence, localised as if each were its beginning


def _pieces(context: Context) -> Iterator[Finding]:
    """`localise(min(s + c, L) - s)`: a rank holds local(e) - local(s) of the tokens from s to e."""
    names = frozenset(z.function.rpartition(".")[2] for z in context.contract.localizers)
    for spelling in sorted(context.program.spellings(names)):
        for site in context.fields.universe.calls_of(spelling):
            function, statement = site.function, site.statement
            if function.module.tree is not Tree.PROJECT:
                continue
            length = context.units.localised(function, site.call)
            if length is None or not context.fields.tracer.can_run(function, statement):
                continue
            if any(_is_piece(context, function, at, length) for at in site.nodes):
                yield RULE.finding(
                    f"`{function.qualname}` localises the length of a piece that does not begin "
                    f"the sequence, `{shorten(length)}`: local(e - s) is not "
                    f"local(e) - local(s) ({piece_example()})",
                    context.program.location(function.module, position(site.call)),
                    symbol=function.qualname,
                )


def _is_piece(context: Context, function: Function, at: Node, node: ast.expr) -> bool:
    """Whether `node` is `min(s + c, L) - s`, whatever the parts are called."""
    at, node = _given(context, function, at, node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        end, start = node.left, node.right
    elif isinstance(node, ast.Call) and callee_name(node) in ("sub", "subtract"):
        if len(operands(node)) != 2:
            return False
        end, start = operands(node)
    else:
        return False
    _, bounded = _given(context, function, at, end)
    if not isinstance(bounded, ast.Call) or callee_name(bounded) not in _SMALLEST:
        return False
    sought = ast.dump(start)
    reaching = [
        isinstance(part, ast.BinOp)
        and isinstance(part.op, ast.Add)
        and sought in (ast.dump(part.left), ast.dump(part.right))
        for part in operands(bounded)
    ]
    return len(reaching) == 2 and sum(reaching) == 1


def _given(
    context: Context, function: Function, at: Node, node: ast.expr, steps: int = _STEPS
) -> tuple[Node, ast.expr]:
    """What a variable holds, without what changes no number, and where it was given that."""
    if isinstance(node, ast.Call) and callee_name(node) in KEEPING and operands(node):
        return _given(context, function, at, operands(node)[0], steps)
    if isinstance(node, ast.Subscript):
        return _given(context, function, at, node.value, steps)
    if isinstance(node, ast.Name) and steps:
        values = list(context.units.given(function, at, node.id))
        if len(values) == 1:
            return _given(context, function, *values[0], steps - 1)
    return at, node


# Helpers that are not told the interleave size


def _singly(context: Context, interleaving: Interleaving | None) -> Iterator[Finding]:
    """A localizer that takes the interleave size, called without it: it then takes 1."""
    universe = context.fields.universe
    for localizer in context.contract.localizers if interleaving is not None else ():
        sizes = [p for p in localizer.parameters if role(ast.Name(p)) is Part.INTERLEAVE]
        name = localizer.function.rpartition(".")[2]
        for spelling in sorted(context.program.spellings(frozenset({name}))) if sizes else ():
            for site in universe.calls_of(spelling):
                function, call = site.function, site.call
                if function.module.tree is not Tree.PROJECT:
                    continue
                if context.units.localizer(function, call) is not localizer:
                    continue
                if context.units.sharded(function, call) is None or _may_pass(call, localizer):
                    continue
                if not context.fields.tracer.can_run(function, site.statement):
                    continue
                if interleaving is not None and interleaving.is_open(function):
                    yield _left_at_one(context, site, sizes[0])


def _may_pass(call: ast.Call, localizer: Localizer) -> bool:
    """Whether a call passes the interleave size, or things that can't be told."""
    given = {keyword.arg for keyword in call.keywords}
    if None in given or any(isinstance(a, ast.Starred) for a in call.args):
        return True
    given |= {*localizer.parameters[: len(call.args)]}
    return any(name and role(ast.Name(name)) is Part.INTERLEAVE for name in given)


def _left_at_one(context: Context, site: CallSite, parameter: str) -> Finding:
    example = next(
        Counterexample(Fault.NO_INTERLEAVE, p, replace(p, interleave=1).local)
        for p in points()
        if p.local != replace(p, interleave=1).local
    )
    return RULE.finding(
        f"`{site.function.qualname}` leaves `{parameter}` out of "
        f"`{shorten(site.call.func)}(…)`, which then deals out tokens one by one: {example}",
        context.program.location(site.function.module, position(site.call)),
        symbol=site.function.qualname,
    )


# Arithmetic without the rank


def _rankless(context: Context, interleaving: Interleaving | None) -> Iterator[Finding]:
    """`L // N` for the longest that a rank can hold: where it does not divide, some hold more."""
    for found in misfits(context.units, interleaving):
        sink = found.sink
        if not runs_under_dcp(context, sink.function, sink.statement):
            continue
        does = "bounds this rank's length by" if sink.unit.bound else "takes for this rank's length"
        what = "some rank exceeds" if sink.unit.bound else "on some rank is another"
        yield RULE.finding(
            f"`{found.function.qualname}` {does} `{shorten(found.node)}`, which {what}: {found}",
            context.program.location(found.function.module, position(found.node)),
            symbol=found.function.qualname,
            evidence=(wanted(sink),),
        )
