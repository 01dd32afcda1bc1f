"""A token's place or a length is taken for one of another space than the cache has.

## What it flags
A test of a token's place (a position or a slot) against this rank that gives the owner when the
interleave size is 1 and another rank otherwise, in code that takes no interleave size, of an engine
that has one. The arithmetic is evaluated over places, world sizes and interleave sizes; the finding
shows the smallest case that differs. And lengths that are localised only under a test that has
nothing to do with DCP (of a compression ratio, of another length), by the engine's helper or by a
function around it: on the other way they stay global; places too, made local by a helper that knows
the rank. And indices of tokens in the whole sequence that a backend looks up in this rank's block
table, itself or by a kernel, with nothing in its class that knows the rank.

## Why it breaks
With chunks of I tokens per rank, token `i` lives on rank `(i // I) % N`. Going by `i % N`, ranks
write tokens that others own and leave out their own: every one of them then attends over holes.
With lengths that are local on one way and global on the other, a rank reads past its shard. An
index of the whole sequence names another token in a shard, or none.

## Bad
```python
from vllm.v1.attention.backend import AttentionMetadataBuilder

class MyBuilder(AttentionMetadataBuilder):
    def mine(self, positions):
        return positions % self.dcp_world_size == self.dcp_rank
```

## Good
```python
from vllm.v1.attention.backend import AttentionMetadataBuilder

class MyBuilder(AttentionMetadataBuilder):
    def mine(self, positions, interleave):
        return positions // interleave % self.dcp_world_size == self.dcp_rank
```

## How it is confirmed
The backend's slot mapping, over interleave sizes, against the owner of each token.

## Known limits
Its name, or what every caller passes, tells a place from other numbers; block and page numbers,
whose layout is the block's, are left alone. Of a slot mapping only the owner is checked. An owner
without the interleave size is left alone where somebody tests that size, as for DCP303. Lengths may
stay global where DCP has been refused by what the test reads.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import chain

from dcplint.checks.base import Context, Rule
from dcplint.checks.half_localised import Half, half_localised, half_owned
from dcplint.checks.length_evidence import may_serve, runs_under_dcp, trail, wanted
from dcplint.facts.expressions import dotted_name, shorten
from dcplint.facts.positions import position
from dcplint.findings.model import Finding, Severity
from dcplint.flow.functions import Function, callee_name, given_once
from dcplint.source.location import Tree
from dcplint.source.tree import walk
from dcplint.units.lattice import Counts, Space, Value
from dcplint.units.operations import operands
from dcplint.units.proof import OwnerExample, wrong_owner
from dcplint.units.roles import Role, role
from dcplint.units.sinks import argument_sinks

RULE = Rule(
    code="DCP308",
    name="mixed-index-space",
    summary="flags owners of tokens, and lengths, that are of another space than the cache",
    severity=Severity.ERROR,
    since="0.1.0",
    probe="the backend's slot mapping, over interleave sizes, against the owner of each token",
)

_TABLE = "block_table"
_LOOKS_UP = re.compile(rf"{_TABLE}[\s\S]*//|//[\s\S]*{_TABLE}")
_GATHERING = frozenset({"gather", "take_along_dim"})
_DIVIDES = re.compile(r"//|%|mod_?\(|remainder|div\w*\(")


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding per owner that is right for an interleave size of 1, and per half-way."""
    if context.contract.vocabulary.interleaves:  # else tokens go round one by one
        yield from _owners(context)
    for half in chain(half_localised(context), half_owned(context, _DIVIDES)):
        yield _half(context, half)
    yield from _places(context)
    yield from _looked_up(context)


def _owners(context: Context) -> Iterator[Finding]:
    for function in context.ranks.functions(_DIVIDES):
        yield from _findings(context, function)


def _findings(context: Context, function: Function) -> Iterator[Finding]:
    told: set[str] = set()  # by what it says: a variable stands for its value wherever it is used
    for entry in context.written(function):
        for node in walk(entry.meaning):
            example = _example(node)
            said = ast.dump(node) if example is not None else ""
            if example is None or said in told:
                continue
            told.add(said)
            if context.interleaving.may_vary(function, entry, node):
                yield RULE.finding(
                    f"`{function.qualname}` takes `{shorten(node)}` for the owner of a token, and "
                    f"ignores the interleave size: {example}",
                    context.program.location(function.module, position(entry.node)),
                    symbol=function.qualname,
                )


def _example(node: ast.AST) -> OwnerExample | None:
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return None
    if not isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
        return None
    sides = (node.left, node.comparators[0])
    for owner, rank in (sides, sides[::-1]):
        if role(rank) is Role.RANK:
            return wrong_owner(owner)
    return None


# Indices of the whole sequence


