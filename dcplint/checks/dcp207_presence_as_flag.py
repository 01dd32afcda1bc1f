"""Code takes the presence of a contract field to mean that DCP is on.

## What it flags
A branch of a builder or impl that is chosen by `field is not None` alone, with no test of the DCP
size beside it.

## Why it breaks
Where a producer drops the field, the branch for "no DCP" runs under DCP, and uses global lengths
on one shard. A test of the size, with the field asserted inside, would have failed at once.

## Bad
```python
from vllm.v1.attention.backend import AttentionMetadataBuilder, CommonAttentionMetadata


class MyBuilder(AttentionMetadataBuilder):
    def build(self, prefix_len, common: CommonAttentionMetadata):
        local = common.dcp_local_seq_lens
        if local is not None:
            return local
        return common.seq_lens
```

## Good
```python
from vllm.distributed.parallel_state import get_dcp_group
from vllm.v1.attention.backend import AttentionMetadataBuilder, CommonAttentionMetadata


class MyBuilder(AttentionMetadataBuilder):
    def build(self, prefix_len, common: CommonAttentionMetadata):
        if get_dcp_group().world_size > 1:
            assert common.dcp_local_seq_lens is not None
            return common.dcp_local_seq_lens
        return common.seq_lens
```

## How it is confirmed
The builder runs under DCP on a batch without the field: it goes on, with other metadata.

## Known limits
A flag that was set from the field's presence elsewhere is not followed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dcplint.checks.base import Context, Rule
from dcplint.facts.expressions import dotted_name
from dcplint.facts.positions import position
from dcplint.findings.model import Evidence, Finding, Role, Severity
from dcplint.flow.fields import Read
from dcplint.flow.functions import Function
from dcplint.flow.trace import Path, null_test
from dcplint.program.reach import refusing_impls

RULE = Rule(
    code="DCP207",
    name="presence-as-flag",
    summary="flags branches that take a contract field's presence to mean that DCP is on",
    severity=Severity.NOTE,
    since="0.1.0",
    probe="the builder under DCP on a batch without the field: does it go on?",
)


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding per function that branches on the field's presence."""
    flow = context.fields
    for field in flow.fields:
        told: set[Function] = set()
        for read in flow.consumers(field):
            function = read.function
            owner = function.owner
            if function in told or owner is None or refusing_impls(context.program, owner):
                continue
            branch = _branch(context, read)
            if branch is not None:
                told.add(function)
                yield _finding(context, read, branch)


def _branch(context: Context, read: Read) -> ast.If | None:
    """A statement that chooses by the presence of what was read, and by nothing else."""
    names = {read.path}
    if isinstance(read.statement, ast.Assign):
        names |= {
            tuple(dotted.split("."))
            for target in read.statement.targets
            if (dotted := dotted_name(target)) is not None
        }
    scenario = context.fields.tracer.scenario
    for node in read.function.homes:
        if not isinstance(node, ast.If) or scenario.truth(read.function, node.test) is not None:
            continue
        tested = null_test(node.test)
        if tested is None or tested[0] not in names or _fails(node, tested[1]):
            continue
        if not _only_slices(node, names) and not _is_under_size(context, read.function, node):
            return node
    return None


def _fails(node: ast.If, when_true: bool) -> bool:
    """Whether the branch without the field refuses: that is no silent answer."""
    without = node.body if when_true else node.orelse
    return bool(without) and isinstance(without[-1], ast.Raise)


def _only_slices(node: ast.If, names: set[Path]) -> bool:
    """`if x is not None: x = x[:n]` passes the field on and decides nothing."""
    return not node.orelse and all(
        isinstance(inner, ast.Assign)
        and all(tuple((dotted_name(t) or "").split(".")) in names for t in inner.targets)
        for inner in node.body
    )


def _is_under_size(context: Context, function: Function, node: ast.stmt) -> bool:
    """Whether a test of the DCP size decides before the branch is reached."""
    scenario = context.fields.tracer.scenario
    current: ast.stmt | None = node
    while current is not None:
        parent = function.homes[current].parent
        if isinstance(parent, ast.If) and scenario.truth(function, parent.test) is not None:
            return True
        current = parent
    return False


def _finding(context: Context, read: Read, branch: ast.If) -> Finding:
    program, module = context.program, read.function.module
    read_here = Evidence(
        f"{read.field.name} is read here",
        program.location(module, position(read.node)),
        Role.ORIGIN,
    )
    return RULE.finding(
        f"`{read.function.qualname}` takes {read.field.name} being there to mean that DCP is on: "
        "where a producer drops it, the branch without DCP runs instead of failing",
        program.location(module, position(branch.test)),
        symbol=read.function.qualname,
        evidence=(read_here,),
    )
