"""Where a value comes from, followed backwards through statements, objects and calls.

`Tracer.before` answers: what can the expression `a.b.c` be, just before a statement, when DCP is
on? It walks back over the statements that can have run, keeps to the branches that can be taken,
steps into what it finds (an attribute of a record is what the record was built with, or what was
assigned since; a call is what its function returns; a parameter is what the callers pass) and ends
at outcomes: set, None, or unknown, each with the steps that led there.

Unknown are: what comes through `*args`, `**kwargs`, computed names, context managers, functions
kept in variables and tables, or another package's code; an attribute that several methods set, as
nobody knows which ran last; and what lies further away than the limits below. A plain call of code
outside the program is taken to return a value, and to leave its arguments alone.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from dcplint.facts.expressions import dotted_name, shorten
from dcplint.flow.conditions import Conditions, Path, names, null_test, path_of, substituted
from dcplint.flow.dataclasses import constructor_argument, field_default, fields_of, is_record
from dcplint.flow.functions import (
    CallSite,
    Function,
    argument,
    callee_name,
    default,
    receiver,
    written_keywords,
)
from dcplint.flow.graph import Edge
from dcplint.flow.identity import GIVEN, Identity
from dcplint.flow.lookup import Lookup
from dcplint.flow.mappings import may_pass
from dcplint.flow.scenario import Scenario
from dcplint.flow.types import annotated, as_union, classes_of
from dcplint.flow.universe import Universe
from dcplint.flow.values import (
    Context,
    Outcome,
    Point,
    State,
    Step,
    is_made,
    merged,
    step,
    through,
    unpacked,
)
from dcplint.flow.walk import Walk
from dcplint.program.symbols import ClassSymbol, Literal, Module
from dcplint.source.tree import walk

__all__ = ["Context", "Outcome", "Path", "State", "Step", "Tracer", "merged", "null_test"]

_DEPTH = 48  # values in terms of values
_CONTEXT = 4  # calls into calls that are told apart by their caller
_WORK = 6_000  # walks for one question
_STEPS = 20_000  # statements that those walks come to; a whole engine needs 6,000 for its worst
_FROM_ARGUMENT = frozenset({"list", "tuple", "reversed", "sorted", "iter", "set", "next", "deque"})
_UNKNOWN = (Outcome(State.UNKNOWN),)


@dataclass
class Tracer:
    """Traces values through `universe` with DCP on, or off."""

    universe: Universe
    on: bool = True
    scenario: Scenario = field(init=False)
    lookup: Lookup = field(init=False)
    identity: Identity = field(init=False)
    _memo: dict[object, tuple[Outcome, ...]] = field(default_factory=dict)
    _tentative: dict[object, tuple[Outcome, ...]] = field(default_factory=dict)
    _active: dict[object, int] = field(default_factory=dict)
    _met: int = _DEPTH
    _work: int = 0
    _steps: int = 0
    _live: dict[Function, bool] = field(default_factory=dict)
    feasible: dict[object, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.scenario = Scenario(self.universe, self.on)
        self.lookup = self.scenario.lookup
        self.identity = Identity(self.universe, self.lookup)

    # Questions

    def before(self, function: Function, statement: ast.stmt, path: Path) -> tuple[Outcome, ...]:
        """What `path` can be just before `statement` runs with DCP on."""
        self._work = self._steps = 0
        points = (Point(function, node) for node in function.graph.at(statement))
        return merged(o for point in points for o in self._before(point, path))

    def value(self, function: Function, statement: ast.stmt, node: ast.expr) -> tuple[Outcome, ...]:
        """What `node`, an expression of `statement`, can be with DCP on."""
        self._work = self._steps = 0
        points = (Point(function, at) for at in function.graph.at(statement))
        return merged(o for point in points for o in self.of(point, node, ()))

    def returned(self, function: Function, path: Path) -> tuple[Outcome, ...]:
        """What `path` of a function's result can be with DCP on: `(1,)` is its second element."""
        self._work = self._steps = 0
        return merged(self._returned(function, path, ()))

    def can_run(self, function: Function, statement: ast.stmt) -> bool:
        """Whether `statement` can run with DCP on, as far as the function itself tells."""
        return self.scenario.can_run(function, statement)

    def is_live(self, function: Function, depth: int = 4) -> bool:
        """Whether `function` can run with DCP on: not where every caller runs only without it."""
        if function in self._live:
            return self._live[function]
        self._live[function] = True  # a function that calls itself is as live as its other callers
        sites = self.universe.callers(function) if depth else ()
        live = not sites or any(
            self.can_run(site.function, site.statement) and self.is_live(site.function, depth - 1)
            for site in sites
        )
        self._live[function] = live
        return live

    # Walking back

    def _before(self, point: Point, path: Path) -> tuple[Outcome, ...]:
        """First without telling ways apart: that is cheap, and often all that is needed."""
        bare = replace(point, conditions=Conditions()) if point.conditions.tests else point
        rough = self._once((bare, path, "rough"), lambda: self._walked(bare, path, exact=False))
        if len({outcome.state for outcome in rough}) < 2:
            return rough
        return self._once((point, path), lambda: self._walked(point, path, exact=True))

    def _walked(self, point: Point, path: Path, exact: bool) -> Iterable[Outcome]:
        if point.node is None:
            edges = point.function.graph.end.before
        else:
            bound = self._bound_inside(point, path)
            if bound is not None:
                return bound
            edges = point.node.before
        found = Walk(self, point, exact).result(edges, path)
        return (*found, *_UNKNOWN) if path[0] in point.function.nonlocals else found

    def is_worth_it(self) -> bool:
        """Whether the question at hand may take one more step."""
        self._steps += 1
        return self._steps <= _STEPS

    def _bound_inside(self, point: Point, path: Path) -> tuple[Outcome, ...] | None:
        """A variable that the statement at hand binds on its way: `if (m := make()).x is None`."""
        assert point.node is not None
        statement = point.node.statement
        if not isinstance(statement, (ast.If, ast.While, ast.Assert, ast.Return, ast.Expr)):
            return None
        for node in point.function.own_nodes[statement]:
            if isinstance(node, ast.NamedExpr) and node.target.id == path[0]:
                return self.of(point, node.value, path[1:])
        return None

    def _once(self, key: object, work: Callable[[], Iterable[Outcome]]) -> tuple[Outcome, ...]:
        """The result of `work`, remembered unless it rests on a question that is still open."""
        for known in (self._memo, self._tentative):
            if key in known:
                return known[key]
        if key in self._active:
            self._met = min(self._met, self._active[key])
            return ()  # a value in terms of itself adds nothing
        depth = len(self._active)
        if depth > _DEPTH or self._work > _WORK or self._steps > _STEPS:
            self._met = -1
            return _UNKNOWN
        self._work += 1
        outer, self._met = self._met, _DEPTH
        self._active[key] = depth
        try:
            found = merged(work())
        finally:
            del self._active[key]
        if self._met >= depth:
            self._memo[key] = found
            if depth == 0 or self._met == depth:
                self._tentative.clear()
        elif depth:
            self._tentative[key] = found
        else:
            self._tentative.clear()
        self._met = min(outer, self._met) if self._met < depth else outer
        return found

    def at_entry(self, point: Point, path: Path) -> tuple[Outcome, ...]:
        """What `path` is when the function starts."""
        function, root = point.function, str(path[0])
        if path == point.stop:
            return (Outcome(State.ENTRY),)
        if root in function.parameters:
            first = function.is_method and root == function.parameters[0]
            if first and len(path) > 1:
                given = self._instance(point, path)
                if any(o.state is not State.UNKNOWN for o in given):
                    return given
                return self._attribute(function, path)
            at = replace(point, node=None, stop=None)
            return self._once((at, path, "entry"), lambda: self._from_callers(at, path))
        if function.outer is not None and root not in function.local_names:
            return self._from_outer(function.outer, point, path)
        if root in function.local_names:
            return ()  # read before it is bound: that fails
        return self._global(point, path)

    def _instance(self, point: Point, path: Path) -> tuple[Outcome, ...]:
        """`self.x` of a method: `x` of what it is called on, where that is known."""
        function = point.function
        is_record_ = function.owner is not None and is_record(self.universe, function.owner)
        sites = point.context[-1:] or (self.universe.callers(function) if is_record_ else ())
        found: list[Outcome] = []
        for site in sites:
            instance = receiver(site.function, function, site.call, str(path[0]))
            if instance is None:
                return _UNKNOWN
            for where in self._site_point(site, point.context[:-1]):
                found += self.of(where, instance, path[1:])
        return tuple(found) or _UNKNOWN

    def _agrees(self, function: Function, site: CallSite, conditions: Conditions) -> bool:
        """Whether a call's arguments let the tests on the way come out as they did."""
        for _, test, holds in conditions.tests:
            read = names(test)
            passed = read.intersection(function.parameters)
            given = {name: argument(function, site.call, name) for name in passed}
            if not given or None in given.values() or read & function.local_names > passed:
                continue
            applied = substituted(test, {n: v for n, v in given.items() if v is not None})
            truth = self.scenario.truth(site.function, applied)
            if isinstance(applied, ast.Call) and callee_name(applied) == "isinstance":
                truth = self._is_instance(function, site.function, applied)
            if truth is not None and truth is not holds:
                return False
        return True

    def _is_instance(self, function: Function, caller: Function, test: ast.Call) -> bool | None:
        if len(test.args) != 2:
            return None
        made = classes_of(self.universe, caller, test.args[0])
        wanted = annotated(self.universe, function, as_union(test.args[1]))
        if not made or not wanted:
            return None
        mro = self.universe.program.mro
        found = {any(w in mro(symbol).classes for w in wanted) for symbol in made}
        return found.pop() if len(found) == 1 else None

    def _site_point(self, site: CallSite, context: Context) -> list[Point]:
        return [Point(site.function, node, context) for node in site.nodes]

    def _from_callers(self, point: Point, path: Path) -> tuple[Outcome, ...]:
        function, name, rest = point.function, str(path[0]), path[1:]
        if point.context:
            sites: Iterable[CallSite] = point.context[-1:]
        else:
            sites = self.universe.callers(function)
        found: list[Outcome] = []
        if not point.context and self.lookup.escapes(function):
            found += _UNKNOWN
        for site in sites:
            if not self.can_run(site.function, site.statement):
                continue
            if not self._agrees(function, site, point.conditions):
                continue
            passed = argument(function, site.call, name)
            if passed is None:
                found += _UNKNOWN
                continue
            for where in self._site_point(site, point.context[:-1]):
                text = f"{site.function.qualname} calls {function.qualname}"
                given_here = self.of(where, passed, rest)
                if passed is default(function, name):
                    # It stands in the callee; what was left out was left out here.
                    text = f"{text} without `{name}`"
                    given_here = tuple(replace(o, steps=()) for o in given_here)
                if any(o.state is State.NONE for o in given_here) and not point.context:
                    # What only a dead caller passes does not count; most callers are live.
                    given_here = given_here if self.is_live(site.function) else ()
                found += through(step(where, site.call, text), given_here)
        return tuple(found) or _UNKNOWN

    def _from_outer(self, outer: Function, point: Point, path: Path) -> tuple[Outcome, ...]:
        """A free variable of a nested function: its value where that function is called."""
        inside = [s for s in self.universe.callers(point.function) if s.function is outer]
        points = [p for site in inside for p in self._site_point(site, ())]
        if not points or self.lookup.escapes(point.function):
            points.append(Point(outer, None))
        return tuple(o for p in points for o in self._before(p, path))

    def _global(self, point: Point, path: Path) -> tuple[Outcome, ...]:
        function = point.function
        root = str(path[0])
        symbol = self.universe.program.linker.name(function.module, root, function.scopes)
        if isinstance(symbol, Literal) and len(path) == 1:
            if self.lookup.rebinds_global(function.module, root):
                return _UNKNOWN
            return (Outcome(State.NONE if symbol.value is None else State.SET),)
        if isinstance(symbol, (ClassSymbol, Module)) and len(path) == 1:
            return (Outcome(State.SET),)
        return _UNKNOWN

    # Attributes of instances

    def _attribute(self, function: Function, path: Path) -> tuple[Outcome, ...]:
        """`self.name…`: whatever the class's methods set it to."""
        owner = function.owner
        if owner is None:
            return _UNKNOWN
        return self._once((owner, path[1:]), lambda: self._attribute_values(owner, path[1:]))

    def _attribute_values(self, owner: ClassSymbol, rest: Path) -> Iterable[Outcome]:
        """What the constructor leaves, unless other methods set it too: which ran last is open."""
        name = str(rest[0])
        prop = self.lookup.property_of(owner, name)
        if prop is not None:
            return self._returned(prop, rest[1:], ())
        first = list(self._constructed_value(owner, rest))
        later = list(self._set_later(owner, rest))
        if not later:
            return first or _UNKNOWN
        kept = [o for o in first if o.state is not State.NONE]
        return (*kept, *later, *(_UNKNOWN if len(kept) < len(first) else ()))

    def _constructed_value(self, owner: ClassSymbol, rest: Path) -> Iterator[Outcome]:
        """What `self.name…` is once the object is made, by any of its constructors."""
        for init in self.lookup.constructors(owner):
            if init.parameters:
                path = (init.parameters[0], *rest)
                for outcome in self._before(Point(init, None, (), path), path):
                    if outcome.state is not State.ENTRY:
                        yield outcome
                    else:
                        yield from self._class_value(owner, rest)
        if not self.lookup.constructors(owner):
            yield from self._class_value(owner, rest)

    def _class_value(self, owner: ClassSymbol, rest: Path) -> Iterator[Outcome]:
        """What the class's body says, or, for a record, what its instances are made with."""
        name = str(rest[0])
        if is_record(self.universe, owner) and name in fields_of(self.universe, owner):
            made = [
                outcome
                for site in self.lookup.constructions(owner)
                if self.can_run(site.function, site.statement)
                for point in self._site_point(site, ())
                for outcome in self._field(point, site.call, owner, rest)
            ]
            yield from made or _UNKNOWN
            return
        default = field_default(self.universe, owner, name)
        if default is None:
            return
        if len(rest) == 1 and isinstance(default, bool):
            state = State.SET if default else State.NONE
            text = f"{owner.facts.name}.{name} = None"
            origin = Step(owner.module, owner.facts.position, text, owner.facts.qualname)
            yield Outcome(state, (origin,))
        else:
            yield from _UNKNOWN

    def _set_later(self, owner: ClassSymbol, rest: Path) -> Iterator[Outcome]:
        """What methods other than the constructor, and code outside the class, leave it as."""
        asked: set[object] = set()
        for function, statement, target in self.lookup.stores(owner, str(rest[0])):
            written = target[1:]
            reaches = written == rest[: len(written)] and self.can_run(function, statement)
            if reaches and (function, target[0]) not in asked:
                asked.add((function, target[0]))
                path = (target[0], *rest)
                found = self._before(Point(function, None, (), path), path)
                yield from (o for o in found if o.state is not State.ENTRY)

    # Calls that change what they are given

    def attributes_set_by(self, function: Function, statement: ast.stmt) -> frozenset[str]:
        """The attributes that the functions called by `statement` set themselves."""
        found: frozenset[str] = frozenset()
        for call in function.calls.get(statement, ()):
            for callee in self.universe.callees(function, call, statement):
                found |= callee.attributes_set
        return found

    def changed_by_calls(
        self, point: Point, statement: ast.stmt, path: Path
    ) -> tuple[Outcome, ...] | None:
        """What calls in `statement` make of `path`, where they are given its object and set it."""
        found: list[Outcome] = []
        for call in point.function.calls.get(statement, ()):
            if not _is_given_names(call):
                continue
            callees = self.universe.callees(point.function, call, statement)
            for callee in callees:
                if not self.lookup.may_set(callee, str(path[-1])):
                    continue
                for name, prefix, certain in self._handed(point, callee, call, path):
                    site = CallSite(point.function, statement, call)
                    given = f"{name}{GIVEN}" if callee.rebinds(name) else name
                    inner = (given, *path[len(prefix) :])
                    end = Point(callee, None, self._within(point.context, site) or (site,), inner)
                    outcomes = self._before(end, inner)
                    if len(callees) > 1 or not certain or not _is_certain(statement, call):
                        outcomes = (*outcomes, Outcome(State.ENTRY))
                    found += outcomes
        return tuple(found) or None

    def _handed(
        self, point: Point, callee: Function, call: ast.Call, path: Path
    ) -> Iterator[tuple[str, Path, bool]]:
        """(parameter, prefix of `path`, for certain): the parameters that are given its object."""
        for name in callee.parameters:
            passed = receiver(point.function, callee, call, name) or argument(callee, call, name)
            given = path_of(passed) if passed is not None else None
            if given is None:
                continue
            if path[: len(given)] == given and len(given) < len(path):
                yield name, given, True
            elif point.node is not None and str(path[-1]) in callee.attributes_set:
                owner = ".".join(map(str, given))
                for length in range(1, len(path)):
                    is_same = self.identity.same(point.function, point.node, owner, path[:length])
                    if is_same is not None:
                        yield name, path[:length], is_same

    # Expressions

    def of(self, point: Point, node: ast.expr, rest: Path) -> tuple[Outcome, ...]:
        """What `node` followed by the attributes and elements `rest` can be."""
        path = path_of(node)
        if path is not None:
            return self._variable(point, node, (*path, *rest))
        if isinstance(node, ast.Constant):
            if rest:
                return ()  # reading an attribute of a constant fails: nothing comes of it
            if node.value is None:
                return (Outcome(State.NONE, (step(point, node, "None"),)),)
            return (Outcome(State.SET),)
        if isinstance(node, ast.IfExp):
            return self._choice(point, node, rest)
        if isinstance(node, ast.BoolOp):
            return self._either(point, node, rest)
        if isinstance(node, (ast.NamedExpr, ast.Await, ast.Starred)):
            return self.of(point, node.value, rest)
        if isinstance(node, ast.Call):
            return self._call(point, node, rest)
        if isinstance(node, ast.Subscript):
            return self._subscript(point, node, rest)
        if isinstance(node, ast.Attribute):
            return self.of(point, node.value, (node.attr, *rest))
        if not rest:
            return (Outcome(State.SET, (step(point, node, shorten(node)),)),)
        return self._element(point, node, rest)

    def _variable(self, point: Point, node: ast.expr, path: Path) -> tuple[Outcome, ...]:
        comprehended = self._comprehended(point, node, str(path[0]))
        if comprehended is None:
            prop = self._property(point, path)
            return self._before(point, path) if prop is None else prop
        source, element, tests = comprehended
        found = self.of(point, source, (*element, *path[1:]))
        for test in tests:
            says = (Conditions().given(test, True) or Conditions()).says(path)
            if says is not None:
                dropped = State.NONE if says else State.SET
                found = tuple(o for o in found if o.state is not dropped)
        return found

    def _property(self, point: Point, path: Path) -> tuple[Outcome, ...] | None:
        """`x.name`, where the class of `x` is known and computes `name` by a property."""
        if len(path) < 2 or path[0] == "self" or not isinstance(path[1], str):
            return None
        if path[1] not in self.lookup.properties:
            return None
        owners = classes_of(self.universe, point.function, ast.Name(str(path[0])))
        found = [self.lookup.property_of(owner, path[1]) for owner in owners]
        if not found or None in found:
            return None
        return tuple(o for prop in found if prop for o in self._returned(prop, path[2:], ()))

    def _subscript(self, point: Point, node: ast.Subscript, rest: Path) -> tuple[Outcome, ...]:
        """An element; a slice has the elements of what it slices, and is never None itself."""
        if isinstance(node.slice, ast.Slice):
            if rest:
                return self.of(point, node.value, rest)
            return self._sliced(point, node)
        index = _index(node.slice)
        found = self.of(point, node.value, ("*" if index is None else index, *rest))
        if rest or any(o.state is not State.UNKNOWN for o in found):
            return found
        return self._sliced(point, node)

    def _sliced(self, point: Point, node: ast.Subscript) -> tuple[Outcome, ...]:
        """A part of what is set comes from wherever that is set; None has no parts."""
        here = step(point, node, shorten(node))
        if path_of(node.value) is None:
            return (Outcome(State.SET, (here,)),)
        whole = self.of(point, node.value, ())
        found = through(here, (o for o in whole if o.state is State.SET))
        is_open = any(o.state is State.UNKNOWN for o in whole)
        return (*found, Outcome(State.SET, (here,))) if is_open else found

    def _element(self, point: Point, node: ast.expr, rest: Path) -> tuple[Outcome, ...]:
        """An element of a display, a comprehension or a sum of such."""
        first, tail = rest[0], rest[1:]
        if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)) and _is_element(first):
            return self.of(point, node.elt, tail)
        if isinstance(node, ast.DictComp) and _is_element(first):
            return self.of(point, node.value, tail)
        if isinstance(node, ast.Dict) and _is_element(first):
            return tuple(o for v in node.values for o in self.of(point, v, tail))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and _is_element(first):
            both = (self.of(point, side, ("*", *tail)) for side in (node.left, node.right))
            return tuple(o for found in both for o in found)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and _is_element(first):
            return self.of(point, node.left, ("*", *tail))
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)) and _is_element(first):
            starred = any(isinstance(e, ast.Starred) for e in node.elts)
            if isinstance(first, int) and not starred:
                if -len(node.elts) <= first < len(node.elts):
                    return self.of(point, node.elts[first], tail)
                return ()
            return tuple(
                o
                for e in node.elts
                for o in self.of(point, e, ("*", *tail) if isinstance(e, ast.Starred) else tail)
            )
        return _UNKNOWN

    def _choice(self, point: Point, node: ast.IfExp, rest: Path) -> tuple[Outcome, ...]:
        truth = self.scenario.truth(point.function, node.test, point.conditions.known)
        if truth is not None:
            return self.of(point, node.body if truth else node.orelse, rest)
        tested = null_test(node.test)
        holds = tested[1] if tested else False
        path = tested[0] if tested else path_of(node.test)
        found: list[Outcome] = []
        states = self._before(point, path) if path is not None else ()
        for branch, taken in ((node.body, True), (node.orelse, False)):
            is_none = taken is holds
            if tested and states and not any(_may(o, is_none) for o in states):
                continue
            conditions = point.conditions.given(node.test, taken)
            if conditions is None:
                continue
            value = self.of(replace(point, conditions=conditions), branch, rest)
            if tested and is_none and states:
                # None for None: it comes from wherever that comes from.
                found += (v for v in value if v.state is not State.NONE)
                if any(v.state is State.NONE for v in value):
                    found += (o for o in states if o.state in (State.NONE, State.UNKNOWN))
            else:
                found += value
        return tuple(dict.fromkeys(found))

    def _either(self, point: Point, node: ast.BoolOp, rest: Path) -> tuple[Outcome, ...]:
        """`a or b` is `a` unless that is None; `a and b` is `b` unless `a` is."""
        is_or = isinstance(node.op, ast.Or)
        found: list[Outcome] = []
        *firsts, last = node.values
        for value in firsts:
            truth = self.scenario.truth(point.function, value, point.conditions.known)
            if truth is not None and truth is not is_or:
                continue
            outcomes = self.of(point, value, rest)
            kept = State.SET if is_or else State.NONE
            found += (o for o in outcomes if o.state in (kept, State.UNKNOWN))
            if truth is is_or or (outcomes and all(o.state is kept for o in outcomes)):
                return tuple(found)
        return (*found, *self.of(point, last, rest))

    def _comprehended(
        self, point: Point, node: ast.expr, name: str
    ) -> tuple[ast.expr, Path, list[ast.expr]] | None:
        """What the comprehension around `node` runs over, where it binds `name`."""
        statement = point.node.statement if point.node is not None else None
        if not isinstance(statement, ast.stmt):
            return None
        for outer in point.function.own_nodes.get(statement, ()):
            for generator in getattr(outer, "generators", ()):
                for target, element in unpacked(generator.target, ("*",)):
                    is_bound = dotted_name(target) == name and generator.iter is not node
                    if is_bound and any(inner is node for inner in walk(outer)):
                        return generator.iter, element, generator.ifs
        return None

    # Calls

    def _call(self, point: Point, call: ast.Call, rest: Path) -> tuple[Outcome, ...]:
        name = callee_name(call)
        handed = self._handed_on(point, call, name, rest)
        if handed is not None:
            return handed
        lambda_ = self._lambda(point.function, call)
        if lambda_ is not None:
            applied = _applied(lambda_, call)
            return _UNKNOWN if applied is None else self.of(point, applied, rest)
        built = self.lookup.built(point.function, call)
        if built is not None:
            return self._constructed(point, call, built, rest)
        statement = point.node.statement if point.node is not None else None
        at = statement if isinstance(statement, ast.stmt) else None
        callees = self.universe.callees(point.function, call, at)
        if callees and at is not None:
            site = CallSite(point.function, at, call)
            context = self._within(point.context, site)
            return tuple(o for callee in callees for o in self._returned(callee, rest, context))
        if not rest and isinstance(call.func, (ast.Name, ast.Attribute)) and name != "get":
            return (Outcome(State.SET, (step(point, call, shorten(call)),)),)
        return _UNKNOWN

    def _within(self, context: Context, site: CallSite) -> Context:
        """The context of a callee: none where calls are nested too deeply, or in themselves."""
        repeats = any(outer.call is site.call for outer in context)
        return () if repeats or len(context) >= _CONTEXT else (*context, site)

    def _handed_on(
        self, point: Point, call: ast.Call, name: str, rest: Path
    ) -> tuple[Outcome, ...] | None:
        """Calls whose result has attributes or elements of an argument: replace, copy, zip, …"""
        receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
        first = call.args[0] if call.args else None
        if name == "getattr" and receiver is None and len(call.args) in (2, 3):
            attribute = call.args[1]
            if isinstance(attribute, ast.Constant) and isinstance(attribute.value, str):
                return self.of(point, call.args[0], (attribute.value, *rest))
            return _UNKNOWN
        if name == "cast" and len(call.args) == 2:
            return self.of(point, call.args[1], rest)
        if not rest:
            return None
        if name in ("replace", "_replace"):
            from_module = receiver is None or dotted_name(receiver) in ("dataclasses", "copy")
            record = first if from_module else receiver
            return None if record is None else self._replaced(point, call, record, rest)
        if name in ("copy", "deepcopy", "__copy__"):
            copied = first or receiver
            return None if copied is None else self.of(point, copied, rest)
        if name in _FROM_ARGUMENT and receiver is None and first is not None:
            tail = rest if name != "next" else ("*", *rest)
            return self.of(point, first, tail)
        if name == "get" and receiver is not None:
            return self.of(point, receiver, ("*", *rest))
        if rest[0] != "*":
            return None
        if name == "values" and receiver is not None:
            return self.of(point, receiver, rest)
        if len(rest) > 1 and isinstance(rest[1], int):
            if name == "items" and receiver is not None and rest[1] == 1:
                return self.of(point, receiver, ("*", *rest[2:]))
            if name == "enumerate" and rest[1] == 1 and first is not None:
                return self.of(point, first, ("*", *rest[2:]))
            if name == "zip" and rest[1] < len(call.args):
                return self.of(point, call.args[rest[1]], ("*", *rest[2:]))
        return None

    def _replaced(
        self, point: Point, call: ast.Call, record: ast.expr, rest: Path
    ) -> tuple[Outcome, ...]:
        for keyword in written_keywords(call):
            if keyword.arg == rest[0]:
                text = f"replaced by {shorten(keyword.value)}"
                made = is_made(keyword.value)
                here = replace(step(point, keyword.value, text), name=str(rest[0]), made=made)
                return through(here, self.of(point, keyword.value, rest[1:]))
        if may_pass(self.lookup, point.function, call, str(rest[0])):
            return _UNKNOWN
        return self.of(point, record, rest)

    def _lambda(self, function: Function, call: ast.Call) -> ast.Lambda | None:
        if not isinstance(call.func, ast.Name):
            return None
        for node in function.homes:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
                names_ = (dotted_name(target) for target in node.targets)
                if call.func.id in names_:
                    return node.value
        return None

    def _constructed(
        self, point: Point, call: ast.Call, built: ClassSymbol, rest: Path
    ) -> tuple[Outcome, ...]:
        """An attribute of a new object, as its constructor leaves it."""
        if not rest:
            return (Outcome(State.SET),)
        if isinstance(rest[0], str):
            prop = self.lookup.property_of(built, rest[0])
            if prop is not None:
                return self._returned(prop, rest[1:], ())
        init = self.lookup.constructor(built)
        if init is None or not init.parameters or point.node is None:
            return self._field(point, call, built, rest)
        statement = point.node.statement
        if not isinstance(statement, ast.stmt):
            return _UNKNOWN
        path = (init.parameters[0], *rest)
        site = CallSite(point.function, statement, call)
        context = self._within(point.context, site) or (site,)
        found: list[Outcome] = []
        for outcome in self._before(Point(init, None, context, path), path):
            if outcome.state is not State.ENTRY:
                found.append(outcome)
            elif init.node.name == "__post_init__":
                found += self._field(point, call, built, rest)
            else:
                found += self._class_value(built, rest) or _UNKNOWN
        return tuple(found) or _UNKNOWN

    def _field(
        self, point: Point, call: ast.Call, built: ClassSymbol, rest: Path
    ) -> tuple[Outcome, ...]:
        """A field of a new record: the argument that sets it, or the class's default."""
        name = rest[0]
        if not is_record(self.universe, built):
            return tuple(self._class_value(built, rest)) or _UNKNOWN
        if isinstance(name, int):  # a named tuple taken apart
            fields = fields_of(self.universe, built)
            if not -len(fields) <= name < len(fields):
                return _UNKNOWN
            name = fields[name]
        passed = constructor_argument(self.universe, call, built, name)
        if passed is not None:
            text = f"{built} is built with {name}={shorten(passed)}"
            here = replace(step(point, call, text), name=name, record=built, made=is_made(passed))
            return through(here, self.of(point, passed, rest[1:]))
        starred = any(isinstance(a, ast.Starred) for a in call.args)
        if starred or len(rest) > 1 or may_pass(self.lookup, point.function, call, name):
            return _UNKNOWN
        default = field_default(self.universe, built, name)
        if default is None:
            return _UNKNOWN
        text = f"{built} is built without {name}"
        here = replace(step(point, call, text), name=name, record=built)
        return (Outcome(State.SET if default else State.NONE, (here,)),)

    def _returned(self, callee: Function, rest: Path, context: Context) -> tuple[Outcome, ...]:
        if self.lookup.is_changed_by_decorator(callee):
            return _UNKNOWN
        made = self._yielded if callee.yields else self._returns
        return self._once((callee, rest, context), lambda: made(callee, rest, context))

    def _yielded(self, callee: Function, rest: Path, context: Context) -> tuple[Outcome, ...]:
        found: list[Outcome] = []
        for at, value in callee.yields:
            for node in callee.graph.at(at) if self.can_run(callee, at) else ():
                point = Point(callee, node, context)
                if isinstance(value, ast.YieldFrom):
                    found += self.of(point, value.value, rest)
                elif rest[:1] == ("*",) and value.value is not None:
                    found += self.of(point, value.value, rest[1:])
                elif not rest:
                    found.append(Outcome(State.SET))
        return tuple(found) or _UNKNOWN

    def _returns(self, callee: Function, rest: Path, context: Context) -> tuple[Outcome, ...]:
        found: list[Outcome] = []
        for edge in callee.graph.end.before:
            if not self._is_taken(callee, edge):
                continue
            node = edge.source
            at_end = node.statement
            value_ = at_end.value if isinstance(at_end, ast.Return) else None
            if value_ is not None:
                found += self.of(Point(callee, node, context), value_, rest)
            elif not rest and not _is_stub(callee):
                point = Point(callee, node, context)
                text = f"{callee.qualname} returns nothing"
                found.append(Outcome(State.NONE, (step(point, at_end, text),)))
        return tuple(found) or (() if _only_raises(callee) else _UNKNOWN)

    def _is_taken(self, function: Function, edge: Edge) -> bool:
        if edge.source not in self.scenario.reachable(function):
            return False
        if edge.test is None:
            return True
        return self.scenario.truth(function, edge.test) is not (not edge.holds)


