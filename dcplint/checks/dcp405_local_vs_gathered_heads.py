"""A buffer has room for this rank's heads, and the query has those of every rank.

## What it flags
An impl whose query arrives gathered over the heads of all ranks, and which under DCP
- returns an output or LSE from a buffer that is sized by its own number of heads,
- hands such a buffer to the same call as the query,
- gives the query a shape by its own number of heads, or keeps only that many heads of a result.

An impl that merges over ranks itself, where what it merges is sized by its own number of heads.
And one that gathers a tensor over the DCP ranks itself, and hands what it gathered to a call beside
a buffer that has room for what it had before, or gives it that shape.

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
Queries are known to be gathered where the engine does it, or the impl by a group's `all_gather`; of
the latter, what they measured before is known where they were given a shape.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from dcplint.checks.base import Context, Rule
from dcplint.facts.expressions import dotted_name, shorten
from dcplint.facts.positions import position
from dcplint.findings.model import Evidence, Finding, Role, Severity
from dcplint.flow.dispatch import receiver_name
from dcplint.flow.functions import Function, callee_name
from dcplint.flow.gathered import Gathered, Gathers
from dcplint.flow.graph import Node
from dcplint.flow.merging import Use, mergings, operands
from dcplint.flow.origins import Frame, Origin, Origins
from dcplint.flow.outputs import Owed
from dcplint.flow.scenario import Meaning
from dcplint.flow.tensors import is_made, sizes
from dcplint.program.symbols import ClassSymbol
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
class _Query:
    """How a gathered tensor is spoken of: itself, a rank's part of it, and what DCP makes of it."""

    name: str
    part: str
    whole: str
    gathered: Evidence


@dataclass(frozen=True, slots=True)
class _Fault:
    """An expression that counts local heads. meets: what it meets, in words."""

    symbol: ClassSymbol
    frame: Frame
    node: ast.expr
    size: ast.expr
    meets: str
    query: _Query


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding per expression that counts local heads where all are due."""
    told: set[ast.expr] = set()
    taken = (
        fault
        for owed in context.outputs.owed
        if owed.output.query is not None
        for fault in _Taken(context, owed.symbol, owed.method, owed).faults()
    )
    made = (
        fault
        for symbol in context.program.classes("impl")
        for fault in _own_gathers(context, symbol)
    )
    merged = (
        fault
        for symbol in context.program.classes("impl")
        for fault in _own_merges(context, symbol)
    )
    for fault in chain(taken, made, merged):
        if fault.node not in told:
            told.add(fault.node)
            yield _finding(context, fault)
    yield from _multiplied_twice(context)


@dataclass(frozen=True)
class _Heads:
    """A method of an impl in which there is a gathered query."""

    context: Context
    symbol: ClassSymbol
    method: Function

    def calls(self) -> Iterator[_Fault]:
        """What its calls give the query, or get beside it."""
        outputs = self.context.outputs
        reachable = outputs.scenario.reachable(self.method)
        frame = Frame(self.method)
        for statement, made in self.method.calls.items():
            for place in self.method.graph.at(statement):
                if place in reachable and outputs.refused.allows(self.symbol, frame, place):
                    for call in made:
                        yield from self._call(frame, place, call)

    def _call(self, frame: Frame, place: Node, call: ast.Call) -> Iterator[_Fault]:
        callee = call.func
        if isinstance(callee, ast.Attribute) and callee.attr in _SHAPING:
            local = self._local(frame, place, _unpacked(call.args))
            if local is not None and self._is_query(frame, place, callee.value):
                yield self._fault(frame, call, local, f"of {self._query.name}")
            return
        operands = [*call.args, *(keyword.value for keyword in call.keywords)]
        if not any(self._is_query(frame, place, operand) for operand in operands):
            return
        for operand in operands:
            for origin in self._origins.before(frame, place, operand) or ():
                if isinstance(origin.node, ast.Call):
                    size = self._local_size(origin.frame, origin.place, origin.node)
                    if size is not None:
                        meets = f"and meets {self._query.name} in `{callee_name(call)}`"
                        yield self._fault(origin.frame, origin.node, size, meets)

    def _local_size(self, frame: Frame, place: Node, node: ast.Call) -> ast.expr | None:
        given = sizes(node) if is_made(node) else None
        return self._local(frame, place, given or ())

    def _local(self, frame: Frame, place: Node, given: Sequence[ast.expr]) -> ast.expr | None:
        """The one among the sizes of a tensor that is this rank's number of heads."""
        return next((size for size in given if self._is_local(frame, place, size)), None)

    def _is_local(self, frame: Frame, place: Node, size: ast.expr) -> bool:
        """Whether a size is this rank's number of heads, on every way that it comes about."""
        if not isinstance(size, (ast.Name, ast.Attribute)):
            return False
        found = self._origins.before(frame, place, size)
        return bool(found) and all(self._is_own_heads(origin) for origin in found or ())

    def _is_query(self, frame: Frame, place: Node, node: ast.expr) -> bool:
        """Whether a tensor is the gathered query, whole or in parts, on every way."""
        if isinstance(node, ast.Constant):
            return False
        found = self._origins.before(frame, place, node)
        return bool(found) and all(self._is_gathered(origin) for origin in found or ())

    @property
    def _origins(self) -> Origins:
        return self.context.outputs.origins(self.symbol)

    def _fault(self, frame: Frame, node: ast.expr, size: ast.expr, meets: str) -> _Fault:
        return _Fault(self.symbol, frame, node, size, meets, self._query)

    @property
    def _words(self) -> tuple[str, ...]:
        return self.context.contract.vocabulary.heads

    def _is_own_heads(self, origin: Origin) -> bool:
        dotted = dotted_name(origin.node) if origin.node is not None else None
        own = receiver_name(origin.function)
        return not origin.done and dotted in {f"{own}.{word}" for word in self._words}

    def _is_gathered(self, origin: Origin) -> bool:
        raise NotImplementedError

    @property
    def _query(self) -> _Query:
        raise NotImplementedError


