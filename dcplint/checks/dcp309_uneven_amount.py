"""An amount is asserted to be a multiple of the DCP size, and nothing makes it one.

## What it flags
`assert amount % dcp_world_size == 0` where the amount, on some way that leads there with DCP on, is
a quotient by what is counted in the batch (`workspace // number_of_prefills`), not rounded since.

## Why it breaks
Ranks deal out a chunk of the context evenly. With one number of requests it divides, with the next
it does not: the engine dies of the assertion under load, on all ranks at once.

## Bad
```python
from vllm.distributed.parallel_state import get_dcp_group
from vllm.v1.attention.backend import AttentionMetadataBuilder

class MyBuilder(AttentionMetadataBuilder):
    def chunk(self, context_lens, workspace):
        dcp_world_size = get_dcp_group().world_size
        requests = int((context_lens > 0).sum())
        chunk = workspace // requests
        assert chunk % dcp_world_size == 0
        return chunk
```

## Good
```python
from vllm.distributed.parallel_state import get_dcp_group
from vllm.v1.attention.backend import AttentionMetadataBuilder

class MyBuilder(AttentionMetadataBuilder):
    def chunk(self, context_lens, workspace):
        dcp_world_size = get_dcp_group().world_size
        requests = int((context_lens > 0).sum())
        chunk = workspace // requests // dcp_world_size * dcp_world_size
        assert chunk % dcp_world_size == 0
        return chunk
```

## How it is confirmed
The builder, with as many prefills as make the quotient odd.

## Known limits
Only what is summed or counted in a tensor is known to vary with the batch: a shape, or the length
of a list, may be the configuration's, and always divide. What reaches the assertion through a call
is left alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dcplint.checks.base import Context, Rule
from dcplint.facts.expressions import shorten
from dcplint.facts.positions import position
from dcplint.findings.model import Evidence, Finding, Role, Severity
from dcplint.flow.functions import Function, callee_name
from dcplint.flow.graph import Node
from dcplint.flow.scenario import Scenario
from dcplint.flow.walk import definitions
from dcplint.source.location import Tree
from dcplint.source.tree import walk

RULE = Rule(
    code="DCP309",
    name="uneven-amount",
    summary="flags amounts asserted to be multiples of the DCP size that nothing makes so",
    severity=Severity.WARNING,
    since="0.1.0",
    probe="none: it takes an engine's whole builder, with as many prefills as leave a remainder",
)

_ASSERTS = re.compile(r"\bassert\b[^%]*%")
_COUNTS = frozenset({"sum", "item", "numel", "count_nonzero"})
_EITHER = frozenset({"min", "max"})
_STEPS = 4  # names in terms of names


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding per assertion that some batch breaks."""
    for function in dict.fromkeys(context.fields.universe.matching(_ASSERTS.search)):
        if function.module.tree is not Tree.PROJECT:
            continue
        for statement in function.homes:
            if isinstance(statement, ast.Assert):
                for remainder in _remainders(statement.test):
                    yield from _findings(context, function, statement, remainder)


def _remainders(test: ast.expr) -> Iterator[ast.BinOp]:
    """The `x % n` that a test wants to be 0."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        for part in test.values:
            yield from _remainders(part)
        return
    found: ast.expr | None = None
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        found = test.operand
    elif isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq):
        last = test.comparators[-1]
        if isinstance(last, ast.Constant) and last.value == 0:
            found = test.left
    if isinstance(found, ast.BinOp) and isinstance(found.op, ast.Mod):
        yield found


def _findings(
    context: Context, function: Function, statement: ast.Assert, remainder: ast.BinOp
) -> Iterator[Finding]:
    scenario = context.fields.tracer.scenario
    if not scenario.is_size(function, remainder.right) or _is_seen_to(
        scenario, function, remainder
    ):
        return
    if not context.fields.tracer.can_run(function, statement):
        return
    for place in function.graph.at(statement):
        quotient = _quotient(context, function, place, remainder.left, _STEPS)
        if quotient is not None:
            yield RULE.finding(
                f"`{function.qualname}` asserts that `{shorten(remainder.left)}` is a multiple of "
                f"`{shorten(remainder.right)}`, and `{shorten(quotient)}` is one for some batches "
                "only",
                context.program.location(function.module, position(statement)),
                symbol=function.qualname,
                evidence=(
                    Evidence(
                        f"`{shorten(quotient.right)}` is counted in the batch",
                        context.program.location(function.module, position(quotient)),
                        Role.ORIGIN,
                    ),
                ),
            )
            return


def _is_seen_to(scenario: Scenario, function: Function, remainder: ast.BinOp) -> bool:
    """Whether the same remainder is looked at elsewhere: to round, or to go another way."""
    amount = ast.dump(remainder.left)
    return any(
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Mod)
        and node is not remainder
        and ast.dump(node.left) == amount
        and scenario.is_size(function, node.right)
        for nodes in function.own_nodes.values()
        for node in nodes
    )


def _quotient(
    context: Context, function: Function, place: Node, node: ast.expr, steps: int
) -> ast.BinOp | None:
    """A quotient by a count that `node` may be, as it stands."""
    parts: list[tuple[Node, ast.expr]] = []
    if isinstance(node, ast.Name):
        parts += [
            (at, value)
            for value, at, element in definitions(function, place, node.id)
            if value is not None and not element
        ]
    elif isinstance(node, ast.IfExp):
        parts += [(place, node.body), (place, node.orelse)]
    elif isinstance(node, ast.Call) and callee_name(node) in {*_EITHER, "int"}:
        parts += [(place, argument) for argument in node.args]
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv):
        scenario = context.fields.tracer.scenario
        names = (part for part in walk(node) if isinstance(part, (ast.Name, ast.Attribute)))
        if any(scenario.is_size(function, part) for part in names):
            return None
        return node if _is_counted(function, place, node.right, steps) else None
    for at, value in parts if steps else ():
        found = _quotient(context, function, at, value, steps - 1)
        if found is not None:
            return found
    return None


def _is_counted(function: Function, place: Node, node: ast.expr, steps: int) -> bool:
    """Whether a number is counted in tensors of the batch, wherever it comes from."""
    if isinstance(node, ast.Call):
        if callee_name(node) in {*_EITHER, "int"}:
            return any(_is_counted(function, place, argument, steps) for argument in node.args)
        return callee_name(node) in _COUNTS
    if not isinstance(node, ast.Name) or not steps:
        return False
    found = list(definitions(function, place, node.id))
    return bool(found) and all(
        value is not None and not element and _is_counted(function, at, value, steps - 1)
        for value, at, element in found
    )
