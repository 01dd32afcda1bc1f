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
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from dcplint.flow.budget import Budget
from dcplint.flow.conditions import Conditions, Path, names, null_test, path_of, substituted
from dcplint.flow.dataclasses import is_record
from dcplint.flow.evaluation import Evaluation
from dcplint.flow.functions import CallSite, Function, argument, callee_name, default, receiver
from dcplint.flow.identity import GIVEN, Identity
from dcplint.flow.instances import Instances
from dcplint.flow.lookup import Lookup
from dcplint.flow.scenario import Scenario
from dcplint.flow.types import annotated, as_union, classes_of
from dcplint.flow.universe import Universe
from dcplint.flow.values import (
    UNKNOWN,
    Context,
    Outcome,
    Point,
    State,
    Step,
    merged,
    points_of,
    step,
    through,
    within,
)
from dcplint.flow.walk import Walk
from dcplint.program.symbols import ClassSymbol, Literal, Module

__all__ = ["Context", "Outcome", "Path", "State", "Step", "Tracer", "merged", "null_test"]

_DEPTH = 48  # values in terms of values


@dataclass
class Tracer:
    """Traces values through `universe` with DCP on, or off."""

    universe: Universe
    on: bool = True
    scenario: Scenario = field(init=False)
    lookup: Lookup = field(init=False)
    identity: Identity = field(init=False)
    evaluation: Evaluation = field(init=False)
    instances: Instances = field(init=False)
    _answers: dict[object, tuple[Outcome, ...]] = field(default_factory=dict)
    _memo: dict[object, tuple[Outcome, ...]] = field(default_factory=dict)
    _of_rounds: dict[object, tuple[Outcome, ...]] = field(default_factory=dict)
    _goes_round: bool = False
    _tentative: dict[object, tuple[Outcome, ...]] = field(default_factory=dict)
    _active: dict[object, int] = field(default_factory=dict)
    _met: int = _DEPTH
    budget: Budget = field(default_factory=Budget)
    _live: dict[Function, bool] = field(default_factory=dict)
    feasible: dict[object, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.scenario = Scenario(self.universe, self.on)
        self.lookup = self.scenario.lookup
        self.identity = Identity(self.universe, self.lookup)
        self.evaluation = Evaluation(self)
        self.instances = Instances(self)

    # Questions

    def before(self, function: Function, statement: ast.stmt, path: Path) -> tuple[Outcome, ...]:
        """What `path` can be just before `statement` runs with DCP on."""
        points = (Point(function, node) for node in function.graph.at(statement))
        return self._answer(
            (statement, path), lambda: (o for point in points for o in self.at(point, path))
        )

    def value(self, function: Function, statement: ast.stmt, node: ast.expr) -> tuple[Outcome, ...]:
        """What `node`, an expression of `statement`, can be with DCP on."""
        points = (Point(function, at) for at in function.graph.at(statement))
        return self._answer(
            (statement, node),
            lambda: (o for point in points for o in self.evaluation.of(point, node, ())),
        )

    def returned(self, function: Function, path: Path) -> tuple[Outcome, ...]:
        """What `path` of a function's result can be with DCP on: `(1,)` is its second element."""
        return self._answer((function, path), lambda: self.evaluation.returned(function, path, ()))

    def _answer(
        self, question: object, work: Callable[[], Iterable[Outcome]]
    ) -> tuple[Outcome, ...]:
        """The answer to a question: the same one each time, whatever else has been asked."""
        if question not in self._answers:
            self.budget.begin()
            self._of_rounds.clear()
            self._answers[question] = merged(work())
        return self._answers[question]

    def can_run(self, function: Function, statement: ast.stmt) -> bool:
        """Whether `statement` can run with DCP on, as far as the function itself tells."""
        return self.scenario.can_run(function, statement)

    def is_live(self, function: Function, depth: int = 4) -> bool:
        """Whether `function` can run with DCP on: not where every caller runs only without it."""
        if function in self._live:
            return self._live[function]
        self._live[function] = True  # a function that calls itself is as live as its other callers
        sites = self.universe.callers(function) if depth else ()
        live = self._is_entered(function, sites) or any(
            self.can_run(site.function, site.statement) and self.is_live(site.function, depth - 1)
            for site in sites
        )
        self._live[function] = live
        return live

    def _is_entered(self, function: Function, sites: Sequence[CallSite]) -> bool:
        """Whether a function is run by calls that are not seen here.

        Where only subclasses call a method, by `super()`, somebody else calls it on the instances
        of its own class; a call on what may be anything may be meant for another class's method.
        """
        if function.owner is None or not sites:
            return not sites
        return not self.universe.program.abstract_methods(function.owner) and all(
            isinstance(callee := site.call.func, ast.Attribute)
            and (
                (isinstance(on := callee.value, ast.Call) and callee_name(on) == "super")
                or not classes_of(self.universe, site.function, on)
            )
            for site in sites
        )

    # Walking back

    def at(self, point: Point, path: Path) -> tuple[Outcome, ...]:
        """First without telling ways apart: that is cheap, and often all that is needed."""
        bare = replace(point, conditions=Conditions()) if point.conditions.tests else point
        rough = self.once((bare, path, "rough"), lambda: self._walked(bare, path, exact=False))
        if len({outcome.state for outcome in rough}) < 2:
            return rough
        return self.once((point, path), lambda: self._walked(point, path, exact=True))

    def _walked(self, point: Point, path: Path, exact: bool) -> Iterable[Outcome]:
        if point.node is None:
            edges = point.function.graph.end.before
        else:
            bound = self._bound_inside(point, path)
            if bound is not None:
                return bound
            edges = point.node.before
        found = Walk(self, point, exact).result(edges, path)
        return (*found, *UNKNOWN) if path[0] in point.function.nonlocals else found

    def is_worth_it(self) -> bool:
        """Whether the question at hand may take one more step; else its answer is not settled."""
        if self.budget.step():
            return True
        self._met = -1
        return False

    def _bound_inside(self, point: Point, path: Path) -> tuple[Outcome, ...] | None:
        """A variable that the statement at hand binds on its way: `if (m := make()).x is None`."""
        assert point.node is not None
        statement = point.node.statement
        if not isinstance(statement, (ast.If, ast.While, ast.Assert, ast.Return, ast.Expr)):
            return None
        for node in point.function.own_nodes[statement]:
            if isinstance(node, ast.NamedExpr) and node.target.id == path[0]:
                return self.evaluation.of(point, node.value, path[1:])
        return None

    def once(self, key: object, work: Callable[[], Iterable[Outcome]]) -> tuple[Outcome, ...]:
        """The result of `work`, remembered unless it rests on a question that is still open.

        What was found by going round in a circle is forgotten with the question at hand: how much
        work it takes depends on where the circle is entered.
        """
        if key in self._memo:
            self.budget.recall(key)
            return self._memo[key]
        if key in self._of_rounds:
            self._goes_round = True
            self.budget.recall(key)
            return self._of_rounds[key]
        if key in self._tentative:
            self._goes_round = True
            return self._tentative[key]
        if key in self._active:
            self._goes_round = True
            self._met = min(self._met, self._active[key])
            return ()  # a value in terms of itself adds nothing
        depth = len(self._active)
        if depth > _DEPTH or self.budget.is_spent:
            self._met = -1
            return UNKNOWN
        self.budget.enter()
        outer, self._met = self._met, _DEPTH
        went_round, self._goes_round = self._goes_round, False
        self._active[key] = depth
        try:
            found = merged(work())
        finally:
            del self._active[key]
        is_settled = self._met >= depth
        self.budget.leave(key if is_settled else None)
        if is_settled:
            (self._of_rounds if self._goes_round else self._memo)[key] = found
            if depth == 0 or self._met == depth:
                self._tentative.clear()
        elif depth:
            self._tentative[key] = found
        else:
            self._tentative.clear()
        self._met = min(outer, self._met) if self._met < depth else outer
        self._goes_round |= went_round
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
                return self.instances.attribute(function, path)
            at = replace(point, node=None, stop=None)
            return self.once((at, path, "entry"), lambda: self._from_callers(at, path))
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
                return UNKNOWN
            for where in points_of(site, point.context[:-1]):
                found += self.evaluation.of(where, instance, path[1:])
        return tuple(found) or UNKNOWN

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

    def _from_callers(self, point: Point, path: Path) -> tuple[Outcome, ...]:
        function, name, rest = point.function, str(path[0]), path[1:]
        if point.context:
            sites: Iterable[CallSite] = point.context[-1:]
        else:
            sites = self.universe.callers(function)
        found: list[Outcome] = []
        if not point.context and self.lookup.escapes(function):
            found += UNKNOWN
        for site in sites:
            if not self.can_run(site.function, site.statement):
                continue
            if not self._agrees(function, site, point.conditions):
                continue
            passed = argument(function, site.call, name)
            if passed is None:
                found += UNKNOWN
                continue
            for where in points_of(site, point.context[:-1]):
                text = f"{site.function.qualname} calls {function.qualname}"
                given_here = self.evaluation.of(where, passed, rest)
                if passed is default(function, name):
                    # It stands in the callee; what was left out was left out here.
                    text = f"{text} without `{name}`"
                    given_here = tuple(replace(o, steps=()) for o in given_here)
                if any(o.state is State.NONE for o in given_here) and not point.context:
                    # What only a dead caller passes does not count; most callers are live.
                    given_here = given_here if self.is_live(site.function) else ()
                found += through(step(where, site.call, text), given_here)
        return tuple(found) or UNKNOWN

    def _from_outer(self, outer: Function, point: Point, path: Path) -> tuple[Outcome, ...]:
        """A free variable of a nested function: its value where that function is called."""
        inside = [s for s in self.universe.callers(point.function) if s.function is outer]
        points = [p for site in inside for p in points_of(site, ())]
        if not points or self.lookup.escapes(point.function):
            points.append(Point(outer, None))
        return tuple(o for p in points for o in self.at(p, path))

    def _global(self, point: Point, path: Path) -> tuple[Outcome, ...]:
        function = point.function
        root = str(path[0])
        symbol = function.named(self.universe.program.linker, root)
        if isinstance(symbol, Literal) and len(path) == 1:
            if self.lookup.rebinds_global(function.module, root):
                return UNKNOWN
            return (Outcome(State.NONE if symbol.value is None else State.SET),)
        if isinstance(symbol, (ClassSymbol, Module)) and len(path) == 1:
            return (Outcome(State.SET),)
        return UNKNOWN

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
                    end = Point(callee, None, within(point.context, site) or (site,), inner)
                    outcomes = self.at(end, inner)
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


def _is_given_names(call: ast.Call) -> bool:
    """Whether a call is given anything that a name or an attribute stands for."""
    receiver_ = call.func.value if isinstance(call.func, ast.Attribute) else None
    given = (receiver_, *call.args, *(k.value for k in call.keywords))
    return any(isinstance(value, (ast.Name, ast.Attribute, ast.Call)) for value in given)


def _is_certain(statement: ast.stmt, call: ast.Call) -> bool:
    """Whether a statement always makes `call`: it is its whole value."""
    value = getattr(statement, "value", None)
    if isinstance(value, ast.Await):
        value = value.value
    return value is call
