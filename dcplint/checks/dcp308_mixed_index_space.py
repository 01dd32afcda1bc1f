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

from dcplint.checks.base import Context, Rule
from dcplint.checks.length_evidence import is_ratio, may_serve, runs_under_dcp, trail, wanted
from dcplint.facts.expressions import dotted_name, shorten
from dcplint.facts.positions import position
from dcplint.findings.model import Finding, Severity
from dcplint.flow.definitions import definitions
from dcplint.flow.functions import Function, callee_name, given_once
from dcplint.source.location import Tree
from dcplint.source.tree import walk
from dcplint.units.lattice import LENGTHS, Counts, Space, Value
from dcplint.units.operations import KEEPING, operands
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
    yield from _halves(context)
    yield from _place_halves(context)
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


# Lengths that are localised on one way only


def _halves(context: Context) -> Iterator[Finding]:
    """`x = localise(x) if ratio > 1 else x`."""
    for place in context.localisations:
        function, statement = place.site.function, place.site.statement
        if function.module.tree is not Tree.PROJECT or not place.is_share:
            continue
        if not context.fields.tracer.can_run(function, statement):
            continue
        for test, at, other in _other_ways(context, function, statement, place.site.call):
            if not _is_unrelated(context, function, statement, test):
                continue
            value = context.units.value(function, at, other)
            if isinstance(value, Value) and value.unit.counts in LENGTHS:
                if value.unit.space is Space.GLOBAL and not _is_kept_apart(function, at, test):
                    yield _half(context, function, place.site.call, test, value)


def _place_halves(context: Context) -> Iterator[Finding]:
    """`x = of_this_rank(x) if ratio > 1 else x`, of a function that computes with the rank."""
    helpers = {(f.module, f.qualname) for f in context.ranks.functions(_DIVIDES)}
    for function in context.fields.universe.mentioning("ratio") if helpers else ():
        if function.module.tree is not Tree.PROJECT:
            continue
        for statement, calls in function.calls.items():
            for call in calls if isinstance(statement, ast.Assign) else ():
                for test, at, other in _other_ways(context, function, statement, call):
                    if not any(ast.dump(other) == ast.dump(given) for given in call.args):
                        continue
                    callees = context.fields.universe.callees(function, call, statement)
                    if not callees or any((f.module, f.qualname) not in helpers for f in callees):
                        continue
                    if _is_kept_apart(function, at, test):
                        continue
                    if not _is_unrelated(context, function, statement, test):
                        continue
                    if context.fields.tracer.can_run(function, statement):
                        yield _place_half(context, function, call, test, other)


def _place_half(
    context: Context, function: Function, call: ast.Call, test: ast.expr, other: ast.expr
) -> Finding:
    return RULE.finding(
        f"`{function.qualname}` makes `{shorten(other)}` this rank's only where "
        f"`{shorten(test)}`, which says nothing of DCP: elsewhere it stays as it is",
        context.program.location(function.module, position(call)),
        symbol=function.qualname,
    )


