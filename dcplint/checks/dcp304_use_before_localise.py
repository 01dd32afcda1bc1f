"""Pages are counted from global lengths, which are localised afterwards.

## What it flags
A page count taken from lengths, where the same variable is then given the local lengths in a branch
that DCP opens, and the count is used after that branch. Without DCP the count belongs to the
lengths; with DCP it does not.

## Why it breaks
A kernel that walks the pages of a request gets about N times as many as the rank holds: it reads
block table entries that were never filled in, or another request's pages.

## Bad
```python
from vllm.v1.attention.backend import AttentionMetadataBuilder, CommonAttentionMetadata
from vllm.v1.attention.backends.utils import get_dcp_local_seq_lens

class MyBuilder(AttentionMetadataBuilder):
    def build(self, prefix, meta: CommonAttentionMetadata):
        lens = meta.seq_lens.cpu()
        pages = (lens + self.page_size - 1) // self.page_size
        if self.dcp_world_size > 1:
            lens = get_dcp_local_seq_lens(lens, self.dcp_world_size, self.dcp_rank)
        return self.plan(pages, lens)
```

## Good
```python
from vllm.v1.attention.backend import AttentionMetadataBuilder, CommonAttentionMetadata
from vllm.v1.attention.backends.utils import get_dcp_local_seq_lens

class MyBuilder(AttentionMetadataBuilder):
    def build(self, prefix, meta: CommonAttentionMetadata):
        lens = meta.seq_lens.cpu()
        if self.dcp_world_size > 1:
            lens = get_dcp_local_seq_lens(lens, self.dcp_world_size, self.dcp_rank)
        pages = (lens + self.page_size - 1) // self.page_size
        return self.plan(pages, lens)
```

## How it is confirmed
The builder runs with requests of several pages; the pages it plans are compared with those the
rank holds.

## Known limits
Other quantities that are taken before (bounds, global positions, context lengths) are often meant
to be global, and are left alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dcplint.checks.base import Context, Rule
from dcplint.facts.expressions import shorten
from dcplint.facts.positions import position
from dcplint.findings.model import Evidence, Finding, Role, Severity
from dcplint.flow.definitions import bindings, definitions
from dcplint.flow.functions import Function, callee_name
from dcplint.flow.graph import Node
from dcplint.source.location import Tree
from dcplint.source.tree import walk
from dcplint.units.lattice import Counts, Space, Value
from dcplint.units.operations import DIVIDING

RULE = Rule(
    code="DCP304",
    name="use-before-localise",
    summary="flags page counts taken before the lengths are localised and used after",
    severity=Severity.ERROR,
    since="0.1.0",
    probe="the builder's page counts against the pages that the rank holds",
)

_LENGTHS = frozenset({Counts.SEQUENCE, Counts.CONTEXT, Counts.ROWS, Counts.OTHER})
_DIVIDES = re.compile(r"//|\b(?:" + "|".join(sorted(DIVIDING)) + r")\(")
_STEPS = 4  # variables in terms of variables


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding per page count that outlives the lengths it was taken from."""
    told: set[ast.stmt] = set()
    for function in _candidates(context):
        first = _first_division(function)
        for statement in function.homes:
            if first is None or statement.lineno < first:
                continue
            variable = _localised(context, function, statement)
            if variable is None:
                continue
            for derivation, use in _outdated(context, function, statement, variable):
                if derivation not in told:
                    told.add(derivation)
                    yield _finding(context, function, derivation, statement, use)


def _candidates(context: Context) -> Iterator[Function]:
    contract = context.contract
    names = {z.function.rpartition(".")[2] for z in contract.localizers}
    names |= {n.name for n in contract.lengths if n.unit == "local"}
    seen: set[Function] = set()
    for name in sorted(names):
        for spelling in sorted(context.program.spellings(frozenset({name}))):
            for function in context.fields.universe.mentioning(spelling, _DIVIDES):
                if function not in seen and function.module.tree is Tree.PROJECT:
                    seen.add(function)
                    yield function


def _first_division(function: Function) -> int | None:
    """The line of the first assignment of something divided and rounded up."""
    for statement in function.homes:
        if isinstance(statement, ast.Assign):
            for node in function.own_nodes[statement]:
                if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv):
                    if isinstance(node.left, (ast.BinOp, ast.UnaryOp)):
                        return statement.lineno
                if isinstance(node, ast.Call) and callee_name(node) in DIVIDING:
                    return statement.lineno
    return None


