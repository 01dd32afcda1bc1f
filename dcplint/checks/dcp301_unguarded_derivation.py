"""Local lengths are derived once more by code that is handed them, DCP or not.

## What it flags
A builder or impl that makes this rank's lengths out of the batch's global ones, by the engine's
helper or by arithmetic of its own that is right, where no test of DCP stands on the way there and
the result does not go into the record's own field. The runner derives these lengths once per batch
and owes them to every consumer.

## Why it breaks
Without DCP each step pays for work that gives back what went in. With DCP there are two sources of
one quantity: the runner's follows what it knows (rejected drafts, padded rows, micro-batches), the
other follows whatever stands in the global lengths by then. And a runner that leaves the field out
is never noticed.

## Bad
```python
from vllm.v1.attention.backend import AttentionImpl, CommonAttentionMetadata
from vllm.v1.attention.backends.utils import get_dcp_local_seq_lens

class MyImpl(AttentionImpl):
    supports_dcp = True
    can_return_lse_for_decode = True

    def lens(self, meta: CommonAttentionMetadata):
        return get_dcp_local_seq_lens(
            meta.seq_lens, self.dcp_world_size, self.dcp_rank, self.interleave
        )
```

## Good
```python
from vllm.v1.attention.backend import AttentionImpl, CommonAttentionMetadata

class MyImpl(AttentionImpl):
    supports_dcp = True
    can_return_lse_for_decode = True

    def lens(self, meta: CommonAttentionMetadata):
        return meta.dcp_local_seq_lens if self.dcp_world_size > 1 else meta.seq_lens
```

## How it is confirmed
A layer that no rank shards, a draft's, is run where there is a DCP group: lengths that are derived
all the same leave tokens unread. Ragged shards over several ranks show a derivation that is not the
runner's. Where the two sources agree, nothing is to be seen.

## Known limits
Other quantities are derived by those who need them: the context alone, each query row's length, all
ranks' shares, bounds. A test that may stand for DCP, and a call that can't be followed, count as a
guard. A branch for a field that is None is DCP201's and DCP202's.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import takewhile

from dcplint.checks.base import Context, Rule
from dcplint.checks.length_evidence import runs_under_dcp, trail
from dcplint.contracts.model import ContractField
from dcplint.facts.positions import position
from dcplint.findings.model import Evidence, Finding, Location, Severity
from dcplint.flow.functions import Function
from dcplint.flow.graph import Edge
from dcplint.source.location import Tree
from dcplint.source.tree import walk
from dcplint.units.expressions import written
from dcplint.units.lattice import UNITS, Value
from dcplint.units.proof import counterexample, formula, local_lengths
from dcplint.units.ranks import Ranks
from dcplint.units.roles import Role, role

RULE = Rule(
    code="DCP301",
    name="unguarded-derivation",
    summary="flags local lengths that a consumer derives anew, whether DCP is on or not",
    severity=Severity.WARNING,
    since="0.1.0",
    probe="a layer that no rank shards beside the group, and ragged shards over several ranks",
)

_CALLERS = 3  # callers of callers
_CONSUMERS = frozenset({"impl", "builder"})
_DIVIDES = re.compile(r"//|%|divmod\(|div\(")

Derivation = tuple[ast.stmt, ast.expr, ast.expr]
"""A statement, the expression in it that gives local lengths, and the lengths it takes."""


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding per derivation that no guard keeps from running without DCP."""
    owed = next((f for f in context.fields.fields if f.localises), None)
    if owed is None:
        return
    told: set[ast.expr] = set()
    for function, (statement, node, length) in _derivations(context):
        if node in told or _is_stored(statement, node, owed):
            continue
        if not runs_under_dcp(context, function, statement):
            continue
        value = context.units.value(function, statement, length)
        if not isinstance(value, Value) or value.unit != UNITS["global"]:
            continue
        if _runs_without_dcp(context, function, statement, node, _CALLERS):
            told.add(node)
            yield _finding(context, function, node, value, owed)


def _derivations(context: Context) -> Iterator[tuple[Function, Derivation]]:
    program, universe = context.program, context.fields.universe
    names = frozenset(z.function.rpartition(".")[2] for z in context.contract.localizers)
    for spelling in sorted(program.spellings(names)):
        for site in universe.calls_of(spelling):
            if site.function.module.tree is Tree.PROJECT:
                length = context.units.localizers.sharded(site.function, site.call)
                if length is not None:
                    yield site.function, (site.statement, site.call, length)
    ranks = context.units.ranks
    for function in ranks.functions(_DIVIDES):
        owner = function.owner
        if function.module.tree is Tree.PROJECT and owner and program.roles(owner) & _CONSUMERS:
            yield from ((function, found) for found in _open_coded(function, ranks))


