"""Whether a branch that stands in for a missing contract field is ever taken, and what it hides.

The real builder runs on batches as the runner makes them, while every executed instruction is
noted; then it runs again without the field, and with the value that it is owed.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import torch

from dcplint.harness.driver import Driver, Placement, Subject
from dcplint.harness.model import Batch, Topology
from dcplint.harness.probes import geometry_for
from dcplint.harness.ranks import EmulatedGroup, emulate
from dcplint.harness.shard import Shard
from dcplint.harness.workload import common_metadata, make_workload, pages_needed, place

Span = tuple[int, int, int, int]
"""First line, first column, last line, end column; lines from 1, columns in bytes from 0."""

NOWHERE = (0, 0, 0, 0)

_BATCHES = (
    Batch((149, 97, 65), (1, 1, 1)),
    Batch((63, 8, 1), (1, 1, 1)),
    Batch((64, 128), (1, 1), padding=2),
    Batch((67, 9, 40), (5, 9, 1)),
)


@dataclasses.dataclass(frozen=True, slots=True)
class Reach:
    """What was seen.

    taken: builds that came into the branch. missing: builds that the field reached as None.
    failed: what the build failed with, if it did. without: what the builder makes where the field
    is None, and filled: where it is what the runner owes; `same`, `changed`, or an exception.
    """

    builds: int
    taken: int
    missing: int
    failed: str
    without: str
    filled: str


def branch_at(source: str, line: int, column: int) -> Span:
    """The part that runs where the condition at `line`, `column` (1-based) finds None.

    Raises LookupError where no condition starts there, it does not compare with None, or nothing
    runs then.
    """
    for block in _blocks(ast.parse(source)):
        for index, statement in enumerate(block):
            for node in _conditions(statement):
                test = node.values[0] if isinstance(node, ast.BoolOp) else node.test
                if (test.lineno, test.col_offset + 1) == (line, column):
                    parts = _where_none(node, block[index + 1 :])
                    if not parts:
                        raise LookupError("nothing runs where the condition finds None")
                    first, last = parts[0], parts[-1]
                    end = (last.end_lineno or 0, last.end_col_offset or 0)
                    return first.lineno, first.col_offset, *end
    raise LookupError(f"no condition on None starts at {line}:{column}")


def _blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for _, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                yield value


def _conditions(statement: ast.stmt) -> Iterator[ast.If | ast.IfExp | ast.BoolOp]:
    """The statement itself and the conditional expressions in it."""
    if isinstance(statement, ast.If):
        yield statement
    for node in ast.walk(statement):
        if isinstance(node, ast.IfExp) or (
            isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or)
        ):
            yield node


def _where_none(
    node: ast.If | ast.IfExp | ast.BoolOp, following: list[ast.stmt]
) -> list[ast.stmt] | list[ast.expr]:
    """What runs for None; behind an `if x is not None` that leaves, what follows it."""
    if isinstance(node, ast.BoolOp):
        return node.values[1:]
    for_none = _asks_for_none(node.test)
    if isinstance(node, ast.IfExp):
        return [node.body if for_none else node.orelse]
    if for_none:
        return node.body
    leaves = isinstance(node.body[-1], ast.Return | ast.Raise | ast.Continue)
    return node.orelse or (following if leaves else [])


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
    driver: Driver, target: type, path: Path, span: Span, field: str, world_size: int
) -> Reach:
    """Run the builder for every rank and batch, and see whether it comes into `span` of `path`."""
    geometry = geometry_for(driver.claims(target))
    totals = Reach(0, 0, 0, "", "same", "same")
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
                found.append(_build(subject, common, path, span, field))
            return found

        for result in emulate(world_size, program):
            if isinstance(result, BaseException):
                raise result
            for reach in result:
                totals = _added(totals, reach)
    return totals


def _build(subject: Subject, common: Any, path: Path, span: Span, field: str) -> Reach:
    """One batch: as the runner makes it, then without the field, then with what is owed."""
    failed, given = "", None
    with _executed(path, span) as hits, _arriving(type(subject.builder), field) as arrived:
        try:
            given = _copied(subject.metadata(common))
        except Exception as error:
            failed = type(error).__name__
    taken, missing = int(bool(hits)), int(None in arrived)
    if given is None:
        return Reach(1, taken, missing, failed, "same", "same")
    return Reach(
        builds=1,
        taken=taken,
        missing=missing,
        failed="",
        without=_rebuilt(subject, common, field, None, given),
        filled=_rebuilt(subject, common, field, getattr(common, field), given),
    )


def _added(total: Reach, reach: Reach) -> Reach:
    return Reach(
        builds=total.builds + reach.builds,
        taken=total.taken + reach.taken,
        missing=total.missing + reach.missing,
        failed=total.failed or reach.failed,
        without=total.without if reach.without == "same" else reach.without,
        filled=total.filled if reach.filled == "same" else reach.filled,
    )


@contextmanager
def _arriving(builder: type, field: str) -> Iterator[list[Any]]:
    """What the field is in everything that `build` is called with, an inherited one included."""
    arrived: list[Any] = []
    owners: list[Any] = [cls for cls in builder.__mro__ if "build" in vars(cls)]
    originals = [vars(cls)["build"] for cls in owners]

    def watched(build: Callable[..., Any]) -> Callable[..., Any]:
        def watch(self: Any, *arguments: Any, **options: Any) -> Any:
            records = (*arguments, *options.values())
            arrived.extend(getattr(r, field) for r in records if hasattr(r, field))
            return build(self, *arguments, **options)

        return watch

    for cls, build in zip(owners, originals, strict=True):
        cls.build = watched(build)
    try:
        yield arrived
    finally:
        for cls, build in zip(owners, originals, strict=True):
            cls.build = build


def _rebuilt(subject: Subject, common: Any, field: str, value: Any, given: dict[str, Any]) -> str:
    """What becomes of the metadata where the builder is given `value` for the field."""
    builder = subject.builder
    build = builder.build

    def build_from(*arguments: Any, **options: Any) -> Any:
        return build(
            *(_replaced(a, field, value) for a in arguments),
            **{name: _replaced(o, field, value) for name, o in options.items()},
        )

    builder.build = build_from
    try:
        got = subject.metadata(common)
    except Exception as error:
        return type(error).__name__
    finally:
        del builder.build
    return "same" if _same(given, got) else "changed"


def _replaced(record: Any, field: str, value: Any) -> Any:
    if not hasattr(record, field):
        return record
    changed = copy.copy(record)
    setattr(changed, field, value)
    return changed


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