def _other_ways(
    context: Context, function: Function, statement: ast.stmt, call: ast.Call
) -> Iterator[tuple[ast.expr, ast.stmt, ast.expr]]:
    """(test, statement, value): what stands for local lengths where a test comes out otherwise."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return

    def is_local(node: ast.expr) -> bool:
        return _whole(context, function, node) is call

    value, target = statement.value, statement.targets[0]
    if isinstance(value, ast.IfExp):
        if is_local(value.body):
            yield value.test, statement, value.orelse
        elif is_local(value.orelse):
            yield value.test, statement, value.body
    home = function.homes[statement]
    branch = home.parent
    if is_local(value) and isinstance(target, ast.Name) and isinstance(branch, ast.If):
        if isinstance(home.block[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break)):
            return
        beside = branch.orelse if home.block is branch.body else branch.body
        if not beside:
            yield branch.test, statement, ast.Name(target.id, ast.Load())
        elif len(beside) == 1 and isinstance(other := beside[0], ast.Assign):
            if [dotted_name(t) for t in other.targets] == [target.id]:
                yield branch.test, other, other.value


def _whole(context: Context, function: Function, node: ast.expr) -> ast.expr:
    """What `node` is made of by what changes no space: moves, slices, division by a ratio."""
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and callee_name(node) in KEEPING and operands(node):
            node = operands(node)[0]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv):
            if not is_ratio(context, function, node.right):
                return node
            node = node.left
        else:
            return node


def _is_unrelated(
    context: Context, function: Function, statement: ast.stmt, test: ast.expr
) -> bool:
    """Whether a test is known to be about a ratio or a length, which DCP does not decide.

    Where DCP has been refused by what it reads, it may be decided all the same.
    """
    if _is_refused_before(context, function, statement, test):
        return False
    if isinstance(test, ast.BoolOp):
        return all(_is_unrelated(context, function, statement, part) for part in test.values)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    sides = (test.left, test.comparators[0])
    known = [
        isinstance(side, ast.Constant)
        or is_ratio(context, function, side)
        or isinstance(context.units.value(function, statement, side), Value)
        for side in sides
    ]
    return all(known) and not all(isinstance(side, ast.Constant) for side in sides)


def _is_refused_before(
    context: Context, function: Function, statement: ast.stmt, test: ast.expr
) -> bool:
    """Whether an earlier test of DCP's size, and of what `test` reads, raises."""
    read = {dotted_name(part) for part in _parts_read(test)}
    scenario = context.fields.tracer.scenario
    for around in _blocks_around(function, statement):
        for earlier in around:
            refuses = isinstance(earlier, ast.If) and isinstance(earlier.body[-1], ast.Raise)
            if not isinstance(earlier, ast.Assert) and not refuses:
                continue
            assert isinstance(earlier, (ast.If, ast.Assert))
            parts = _parts_read(earlier.test)
            if read.intersection(map(dotted_name, parts)):
                if any(scenario.is_size(function, part) for part in parts):
                    return True
    return False


def _parts_read(test: ast.expr) -> list[ast.expr]:
    """The variables and attributes that a test reads, not the objects that carry them."""
    found = [node for node in walk(test) if isinstance(node, (ast.Name, ast.Attribute))]
    owners = {id(node.value) for node in found if isinstance(node, ast.Attribute)}
    return [node for node in found if id(node) not in owners and dotted_name(node)]


def _blocks_around(function: Function, statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """What stands before a statement, in its block and in those around it."""
    node: ast.stmt | None = statement
    while node is not None:
        home = function.homes[node]
        yield home.block[: home.index]
        node = home.parent


def _is_kept_apart(function: Function, statement: ast.stmt, test: ast.expr) -> bool:
    """Whether the same test stands elsewhere too, and keeps the two ways apart.

    Not where a variable that holds the one or the other is read outside of it.
    """
    said = ast.dump(test)
    tests = [
        node.test
        for nodes in function.own_nodes.values()
        for node in nodes
        if isinstance(node, ast.IfExp)
    ]
    tests += [node.test for node in function.homes if isinstance(node, (ast.If, ast.While))]
    if sum(ast.dump(other) == said for other in tests) < 2:
        return False
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    return not any(_is_read_outside(function, statement, name, said) for name in names)


def _is_read_outside(function: Function, statement: ast.stmt, name: str, test: str) -> bool:
    """Whether what `statement` gives a variable is read where a test, by dump, does not stand."""
    for reader in function.mentions.get(name, ()):
        if not any(
            isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)
            for n in function.own_nodes[reader]
        ):
            continue
        given = (d for at in function.graph.at(reader) for d in definitions(function, at, name))
        if any(at.statement is statement for _, at, _ in given):
            if not any(ast.dump(other) == test for other in _tests_around(function, reader)):
                return True
    return False


def _tests_around(function: Function, statement: ast.stmt) -> Iterator[ast.expr]:
    current: ast.stmt | None = statement
    while current is not None:
        if isinstance(current, (ast.If, ast.While)):
            yield current.test
        yield from (n.test for n in function.own_nodes[current] if isinstance(n, ast.IfExp))
        current = function.homes[current].parent


def _half(
    context: Context, function: Function, call: ast.Call, test: ast.expr, value: Value
) -> Finding:
    return RULE.finding(
        f"`{function.qualname}` localises lengths only where `{shorten(test)}`, which says nothing "
        f"of DCP: elsewhere they stay the {value.unit}",
        context.program.location(function.module, position(call)),
        symbol=function.qualname,
        evidence=trail(context, value),
    )