def _open_coded(function: Function, ranks: Ranks) -> Iterator[Derivation]:
    """The arithmetic of a function that is the local length, in all of its variables' values."""
    for entry in written(function, ranks):
        for node in local_lengths(entry.meaning):
            lengths = [n for n in walk(node) if isinstance(n, ast.expr) and role(n) is Role.LENGTH]
            known = lengths and formula(node) is not None
            if known and counterexample(node, False) is None:
                yield entry.statement, entry.node, lengths[0]


def _is_stored(statement: ast.stmt, node: ast.expr, owed: ContractField) -> bool:
    """Whether the result goes into the field that is owed: then this code is its producer."""
    if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        if any(_is_field(inner, owed) for target in targets for inner in walk(target)):
            return True
    return any(
        isinstance(inner, ast.keyword) and inner.arg == owed.name and node in walk(inner.value)
        for inner in walk(statement)
    )


def _is_field(node: ast.AST, owed: ContractField) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == owed.name


# Whether it runs with DCP off, and nothing on the way may be a guard


def _runs_without_dcp(
    context: Context, function: Function, statement: ast.stmt, node: ast.expr, depth: int
) -> bool:
    scenario = context.fields.tracer_without_dcp.scenario
    if not scenario.can_run(function, statement):
        return False
    inside = list(_around(statement, node))
    if any(scenario.truth(function, test) is (not holds) for test, holds in inside):
        return False
    tests = [*_deciding(function, statement), *(test for test, _ in inside)]
    if any(_may_guard(context, function, statement, test) for test in tests):
        return False
    sites = context.fields.universe.callers(function)
    if _is_asked_for(context, function) or not sites:
        return True
    return depth > 0 and any(
        _runs_without_dcp(context, site.function, site.statement, site.call, depth - 1)
        for site in sites
    )


def _deciding(function: Function, statement: ast.stmt) -> Iterator[ast.expr]:
    """The tests that must come out one way for a statement to run."""
    graph = function.graph
    places = graph.at(statement)
    tests = {edge.test: None for node in graph.nodes for edge in node.before if edge.test}
    for test in tests:
        for outcome in (True, False):

            def takes(edge: Edge, test: ast.expr = test, outcome: bool = outcome) -> bool:
                return edge.test is not test or edge.holds is outcome

            if not graph.reachable(takes).intersection(places):
                yield test
                break


def _around(statement: ast.stmt, node: ast.expr) -> Iterator[tuple[ast.expr, bool]]:
    """The tests inside a statement that decide whether it evaluates `node`, and how."""
    for inner in walk(statement):
        if isinstance(inner, ast.IfExp):
            for side in (inner.body, inner.orelse):
                if node in walk(side):
                    yield inner.test, side is inner.body
        elif isinstance(inner, ast.BoolOp):
            for before in takewhile(lambda value: node not in walk(value), inner.values):
                if node in walk(inner):
                    yield before, isinstance(inner.op, ast.And)


def _may_guard(context: Context, function: Function, statement: ast.stmt, test: ast.expr) -> bool:
    """Whether a test may tell whether DCP is on: not where it is about what the batch holds."""
    if context.fields.tracer_without_dcp.scenario.truth(function, test) is not None:
        return False  # known, and it lets control through
    if isinstance(test, ast.BoolOp):
        return any(_may_guard(context, function, statement, part) for part in test.values)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _may_guard(context, function, statement, test.operand)
    if not isinstance(test, ast.Compare):
        return True
    sides = [test.left, *test.comparators]
    if any(isinstance(side, ast.Constant) and side.value == 0 for side in sides):
        return any(isinstance(side, ast.Constant) and side.value is None for side in sides)
    return not any(
        isinstance(context.units.value(function, statement, side), Value) for side in sides
    )


def _is_asked_for(context: Context, function: Function) -> bool:
    """Whether the engine itself calls a method: a base that plays a role has it too."""
    owner = function.owner
    if owner is None or function.outer is not None:
        return False
    for entry in context.program.mro(owner).classes[1:]:
        if context.program.is_engine_base(entry):
            if any(method.name == function.node.name for method in entry.facts.methods):
                return True
    return False


def _finding(
    context: Context, function: Function, node: ast.expr, value: Value, owed: ContractField
) -> Finding:
    owner = f"{owed.record.rpartition('.')[2]}.{owed.name}"
    place = Location(owed.source.pack, owed.source.line, tree=Tree.PACK)
    return RULE.finding(
        f"`{function.qualname}` derives this rank's lengths from the global ones, whether DCP is "
        f"on or not; under DCP the runner hands them over in `{owner}`",
        context.program.location(function.module, position(node)),
        symbol=function.qualname,
        evidence=(
            *trail(context, value),
            Evidence(f"{owner}: {owed.summary} ({owed.source.text})", place),
        ),
    )
