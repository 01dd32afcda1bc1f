"""What differs between ranks, and which statements every rank must reach together."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from dcplint.facts.expressions import dotted_name, shorten
from dcplint.flow.conditions import Known, concerns, implied
from dcplint.flow.dataclasses import constructor_argument
from dcplint.flow.definitions import bindings
from dcplint.flow.functions import Function, argument, callee_name, given_once
from dcplint.flow.graph import Edge, Node, Role
from dcplint.flow.types import classes_of
from dcplint.source.tree import children, walk
from dcplint.units.bounds import Bounds
from dcplint.units.flow import UnitFlow
from dcplint.units.lattice import LENGTHS, Counts, Mark, Space, Value
from dcplint.units.roles import Role as Part
from dcplint.units.roles import role

_BRANCHING = (ast.If, ast.While, ast.For, ast.Match)
_STEPS = 4  # variables in terms of variables
_CALLS = 2  # calls into calls
_SHAPES = frozenset({"shape", "ndim", "dtype", "device", "numel", "size", "dim"})
_COUNTED_ALIKE = frozenset(
    {"enumerate", "zip", "reversed", "sorted", "list", "tuple", "iter", "tolist", "cpu", "numpy"}
)
_IN_PLACE = frozenset({"all_reduce", "broadcast", "broadcast_object_list"})
_ASKED_ALIKE = frozenset(
    {"len", "isinstance", "hasattr", "callable", "id", "is_tensor", "is_contiguous", "stride"}
)  # what they say of a tensor is the same on every rank
_PROCESSES = frozenset({"device_group", "cpu_group"})  # torch's own, of an engine's group
_TORCH = frozenset({"torch.distributed", "torch.distributed.distributed_c10d"})
_EXCHANGES = frozenset(
    {"all_gather", "all_gather_into_tensor", "all_gather_object", "all_reduce", "all_to_all"}
    | {"all_to_all_single", "barrier", "broadcast", "reduce_scatter", "reduce_scatter_tensor"}
)  # of torch.distributed, told the processes by `group`
_LENGTHS = LENGTHS | {Counts.PAGES, Counts.OTHER}


@dataclass(frozen=True, slots=True)
class Split:
    """A test that comes out differently on some ranks, and what only one of its sides runs.

    source: what differs. collective: a call that exchanges tensors, of this function or of one
    that it calls.
    """

    function: Function
    statement: ast.stmt
    test: ast.expr
    source: Mark
    collective: ast.Call


Given = tuple[Function, Node, ast.expr]
"""An expression, where it is evaluated, and in which function."""


@dataclass
class Variance:
    """Finds splits."""

    units: UnitFlow
    _after: dict[Function, dict[Node, list[tuple[Node, Edge]]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        vocabulary = self.units.universe.program.contract.vocabulary
        program = self.units.universe.program
        self._bounds = Bounds(self.units)
        self._collectives = frozenset(name for name in vocabulary.collectives if "." not in name)
        self._functions = frozenset(vocabulary.merges)
        self._functions |= {name for name in vocabulary.collectives if "." in name}
        names = frozenset(name.rpartition(".")[2] for name in self._functions)
        self._function_names = program.spellings(names)
        self._exchange_names = program.spellings(_EXCHANGES)
        self._varying = frozenset(vocabulary.varying)
        self._varying_names = program.spellings(
            frozenset(n.rpartition(".")[2] for n in self._varying if "." in n)
        )
        self._wider = frozenset(vocabulary.wider_groups)

    def splits(self, function: Function) -> Iterator[Split]:
        """The tests of `function` after which only some ranks run a collective."""
        reachable = self.units.scenario.reachable(function)
        calls = {
            node: found
            for node in function.graph.nodes
            if node in reachable and (found := self._collected(function, node))
        }
        if not calls:
            return
        for node in function.graph.nodes:
            statement = node.statement
            if node not in reachable or not isinstance(statement, _BRANCHING):
                continue
            if isinstance(statement, ast.For):
                test = statement.iter if node.role is Role.HEADER else None
            else:
                asked = statement.subject if isinstance(statement, ast.Match) else statement.test
                test = asked if node.role is Role.PLAIN else None
            if test is None:
                continue
            if self.units.scenario.truth(function, test) is not None:
                continue
            collective = self._unequal(function, node, calls)
            if collective is None:
                continue
            if isinstance(statement, ast.For):
                rounds = self._rounds(function, node, test)
                marks = (self._variant(function, node, part, _STEPS) for part in rounds)
                mark = next(filter(None, marks), None)
            else:
                mark = self._parting(function, node, test)
            if mark is not None:
                yield Split(function, statement, test, mark, collective)
        for node in calls:
            yield from self._within(function, node)

    def _within(self, function: Function, node: Node) -> Iterator[Split]:
        """The tests inside an expression: of `a if test else b`, and what an `and` or `or` asks."""
        statement = node.statement
        assert isinstance(statement, ast.stmt)
        for inner in function.own_nodes[statement]:
            if isinstance(inner, ast.IfExp):
                sides = [self._exchanged(function, side) for side in (inner.body, inner.orelse)]
                tests = [inner.test]
            elif isinstance(inner, ast.BoolOp):
                asked = [self._exchanged(function, value) for value in inner.values]
                last = max((i for i, names in enumerate(asked) if names), default=0)
                sides, tests = [asked[last] if last else {}, {}], inner.values[:last]
            else:
                continue
            alone = [call for name, call in sides[0].items() if name not in sides[1]]
            alone += [call for name, call in sides[1].items() if name not in sides[0]]
            for test in tests if alone else ():
                source = self._parting(function, node, test)
                if source is not None:
                    yield Split(function, statement, test, source, alone[0])
                    break

    def _exchanged(self, function: Function, node: ast.expr) -> dict[str, ast.Call]:
        """The collectives that an expression runs, by name, with a call to show."""
        found: dict[str, ast.Call] = {}
        for call in walk(node):
            if isinstance(call, ast.Call):
                for name in self._run_by(function, call):
                    found.setdefault(name, call)
        return found

    # Collectives

    def _collected(self, function: Function, node: Node) -> dict[str, ast.Call]:
        """The collectives that a node runs, by name, with a call to show."""
        if node.role is not Role.PLAIN or not isinstance(node.statement, ast.stmt):
            return {}
        found: dict[str, ast.Call] = {}
        for call in function.calls.get(node.statement, ()):
            for name in self._run_by(function, call):
                found.setdefault(name, call)
        return found

    def _run_by(self, function: Function, call: ast.Call) -> frozenset[str]:
        own = self._exchange(function, call)
        if own:
            return frozenset({own})
        if callee_name(call) not in self._runner_names:
            return frozenset()
        callees = self.units.universe.callees(function, call)
        known = [self.runners.get(callee, frozenset()) for callee in callees]
        return frozenset.intersection(*known) if known else frozenset()

    def _exchange(self, function: Function, call: ast.Call) -> str:
        """The name of the collective that `call` itself is; empty where it is none.

        By a variable that was given the method once, too.
        """
        if isinstance(call.func, ast.Name):
            held = given_once(function, call.func.id)
            if isinstance(held, ast.Attribute):
                call = ast.Call(held, call.args, call.keywords)
        name = callee_name(call)
        if name in self._function_names:
            called = self.units.universe.called(function, call)
            if called in self._functions:
                return called.rpartition(".")[2]
        if name in self._collectives and isinstance(call.func, ast.Attribute):
            if self._is_group(function, call.func.value):
                return name
        told = next((k.value for k in call.keywords if k.arg == "group"), None)
        if name in self._exchange_names and told is not None:
            if name not in _EXCHANGES:
                name = self.units.universe.called(function, call).rpartition(".")[2]
            if name in _EXCHANGES and self._are_processes(function, told):
                return name
        return ""

    def _are_processes(self, function: Function, node: ast.expr) -> bool:
        """Whether `node` is what torch knows the DCP ranks by, directly or by a variable."""
        if isinstance(node, ast.IfExp):
            sides = [side for side in (node.body, node.orelse) if not _is_none(side)]
            return bool(sides) and all(self._are_processes(function, side) for side in sides)
        if isinstance(node, ast.Attribute) and node.attr in _PROCESSES:
            return self._is_group(function, node.value)
        if isinstance(node, ast.Name):
            held = given_once(function, node.id)
            return held is not None and self._are_processes(function, held)
        values = [m for m in self.units.scenario.meanings(function, node) if not _is_none(m[1])]
        return bool(values) and all(
            isinstance(value, (ast.Attribute, ast.IfExp)) and self._are_processes(where, value)
            for where, value in values
        )

    def torch_exchanges(self, function: Function) -> Iterator[tuple[ast.stmt, ast.Call, str]]:
        """The calls of torch's own collectives that `function` makes among the DCP ranks."""
        for statement, calls in function.calls.items():
            for call in calls:
                if callee_name(call) in self._exchange_names and self._exchange(function, call):
                    called = self.units.universe.called(function, call)
                    module, _, name = called.rpartition(".")
                    if module in _TORCH:
                        yield statement, call, name

    @cached_property
    def runners(self) -> dict[Function, frozenset[str]]:
        """The functions that run a collective with DCP on, themselves or by others, and which."""
        universe, scenario = self.units.universe, self.units.scenario
        found: dict[Function, frozenset[str]] = {}
        for function, statement, call in self._by_variables():
            exchange = self._exchange(function, call)
            if exchange and scenario.can_run(function, statement):
                found[function] = found.get(function, frozenset()) | {exchange}
        for name in sorted(self._collectives | self._function_names | self._exchange_names):
            for site in universe.calls_of(name):
                exchange = self._exchange(site.function, site.call)
                if exchange and scenario.can_run(site.function, site.statement):
                    found[site.function] = found.get(site.function, frozenset()) | {exchange}
        fresh = list(found)
        for _ in range(_CALLS):
            calling: dict[Function, None] = {}
            for function in fresh:
                for site in universe.callers(function):
                    if site.function not in found:
                        calling[site.function] = None
                    names = found.get(site.function, frozenset())
                    found[site.function] = names | found[function]
            fresh = list(calling)
        return found

    def _by_variables(self) -> Iterator[tuple[Function, ast.stmt, ast.Call]]:
        """The calls of variables, where one seems to be given a collective."""
        for name in sorted(self._collectives | _EXCHANGES):
            given = re.compile(rf"=[^\n=]*\.{name}[ \t]*(?:#.*)?$", re.MULTILINE)
            for function in self.units.universe.mentioning(f".{name}", given):
                for statement, calls in function.calls.items():
                    for call in calls:
                        if isinstance(call.func, ast.Name):
                            yield function, statement, call

    @cached_property
    def _runner_names(self) -> frozenset[str]:
        return frozenset(function.node.name for function in self.runners)

    def _is_group(self, function: Function, node: ast.expr) -> bool:
        """Whether `node` is the group of the DCP ranks."""
        if self.units.scenario.is_group(function, node):
            return True
        name = (dotted_name(node) or "").rpartition(".")[2].lower()
        return name in ("dcp_group", "cp_group", "dcp")

    # Control

    def _unequal(
        self, function: Function, node: Node, calls: dict[Node, dict[str, ast.Call]]
    ) -> ast.Call | None:
        """A collective that not every way out of `node` leads to."""
        is_match = isinstance(node.statement, ast.Match)
        sides: dict[Node | bool, list[Node]] = {} if is_match else {True: [], False: []}
        for after, edge in self._following(function).get(node, ()):
            if edge.raised:
                continue
            inside = edge.holds if edge.test is not None else after.role is Role.BIND
            sides.setdefault(after if is_match else inside, []).append(after)
        loops = _loops_around(function, node)
        reached = {
            side: self._reached(function, starts, loops, _told(node, side))
            for side, starts in sides.items()
        }
        if not all(sides.values()) or not all(_is_left(reached[s], loops, function) for s in sides):
            return None  # a side that always raises refuses, and is no way on
        names = [
            {
                **self._paired(function, node, side, calls),
                **{n: call for place in places for n, call in calls.get(place, {}).items()},
            }
            for side, places in reached.items()
        ]
        for found in names:
            for name, call in found.items():
                if not all(name in other for other in names):
                    return call
        return None

    def _paired(
        self,
        function: Function,
        node: Node,
        side: Node | bool,
        calls: dict[Node, dict[str, ast.Call]],
    ) -> dict[str, ast.Call]:
        """The collectives that this side of a test has run already, where it was asked before."""
        told = _told(node, side)
        if told is None:
            return {}
        found: dict[str, ast.Call] = {}
        for earlier in reversed(told.before(function)):
            if told.is_changed_by(earlier):
                break
            if not isinstance(earlier, ast.If):
                continue
            holds = self.units.scenario.truth(function, earlier.test, told.known)
            if holds is None or self.units.scenario.truth(function, earlier.test) is not None:
                continue
            inside = {
                inner
                for part in (earlier.body if holds else earlier.orelse)
                for inner in walk(part)
            }
            for place, made in calls.items():
                if place.statement in inside:
                    found |= made
        return found

    def _reached(
        self,
        function: Function,
        starts: list[Node],
        loops: frozenset[ast.stmt],
        told: _Told | None,
    ) -> list[Node]:
        """The nodes that control can come to, without another round of the loops around.

        Whoever is through with a round comes out of the loop in the end. told: how the test at
        hand has come out, which holds until what it reads is changed.
        """
        following = self._following(function)
        found: dict[Node, None] = {}
        seen: set[tuple[Node, bool]] = set()
        queue = [(start, told is not None) for start in starts]
        while queue:
            place, holds = queue.pop()
            if (place, holds) in seen:
                continue
            seen.add((place, holds))
            found[place] = None
            if place.statement in loops and place.role in (Role.HEADER, Role.PLAIN):
                queue += ((after, holds) for after in self._out_of(function, place.statement))
                continue
            holds = holds and told is not None and not told.is_changed_at(place)
            known = told.known if told is not None and holds else None
            for after, edge in following.get(place, ()):
                truth = None
                if edge.test is not None:
                    truth = self.units.scenario.truth(function, edge.test, known)
                if truth is None or truth is edge.holds:
                    queue.append((after, holds))
        return list(found)

    def _out_of(self, function: Function, loop: ast.stmt) -> list[Node]:
        """The nodes to which control comes from a loop."""
        inside = {
            node
            for node in function.graph.nodes
            if isinstance(node.statement, ast.stmt) and _is_in(function, node, loop)
        }
        following = self._following(function)
        return [
            after
            for node in inside
            for after, edge in following.get(node, ())
            if after not in inside and not edge.raised
        ]

    def _following(self, function: Function) -> dict[Node, list[tuple[Node, Edge]]]:
        if function not in self._after:
            found: dict[Node, list[tuple[Node, Edge]]] = {}
            for node in function.graph.nodes:
                for edge in node.before:
                    found.setdefault(edge.source, []).append((node, edge))
            self._after[function] = found
        return self._after[function]

    # Values

    def _parting(self, function: Function, at: Node, test: ast.expr) -> Mark | None:
        """What makes a test come out differently on some ranks."""
        if self._bounds.is_decided(function, at, test):
            return None
        return self._variant(function, at, test, _STEPS)

    def _variant(self, function: Function, at: Node, node: ast.expr, steps: int) -> Mark | None:
        """What makes `node` differ between ranks; None where nothing is known to."""
        for leaf in self._leaves(function, at, node):
            if self._tells(function, leaf):
                return Mark(function, leaf, f"{shorten(leaf)} differs between ranks")
            if self._is_agreed_on(function, leaf):
                continue
            value = self.units.before_node(function, at, leaf)
            if isinstance(value, Value):
                unit = value.unit
                if unit.space is Space.LOCAL and unit.counts in _LENGTHS and not unit.bound:
                    text = f"{dotted_name(leaf)} is this rank's {unit.counts.value}"
                    return Mark(function, leaf, text)
                if unit.space is not Space.LOCAL:
                    continue
            given = list(self._given(function, at, leaf)) if steps else []
            for where, place, node in (*given, *self._choosing(function, at, given)):
                found = self._variant(where, place, node, steps - 1)
                if found is not None:
                    return found
        return None

    def _rounds(self, function: Function, at: Node, node: ast.expr) -> list[ast.expr]:
        """What decides how many elements `node` has: not their values, were they tensors'."""
        if isinstance(node, ast.Call):
            name = callee_name(node)
            if name in _COUNTED_ALIKE:
                of = node.func.value if isinstance(node.func, ast.Attribute) else None
                parts = [*([of] if of is not None else []), *node.args]
                return [found for part in parts for found in self._rounds(function, at, part)]
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            bounds = [b for b in (node.slice.lower, node.slice.upper, node.slice.step) if b]
            return [*bounds, *self._rounds(function, at, node.value)]
        if isinstance(node, (ast.Name, ast.Attribute)):
            value = self.units.before_node(function, at, node)
            return [] if isinstance(value, Value) and value.unit.counts in _LENGTHS else [node]
        return [node]

    def _choosing(self, function: Function, at: Node, given: list[Given]) -> Iterator[Given]:
        """The tests that decide which of several things something was given.

        Not where a collective gave it one of them: that is how ranks come to agree. Nor where one
        was run on the way to a value, which may tell who has run it and who has yet to.
        """
        if len({ast.dump(value) for _, _, value in given}) < 2:
            return
        if any(self._is_agreed(where, value) for where, _, value in given):
            return
        around = _branches(function, at.statement)
        if any(self._is_after_one(where, place, around) for where, place, _ in given):
            return
        for where, place, _ in given:
            for branch in _branches(where, place.statement):
                if branch not in around:
                    yield from ((where, node, branch.test) for node in where.graph.at(branch))

    def _is_agreed(self, function: Function, node: ast.expr) -> bool:
        """Whether a collective has a part in what `node` gives."""
        for call in walk(node):
            if isinstance(call, ast.Call):
                callees = self.units.universe.callees(function, call)
                if callee_name(call) in self._collectives | self._function_names:
                    return True
                if callees and all(callee in self.runners for callee in callees):
                    return True
        return False

    def _is_after_one(self, function: Function, place: Node, around: list[ast.If]) -> bool:
        """Whether a branch around a place, but none of those, runs a collective as well."""
        inside = {
            inner
            for branch in _branches(function, place.statement)
            if branch not in around
            for inner in walk(branch)
        }
        return any(
            self._collected(function, node)
            for node in (function.graph.nodes if inside else ())
            if node.statement in inside
        )

    def _is_agreed_on(self, function: Function, leaf: ast.expr) -> bool:
        """Whether a variable is handed to a collective that changes it, itself or in a helper."""
        if not isinstance(leaf, ast.Name):
            return False
        for statement, calls in function.calls.items():
            for call in calls:
                if isinstance(statement, ast.Expr) and statement.value is call:
                    changed = call.args[:1] if callee_name(call) in _IN_PLACE else call.args
                    if any(isinstance(a, ast.Name) and a.id == leaf.id for a in changed):
                        if callee_name(call) in _IN_PLACE or self._is_agreed(function, call):
                            return True
        return False

    def _given(self, function: Function, at: Node, leaf: ast.expr) -> Iterator[Given]:
        """What a variable, a field of a record or an attribute was given, or a helper returns."""
        universe, lookup = self.units.universe, self.units.scenario.lookup
        if isinstance(leaf, ast.Name):
            for place, value in self.units.given(function, at, leaf.id):
                yield function, place, value
            for site in universe.callers(function) if leaf.id in function.parameters else ():
                passed = argument(function, site.call, leaf.id)
                callees = universe.callees(site.function, site.call, site.statement)
                if passed is not None and callees == (function,):
                    yield from ((site.function, place, passed) for place in site.nodes)
            return
        if isinstance(leaf, ast.Attribute):
            for owner in classes_of(universe, function, leaf.value):
                for site in lookup.constructions(owner):
                    passed = constructor_argument(universe, site.call, owner, leaf.attr)
                    if passed is not None:
                        yield from ((site.function, place, passed) for place in site.nodes)
        for where, value in self.units.scenario.meanings(function, leaf):
            yield from ((where, place, value) for place in _places(where, value))

    def _is_process(self, function: Function, node: ast.expr) -> bool:
        """Whether `node` asks torch for this process's number, of all or in DCP's group."""
        if not isinstance(node, ast.Call) or callee_name(node) != "get_rank":
            return False
        if self.units.universe.called(function, node) != "torch.distributed.get_rank":
            return False
        told = [*node.args, *(k.value for k in node.keywords)]
        return all(
            isinstance(group, ast.Attribute)
            and group.attr in _PROCESSES
            and self._is_group(function, group.value)
            for group in told
        )

    def _is_alike(self, function: Function, at: Node, test: ast.Compare) -> bool:
        """Whether a test comes out alike on every rank, whatever it reads.

        A key that the rank is a part of is looked up in what each rank keeps for itself.
        """
        if _asks_for_none(test) or self.units.scenario.truth(function, test) is not None:
            return True
        if isinstance(test.ops[0], (ast.In, ast.NotIn)):
            keys = list(self._given(function, at, test.left)) or [(function, at, test.left)]
            return all(isinstance(key, ast.Tuple) for _, _, key in keys)
        return self._bounds.is_decided(function, at, test)

    def _tells(self, function: Function, node: ast.expr) -> bool:
        """Whether `node` is the rank, or something else that no two ranks have alike."""
        if role(node) is Part.RANK or self.units.scenario.is_rank(function, node):
            return True
        if isinstance(node, ast.Call):
            return self._is_process(function, node) or (
                callee_name(node) in self._varying_names
                and self.units.universe.called(function, node) in self._varying
            )
        if not isinstance(node, ast.Attribute):
            return False
        if node.attr in self._varying and self._is_group(function, node.value):
            return True
        ranks = self.units.universe.program.contract.vocabulary.group_ranks
        return node.attr in (*self._varying, *ranks) and self._is_wider(function, node.value)

    def _is_wider(self, function: Function, node: ast.expr) -> bool:
        """Whether `node` is a group that has every DCP rank for a rank of its own."""
        if isinstance(node, ast.Call):
            return self.units.universe.called(function, node) in self._wider
        values = list(self.units.scenario.meanings(function, node))
        return bool(values) and all(
            isinstance(value, ast.Call) and self._is_wider(where, value) for where, value in values
        )

    def _leaves(self, function: Function, at: Node, node: ast.expr) -> Iterator[ast.expr]:
        """The names and helpers that a value depends on.

        Not through shapes, collectives, what runs one, objects that are made of them, and tests
        that come out alike everywhere.
        """
        if isinstance(node, (ast.Name, ast.Attribute)):
            if isinstance(node, ast.Attribute) and node.attr in _SHAPES:
                return
            if self._tells(function, node):
                yield node
                return
            if dotted_name(node) is not None:
                yield node
                return
        if isinstance(node, ast.Compare) and self._is_alike(function, at, node):
            return
        if isinstance(node, ast.Call):
            name = callee_name(node)
            if self._tells(function, node):
                yield node
                return
            if name in self._collectives | self._function_names | _EXCHANGES:
                return
            if name in _SHAPES or name in _ASKED_ALIKE:
                return
            if self.units.scenario.lookup.built(function, node) is not None:
                return  # an object that knows the rank may say the same on every rank
            if callees := self.units.universe.callees(function, node):
                if all(callee in self.runners for callee in callees):
                    return
                yield node
            if isinstance(node.func, ast.Attribute):
                yield from self._leaves(function, at, node.func.value)
            for given in (*node.args, *(k.value for k in node.keywords)):
                yield from self._leaves(function, at, given)
            return
        for child in children(node):
            if isinstance(child, ast.expr):
                yield from self._leaves(function, at, child)