@dataclass(frozen=True)
class _Made(_Heads):
    """A query that the method gathers itself."""

    gathered: Gathered

    def _local(self, frame: Frame, place: Node, given: Sequence[ast.expr]) -> ast.expr | None:
        dim = self.gathered.dim
        return super()._local(frame, place, given[dim : dim + 1])

    def _is_own_heads(self, origin: Origin) -> bool:
        size = self.gathered.size
        dotted = dotted_name(origin.node) if origin.node is not None else None
        return (
            size is not None
            and size.node is not None
            and not origin.done
            and origin.function is size.function
            and origin.frame.depth == size.frame.depth
            and dotted is not None
            and dotted == dotted_name(size.node)
        )

    def _is_gathered(self, origin: Origin) -> bool:
        return origin.node is self.gathered.call

    @property
    def _query(self) -> _Query:
        call, function = self.gathered.call, self.gathered.function
        made = self.context.program.location(function.module, position(call))
        return _Query(
            "what it gathers",
            "what this rank has",
            f"`{shorten(call)}` gives what every rank has",
            Evidence(f"{function.qualname} gathers it here", made, Role.ORIGIN),
        )


def _own_gathers(context: Context, symbol: ClassSymbol) -> Iterator[_Fault]:
    gathers = Gathers(context.outputs, symbol)
    for facts in symbol.facts.methods:
        method = context.outputs.universe.function(symbol.module, facts)
        for made in gathers.made_by(method) if method is not None else ():
            if method is not None and context.outputs.may_run(symbol):
                yield from _Made(context, symbol, method, made).calls()


@dataclass(frozen=True)
class _Taken(_Heads):
    """A query that the method is handed gathered."""

    owed: Owed

    def faults(self) -> Iterator[_Fault]:
        """In what it returns, then in the calls that it makes."""
        outputs = self.context.outputs
        for element, what in ((0, "the output"), (self.owed.output.element, "the LSE")):
            for origin in outputs.returned(self.owed, element) or ():
                yield from self._returned(origin, what)
        if any(name in self.method.mentions for name in self._words):
            yield from self.calls()

    def _returned(self, origin: Origin, what: str) -> Iterator[_Fault]:
        frame, place = origin.frame, origin.place
        if isinstance(origin.node, ast.Call):
            size = self._local_size(frame, place, origin.node)
            if size is not None:
                yield self._fault(frame, origin.node, size, f"and is {what}")
        for operation in origin.done:
            if isinstance(operation, ast.Subscript):
                for part in walk(operation.slice):
                    bound = part.upper if isinstance(part, ast.Slice) else None
                    if bound is not None and self._is_local(frame, place, bound):
                        yield self._fault(frame, operation, bound, f"of {what}")

    def _is_gathered(self, origin: Origin) -> bool:
        index = self.owed.output.query
        return (
            index is not None
            and isinstance(origin.node, ast.Name)
            and origin.node.id == self.method.parameters[1:][index]
            and origin.function is self.method
        )

    @property
    def _query(self) -> _Query:
        method = self.method
        takes = self.context.program.location(method.module, position(method.node.args.args[1]))
        return _Query(
            "the query",
            "this rank's heads",
            "the query has the heads of every rank",
            Evidence(f"{method.qualname} takes the gathered query here", takes, Role.ORIGIN),
        )


@dataclass(frozen=True)
class _Merged(_Heads):
    """What the method merges over ranks."""

    use: Use

    def faults(self) -> Iterator[_Fault]:
        """The tensors that it has made, and the merge gets."""
        merge = self.use[2]
        for origin in operands(self.context.outputs, self.symbol, self.use):
            if isinstance(origin.node, ast.Call):
                size = self._local_size(origin.frame, origin.place, origin.node)
                if size is not None:
                    meets = f"and is merged over ranks by `{shorten(merge.func)}`"
                    yield self._fault(origin.frame, origin.node, size, meets)

    @property
    def _query(self) -> _Query:
        merge = self.context.program.location(self.method.module, position(self.use[2]))
        return _Query(
            "what it merges",
            "this rank's heads",
            "that takes the heads of every rank",
            Evidence(f"{self.method.qualname} merges here", merge, Role.ORIGIN),
        )


def _own_merges(context: Context, symbol: ClassSymbol) -> Iterator[_Fault]:
    flow = context.outputs
    terms = tuple(term for term in flow.kernels.described("merges") if term.axes)
    for merging in mergings(flow, symbol, terms):
        for use in merging.uses:
            yield from _Merged(context, symbol, use[0], use).faults()


def _unpacked(args: list[ast.expr]) -> list[ast.expr]:
    only = args[0] if len(args) == 1 else None
    return only.elts if isinstance(only, (ast.Tuple, ast.List)) else args


def _finding(context: Context, fault: _Fault) -> Finding:
    program, function = context.program, fault.frame.function
    place = program.location(function.module, position(fault.node))
    if place.tree is not Tree.PROJECT:
        place = program.location_of(fault.symbol)
    return RULE.finding(
        f"`{shorten(fault.node)}` counts only {fault.query.part} (`{shorten(fault.size)}`) "
        f"{fault.meets}; under DCP {fault.query.whole}",
        place,
        symbol=function.qualname,
        evidence=(fault.query.gathered,),
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
