"""An amount is asserted to be a multiple of the DCP size, and nothing makes it one.

## What it flags
`assert amount % dcp_world_size == 0`, or a `raise` where that is not so, here or in a function that
is called; where the amount, on some way that leads there with DCP on, is a quotient by what is
counted in the batch (`workspace // number_of_prefills`), not rounded since.

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
of a list, may be the configuration's, and always divide. Where the code asks for another remainder
of the amount, or catches what is raised, it may go another way: that is left alone. A function that
asserts it of what it is given is followed where its source is at hand.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dcplint.checks.base import Context, Rule
from dcplint.checks.even_demands import Demand, demands, is_asked_for
from dcplint.facts.expressions import shorten
from dcplint.facts.positions import position
from dcplint.findings.model import Evidence, Finding, Role, Severity
from dcplint.flow.definitions import definitions
from dcplint.flow.functions import Function, callee_name
from dcplint.flow.graph import Node
from dcplint.source.location import Tree
from dcplint.source.tree import walk
from dcplint.units.operations import loaded, operands

RULE = Rule(
    code="DCP309",
    name="uneven-amount",
    summary="flags amounts asserted to be multiples of the DCP size that nothing makes so",
    severity=Severity.WARNING,
    since="0.1.0",
    probe="none: it takes an engine's whole builder, with as many prefills as leave a remainder",
)

_COUNTING = ("sum(", "item(", "count_nonzero(")
_DIVIDING = re.compile(r"//|divmod\(|(?:int|floor|trunc)\([^\n]*/|(?:floor_divide|div)\(")
_COUNTS = frozenset({"sum", "item", "count_nonzero"})
_EITHER = frozenset({"min", "max"})
_FLOORS = frozenset({"int", "floor", "trunc"})
_STEPS = 4  # names in terms of names


@dataclass(frozen=True, slots=True)
class _Quotient:
    """`node`, a division that rounds down by a count, and what it goes by until it is asserted."""

    node: ast.BinOp
    through: tuple[ast.expr, ...]


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding per assertion that some batch breaks."""
    universe = context.fields.universe
    for function in dict.fromkeys(universe.matching(_seems_to_divide)):
        if function.module.tree is Tree.PROJECT and _divides_by_a_count(function):
            told: set[ast.stmt] = set()
            for demand in demands(universe, function):
                if demand.statement not in told and (found := _broken(context, function, demand)):
                    told.add(demand.statement)
                    yield _finding(context, function, demand, found)


def _seems_to_divide(text: str) -> bool:
    return any(word in text for word in _COUNTING) and _DIVIDING.search(text) is not None


def _divides_by_a_count(function: Function) -> bool:
    return any(
        _is_counted(function, at, divisor, _STEPS)
        for statement, nodes in function.own_nodes.items()
        for divisor in _divisors(statement, nodes)
        for at in function.graph.at(statement)
    )


def _broken(context: Context, function: Function, demand: Demand) -> _Quotient | None:
    """The quotient that is not always what is demanded of it."""
    tracer = context.fields.tracer
    if not tracer.scenario.is_size(function, demand.size):
        return None
    for place in function.graph.at(demand.statement):
        found = _quotient(context, function, place, demand.amount, _STEPS)
        if found is not None and tracer.can_run(function, demand.statement):
            amounts = (demand.amount, found.node.left, *found.through)
            return None if is_asked_for(function, amounts) else found
    return None


def _finding(context: Context, function: Function, demand: Demand, found: _Quotient) -> Finding:
    by, asserts = demand.by
    verb = "asserts" if by is function else f"has `{by.qualname}` assert"
    evidence = [
        Evidence(
            f"`{shorten(found.node.right)}` is counted in the batch",
            context.program.location(function.module, position(found.node)),
            Role.ORIGIN,
        )
    ]
    if by is not function:
        place = context.program.location(by.module, position(asserts))
        evidence.append(Evidence(f"`{by.qualname}` asserts it: {shorten(asserts)}", place))
    return RULE.finding(
        f"`{function.qualname}` {verb} that `{shorten(demand.amount)}` is a multiple of "
        f"`{shorten(demand.size)}`, and `{shorten(found.node)}` is one for some batches only",
        context.program.location(function.module, position(demand.statement)),
        symbol=function.qualname,
        evidence=tuple(evidence),
    )


def _quotient(
    context: Context, function: Function, place: Node, node: ast.expr, steps: int
) -> _Quotient | None:
    """A quotient by a count that `node` may be, as it stands."""
    division = _floored(node)
    if division is not None:
        scenario = context.fields.tracer.scenario
        names = (part for part in walk(node) if isinstance(part, (ast.Name, ast.Attribute)))
        if any(scenario.is_size(function, part) for part in names):
            return None
        if _is_counted(function, place, division.right, steps):
            return _Quotient(division, ())
    for at, value in _parts(function, place, node) if steps else ():
        found = _quotient(context, function, at, value, steps - 1)
        if found is not None:
            return _Quotient(found.node, (*found.through, value))
    return None


def _parts(function: Function, place: Node, node: ast.expr) -> Iterator[tuple[Node, ast.expr]]:
    """What `node` may be, or may be rounded down from."""
    if isinstance(node, ast.Name):
        for value, at, element in definitions(function, place, node.id):
            statement = at.statement
            if isinstance(statement, ast.AugAssign):
                whole = ast.BinOp(loaded(statement.target), statement.op, statement.value)
                yield at, ast.copy_location(whole, statement)
            elif value is not None and not element:
                yield at, value
            elif isinstance(value, ast.Call) and element == (0,):
                yield at, ast.copy_location(ast.Subscript(value, ast.Constant(0)), value)
    elif isinstance(node, ast.IfExp):
        yield from ((place, side) for side in (node.body, node.orelse))
    elif (division := _floored(node)) is not None:
        yield place, division.left
    elif isinstance(node, ast.Call) and callee_name(node) in {*_EITHER, "int"}:
        yield from ((place, argument) for argument in node.args)


def _floored(node: ast.expr) -> ast.BinOp | None:
    """A division that rounds down, however written."""
    if isinstance(node, ast.BinOp):
        return node if isinstance(node.op, ast.FloorDiv) else None
    given: list[ast.expr] = []
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Call):
        index = node.slice.value if isinstance(node.slice, ast.Constant) else None
        if callee_name(node.value) == "divmod" and index == 0:
            given = node.value.args
    elif isinstance(node, ast.Call):
        name = callee_name(node)
        whole = node.args[0] if name in _FLOORS and len(node.args) == 1 else None
        if isinstance(whole, ast.BinOp) and isinstance(whole.op, ast.Div):
            given = [whole.left, whole.right]
        elif name == "floor_divide" or (name == "div" and node.keywords):
            given = operands(node)
    if len(given) != 2:
        return None
    return ast.copy_location(ast.BinOp(given[0], ast.FloorDiv(), given[1]), node)


def _divisors(statement: ast.stmt, nodes: Iterable[ast.AST]) -> Iterator[ast.expr]:
    """By what a statement divides, rounding down."""
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.FloorDiv):
        yield statement.value
    for node in nodes:
        if isinstance(node, ast.Call) and callee_name(node) == "divmod":
            yield from node.args[1:]
        elif isinstance(node, ast.expr) and (division := _floored(node)) is not None:
            yield division.right


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
