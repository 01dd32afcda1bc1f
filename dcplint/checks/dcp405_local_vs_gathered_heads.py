"""A buffer has room for this rank's heads, and the query has those of every rank.

## What it flags
An impl whose query arrives gathered over the heads of all ranks, and which under DCP
- returns an output or LSE from a buffer that is sized by its own number of heads,
- hands such a buffer to the same call as the query,
- gives the query a shape by its own number of heads, or keeps only that many heads of a result.

And, anywhere, a number of heads that is multiplied by the DCP size though it has been before.

## Why it breaks
The kernel writes past the buffer, or the merge gets the heads of one rank in place of all. A view
of the gathered query by local heads has more rows than requests, and no error says so. A kernel
that is planned for N times the heads there are takes N times the memory, and may not start.

## Bad
```python
class MyImpl(MLACommonImpl):
    supports_dcp = True
    can_return_lse_for_decode = True

    def forward_mqa(self, q, kv_c_and_k_pe_cache, attn_metadata, layer):
        out = torch.empty(q.shape[0], self.num_heads, self.kv_lora_rank, dtype=q.dtype)
        lse = kernel(q, kv_c_and_k_pe_cache, attn_metadata, out)
        return out, lse
```

## Good
```python
class MyImpl(MLACommonImpl):
    supports_dcp = True
    can_return_lse_for_decode = True

    def forward_mqa(self, q, kv_c_and_k_pe_cache, attn_metadata, layer):
        out = torch.empty(q.shape[0], q.shape[1], self.kv_lora_rank, dtype=q.dtype)
        lse = kernel(q, kv_c_and_k_pe_cache, attn_metadata, out)
        return out, lse
```

## How it is confirmed
The impl decodes with two heads per rank: the shapes of what comes back.

## Known limits
Sizes are compared by the names that they come from, not by arithmetic: a number of heads that is
computed from local ones (padded, rounded) is unknown. Head sizes of K and V are not told apart.
Only queries that the engine gathers are known to be gathered.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from dcplint.checks.base import Context, Rule
from dcplint.facts.expressions import dotted_name, shorten
from dcplint.facts.positions import position
from dcplint.findings.model import Evidence, Finding, Role, Severity
from dcplint.flow.dispatch import receiver_name
from dcplint.flow.functions import Function, callee_name
from dcplint.flow.graph import Node
from dcplint.flow.origins import Frame, Origin
from dcplint.flow.outputs import Owed
from dcplint.flow.scenario import Meaning
from dcplint.flow.tensors import is_made, sizes
from dcplint.source.location import Tree
from dcplint.source.tree import walk

RULE = Rule(
    code="DCP405",
    name="local-vs-gathered-heads",
    summary="flags buffers sized by this rank's heads that meet a query with every rank's",
    severity=Severity.ERROR,
    since="0.1.0",
    probe="the shapes of output and LSE, with two heads per rank",
)

_STEPS = 4  # names in terms of names
_SHAPING = frozenset({"view", "reshape"})
_HEADS = re.compile(r"(?:\b|_)(?:q_?|qo_?|kv_?)?heads?\w*(?:\(|\Z)")
_TIMES_HEADS = re.compile(r"(?s)head.*\*|\*.*head")


@dataclass(frozen=True, slots=True)
class _Fault:
    """An expression that counts local heads. meets: what it meets, in words."""

    owed: Owed
    frame: Frame
    node: ast.expr
    size: ast.expr
    meets: str


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding per expression that counts local heads where all are due."""
    told: set[ast.expr] = set()
    for owed in context.outputs.owed:
        if owed.output.query is not None:
            for fault in _Heads(context, owed).faults():
                if fault.node not in told:
                    told.add(fault.node)
                    yield _finding(context, fault)
    yield from _multiplied_twice(context)


