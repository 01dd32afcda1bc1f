"""Arithmetic that is meant as the length of one rank's shard, and is not.

## What it flags
An expression over a length, the DCP world size, the rank and perhaps the interleave size that gives
this rank's number of tokens most of the time. It is evaluated over lengths, world sizes, ranks and
interleave sizes against `(L // (N*I)) * I + clamp(L % (N*I) - r*I, 0, I)`; the finding shows the
smallest case that differs. Python, torch, numpy and Triton spellings are followed through local
variables. Where the engine has an interleave size and the formula takes none, that is the fault.
Also the engine's own helper where it is not told that size, or told 1 whatever it is. A local
length that is advanced or rewound, in place, into the field it came from or row by row:
`local(L) - k` is not `local(L - k)`. And one that is divided by the ratio of a compressed cache
where no code asks for chunks of whole entries: `local(L) // k` is `local(L // k)` only if
`I % k == 0`. And what is localised that must not be: the length of a piece that does not begin the
sequence, and a length that is local already, by the engine's helper or by any function around it.
And what a kernel gets for this rank's length, or a bound of it, worked out from a global length and
the world size without the rank, where it is too low or another on some rank.

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
unknown. Rank and size are followed from the process group and the configuration; a length is told
by its name, or by what every caller passes. Arithmetic without the rank (caps, workspace sizes,
topology) is another quantity; `num_tokens` may count a batch's rows, so that only its origin tells.
A formula without the interleave size is left alone where its module, a class above its own, the
backend that names it, a plugin's platform, a caller or a function called for nothing else tests
that size at all, whatever the test is for; that two of them are alike, and what is computed of it,
is no such test, nor is one, elsewhere in the module or in a function called for nothing else, that
is made only where something holds which has nothing to do with context parallelism.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from dcplint.checks.base import Context, Rule
from dcplint.checks.length_changes import asks_for_whole_entries, changes
from dcplint.checks.length_evidence import runs_under_dcp, wanted
from dcplint.checks.length_shifts import shifts
from dcplint.contracts.model import Localizer
from dcplint.facts.expressions import shorten
from dcplint.facts.model import Position
from dcplint.facts.positions import position
from dcplint.findings.model import Evidence, Finding, Role, Severity
from dcplint.flow.functions import CallSite, Function
from dcplint.source.location import Tree
from dcplint.source.tree import walk
from dcplint.units.caps import misfits
from dcplint.units.expressions import Written
from dcplint.units.interleave import Interleaving
from dcplint.units.lattice import LENGTHS, Value
from dcplint.units.localizers import passed
from dcplint.units.proof import (
    Counterexample,
    Fault,
    counterexample,
    local_lengths,
    points,
)
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


@dataclass(frozen=True, slots=True)
class _Wrong:
    """A formula that is wrong, and where it stands."""

    node: ast.expr
    place: Position
    example: Counterexample


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding per expression that is wrong, and per local length changed in place."""
    takes_chunks = bool(context.contract.vocabulary.interleaves)
    interleaving = context.interleaving if takes_chunks else None
    for function in context.ranks.functions(_DIVIDES):
        whole = asks_for_whole_entries(context, function)
        for wrong in _wrong(function, context.written(function), interleaving, whole):
            yield _finding(context, function, wrong)
    for change in chain(shifts(context), changes(context)):
        place = context.program.location(change.function.module, position(change.node))
        yield RULE.finding(change.message, place, symbol=change.function.qualname)
    outside = Interleaving(context.fields.universe) if takes_chunks else None
    yield from _singly(context, outside)
    yield from _rankless(context, outside)


def _wrong(
    function: Function,
    entries: Sequence[Written],
    interleaving: Interleaving | None,
    whole: bool,
) -> Iterator[_Wrong]:
    """The wrong formulas of a function, each once."""
    found: dict[Position, _Wrong] = {}
    right: set[Position] = set()
    for entry in entries:
        for node in local_lengths(entry.meaning):
            place = position(node) if hasattr(node, "lineno") else position(entry.node)
            example = counterexample(node, interleaving is not None, whole, entry.tests)
            if interleaving is not None and example is not None:
                if example.fault is Fault.NO_INTERLEAVE:
                    if not interleaving.may_vary(function, entry, node):
                        example = counterexample(node, False, whole, entry.tests)
            if example is None:
                # What a right formula is put together from need not be right by itself.
                right.add(place)
                right.update(position(part) for part in walk(node) if hasattr(part, "lineno"))
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


# Helpers that are not told the interleave size


def _singly(context: Context, interleaving: Interleaving | None) -> Iterator[Finding]:
    """A localizer that takes the interleave size, called without it or with a 1."""
    universe, known = context.fields.universe, context.units.localizers
    for localizer in context.contract.localizers if interleaving is not None else ():
        sizes = [p for p in localizer.parameters if role(ast.Name(p)) is Part.INTERLEAVE]
        name = localizer.function.rpartition(".")[2]
        for spelling in sorted(context.program.spellings(frozenset({name}))) if sizes else ():
            for site in universe.calls_of(spelling):
                function, call = site.function, site.call
                if function.module.tree is not Tree.PROJECT:
                    continue
                if known.run_by(function, call) is not localizer:
                    continue
                lengths = known.sharded(function, call)
                if lengths is None or _may_tell(context, site, localizer, sizes[0]):
                    continue
                if not context.fields.tracer.can_run(function, site.statement):
                    continue
                if interleaving is not None and interleaving.is_open(function):
                    told = passed(call, localizer, sizes[0]) is not None
                    if not told or _counts_tokens(context, site, lengths):
                        yield _one_by_one(context, site, sizes[0], told)


def _may_tell(context: Context, site: CallSite, localizer: Localizer, size: str) -> bool:
    """Whether a call passes an interleave size other than 1, or things that can't be told."""
    call, function = site.call, site.function
    if any(isinstance(a, ast.Starred) for a in call.args) or any(not k.arg for k in call.keywords):
        return True
    given = passed(call, localizer, size)
    if given is None:
        return False
    values = [given]
    if isinstance(given, ast.Name) and given.id not in function.parameters:
        places = function.graph.at(site.statement)
        values = [
            value for at in places for _, value in context.units.given(function, at, given.id)
        ]
    return not values or not all(isinstance(v, ast.Constant) and v.value == 1 for v in values)


def _counts_tokens(context: Context, site: CallSite, lengths: ast.expr) -> bool:
    """Whether what is dealt out one by one are tokens: of chunks and blocks, 1 may be right."""
    value = context.units.value(site.function, site.statement, lengths)
    return isinstance(value, Value) and value.unit.counts in LENGTHS


def _one_by_one(context: Context, site: CallSite, size: str, told: bool) -> Finding:
    example = next(
        Counterexample(Fault.NO_INTERLEAVE, p, replace(p, interleave=1).local)
        for p in points()
        if p.local != replace(p, interleave=1).local
    )
    does = f"passes 1 for `{size}` to" if told else f"leaves `{size}` out of"
    return RULE.finding(
        f"`{site.function.qualname}` {does} `{shorten(site.call.func)}(…)`, which then deals out "
        f"tokens one by one: {example}",
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
