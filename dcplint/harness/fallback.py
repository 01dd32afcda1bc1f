"""Whether a branch that stands in for a missing contract field is ever taken, and what it hides.

The real builder runs on batches as the runner makes them, while every executed instruction is
noted; then the field is set to None and the builder runs again.
"""

from __future__ import annotations

import ast
import dataclasses
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import torch

from dcplint.harness.contract import CommonAttentionMetadata
from dcplint.harness.driver import Driver, Placement
from dcplint.harness.model import Batch, Topology
from dcplint.harness.probes import geometry_for
from dcplint.harness.ranks import EmulatedGroup, emulate
from dcplint.harness.shard import Shard
from dcplint.harness.workload import common_metadata, make_workload, pages_needed, place

Span = tuple[
    int, int, int, int
]  # first line, first column, last line, end column; columns in bytes

_BATCHES = (
    Batch((149, 97, 65), (1, 1, 1)),
    Batch((63, 8, 1), (1, 1, 1)),
    Batch((64, 128), (1, 1), padding=2),
    Batch((67, 9, 40), (5, 9, 1)),
)


@dataclasses.dataclass(frozen=True, slots=True)
class Reach:
    """What was seen. without: `same`, `changed`, or the exception that a None field leads to."""

    builds: int
    taken: int
    without: str


def branch_at(source: str, line: int, column: int) -> Span:
    """The part that runs where the condition at `line`, `column` (1-based) finds None.

    Raises LookupError where no condition starts there or it does not compare with None.
    """
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.If | ast.IfExp):
            continue
        test = node.test
        if (test.lineno, test.col_offset + 1) != (line, column):
            continue
        branch: Any = node.body if _asks_for_none(test) else node.orelse
        parts: list[ast.stmt | ast.expr] = branch if isinstance(branch, list) else [branch]
        if parts:
            first, last = parts[0], parts[-1]
            return first.lineno, first.col_offset, last.end_lineno or 0, last.end_col_offset or 0
    raise LookupError(f"no condition on None starts at {line}:{column}")


def _asks_for_none(test: ast.expr) -> bool:
    """Whether the condition holds for None; raises LookupError where that is not plain."""
    for node in ast.walk(test):
        if isinstance(node, ast.Compare) and isinstance(node.comparators[0], ast.Constant):
            if node.comparators[0].value is None and isinstance(node.ops[0], ast.Is):
                return True
            if node.comparators[0].value is None and isinstance(node.ops[0], ast.IsNot):
                return False
    raise LookupError("the condition does not compare with None")


def probe_fallback(
    driver: Driver, target: type, path: Path, line: int, column: int, field: str, world_size: int
) -> Reach:
    """Run the builder for every rank and batch. Raises LookupError, see `branch_at`."""
    span = branch_at(path.read_text(encoding="utf-8"), line, column)
    geometry = geometry_for(driver.claims(target))
    totals = Reach(0, 0, "same")
    for interleave in (1, 16):
        topology = Topology(world_size, interleave)

        def program(group: EmulatedGroup, topology: Topology = topology) -> list[Reach]:
            shard = Shard(group.rank, topology)
            placement = Placement(
                dcp_rank=group.rank,
                dcp_world_size=world_size,
                interleave=topology.interleave,
                group=group,
                dtype=torch.float32,
                device="cpu",
                num_pages=pages_needed(_BATCHES, geometry, shard),
                sinks=None,
            )
            subject = driver.make(target, geometry, placement)
            found = []
            for seed, batch in enumerate(_BATCHES):
                workload = make_workload(batch, geometry, torch.float32, "cpu", seed)
                layout = place(batch, geometry, shard, placement.num_pages, seed)
                common = common_metadata(workload, layout, shard, sharded=True)
                with _executed(path, span) as hits:
                    given = subject.metadata(common)
                taken = int(bool(hits))
                given = _copied(given)
                found.append(Reach(1, taken, _without(subject, common, field, given)))
            return found

        for result in emulate(world_size, program):
            if isinstance(result, BaseException):
                raise result
            for reach in result:
                totals = _added(totals, reach)
    return totals


def _added(total: Reach, reach: Reach) -> Reach:
    without = total.without if reach.without == "same" else reach.without
    return Reach(total.builds + reach.builds, total.taken + reach.taken, without)


def _without(subject: Any, common: CommonAttentionMetadata, field: str, given: Any) -> str:
    try:
        emptied = dataclasses.replace(common)
        setattr(emptied, field, None)
        got = subject.metadata(emptied)
    except Exception as error:
        return type(error).__name__
    return "same" if _same(given, got) else "changed"


def _copied(metadata: Any) -> dict[str, Any]:
    return {
        name: value.clone() if isinstance(value, torch.Tensor) else value
        for name, value in _fields(metadata).items()
    }


def _fields(metadata: Any) -> dict[str, Any]:
    if dataclasses.is_dataclass(metadata):
        return {f.name: getattr(metadata, f.name) for f in dataclasses.fields(metadata)}
    return dict(vars(metadata))


def _same(given: dict[str, Any], metadata: Any) -> bool:
    got = _fields(metadata)
    return given.keys() == got.keys() and all(_equal(given[n], got[n]) for n in given)


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return one.shape == other.shape and torch.equal(one, other)
    return bool(one == other)


@contextmanager
def _executed(path: Path, span: Span) -> Iterator[set[int]]:
    """Instructions of `path` inside `span` that run meanwhile, by their line."""
    name = str(path)
    hits: set[int] = set()

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename != name:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and _inside(frame.f_code, frame.f_lasti, span):
            hits.add(frame.f_lineno)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield hits
    finally:
        sys.settrace(before)


def _inside(code: CodeType, offset: int, span: Span) -> bool:
    if sys.version_info < (3, 11):
        # Only lines are known, so a conditional expression within one line counts as taken.
        lines = [line for start, end, line in code.co_lines() if start <= offset < end]
        return bool(lines) and lines[0] is not None and span[0] <= lines[0] <= span[2]
    positions = list(code.co_positions())[offset // 2]
    line, end_line, column, end_column = positions
    if line is None or end_line is None or column is None or end_column is None:
        return False
    return (span[0], span[1]) <= (line, column) and (end_line, end_column) <= (span[2], span[3])