@dataclass(frozen=True)
class _Heads:
    """One impl's method with its gathered query."""

    context: Context
    owed: Owed

    def faults(self) -> Iterator[_Fault]:
        """In what it returns, then in the calls that it makes."""
        outputs = self.context.outputs
        for element, what in ((0, "the output"), (self.owed.output.element, "the LSE")):
            for origin in outputs.returned(self.owed, element) or ():
                yield from self._returned(origin, what)
        method = self.owed.method
        if not any(name in method.mentions for name in self._words):
            return
        reachable = outputs.scenario.reachable(method)
        frame = Frame(method)
        for statement, made in method.calls.items():
            for place in method.graph.at(statement):
                if place in reachable and outputs.refused.allows(self.owed.symbol, frame, place):
                    for call in made:
                        yield from self._call(frame, place, call)

    @property
    def _words(self) -> tuple[str, ...]:
        return self.context.contract.vocabulary.heads

    def _returned(self, origin: Origin, what: str) -> Iterator[_Fault]:
        frame, place = origin.frame, origin.place
        if isinstance(origin.node, ast.Call):
            size = self._local_size(frame, place, origin.node)
            if size is not None:
                yield _Fault(self.owed, frame, origin.node, size, f"and is {what}")
        for operation in origin.done:
            if isinstance(operation, ast.Subscript):
                for part in walk(operation.slice):
                    bound = part.upper if isinstance(part, ast.Slice) else None
                    if bound is not None and self._is_local(frame, place, bound):
                        yield _Fault(self.owed, frame, operation, bound, f"of {what}")

    def _call(self, frame: Frame, place: Node, call: ast.Call) -> Iterator[_Fault]:
        callee = call.func
        if isinstance(callee, ast.Attribute) and callee.attr in _SHAPING:
            sizes_ = _unpacked(call.args)
            local = [size for size in sizes_ if self._is_local(frame, place, size)]
            if local and self._is_query(frame, place, callee.value):
                yield _Fault(self.owed, frame, call, local[0], "of the query")
            return
        operands = [*call.args, *(keyword.value for keyword in call.keywords)]
        if not any(self._is_query(frame, place, operand) for operand in operands):
            return
        origins = self.context.outputs.origins(self.owed.symbol)
        for operand in operands:
            for origin in origins.before(frame, place, operand) or ():
                if isinstance(origin.node, ast.Call):
                    size = self._local_size(origin.frame, origin.place, origin.node)
                    if size is not None:
                        meets = f"and meets the query in `{callee_name(call)}`"
                        yield _Fault(self.owed, origin.frame, origin.node, size, meets)

    def _local_size(self, frame: Frame, place: Node, node: ast.Call) -> ast.expr | None:
        given = sizes(node) if is_made(node) else None
        return next((s for s in given or () if self._is_local(frame, place, s)), None)

    def _is_local(self, frame: Frame, place: Node, size: ast.expr) -> bool:
        """Whether a size is this rank's number of heads, on every way that it comes about."""
        if not isinstance(size, (ast.Name, ast.Attribute)):
            return False
        found = self.context.outputs.origins(self.owed.symbol).before(frame, place, size)
        return bool(found) and all(self._is_own_heads(origin) for origin in found or ())

    def _is_own_heads(self, origin: Origin) -> bool:
        dotted = dotted_name(origin.node) if origin.node is not None else None
        own = receiver_name(origin.function)
        return not origin.done and dotted in {f"{own}.{word}" for word in self._words}

    def _is_query(self, frame: Frame, place: Node, node: ast.expr) -> bool:
        """Whether a tensor is the gathered query, whole or in parts, on every way."""
        if isinstance(node, ast.Constant) or self.owed.output.query is None:
            return False
        found = self.context.outputs.origins(self.owed.symbol).before(frame, place, node)
        query = self.owed.method.parameters[1:][self.owed.output.query]
        return bool(found) and all(
            isinstance(origin.node, ast.Name)
            and origin.node.id == query
            and origin.function is self.owed.method
            for origin in found or ()
        )


def _unpacked(args: list[ast.expr]) -> list[ast.expr]:
    only = args[0] if len(args) == 1 else None
    return only.elts if isinstance(only, (ast.Tuple, ast.List)) else args


def _finding(context: Context, fault: _Fault) -> Finding:
    program, function = context.program, fault.frame.function
    place = program.location(function.module, position(fault.node))
    if place.tree is not Tree.PROJECT:
        place = program.location_of(fault.owed.symbol)
    method = fault.owed.method
    takes = program.location(method.module, position(method.node.args.args[1]))
    return RULE.finding(
        f"`{shorten(fault.node)}` counts only this rank's heads (`{shorten(fault.size)}`) "
        f"{fault.meets}; under DCP the query has the heads of every rank",
        place,
        symbol=function.qualname,
        evidence=(
            Evidence(f"{method.qualname} takes the gathered query here", takes, Role.ORIGIN),
        ),
    )


# Numbers of heads that have been multiplied by the DCP size before


def _multiplied_twice(context: Context) -> Iterator[Finding]:
    for function in dict.fromkeys(context.fields.universe.matching(_TIMES_HEADS.search)):
        if function.module.tree is not Tree.PROJECT:
            continue
        for statement, nodes in function.own_nodes.items():
            for node in [n for n in nodes if isinstance(n, ast.BinOp)]:
                heads = _gathered(context, function, node)
                before = _before(context, function, heads) if heads is not None else ()
                if heads is not None and before and isinstance(statement, ast.stmt):
                    if context.fields.tracer.can_run(function, statement):
                        yield _twice(context, function, node, heads, before)


def _gathered(context: Context, function: Function, node: ast.AST) -> ast.expr | None:
    """What a product with the DCP size multiplies, where it is a number of heads."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return None
    scenario = context.fields.tracer.scenario
    for heads, size in ((node.left, node.right), (node.right, node.left)):
        if _HEADS.search(ast.unparse(heads)) and scenario.is_size(function, size):
            return heads
    return None


def _before(context: Context, function: Function, heads: ast.expr) -> tuple[Meaning, ...]:
    """The products with the DCP size that a number of heads is; none where it may be another."""
    found = []
    queue = [(*meaning, _STEPS) for meaning in _meanings(context, function, heads)]
    for where, value, steps in queue:  # grows as it is read
        if _gathered(context, where, value) is not None:
            found.append((where, value))
        elif steps and (further := _meanings(context, where, value)):
            queue += [(*meaning, steps - 1) for meaning in further]
        else:
            return ()
    return tuple(found)


def _meanings(context: Context, function: Function, node: ast.expr) -> list[Meaning]:
    return context.fields.tracer.scenario.meanings(function, node)


def _twice(
    context: Context,
    function: Function,
    node: ast.AST,
    heads: ast.expr,
    before: tuple[Meaning, ...],
) -> Finding:
    program = context.program
    return RULE.finding(
        f"`{shorten(node)}` multiplies a number of heads by the DCP size that has been multiplied "
        f"before: `{shorten(heads)}` is `{shorten(before[0][1])}`",
        program.location(function.module, position(node)),
        symbol=function.qualname,
        severity=Severity.WARNING,
        evidence=tuple(
            Evidence(
                f"{where.qualname}: {shorten(value)}",
                program.location(where.module, position(value)),
                Role.ORIGIN if index == 0 else Role.CONTEXT,
            )
            for index, (where, value) in enumerate(before)
        ),
    )