def _localised(context: Context, function: Function, statement: ast.stmt) -> str | None:
    """The variable that held global lengths and is given local ones, where only DCP does that."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target = statement.targets[0]
    if not isinstance(target, ast.Name) or not _is_for_dcp_alone(context, function, statement):
        return None
    after = context.units.value(function, statement, statement.value)
    if not _is_length(after, Space.LOCAL):
        return None
    before = context.units.value(function, statement, ast.Name(target.id, ast.Load()))
    return target.id if _is_length(before, Space.GLOBAL) else None


def _is_length(value: object, space: Space) -> bool:
    return isinstance(value, Value) and value.unit.space is space and value.unit.counts in _LENGTHS


def _is_for_dcp_alone(context: Context, function: Function, statement: ast.stmt) -> bool:
    scenario = context.fields.tracer.scenario
    home = function.homes[statement]
    while home.parent is not None:
        if isinstance(home.parent, ast.If) and home.block is home.parent.body:
            if scenario.is_exclusive(function, home.parent.test):
                return True
        home = function.homes[home.parent]
    return False


def _outdated(
    context: Context, function: Function, localised: ast.stmt, variable: str
) -> Iterator[tuple[ast.stmt, ast.Name]]:
    """(derivation, use) of page counts from the old value that are read after `localised`."""
    after = _after(function, localised)
    for place in function.graph.nodes:
        statement = place.statement
        if place not in after or not isinstance(statement, ast.stmt):
            continue
        if isinstance(statement, ast.Assert):
            continue
        for node in function.own_nodes.get(statement, ()):
            if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
                continue
            if node.id == variable:
                continue
            value = None
            for source in _reaching(context, function, place, node.id):
                derivation = source.statement
                if not isinstance(derivation, ast.Assign) or source in after:
                    continue
                if _is_for_dcp_alone(context, function, derivation):
                    continue
                if not _depends(function, source, derivation.value, variable):
                    continue
                value = value or context.units.value(function, derivation, derivation.value)
                if isinstance(value, Value) and value.unit.space is Space.GLOBAL:
                    if value.unit.counts is Counts.PAGES:
                        yield derivation, node


def _reaching(context: Context, function: Function, at: Node, name: str) -> Iterator[Node]:
    """The nodes that can have given a variable its value before `at`, with DCP on."""
    seen: set[Node] = set()
    queue = list(context.units.before(function, at))
    while queue:
        node = queue.pop()
        if node in seen:
            continue
        seen.add(node)
        if any(bound == name for bound, _ in bindings(node)):
            yield node
        else:
            queue += context.units.before(function, node)


def _after(function: Function, statement: ast.stmt) -> set[Node]:
    """The nodes that control can reach once a statement has run."""
    following: dict[Node, list[Node]] = {}
    for node in function.graph.nodes:
        for edge in node.before:
            following.setdefault(edge.source, []).append(node)
    found: set[Node] = set()
    queue = [n for start in function.graph.at(statement) for n in following.get(start, ())]
    while queue:
        node = queue.pop()
        if node not in found:
            found.add(node)
            queue += following.get(node, ())
    return found


def _depends(
    function: Function, at: Node, value: ast.expr, variable: str, steps: int = _STEPS
) -> bool:
    """Whether `value` is worked out from `variable`, by other variables too."""
    names = {n.id for n in walk(value) if isinstance(n, ast.Name)}
    if variable in names:
        return True
    return steps > 0 and any(
        given is not None and _depends(function, source, given, variable, steps - 1)
        for name in sorted(names & function.local_names)
        for given, source, _ in definitions(function, at, name)
    )


def _finding(
    context: Context, function: Function, derivation: ast.stmt, localised: ast.stmt, use: ast.Name
) -> Finding:
    def at(message: str, node: ast.AST, role: Role) -> Evidence:
        return Evidence(message, context.program.location(function.module, position(node)), role)

    return RULE.finding(
        f"`{function.qualname}` counts pages of global lengths in `{use.id}`, localises the "
        "lengths under DCP, and uses the count after that",
        context.program.location(function.module, position(derivation)),
        symbol=function.qualname,
        evidence=(
            at(f"under DCP the lengths become local: {shorten(localised)}", localised, Role.ORIGIN),
            at(f"`{use.id}` is used here", use, Role.CONSUMER),
        ),
    )
