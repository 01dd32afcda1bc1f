"""Tensors sized by this rank's heads, where those of every rank meet them: what DCP405 tells of."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dcplint.checks.base import Context
from dcplint.facts.expressions import dotted_name, shorten
from dcplint.facts.positions import position
from dcplint.findings.model import Evidence, Role
from dcplint.flow.dispatch import receiver_name
from dcplint.flow.functions import Function, callee_name
from dcplint.flow.gathered import Gathered, Gathers
from dcplint.flow.graph import Node
from dcplint.flow.merging import Use, mergings, operands
from dcplint.flow.origins import Frame, Origin, Origins
from dcplint.flow.outputs import Owed
from dcplint.flow.tensors import is_made, sizes
from dcplint.program.symbols import ClassSymbol
from dcplint.source.tree import walk

_SHAPING = frozenset({"view", "reshape"})


@dataclass(frozen=True, slots=True)
class Query:
    """How a gathered tensor is spoken of: itself, a rank's part of it, and what DCP makes of it."""

    name: str
    part: str
    whole: str
    gathered: Evidence


@dataclass(frozen=True, slots=True)
class Fault:
    """An expression that counts local heads. meets: what it meets, in words."""

    symbol: ClassSymbol
    frame: Frame
    node: ast.expr
    size: ast.expr
    meets: str
    query: Query


def local_heads(context: Context) -> Iterator[Fault]:
    """What impls are handed gathered, gather themselves and merge, and what they size too small."""
    for owed in context.outputs.owed:
        if owed.output.query is not None:
            yield from _Taken(context, owed.symbol, owed.method, owed).faults()
    for symbol in context.program.classes("impl"):
        yield from _own_gathers(context, symbol)
    for symbol in context.program.classes("impl"):
        yield from _own_merges(context, symbol)


@dataclass(frozen=True)
class _Heads:
    """A method of an impl in which there is a gathered query."""

    context: Context
    symbol: ClassSymbol
    method: Function

    def calls(self) -> Iterator[Fault]:
        """What its calls give the query, or get beside it."""
        outputs = self.context.outputs
        reachable = outputs.scenario.reachable(self.method)
        frame = Frame(self.method)
        for statement, made in self.method.calls.items():
            for place in self.method.graph.at(statement):
                if place in reachable and outputs.refused.allows(self.symbol, frame, place):
                    for call in made:
                        yield from self._call(frame, place, call)

    def _call(self, frame: Frame, place: Node, call: ast.Call) -> Iterator[Fault]:
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

    def _fault(self, frame: Frame, node: ast.expr, size: ast.expr, meets: str) -> Fault:
        return Fault(self.symbol, frame, node, size, meets, self._query)

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
    def _query(self) -> Query:
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
    def _query(self) -> Query:
        call, function = self.gathered.call, self.gathered.function
        made = self.context.program.location(function.module, position(call))
        return Query(
            "what it gathers",
            "what this rank has",
            f"`{shorten(call)}` gives what every rank has",
            Evidence(f"{function.qualname} gathers it here", made, Role.ORIGIN),
        )


def _own_gathers(context: Context, symbol: ClassSymbol) -> Iterator[Fault]:
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

    def faults(self) -> Iterator[Fault]:
        """In what it returns, then in the calls that it makes."""
        outputs = self.context.outputs
        for element, what in ((0, "the output"), (self.owed.output.element, "the LSE")):
            for origin in outputs.returned(self.owed, element) or ():
                yield from self._returned(origin, what)
        if any(name in self.method.mentions for name in self._words):
            yield from self.calls()

    def _returned(self, origin: Origin, what: str) -> Iterator[Fault]:
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
    def _query(self) -> Query:
        method = self.method
        takes = self.context.program.location(method.module, position(method.node.args.args[1]))
        return Query(
            "the query",
            "this rank's heads",
            "the query has the heads of every rank",
            Evidence(f"{method.qualname} takes the gathered query here", takes, Role.ORIGIN),
        )


@dataclass(frozen=True)
class _Merged(_Heads):
    """What the method merges over ranks."""

    use: Use

    def faults(self) -> Iterator[Fault]:
        """The tensors that it has made, and the merge gets."""
        merge = self.use[2]
        for origin in operands(self.context.outputs, self.symbol, self.use):
            if isinstance(origin.node, ast.Call):
                size = self._local_size(origin.frame, origin.place, origin.node)
                if size is not None:
                    meets = f"and is merged over ranks by `{shorten(merge.func)}`"
                    yield self._fault(origin.frame, origin.node, size, meets)

    @property
    def _query(self) -> Query:
        merge = self.context.program.location(self.method.module, position(self.use[2]))
        return Query(
            "what it merges",
            "this rank's heads",
            "that takes the heads of every rank",
            Evidence(f"{self.method.qualname} merges here", merge, Role.ORIGIN),
        )


def _own_merges(context: Context, symbol: ClassSymbol) -> Iterator[Fault]:
    flow = context.outputs
    terms = tuple(term for term in flow.kernels.described("merges") if term.axes)
    for merging in mergings(flow, symbol, terms):
        for use in merging.uses:
            yield from _Merged(context, symbol, use[0], use).faults()


def _unpacked(args: list[ast.expr]) -> list[ast.expr]:
    only = args[0] if len(args) == 1 else None
    return only.elts if isinstance(only, (ast.Tuple, ast.List)) else args
