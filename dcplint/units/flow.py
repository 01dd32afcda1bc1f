"""Which unit a value has at a place, followed backwards to what the pack knows.

A variable is what its assignments that can be in force gave it, with DCP on; an attribute of a
record is what the pack says, or what every construction gives it; a parameter is what every caller
passes; a call is what the function returns. Slices, moves between devices and elementwise
operations keep a unit; a localizer of the pack makes a global length a local one. Where two ways
disagree, and where work runs out, nothing is known.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from dcplint.contracts.model import Localizer
from dcplint.facts.expressions import dotted_name, shorten
from dcplint.flow.conditions import substituted
from dcplint.flow.dataclasses import constructor_argument
from dcplint.flow.definitions import bindings
from dcplint.flow.functions import (
    CallSite,
    Function,
    argument,
    callee_name,
    default,
    given_once,
)
from dcplint.flow.graph import Node, Role
from dcplint.flow.scenario import Scenario
from dcplint.flow.types import attribute_settings
from dcplint.flow.universe import Universe
from dcplint.flow.values import unpacked
from dcplint.program.symbols import ClassSymbol
from dcplint.source.tree import walk
from dcplint.units.lattice import (
    NEUTRAL,
    Abstract,
    Counts,
    Mark,
    Neutral,
    Several,
    Space,
    Unit,
    Value,
    added,
    joined,
)
from dcplint.units.localizers import Localizers, passed
from dcplint.units.operations import (
    ADDING,
    CHOOSING,
    COUNTING,
    DIVIDING,
    FILLING,
    KEEPING,
    MOVING,
    READING,
    ROUNDING,
    may_move,
    operands,
    stored_into,
    summands,
)
from dcplint.units.owners import owners
from dcplint.units.proof import is_cap
from dcplint.units.ranks import Ranks

_DEPTH = 24  # values in terms of values
_CALLS = 3  # calls into calls
_WORK = 1_500  # expressions for one question
_STEPS = 150_000  # nodes and expressions for one function's questions: five times real need
_NAMES = 3  # variables in terms of variables, in a formula
_SITES = 24  # callers and constructions worth looking at

UNITS = {
    "global": Unit(Space.GLOBAL),
    "local": Unit(Space.LOCAL),
    "all-ranks": Unit(Space.ALL_RANKS),
    "upper-bound": Unit(Space.GLOBAL, bound=True),
    "local-upper-bound": Unit(Space.LOCAL, bound=True),
    "queries": Unit(Space.GLOBAL, Counts.QUERIES),
    "query-offsets": Unit(Space.GLOBAL, Counts.OFFSETS),
    "places": Unit(Space.GLOBAL, Counts.PLACES),
    "local-places": Unit(Space.LOCAL, Counts.PLACES),
}
"""The units of a pack."""

_ZERO = ast.Constant(0)


@dataclass(frozen=True)
class _Frame:
    """A function as it is run: with the arguments of one call, or (None) of any."""

    function: Function
    arguments: tuple[tuple[str, Abstract], ...] | None = None
    calls: int = 0


@dataclass
class UnitFlow:
    """Evaluates expressions to units when DCP is on."""

    universe: Universe
    scenario: Scenario
    _memo: dict[object, Abstract] = field(default_factory=dict)
    _active: set[object] = field(default_factory=set)
    _attributes: dict[tuple[ClassSymbol, str], Abstract] = field(default_factory=dict)
    _paths: dict[str, ast.Attribute] = field(default_factory=dict)
    _before: dict[Node, tuple[Node, ...]] = field(default_factory=dict)
    _said: dict[ast.AST, ast.expr] = field(default_factory=dict)
    _written_out: dict[ast.Call, ast.expr | None] = field(default_factory=dict)
    _spent: dict[Function, int] = field(default_factory=dict)
    _work: int = 0
    _steps: int = 0
    _cuts: int = 0

    def __post_init__(self) -> None:
        contract = self.universe.program.contract
        self._seeds = {(n.record, n.name): n for n in contract.lengths}
        self._given = {(a.function, a.argument): a for a in contract.arguments if a.given is None}
        self.localizers = Localizers(self.universe)

    def value(self, function: Function, statement: ast.stmt, node: ast.expr) -> Abstract:
        """What `node`, an expression of `statement`, is with DCP on."""
        places = function.graph.at(statement)
        return self._asked(function, ((place, node) for place in places))

    def before_node(self, function: Function, node: Node, expression: ast.expr) -> Abstract:
        """What an expression is, evaluated by a node of the function's control flow."""
        return self._asked(function, [(node, expression)])

    def _asked(self, function: Function, asked: Iterable[tuple[Node, ast.expr]]) -> Abstract:
        """Answer one question. A function that has taken up too much work gets no more of it."""
        self._work = 0
        self._steps = self._spent.get(function, 0)
        found = joined(self._evaluate(_Frame(function), place, node) for place, node in asked)
        self._spent[function] = self._steps
        return found

    @cached_property
    def ranks(self) -> Ranks:
        """Which expressions are the rank or the size here."""
        return Ranks(self.scenario)

    # Expressions

    def _evaluate(self, frame: _Frame, at: Node, node: ast.expr) -> Abstract:
        self._work += 1
        key = (frame, at, node)
        if key in self._memo:
            return self._memo[key]
        if key in self._active:
            self._cuts += 1
            return NEUTRAL  # what a loop brings round adds nothing to where it started
        self._steps += 1
        if len(self._active) > _DEPTH or self._work > _WORK or self._steps > _STEPS:
            self._cuts += 1
            return None
        cuts = self._cuts
        self._active.add(key)
        try:
            found = self._of(frame, at, node)
        finally:
            self._active.discard(key)
        if cuts == self._cuts or not self._active:
            self._memo[key] = found
        return found

    def _of(self, frame: _Frame, at: Node, node: ast.expr) -> Abstract:
        if isinstance(node, ast.Constant):
            return NEUTRAL
        if isinstance(node, ast.Name):
            return self._name(frame, at, node)
        if isinstance(node, ast.Attribute):
            return self._attribute(frame, at, node)
        if isinstance(node, ast.Subscript):
            return self._subscript(frame, at, node)
        if isinstance(node, ast.BinOp):
            return self._binary(frame, at, node)
        if isinstance(node, ast.UnaryOp):
            return self._evaluate(frame, at, node.operand)
        if isinstance(node, ast.IfExp):
            truth = self.scenario.truth(frame.function, node.test)
            sides = [node.body, node.orelse] if truth is None else []
            sides = sides or [node.body if truth else node.orelse]
            return joined(self._evaluate(frame, at, side) for side in sides)
        if isinstance(node, ast.NamedExpr):
            return self._evaluate(frame, at, node.value)
        if isinstance(node, (ast.Tuple, ast.List)):
            return Several(tuple(self._evaluate(frame, at, e) for e in node.elts))
        if isinstance(node, ast.Call):
            return self._call(frame, at, node)
        return None

    def _subscript(self, frame: _Frame, at: Node, node: ast.Subscript) -> Abstract:
        whole = self._evaluate(frame, at, node.value)
        if isinstance(whole, Several):
            return _item(whole, node.slice.value if isinstance(node.slice, ast.Constant) else None)
        if not isinstance(whole, Value):
            return None
        # Of a column per rank, only rows are known to be taken.
        if whole.unit.space is Space.ALL_RANKS and not isinstance(node.slice, ast.Slice):
            return None
        return whole

    def _binary(self, frame: _Frame, at: Node, node: ast.BinOp) -> Abstract:
        left = self._evaluate(frame, at, node.left)
        right = self._evaluate(frame, at, node.right)
        if isinstance(left, Neutral) and isinstance(right, Neutral):
            return NEUTRAL
        mark = Mark(frame.function, node, shorten(node))
        if isinstance(node.op, (ast.Add, ast.Sub)):
            lengths = self._query_lengths(frame, at, node)
            if lengths is not None:
                return lengths
            unit = added(left, right, isinstance(node.op, ast.Sub))
            if unit is None:
                return None
            source = left if isinstance(left, Value) and left.unit.space is unit.space else right
            assert isinstance(source, Value)
            return replace(source, unit=unit).at(mark)
        if isinstance(node.op, ast.Mult):
            if is_cap(self.meaning(frame.function, at, node)):
                return Value(UNITS["local-upper-bound"], trail=(mark,))
            return None
        if isinstance(node.op, ast.FloorDiv):
            rounded = isinstance(node.left, (ast.BinOp, ast.UnaryOp))
            return self._divided(frame, at, node.left, node.right, rounded, mark)
        return None

    def meaning(
        self, function: Function, at: Node, node: ast.expr, steps: int = _NAMES
    ) -> ast.expr:
        """An expression with what its variables hold put in, where that is one thing."""
        values: dict[str, ast.expr] = {}
        for inner in walk(node) if steps else ():
            if not isinstance(inner, ast.Name) or inner.id in values:
                continue
            given = list(self.given(function, at, inner.id))
            # What is merely fetched keeps its name, by which its part is known.
            if len(given) == 1 and isinstance(given[0][1], (ast.BinOp, ast.UnaryOp)):
                values[inner.id] = self.meaning(function, *given[0], steps - 1)
        return substituted(node, values) if values else node

    def _query_lengths(self, frame: _Frame, at: Node, node: ast.BinOp) -> Abstract:
        """`start[1:] - start[:-1]` of the query offsets: how many tokens each request has new."""
        if not isinstance(node.op, ast.Sub):
            return None
        offsets = []
        for side in (node.left, node.right):
            if not isinstance(side, ast.Subscript) or not isinstance(side.slice, ast.Slice):
                return None
            found = self._evaluate(frame, at, side.value)
            if isinstance(found, Value) and found.unit.counts is Counts.OFFSETS:
                offsets.append(found)
        return replace(offsets[0], unit=UNITS["queries"]) if len(offsets) == 2 else None

    def _divided(
        self,
        frame: _Frame,
        at: Node,
        length: ast.expr,
        page: ast.expr,
        rounded: bool,
        mark: Mark,
    ) -> Abstract:
        """A length divided; by the DCP size it would be another thing. Rounded up: pages."""
        sizes = [n for n in walk(page) if isinstance(n, (ast.Name, ast.Attribute))]
        if any(self.scenario.is_size(frame.function, size) for size in sizes):
            return None
        for part in summands(length):
            found = self._evaluate(frame, at, part)
            if isinstance(found, Value) and found.unit.counts is not Counts.QUERIES:
                counts = Counts.PAGES if rounded else Counts.OTHER
                return replace(found, unit=replace(found.unit, counts=counts)).at(mark)
        return None

    # Calls

    def _call(self, frame: _Frame, at: Node, call: ast.Call) -> Abstract:
        name = callee_name(call)
        localizer = self.localizers.run_by(frame.function, call)
        if localizer is not None:
            return self._localised(frame, at, call, localizer)
        parts = operands(call)
        if name in READING or name in MOVING:
            found = self._evaluate(frame, at, parts[0]) if parts else None
            return replace(found, on_device=False) if isinstance(found, Value) else found
        if name == "copy_" and len(parts) > 1:
            return self._evaluate(frame, at, parts[1])
        if name in COUNTING:
            return Value(Unit(Space.GLOBAL, Counts.OFFSETS))
        if name.rstrip("_") in KEEPING and parts:
            found = self._evaluate(frame, at, parts[0])
            if isinstance(found, Value) and found.on_device and may_move(call):
                return replace(found, on_device=False)
            return found
        if name in ("min", "max") and len(parts) == 1:
            found = self._evaluate(frame, at, parts[0])
            if name == "max" and isinstance(found, Value):
                # Of what differs between ranks the largest differs too, and is no common bound.
                bound = True if found.unit.space is Space.GLOBAL or found.unit.bound else None
                return replace(found, unit=replace(found.unit, bound=bound))
            return None
        if name in CHOOSING and len(parts) > 1:
            chosen = parts[1:] if name == "where" else parts
            return joined(self._evaluate(frame, at, operand) for operand in chosen)
        if name in ADDING and len(parts) == 2:
            operator = ast.Add() if name == "add" else ast.Sub()
            return self._evaluate(frame, at, self._sum(call, parts[0], operator, parts[1]))
        if name == "diff" and len(parts) == 1:
            found = self._evaluate(frame, at, parts[0])
            if isinstance(found, Value) and found.unit.counts is Counts.OFFSETS:
                return replace(found, unit=UNITS["queries"])
            return None
        if name in DIVIDING and len(parts) == 2:
            mark = Mark(frame.function, call, shorten(call))
            rounded = name in ROUNDING
            return self._divided(frame, at, parts[0], parts[1], rounded, mark)
        if isinstance(call.func, ast.Name):
            inlined = self._inlined(frame.function, call)
            if inlined is not None:
                return self._evaluate(frame, at, inlined)
        return self._returned(frame, at, call)

    def _inlined(self, function: Function, call: ast.Call) -> ast.expr | None:
        """What a call comes to of a variable that holds a lambda."""
        if call not in self._written_out:
            self._written_out[call] = None
            made = given_once(function, callee_name(call))
            plain = not call.keywords and not any(isinstance(a, ast.Starred) for a in call.args)
            if isinstance(made, ast.Lambda) and plain and len(made.args.args) == len(call.args):
                names = (parameter.arg for parameter in made.args.args)
                given = dict(zip(names, call.args, strict=True))
                self._written_out[call] = substituted(made.body, given)
        return self._written_out[call]

    def _localised(self, frame: _Frame, at: Node, call: ast.Call, localizer: Localizer) -> Abstract:
        length = passed(call, localizer, localizer.length)
        rank = passed(call, localizer, localizer.rank) if localizer.rank else None
        if localizer.rank and rank is None:
            rank = self._default(frame.function, call, localizer.rank)
        found = self._evaluate(frame, at, length) if length is not None else None
        unit = Unit(Space.LOCAL, Counts.OTHER, None)
        if isinstance(found, Value) and found.unit.space is Space.GLOBAL:
            unit = replace(found.unit, space=Space.LOCAL)
        if isinstance(rank, ast.Constant):
            # Every rank's share, or the largest share, which rank 0 has.
            if rank.value is None:
                unit = replace(unit, space=Space.ALL_RANKS)
            else:
                unit = replace(unit, bound=True)
        elif localizer.rank and (
            rank is None or isinstance(self._evaluate(frame, at, rank), Neutral)
        ):
            return None  # a default that is not known, or a number that is told elsewhere
        device = isinstance(found, Value) and found.on_device
        trail = found.trail if isinstance(found, Value) else ()
        return Value(unit, device, trail).at(Mark(frame.function, call, shorten(call)))

    def _default(self, function: Function, call: ast.Call, parameter: str) -> ast.expr | None:
        """What a call that leaves a parameter out gets for it."""
        if any(k.arg is None for k in call.keywords):
            return None
        if any(isinstance(passed, ast.Starred) for passed in call.args):
            return None
        callees = self.universe.callees(function, call)
        return default(callees[0], parameter) if len(callees) == 1 else None

    def _returned(self, frame: _Frame, at: Node, call: ast.Call) -> Abstract:
        """What the functions that a call may run return for these arguments."""
        if frame.calls >= _CALLS:
            return None
        statement = at.statement if isinstance(at.statement, ast.stmt) else None
        callees = self.universe.callees(frame.function, call, statement)
        if not 0 < len(callees) <= 2:
            return None
        found = []
        for callee in callees:
            if callee.yields or callee.is_property:
                return None
            arguments = []
            for name in callee.parameters:
                passed = argument(callee, call, name)
                known = self._evaluate(frame, at, passed) if passed is not None else None
                arguments.append((name, known))
            inner = _Frame(callee, tuple(arguments), frame.calls + 1)
            found.append(joined(self._returns(inner)))
        result = joined(found)
        return None if isinstance(result, Neutral) else result

    def returned(self, function: Function, parameter: str, value: Value) -> Abstract:
        """What `function` returns where `parameter` is `value`, and nothing else is known."""
        arguments = ((name, value if name == parameter else None) for name in function.parameters)
        self._work, self._steps = 0, self._spent.get(function, 0)
        found = joined(self._returns(_Frame(function, tuple(arguments))))
        self._spent[function] = self._steps
        return found

    def _returns(self, frame: _Frame) -> Iterator[Abstract]:
        reachable = self.scenario.reachable(frame.function)
        for node in frame.function.graph.nodes:
            statement = node.statement
            if node in reachable and isinstance(statement, ast.Return):
                if statement.value is not None:
                    yield self._evaluate(frame, node, statement.value)

    # Names

    def _name(self, frame: _Frame, at: Node, node: ast.Name) -> Abstract:
        return self._path(frame, at, node.id)

    def _path(self, frame: _Frame, at: Node, path: str) -> Abstract:
        """What a dotted name holds before `at`: its definitions, and what was stored into it."""
        whole: list[Abstract] = []
        parts: list[Abstract] = []
        seen: set[Node] = set()
        touching = frame.function.mentions.get(path.partition(".")[0], ())
        queue = list(self.before(frame.function, at))
        reachable = self.scenario.reachable(frame.function)
        while queue:
            place = queue.pop()
            if place in seen or place not in reachable:
                continue
            seen.add(place)
            self._steps += 1
            if self._steps > _STEPS:
                self._cuts += 1
                return None
            if place.role is Role.ENTRY:
                whole.append(self._at_entry(frame, path))
                continue
            defined: Abstract | _Untouched = _UNTOUCHED
            if place.statement in touching:
                defined = self._defined(frame, place, path, parts)
            if isinstance(defined, _Untouched):
                queue += self.before(frame.function, place)
            else:
                whole.append(defined)
        known = joined(whole) if whole else None
        if parts and not isinstance(known, Value):
            # A buffer is what is written into it, wherever the buffer lies.
            held = joined(parts)
            return replace(held, on_device=False) if isinstance(held, Value) else held
        return joined((known, *parts)) if parts else known

    def before(self, function: Function, node: Node) -> tuple[Node, ...]:
        """The nodes from which control can come to `node` with DCP on."""
        if node not in self._before:
            truth = self.scenario.truth
            self._before[node] = tuple(
                edge.source
                for edge in node.before
                if edge.test is None or truth(function, edge.test) is not (not edge.holds)
            )
        return self._before[node]

    def given(self, function: Function, at: Node, name: str) -> Iterator[tuple[Node, ast.expr]]:
        """What can have been assigned to a variable before `at`, with DCP on."""
        seen: set[Node] = set()
        queue = list(self.before(function, at))
        while queue and self._steps <= _STEPS:
            place = queue.pop()
            if place in seen:
                continue
            seen.add(place)
            self._steps += 1
            bound = [value for target, value in bindings(place) if target == name]
            yield from ((place, value) for value in bound if value is not None)
            if not bound:
                queue += self.before(function, place)

    def _defined(
        self, frame: _Frame, place: Node, path: str, parts: list[Abstract]
    ) -> Abstract | _Untouched:
        """What a node gives `path`; `_UNTOUCHED` where it leaves it alone."""
        statement = place.statement
        if isinstance(statement, (ast.For, ast.AsyncFor)):
            if place.role is not Role.BIND:
                return _UNTOUCHED
            for inner, element in unpacked(statement.target, ()):
                if dotted_name(inner) == path:
                    return self._element(frame, place, statement.iter, element)
            return _UNTOUCHED
        if place.role is not Role.PLAIN or not isinstance(statement, ast.stmt):
            return _UNTOUCHED
        if isinstance(statement, ast.AugAssign):
            return self._augmented(frame, place, statement, path, parts)
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            found = self._assigned(frame, place, statement, path, parts)
            if not isinstance(found, _Untouched):
                return found
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            found = self._filled(frame, place, statement.value, path, parts)
            if not isinstance(found, _Untouched):
                return found
        root = path.partition(".")[0]
        for node in frame.function.own_nodes[statement]:
            if isinstance(node, ast.NamedExpr) and node.target.id == root:
                return self._evaluate(frame, place, node.value) if root == path else None
        if isinstance(statement, (ast.With, ast.AsyncWith)):
            targets = [i.optional_vars for i in statement.items if i.optional_vars is not None]
            if any(dotted_name(t) == root for t in targets):
                return None
        return _UNTOUCHED

    def _assigned(
        self,
        frame: _Frame,
        place: Node,
        statement: ast.Assign | ast.AnnAssign,
        path: str,
        parts: list[Abstract],
    ) -> Abstract | _Untouched:
        value = statement.value
        if value is None:
            return _UNTOUCHED
        targets = [statement.target] if isinstance(statement, ast.AnnAssign) else statement.targets
        root = path.partition(".")[0]
        for target in targets:
            for inner, element in unpacked(target, ()):
                dotted = dotted_name(inner)
                if dotted == path:
                    found = self._evaluate(frame, place, value)
                    for index in element:
                        found = _item(found, index)
                    if isinstance(found, Value):
                        text = f"{path} = {shorten(value)}"
                        found = found.at(Mark(frame.function, statement, text))
                    return found
                if dotted == root:
                    return self._of_object(frame, place, path, None if element else value)
                if isinstance(inner, ast.Subscript) and dotted_name(inner.value) == path:
                    parts.append(self._stored(frame, place, value, statement))
        return _UNTOUCHED

    def _of_object(self, frame: _Frame, place: Node, path: str, value: ast.expr | None) -> Abstract:
        """An attribute of a variable that was given `value`: an alias is followed."""
        dotted = dotted_name(value) if value is not None else None
        if dotted is not None:
            rest = path.partition(".")[2]
            found = self._path(frame, place, f"{dotted}.{rest}")
            if found is not None:
                return found
        return self._from_class(frame, self._attribute_node(path))

    def _attribute_node(self, path: str) -> ast.Attribute:
        if path not in self._paths:
            node = ast.parse(path, mode="eval").body
            assert isinstance(node, ast.Attribute)
            self._paths[path] = node
        return self._paths[path]

    def _stored(self, frame: _Frame, place: Node, value: ast.expr, node: ast.stmt) -> Abstract:
        found = self._evaluate(frame, place, value)
        if isinstance(found, Value):
            return found.at(Mark(frame.function, node, shorten(node)))
        return found

    def _augmented(
        self,
        frame: _Frame,
        place: Node,
        statement: ast.AugAssign,
        path: str,
        parts: list[Abstract],
    ) -> Abstract | _Untouched:
        target: ast.expr = statement.target
        whole = not isinstance(target, ast.Subscript)
        while isinstance(target, ast.Subscript):
            target = target.value
        if dotted_name(target) != path:
            return _UNTOUCHED
        changed = self._sum(statement, target, statement.op, statement.value)
        found = self._evaluate(frame, place, changed)
        if whole:
            return found
        parts.append(found)
        return _UNTOUCHED

    def _sum(
        self, place: ast.AST, left: ast.expr, operator: ast.operator, right: ast.expr
    ) -> ast.expr:
        """What an operation that is written otherwise computes, the same object each time."""
        if place not in self._said:
            self._said[place] = ast.copy_location(ast.BinOp(left, operator, right), place)
        return self._said[place]

    def _filled(
        self, frame: _Frame, place: Node, call: ast.Call, path: str, parts: list[Abstract]
    ) -> Abstract | _Untouched:
        """What a call that stands alone gives `path`: all of it, or a part."""
        for target, value in self._writes(frame.function, call):
            if stored_into(target) == path:
                found = self._evaluate(frame, place, value)
                if not isinstance(target, ast.Subscript):
                    return found
                parts.append(found)
        return _UNTOUCHED

    def _writes(self, function: Function, call: ast.Call) -> Iterator[tuple[ast.expr, ast.expr]]:
        """What a call writes into, and what: `x.copy_(v)`, `f(…, out=x)`, a localizer's output."""
        localizer = self.localizers.run_by(function, call)
        if localizer is not None:
            out = passed(call, localizer, localizer.out) if localizer.out else None
            if out is not None:
                yield out, call
            return
        out = next((k.value for k in call.keywords if k.arg == "out"), None)
        if out is not None:
            if call not in self._said:
                self._said[call] = ast.copy_location(ast.Call(call.func, call.args, []), call)
            yield out, self._said[call]
        callee = call.func
        if isinstance(callee, ast.Attribute) and callee.attr in FILLING:
            if callee.attr == "zero_":
                yield callee.value, _ZERO
            elif callee.attr in ("add_", "sub_") and call.args:
                operator = ast.Add() if callee.attr == "add_" else ast.Sub()
                yield callee.value, self._sum(call, callee.value, operator, call.args[0])
            elif call.args:
                yield callee.value, call.args[0]

    def _element(
        self, frame: _Frame, place: Node, iterable: ast.expr, element: tuple[str | int, ...]
    ) -> Abstract:
        """What a loop gives its target: an element, by `zip` and `enumerate` too."""
        if isinstance(iterable, ast.Call) and element and isinstance(element[0], int):
            name = callee_name(iterable)
            if name == "enumerate" and iterable.args:
                if element[0] == 1:
                    return self._element(frame, place, iterable.args[0], element[1:])
                return Value(Unit(Space.GLOBAL, Counts.OFFSETS))
            if name == "zip" and element[0] < len(iterable.args):
                return self._element(frame, place, iterable.args[element[0]], element[1:])
        if element:
            return None
        found = self._evaluate(frame, place, iterable)
        return joined(found.items) if isinstance(found, Several) else found

    def _at_entry(self, frame: _Frame, path: str) -> Abstract:
        """What a path holds when a function starts."""
        function, root = frame.function, path.partition(".")[0]
        if path != root:
            return self._from_class(frame, self._attribute_node(path))
        if path not in function.parameters:
            return None
        if frame.arguments is not None:
            return dict(frame.arguments).get(path)
        owed = self._owed(function, path)
        if owed is not None:
            return owed
        if frame.calls >= _CALLS or self.scenario.lookup.escapes(function):
            return None
        sites = self.universe.callers(function)
        if not 0 < len(sites) <= _SITES:
            return None
        found = []
        for site in sites:
            passed = argument(function, site.call, path)
            if passed is None:
                return None
            caller = _Frame(site.function, None, frame.calls + 1)
            reachable = self.scenario.reachable(site.function)
            places = [place for place in site.nodes if place in reachable]
            found += [self._evaluate(caller, place, passed) for place in places]
        return joined(found) if found else None

    def _owed(self, function: Function, parameter: str) -> Value | None:
        """What the engine hands an override of a method that the pack speaks of."""
        if function.owner is None or function.outer is not None:
            return None
        for entry in self.universe.program.mro(function.owner).classes:
            method = f"{entry.dotted}.{function.node.name}"
            fact = self._given.get((method, parameter))
            if fact is not None:
                spec = function.node.args
                taken = (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)
                place = next(a for a in taken if a.arg == parameter)
                mark = Mark(function, place, f"`{parameter}` of {method}")
                return Value(UNITS[fact.unit], fact.on_device).at(mark)
        return None

    # Attributes

    def _attribute(self, frame: _Frame, at: Node, node: ast.Attribute) -> Abstract:
        if node.attr == "T":
            return None
        dotted = dotted_name(node)
        if dotted is not None:
            found = self._path(frame, at, dotted)
        else:
            found = self._from_class(frame, node)
        if isinstance(found, Value) and not found.trail:
            return found.at(Mark(frame.function, node, shorten(node)))
        return found

    def _from_class(self, frame: _Frame, node: ast.Attribute) -> Abstract:
        """An attribute by the class of what it is read from."""
        found = [
            self._attribute_of(owner, node.attr, frame.calls)
            for owner in owners(self.universe, frame.function, node.value)
        ]
        known = joined(found) if found else None
        return None if isinstance(known, Neutral) else known

    def _attribute_of(self, owner: ClassSymbol, name: str, calls: int) -> Abstract:
        for entry in self.universe.program.mro(owner).classes:
            seed = self._seeds.get((entry.dotted, name))
            if seed is not None:
                return Value(UNITS[seed.unit], seed.on_device)
        key = (owner, name)
        if key not in self._attributes:
            self._attributes[key] = None  # an attribute defined in terms of itself says nothing
            self._attributes[key] = self._find_attribute(owner, name, calls)
        return self._attributes[key]

    def _find_attribute(self, owner: ClassSymbol, name: str, calls: int) -> Abstract:
        """What every place that sets an attribute gives it."""
        if calls >= _CALLS:
            return None
        values: list[Abstract] = []
        lookup = self.scenario.lookup
        if lookup.property_of(owner, name) is not None:
            return None
        sites = list(_first(lookup.constructions(owner), _SITES + 1))
        if len(sites) > _SITES:
            return None
        for site in sites:
            passed = constructor_argument(self.universe, site.call, owner, name)
            if passed is not None:
                frame = _Frame(site.function, None, calls + 1)
                values += [self._evaluate(frame, place, passed) for place in site.nodes]
        for method, value, _ in attribute_settings(self.universe, owner, name):
            if value is not None:
                values += self._set(method, value, calls)
        for function, statement, _ in lookup.stores(owner, name):
            if function.owner is owner:
                continue  # set through `self`, which the settings hold
            value = getattr(statement, "value", None)
            for place in function.graph.at(statement):
                values.append(
                    self._evaluate(_Frame(function, None, calls + 1), place, value)
                    if isinstance(value, ast.expr) and not isinstance(statement, ast.AugAssign)
                    else None
                )
        return joined(values) if values else None

    def _set(self, method: Function, value: ast.expr, calls: int) -> Iterator[Abstract]:
        for statement, nodes in method.own_nodes.items():
            if any(node is value for node in nodes):
                for place in method.graph.at(statement):
                    yield self._evaluate(_Frame(method, None, calls + 1), place, value)
                return
        yield None  # part of something that is not listed there


class _Untouched:
    """A node leaves a path alone."""


_UNTOUCHED = _Untouched()


def _item(found: Abstract, index: object) -> Abstract:
    if isinstance(found, Several) and isinstance(index, int):
        if -len(found.items) <= index < len(found.items):
            return found.items[index]
    return None


def _first(items: Iterable[CallSite], count: int) -> Iterator[CallSite]:
    for index, item in enumerate(items):
        if index == count:
            return
        yield item