def _places(context: Context) -> Iterator[Finding]:
    """`look_up(block_table, top_k)`, where `top_k` counts in the whole sequence."""
    for sink in argument_sinks(context.units):
        if sink.unit.counts is not Counts.PLACES:
            continue
        value = context.units.value(sink.function, sink.statement, sink.node)
        if not isinstance(value, Value) or value.unit.counts is not Counts.PLACES:
            continue
        if value.unit.space is sink.unit.space or _knows_the_rank(context, sink.function):
            continue
        if runs_under_dcp(context, sink.function, sink.statement):
            yield RULE.finding(
                f"`{sink.function.qualname}` passes the {value.unit} `{shorten(sink.node)}` for "
                f"{sink.taker}, which wants the {sink.unit} under DCP, and nothing in its class "
                "knows the rank",
                context.program.location(sink.function.module, position(sink.node)),
                symbol=sink.function.qualname,
                evidence=(*trail(context, value), wanted(sink)),
            )


def _looked_up(context: Context) -> Iterator[Finding]:
    """`block_table[row, top_k // block_size]`, where `top_k` counts in the whole sequence."""
    for function in context.fields.universe.matching(
        _LOOKS_UP.search, lambda owner: owner is not None and may_serve(context, owner)
    ):
        if function.module.tree is not Tree.PROJECT:
            continue
        told: set[ast.expr] = set()  # one page may be looked up in several tables
        for statement, table, index in _look_ups(function):
            if index in told:
                continue
            told.add(index)
            value = context.units.value(function, statement, index)
            if not isinstance(value, Value) or value.unit.counts is not Counts.PLACES:
                continue
            if value.unit.space is not Space.GLOBAL or _knows_the_rank(context, function):
                continue
            if runs_under_dcp(context, function, statement):
                yield RULE.finding(
                    f"`{function.qualname}` looks the {value.unit} `{shorten(index)}` up in "
                    f"`{shorten(table)}`, which has this rank's pages only under DCP, and nothing "
                    "in its class knows the rank",
                    context.program.location(function.module, position(index)),
                    symbol=function.qualname,
                    evidence=trail(context, value),
                )


def _look_ups(function: Function) -> Iterator[tuple[ast.stmt, ast.expr, ast.expr]]:
    """(statement, table, index): whose page a function reads in a block table."""
    for statement, nodes in function.own_nodes.items():
        for node in nodes:
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
                table, asked = node.value, [node.slice]
            elif isinstance(node, ast.Call) and callee_name(node) in _GATHERING and operands(node):
                table, *asked = operands(node)
            else:
                continue
            if not _is_table(function, table):
                continue
            for index in asked:
                for at, page in _written_out(function, statement, index):
                    if isinstance(page, ast.BinOp) and isinstance(page.op, ast.FloorDiv):
                        yield at, table, page.left


def _is_table(function: Function, node: ast.expr) -> bool:
    """Whether it is a block table by its name, or rows of one that a variable was given."""
    if _TABLE in (dotted_name(node) or "").rpartition(".")[2]:
        return True
    given = given_once(function, node.id) if isinstance(node, ast.Name) else None
    while isinstance(given, ast.Subscript):
        given = given.value
        if _TABLE in (dotted_name(given) or "").rpartition(".")[2]:
            return True
    return False


def _written_out(
    function: Function, statement: ast.stmt, index: ast.expr
) -> Iterator[tuple[ast.stmt, ast.AST]]:
    """(statement, node) of an index, and of what its variables were given by one assignment."""
    for node in ast.walk(index):
        yield statement, node
        given = given_once(function, node.id) if isinstance(node, ast.Name) else None
        for at in function.homes if given is not None else ():
            if isinstance(at, ast.Assign) and at.value is given:
                yield from ((at, inner) for inner in ast.walk(given))


def _knows_the_rank(context: Context, function: Function) -> bool:
    """Whether a function, or another of its class, can tell what is this rank's, or names it."""
    owner = function.owner
    for other in context.ranks.functions():
        if other is function or (owner is not None and other.owner is owner):
            return True
    if owner is None:
        return False
    vocabulary, universe = context.contract.vocabulary, context.outputs.universe
    written = [universe.text(owner.module, facts) for facts in owner.facts.methods]
    words = (*vocabulary.ranks, *vocabulary.group_ranks)
    return any(word in text for text in written for word in words)


# What is made local on one way only


def _half(context: Context, half: Half) -> Finding:
    function, test, value = half.function, shorten(half.test), half.value
    if value is not None:
        said = (
            f"localises lengths only where `{test}`, which says nothing of DCP: elsewhere they "
            f"stay the {value.unit}"
        )
    else:
        said = (
            f"makes `{shorten(half.whole)}` this rank's only where `{test}`, which says nothing of "
            "DCP: elsewhere it stays as it is"
        )
    return RULE.finding(
        f"`{function.qualname}` {said}",
        context.program.location(function.module, position(half.call)),
        symbol=function.qualname,
        evidence=trail(context, value) if value is not None else (),
    )