def _may(outcome: Outcome, is_none: bool) -> bool:
    return outcome.state is not (State.SET if is_none else State.NONE)


def _is_given_names(call: ast.Call) -> bool:
    """Whether a call is given anything that a name or an attribute stands for."""
    receiver_ = call.func.value if isinstance(call.func, ast.Attribute) else None
    given = (receiver_, *call.args, *(k.value for k in call.keywords))
    return any(isinstance(value, (ast.Name, ast.Attribute, ast.Call)) for value in given)


def _index(node: ast.expr) -> int | None:
    """The number by which a subscript picks an element."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _index(node.operand)
        return None if inner is None else -inner
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    return None


def _is_element(part: str | int) -> bool:
    return part == "*" or isinstance(part, int)


def _is_certain(statement: ast.stmt, call: ast.Call) -> bool:
    """Whether a statement always makes `call`: it is its whole value."""
    value = getattr(statement, "value", None)
    if isinstance(value, ast.Await):
        value = value.value
    return value is call


def _only_raises(function: Function) -> bool:
    """Whether a function never returns: it is abstract, or refuses."""
    return not function.graph.end.before


def _is_stub(function: Function) -> bool:
    """Whether a function has no body to speak of: `...`, `pass`, a docstring."""
    return all(
        isinstance(s, ast.Pass) or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))
        for s in function.node.body
    )


def _applied(lambda_: ast.Lambda, call: ast.Call) -> ast.expr | None:
    """The body of a lambda with the arguments of `call` in place of its parameters."""
    if any(isinstance(a, ast.Starred) for a in call.args) or any(
        k.arg is None for k in call.keywords
    ):
        return None
    spec = lambda_.args
    names = [a.arg for a in (*spec.posonlyargs, *spec.args)]
    given = dict(zip(names[len(names) - len(spec.defaults) :], spec.defaults, strict=False))
    given |= {a.arg: d for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d}
    given |= dict(zip(names, call.args, strict=False))
    given |= {k.arg: k.value for k in call.keywords if k.arg}
    return substituted(lambda_.body, given)