@dataclass(frozen=True, slots=True)
class _Told:
    """How a test has come out. known: what that says of tests."""

    statement: ast.If
    known: Known

    def before(self, function: Function) -> list[ast.stmt]:
        """The statements before it in its block."""
        home = function.homes[self.statement]
        return home.block[: home.index]

    def is_changed_by(self, statement: ast.stmt) -> bool:
        """Whether a statement, or one in it, gives something that the test reads a value."""
        return any(
            isinstance(getattr(node, "ctx", None), ast.Store)
            and isinstance(node, (ast.Name, ast.Attribute))
            and concerns(self.statement.test, dotted_name(node) or "")
            for node in walk(statement)
        )

    def is_changed_at(self, place: Node) -> bool:
        """Whether a node does."""
        return any(concerns(self.statement.test, name) for name, _ in bindings(place))


def _told(node: Node, side: Node | bool) -> _Told | None:
    """What a side of an `if` says; a loop asks anew every time."""
    if isinstance(node.statement, ast.If) and isinstance(side, bool):
        return _Told(node.statement, implied(node.statement.test, side))
    return None


def _asks_for_none(test: ast.Compare) -> bool:
    sides = (test.left, *test.comparators)
    return any(isinstance(side, ast.Constant) and side.value is None for side in sides)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _branches(function: Function, statement: object) -> list[ast.If]:
    """The `if` statements in which a statement stands."""
    found: list[ast.If] = []
    while isinstance(statement, ast.stmt):
        statement = function.homes[statement].parent
        if isinstance(statement, ast.If):
            found.append(statement)
    return found


