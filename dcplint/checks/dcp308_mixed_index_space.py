"""The owner of a token is worked out for another layout than the cache has.

## What it flags
A test of a token's place (a position or a slot) against this rank that gives the owner when the
interleave size is 1 and another rank otherwise, in code that takes no interleave size, of an engine
that has one. The arithmetic is evaluated over places, world sizes and interleave sizes; the finding
shows the smallest case that differs.

## Why it breaks
With chunks of I tokens per rank, token `i` lives on rank `(i // I) % N`. Going by `i % N`, ranks
write tokens that others own and leave out their own: every one of them then attends over holes.

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
Names tell a place from other numbers; block and page numbers, whose layout is the block's, are left
alone. Whether a caller keeps the interleave size at 1 is looked for only in the function and its
class.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dcplint.checks.base import Context, Rule
from dcplint.checks.dcp303_open_coded_length import surroundings
from dcplint.facts.expressions import shorten
from dcplint.facts.positions import position
from dcplint.findings.model import Finding, Severity
from dcplint.flow.functions import Function
from dcplint.flow.universe import Universe
from dcplint.units.expressions import written
from dcplint.units.proof import OwnerExample, wrong_owner
from dcplint.units.roles import Role, role

RULE = Rule(
    code="DCP308",
    name="mixed-index-space",
    summary="flags owners of tokens worked out without the interleave size",
    severity=Severity.ERROR,
    since="0.1.0",
    probe="the backend's slot mapping, over interleave sizes, against the owner of each token",
)


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding per test for the owner that is right for an interleave size of 1 only."""
    if not context.contract.vocabulary.interleaves:
        return  # tokens go round one by one
    universe = Universe(context.program, context.program.find_ranked())
    seen: set[Function] = set()
    for rank in context.contract.vocabulary.ranks:
        for word in (rank, rank.upper()):
            for function in universe.mentioning(word):
                if function not in seen:
                    seen.add(function)
                    if "interleave" not in surroundings(context, function):
                        yield from _findings(context, function)


def _findings(context: Context, function: Function) -> Iterator[Finding]:
    told: set[str] = set()  # by what it says: a variable stands for its value wherever it is used
    for entry in written(function):
        for node in ast.walk(entry.meaning):
            example = _example(node)
            said = ast.dump(node) if example is not None else ""
            if example is not None and said not in told:
                told.add(said)
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