def _places(function: Function, node: ast.expr) -> list[Node]:
    """The nodes of a function's control flow that evaluate an expression."""
    for statement, nodes in function.own_nodes.items():
        if any(inner is node for inner in nodes):
            return function.graph.at(statement)
    return []


def _loops_around(function: Function, node: Node) -> frozenset[ast.stmt]:
    found: set[ast.stmt] = set()
    assert isinstance(node.statement, ast.stmt)
    home = function.homes[node.statement]
    while home.parent is not None:
        if isinstance(home.parent, (ast.For, ast.AsyncFor, ast.While)):
            found.add(home.parent)
        home = function.homes[home.parent]
    if not isinstance(node.statement, ast.If):
        found.add(node.statement)
    return frozenset(found)


def _is_in(function: Function, node: Node, loop: ast.stmt) -> bool:
    """Whether a node is part of a loop: it decides on a round, or stands in its body."""
    statement = node.statement
    if statement is loop:
        return node.role is not Role.EXIT
    while isinstance(statement, ast.stmt):
        home = function.homes[statement]
        if home.parent is loop:
            return home.block is getattr(loop, "body", None)
        statement = home.parent
    return False


def _is_left(places: list[Node], loops: frozenset[ast.stmt], function: Function) -> bool:
    """Whether control goes on from there: to the end, or to the next round of a loop."""
    return any(place is function.graph.end or place.statement in loops for place in places)
