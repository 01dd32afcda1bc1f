"""Where a value comes from, followed backwards through statements, objects and calls.

`Tracer.before` answers: what can the expression `a.b.c` be, just before a statement, when DCP is
on? It walks back over the statements that can have run, keeps to the branches that can be taken,
steps into what it finds (an attribute of a record is what the record was built with, or what was
assigned since; a call is what its function returns; a parameter is what the callers pass) and ends
at outcomes: set, None, or unknown, each with the steps that led there.

What is not modelled (containers beyond one level, reflection, values out of other packages'
objects) is unknown, never guessed.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from dcplint.facts.expressions import dotted_name, shorten
from dcplint.facts.model import Position, Setting
from dcplint.facts.positions import position
from dcplint.facts.statements import pairs
from dcplint.flow.functions import (
    CallSite,
    Function,
    Universe,
    argument,
    blocks,
    callee_name,
    calls,
)
from dcplint.flow.scenario import Known, Scenario
from dcplint.flow.types import attribute_settings
from dcplint.program.symbols import ClassSymbol, Literal, Module

Path = tuple[str | int, ...]
"""A variable, then attribute names. A number is an element of a tuple, `*` any element."""

Context = tuple[CallSite, ...]
"""The calls that led into the function at hand, outermost first; empty where any may have."""

_DEPTH = 40
_CONTEXT = 4
_EXITS = (ast.Return, ast.Raise, ast.Continue, ast.Break)


class State(enum.Enum):
    """What is known of a value."""

    SET = "set"
    NONE = "None"
    UNKNOWN = "unknown"
    ENTRY = "entry"  # unchanged since the function was entered


@dataclass(frozen=True, slots=True)
class Step:
    """One place on the way of a value. `symbol` is the function it lies in."""

    module: Module
    position: Position
    text: str
    symbol: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """One possible value, and its way from the consumer (first) to its origin (last)."""

    state: State
    steps: tuple[Step, ...] = ()

    @property
    def origin(self) -> Step | None:
        """Where the value is made."""
        return self.steps[-1] if self.steps else None


@dataclass(frozen=True, slots=True)
class _Point:
    """A place to look from: before `statement` in `function`, reached through `context`."""

    function: Function
    statement: ast.stmt
    context: Context = ()
    stop_at_entry: bool = False


@dataclass
class Tracer:
    """Traces values through `universe`."""

    universe: Universe
    scenario: Scenario = field(init=False)
    _memo: dict[object, tuple[Outcome, ...]] = field(default_factory=dict)
    _active: set[object] = field(default_factory=set)
    _leaves: dict[ast.stmt, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.scenario = Scenario(self.universe)

    # Questions

    def before(self, function: Function, statement: ast.stmt, path: Path) -> tuple[Outcome, ...]:
        """What `path` can be just before `statement` runs with DCP on."""
        return self._before(_Point(function, statement), path)

    def value(self, function: Function, statement: ast.stmt, node: ast.expr) -> tuple[Outcome, ...]:
        """What `node`, an expression of `statement`, can be with DCP on."""
        return self._value(_Point(function, statement), node, ())

    def returned(self, function: Function, path: Path) -> tuple[Outcome, ...]:
        """What `path` of a function's result can be with DCP on: `(1,)` is its second element."""
        return merged(self._returned(function, path, ()))

    def can_run(self, function: Function, statement: ast.stmt) -> bool:
        """Whether `statement` can run with DCP on, as far as the function itself tells."""
        node: ast.stmt | None = statement
        while node is not None:
            home = function.homes[node]
            if any(self._always_leaves(function, n) for n in home.block[: home.index]):
                return False
            if isinstance(home.parent, ast.If):
                truth = self.scenario.truth(function, home.parent.test)
                if truth is not None and (home.block is home.parent.body) is not truth:
                    return False
            node = home.parent
        return True

    def _always_leaves(self, function: Function, node: ast.stmt) -> bool:
        if node not in self._leaves:
            self._leaves[node] = self._find_leaving(function, node)
        return self._leaves[node]

    def _find_leaving(self, function: Function, node: ast.stmt) -> bool:
        if isinstance(node, _EXITS):
            return True
        if isinstance(node, ast.Assert):
            return self.scenario.truth(function, node.test) is False
        if not isinstance(node, ast.If):
            return False
        taken = any(self._always_leaves(function, n) for n in node.body)
        other = any(self._always_leaves(function, n) for n in node.orelse)
        if taken is other:
            return taken
        truth = self.scenario.truth(function, node.test)
        return taken if truth is True else truth is False and other

    # Walking back

    def _before(self, point: _Point, path: Path) -> tuple[Outcome, ...]:
        key = (point, path)
        if key in self._memo:
            return self._memo[key]
        if key in self._active:
            return ()  # a value in terms of itself adds nothing
        if len(self._active) > _DEPTH:
            return (Outcome(State.UNKNOWN),)
        self._active.add(key)
        try:
            found = merged(self._walk(point, path))
        finally:
            self._active.discard(key)
        self._memo[key] = found
        return found

    def _walk(self, point: _Point, path: Path) -> tuple[Outcome, ...]:
        walk = _Walk(self, point, path, _decided(point.function, point.statement))
        node: ast.stmt | None = point.statement
        while node is not None:
            home = point.function.homes[node]
            if walk.back(home.block, home.index):
                return walk.result()
            parent = home.parent
            if parent is not None and walk.enter(parent, home.block):
                return walk.result()
            node = parent
        walk.take(self._at_entry(point, path))
        return walk.result()

    def _at_entry(self, point: _Point, path: Path) -> tuple[Outcome, ...]:
        """What `path` is when the function starts."""
        function, root = point.function, str(path[0])
        if root in function.parameters:
            if point.stop_at_entry:
                return (Outcome(State.ENTRY),)
            if function.is_method and root == function.parameters[0] and len(path) > 1:
                return self._attribute(function, path)
            return self._from_callers(point, path)
        if function.outer is not None:
            return self._from_outer(point, path)
        return self._global(point, path)

    def _from_callers(self, point: _Point, path: Path) -> tuple[Outcome, ...]:
        function, name, rest = point.function, str(path[0]), path[1:]
        if point.context:
            sites: Iterable[CallSite] = point.context[-1:]
        else:
            sites = self.universe.callers(function)
        found: list[Outcome] = []
        for site in sites:
            if not self.can_run(site.function, site.statement):
                continue
            passed = argument(function, site.call, name)
            where = _Point(site.function, site.statement, point.context[:-1])
            if passed is None:
                found.append(Outcome(State.UNKNOWN))
                continue
            step = _step(
                site.function, site.call, f"{site.function.qualname} calls {function.qualname}"
            )
            given = any(passed is node for node in ast.walk(site.call))
            if not given and isinstance(passed, ast.Constant) and not rest:
                text = f"{site.function.qualname} calls {function.qualname} without `{name}`"
                step = replace(step, text=text)
            found += _through(step, self._value(where, passed, rest))
        return tuple(found) or (Outcome(State.UNKNOWN),)

    def _from_outer(self, point: _Point, path: Path) -> tuple[Outcome, ...]:
        """A free variable of a nested function: its value where that function is called."""
        outer = point.function.outer
        assert outer is not None
        sites = [s for s in self.universe.callers(point.function)]
        inside = [s.statement for s in sites if s.function is outer]
        statements = inside or [outer.node.body[-1]]
        return tuple(o for s in statements for o in self._before(_Point(outer, s), path))

    def _attribute(self, function: Function, path: Path) -> tuple[Outcome, ...]:
        """`self.name…`: whatever the class's methods set it to."""
        if function.owner is None:
            return (Outcome(State.UNKNOWN),)
        key = (function.owner, path[1:])
        if key in self._memo:
            return self._memo[key]
        if key in self._active:
            return ()
        self._active.add(key)
        try:
            found = merged(self._attribute_values(function.owner, str(path[1]), path[2:]))
        finally:
            self._active.discard(key)
        self._memo[key] = found
        return found

    def _attribute_values(self, owner: ClassSymbol, name: str, rest: Path) -> tuple[Outcome, ...]:
        found: list[Outcome] = []
        for method, value, annotation in attribute_settings(self.universe, owner, name):
            if value is None:
                if annotation is None:
                    found += self._returned(method, rest, ())
                continue
            statement = next(s for s in method.homes if getattr(s, "value", None) is value)
            if self.can_run(method, statement):
                found += self._value(_Point(method, statement), value, rest)
        return tuple(found) or (Outcome(State.UNKNOWN),)

    def _global(self, point: _Point, path: Path) -> tuple[Outcome, ...]:
        function = point.function
        symbol = self.universe.program.linker.name(function.module, str(path[0]), function.scopes)
        if isinstance(symbol, Literal) and len(path) == 1:
            state = State.NONE if symbol.value is None else State.SET
            return (Outcome(state),)
        if isinstance(symbol, (ClassSymbol, Module)) and len(path) == 1:
            return (Outcome(State.SET),)
        return (Outcome(State.UNKNOWN),)

    # Expressions

    def _value(self, point: _Point, node: ast.expr, rest: Path) -> tuple[Outcome, ...]:
        """What `node` followed by the attributes `rest` can be."""
        dotted = dotted_name(node)
        if dotted is not None:
            source = self._comprehended(point, dotted.split(".")[0])
            tail = (*dotted.split(".")[1:], *rest)
            if source is not None:
                return self._value(point, source, ("*", *tail))
            return self._before(point, (*dotted.split("."), *rest))
        if isinstance(node, ast.Constant):
            if rest:
                return ()  # reading an attribute of a constant fails: nothing comes of it
            if node.value is None:
                step = _step(point.function, node, "None")
                return (Outcome(State.NONE, (step,)),)
            return (Outcome(State.SET),)
        if isinstance(node, ast.IfExp):
            return self._choice(point, node, rest)
        if isinstance(node, ast.BoolOp):
            return self._either(point, node, rest)
        if isinstance(node, (ast.NamedExpr, ast.Await, ast.Starred)):
            return self._value(point, node.value, rest)
        if isinstance(node, ast.Call):
            return self._call(point, node, rest)
        if isinstance(node, ast.Subscript) and not rest:
            return self._sliced(point, node)
        if not rest:
            return (Outcome(State.SET, (_step(point.function, node, shorten(node)),)),)
        return self._inside(point, node, rest)

    def _sliced(self, point: _Point, node: ast.Subscript) -> tuple[Outcome, ...]:
        """A slice is set, and comes from wherever what it slices is set; None cannot be sliced."""
        step = _step(point.function, node, shorten(node))
        if dotted_name(node.value) is None:
            return (Outcome(State.SET, (step,)),)
        found = (o for o in self._value(point, node.value, ()) if o.state is State.SET)
        return _through(step, found) or (Outcome(State.SET, (step,)),)

    def _inside(self, point: _Point, node: ast.expr, rest: Path) -> tuple[Outcome, ...]:
        """An element or attribute of a display, a comprehension, a subscript or an attribute."""
        first, tail = rest[0], rest[1:]
        if isinstance(node, ast.Attribute):
            return self._value(point, node.value, (node.attr, *rest))
        if isinstance(node, ast.Subscript):
            return self._value(point, node.value, ("*", *rest))
        if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)) and first == "*":
            return self._value(point, node.elt, tail)
        if isinstance(node, (ast.List, ast.Tuple)):
            if isinstance(first, int) and first < len(node.elts):
                return self._value(point, node.elts[first], tail)
            if first == "*":
                return tuple(o for e in node.elts for o in self._value(point, e, tail))
        return (Outcome(State.UNKNOWN),)

    def _choice(self, point: _Point, node: ast.IfExp, rest: Path) -> tuple[Outcome, ...]:
        known = _decided(point.function, point.statement)
        truth = self.scenario.truth(point.function, node.test, known)
        if truth is not None:
            return self._value(point, node.body if truth else node.orelse, rest)
        tested = null_test(node.test)
        if tested is None:
            return (*self._value(point, node.body, rest), *self._value(point, node.orelse, rest))
        path, when_none = tested
        taken, other = (node.body, node.orelse) if when_none else (node.orelse, node.body)
        found: list[Outcome] = []
        states = self._before(point, path)
        for outcome in states:
            branch = taken if outcome.state is State.NONE else other
            value = self._value(point, branch, rest)
            if outcome.state is State.NONE:
                value = tuple(replace(v, steps=outcome.steps) for v in value)
            elif dotted_name(branch) == ".".join(map(str, path)) and not rest:
                value = (outcome,)
            found += value
        return tuple(dict.fromkeys(found))

    def _either(self, point: _Point, node: ast.BoolOp, rest: Path) -> tuple[Outcome, ...]:
        found: list[Outcome] = []
        for position_, value in enumerate(node.values):
            outcomes = self._value(point, value, rest)
            last = position_ == len(node.values) - 1
            if isinstance(node.op, ast.Or) and not last:
                outcomes = tuple(o for o in outcomes if o.state is not State.NONE)
            found += outcomes
        return tuple(found)

    def _comprehended(self, point: _Point, name: str) -> ast.expr | None:
        """What a comprehension of the statement runs over, where it binds `name`."""
        for expression in ast.iter_child_nodes(point.statement):
            for node in ast.walk(expression) if isinstance(expression, ast.expr) else ():
                for generator in getattr(node, "generators", ()):
                    if isinstance(generator.target, ast.Name) and generator.target.id == name:
                        return generator.iter  # type: ignore[no-any-return]
        return None

    # Calls

    def _call(self, point: _Point, call: ast.Call, rest: Path) -> tuple[Outcome, ...]:
        name = callee_name(call)
        if rest:
            handed = self._handed_on(point, call, name, rest)
            if handed is not None:
                return handed
        lambda_ = self._lambda(point.function, call)
        if lambda_ is not None:
            return self._value(point, _applied(lambda_, call), rest)
        built = self._class(point.function, call)
        if built is not None:
            return self._constructed(point, call, built, rest)
        callees = self.universe.callees(point.function, call, point.statement)
        if callees:
            site = CallSite(point.function, point.statement, call)
            context = (*point.context, site) if len(point.context) < _CONTEXT else ()
            return tuple(o for callee in callees for o in self._returned(callee, rest, context))
        if not rest:
            return (Outcome(State.SET, (_step(point.function, call, shorten(call)),)),)
        return (Outcome(State.UNKNOWN),)

    def _handed_on(
        self, point: _Point, call: ast.Call, name: str, rest: Path
    ) -> tuple[Outcome, ...] | None:
        """Calls whose result has the attributes of an argument: replace, copy, enumerate, zip, …"""
        receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
        if name in ("replace", "_replace"):
            from_module = receiver is None or dotted_name(receiver) in ("dataclasses", "copy")
            record = (call.args[0] if call.args else None) if from_module else receiver
            if record is None:
                return None
            return self._replaced(point, call, record, rest)
        if name in ("copy", "deepcopy", "__copy__"):
            return self._value(point, call.args[0] if call.args else receiver or call, rest)
        if name in ("list", "tuple", "reversed", "sorted", "iter") and call.args:
            return self._value(point, call.args[0], rest)
        if name == "cast" and len(call.args) == 2:
            return self._value(point, call.args[1], rest)
        if rest[:1] == ("*",) and len(rest) > 1 and isinstance(rest[1], int):
            if name == "enumerate" and rest[1] == 1 and call.args:
                return self._value(point, call.args[0], ("*", *rest[2:]))
            if name == "zip" and rest[1] < len(call.args):
                return self._value(point, call.args[rest[1]], ("*", *rest[2:]))
        return None

    def _replaced(
        self, point: _Point, call: ast.Call, record: ast.expr, rest: Path
    ) -> tuple[Outcome, ...]:
        for keyword in call.keywords:
            if keyword.arg == rest[0]:
                step = _step(point.function, keyword.value, f"replaced by {shorten(keyword.value)}")
                return _through(step, self._value(point, keyword.value, rest[1:]))
            if keyword.arg is None:
                return (Outcome(State.UNKNOWN),)
        return self._value(point, record, rest)

    def _lambda(self, function: Function, call: ast.Call) -> ast.Lambda | None:
        if not isinstance(call.func, ast.Name):
            return None
        for node in function.homes:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
                if any(isinstance(t, ast.Name) and t.id == call.func.id for t in node.targets):
                    return node.value
        return None

    def _class(self, function: Function, call: ast.Call) -> ClassSymbol | None:
        dotted = dotted_name(call.func)
        if dotted is None:
            return None
        if dotted == "cls" and function.is_method and "cls" in function.parameters:
            return function.owner
        found = self.universe.program.linker.name(function.module, dotted, function.scopes)
        return found if isinstance(found, ClassSymbol) else None

    def _constructed(
        self, point: _Point, call: ast.Call, built: ClassSymbol, rest: Path
    ) -> tuple[Outcome, ...]:
        """An attribute of a new object: the argument that sets it, or the class's default."""
        if not rest:
            return (Outcome(State.SET),)
        name = rest[0]
        if isinstance(name, int):  # a named tuple taken apart
            fields = fields_of(self.universe, built)
            if name >= len(fields):
                return (Outcome(State.UNKNOWN),)
            name = fields[name]
        passed = self._field_argument(call, built, str(name))
        if passed is None and any(k.arg is None for k in call.keywords):
            return (Outcome(State.UNKNOWN),)
        if passed is not None:
            text = f"{built} is built with {name}={shorten(passed)}"
            step = _step(point.function, call, text)
            return _through(step, self._value(point, passed, rest[1:]))
        for entry in self.universe.program.mro(built).classes:
            for fact in entry.facts.attributes:
                if fact.name == name and fact.setting is Setting.CLASS_BODY and len(rest) == 1:
                    if fact.value.kind == "literal" and fact.value.value is None:
                        step = _step(point.function, call, f"{built} is built without {name}")
                        return (Outcome(State.NONE, (step,)),)
                    return (Outcome(State.SET),)
        return (Outcome(State.UNKNOWN),)

    def _field_argument(self, call: ast.Call, built: ClassSymbol, name: str) -> ast.expr | None:
        for keyword in call.keywords:
            if keyword.arg == name:
                return keyword.value
        fields = fields_of(self.universe, built)
        if name in fields and not any(isinstance(a, ast.Starred) for a in call.args):
            index = fields.index(name)
            if index < len(call.args):
                return call.args[index]
        return None

    def _returned(self, callee: Function, rest: Path, context: Context) -> tuple[Outcome, ...]:
        found: list[Outcome] = []
        for node in callee.homes:
            if not isinstance(node, ast.Return) or not self.can_run(callee, node):
                continue
            point = _Point(callee, node, context)
            if node.value is not None:
                found += self._value(point, node.value, rest)
            elif not rest:
                step = _step(callee, node, f"{callee.qualname} returns nothing")
                found.append(Outcome(State.NONE, (step,)))
        return tuple(found) or (Outcome(State.UNKNOWN),)

    def _changed_by_call(self, point: _Point, node: ast.stmt, path: Path) -> tuple[Outcome, ...]:
        """What calls in `node` make of `path`, where they are given its object and set it."""
        attribute = path[-1]
        for call in calls(node):
            for callee in self.universe.callees(point.function, call, node):
                if not _sets(callee, str(attribute)):
                    continue
                for name in callee.parameters:
                    passed = argument(callee, call, name)
                    dotted = dotted_name(passed) if passed is not None else None
                    prefix = tuple(dotted.split(".")) if dotted else ()
                    if not prefix or path[: len(prefix)] != prefix or len(prefix) == len(path):
                        continue
                    site = CallSite(point.function, node, call)
                    end = _Point(callee, _END, (*point.context, site), stop_at_entry=True)
                    found = self._at_end(end, (name, *path[len(prefix) :]))
                    if any(o.state is not State.ENTRY for o in found):
                        return found
        return ()

    def _at_end(self, point: _Point, path: Path) -> tuple[Outcome, ...]:
        """What `path` is when the function of `point` has run to its end."""
        walk = _Walk(self, point, path, {})
        body = point.function.node.body
        if not walk.back(body, len(body)):
            walk.take(self._at_entry(point, path))
        return walk.result()


_END = ast.Pass()  # stands for the end of a function's body


@dataclass
class _Walk:
    """One walk back through a function, collecting what `path` can have been given.

    must: what a test passed on the way says of the value: True not None, False None.
    """

    tracer: Tracer
    point: _Point
    path: Path
    known: Known
    must: bool | None = None
    found: list[Outcome] = field(default_factory=list)

    def result(self) -> tuple[Outcome, ...]:
        """The outcomes, each once."""
        return tuple(dict.fromkeys(self.found))

    def take(self, outcomes: Iterable[Outcome]) -> None:
        """Collect outcomes that agree with what is known of the value."""
        for outcome in outcomes:
            if self.must is True and outcome.state is State.NONE:
                continue
            if self.must is False and outcome.state is State.SET:
                continue
            self.found.append(outcome)

    def back(self, block: list[ast.stmt], end: int) -> bool:
        """Walk `block` back from `end`; whether a definition on every path was met."""
        return any(self.statement(block[index]) for index in range(end - 1, -1, -1))

    def enter(self, parent: ast.stmt, block: list[ast.stmt]) -> bool:
        """Leave a block upwards: what its header binds or says of the value."""
        if isinstance(parent, (ast.For, ast.AsyncFor)) and block is parent.body:
            return self._loop_target(parent)
        if isinstance(parent, ast.If):
            self._learn(parent.test, block is parent.body)
        return False

    def statement(self, node: ast.stmt) -> bool:
        """Take in one statement; whether it defines the value on every path through it."""
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if self._assign(node, target, node.value):
                    return True
        elif isinstance(node, ast.If):
            return self._branches(node)
        elif isinstance(node, ast.Assert):
            self._learn(node.test, True)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            return self.back(node.body, len(node.body))
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.While, ast.Match, ast.Try)):
            self._maybe(node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            self._added(node, node.value)
        if len(self.path) > 1:
            return self._by_call(node)
        return False

    def _added(self, node: ast.stmt, call: ast.Call) -> None:
        """`list.append(value)` and its kin add an element."""
        if callee_name(call) not in ("append", "add") or len(call.args) != 1:
            return
        assert isinstance(call.func, ast.Attribute)
        rest = self._rest(call.func.value)
        if rest and rest[0] == "*":
            point = replace(self.point, statement=node)
            self.take(self.tracer._value(point, call.args[0], rest[1:]))

    def _by_call(self, node: ast.stmt) -> bool:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return False
        outcomes = self.tracer._changed_by_call(self.point, node, self.path)
        self.take(o for o in outcomes if o.state is not State.ENTRY)
        return bool(outcomes) and all(o.state is not State.ENTRY for o in outcomes)

    def _assign(self, node: ast.stmt, target: ast.expr, value: ast.expr) -> bool:
        point = replace(self.point, statement=node)
        if isinstance(target, (ast.Tuple, ast.List)) and not isinstance(
            value, (ast.Tuple, ast.List)
        ):
            for index, element in enumerate(target.elts):
                rest = self._rest(element)
                if rest is not None:
                    self.take(self.tracer._value(point, value, (index, *rest)))
                    return True
            return False
        for place, right in pairs(target, value):
            rest = self._rest(place)
            if rest is not None:
                outcomes: tuple[Outcome, ...] = (Outcome(State.UNKNOWN),)
                if right is not None:
                    outcomes = self.tracer._value(point, right, rest)
                if not rest and len(self.path) > 1:
                    written = shorten(right) if right is not None else "…"
                    step = _step(point.function, node, f"{shorten(place)} = {written}")
                    outcomes = _through(step, outcomes)
                self.take(outcomes)
                return True
        return False

    def _rest(self, target: ast.expr) -> Path | None:
        """What is left of the path behind `target`, where `target` is a prefix of it."""
        dotted = dotted_name(target)
        if dotted is None:
            return None
        parts = tuple(dotted.split("."))
        return self.path[len(parts) :] if self.path[: len(parts)] == parts else None

    def _loop_target(self, node: ast.For | ast.AsyncFor) -> bool:
        point = replace(self.point, statement=node)
        targets = [(node.target, ("*",))]
        if isinstance(node.target, (ast.Tuple, ast.List)):
            targets = [(e, ("*", i)) for i, e in enumerate(node.target.elts)]  # type: ignore[misc]
        for target, element in targets:
            rest = self._rest(target)
            if rest is not None:
                self.take(self.tracer._value(point, node.iter, (*element, *rest)))
                return True
        return False

    def _branches(self, node: ast.If) -> bool:
        function = self.point.function
        truth = self.tracer.scenario.truth(function, node.test, self.known)
        if truth is not None:
            live = node.body if truth else node.orelse
            return self.back(live, len(live))
        sides = [self._side(node, node.body, True), self._side(node, node.orelse, False)]
        open_sides = [(holds, defined) for holds, defined, leaves in sides if not leaves]
        if all(defined for _, defined in open_sides):
            return bool(open_sides)
        undefined = [holds for holds, defined in open_sides if not defined]
        if len(undefined) == 1:
            # What was there before survives only where the test says so.
            self._learn(node.test, undefined[0])
        return False

    def _side(self, node: ast.If, block: list[ast.stmt], holds: bool) -> tuple[bool, bool, bool]:
        """(which side, whether it defines the value, whether it leaves), collecting outcomes."""
        if any(self.tracer._always_leaves(self.point.function, n) for n in block):
            return holds, False, True
        inner = replace(self, found=[])
        defined = inner.back(block, len(block))
        self.found += inner.found
        return holds, defined, False

    def _maybe(self, node: ast.stmt) -> None:
        """A loop, `match` or `try`: its blocks may have run."""
        for block in blocks(node):
            inner = replace(self, found=[])
            inner.back(block, len(block))
            self.found += inner.found

    def _learn(self, test: ast.expr, holds: bool) -> None:
        """Take note of what a test that came out as `holds` says of the value."""
        if isinstance(test, ast.BoolOp):
            decisive = isinstance(test.op, ast.Or)
            parts = test.values
            if decisive is holds:
                # One part decided; which, is known where the others are known not to have.
                function, truth = self.point.function, self.tracer.scenario.truth
                parts = [p for p in parts if truth(function, p, self.known) is not (not decisive)]
                if len(parts) > 1:
                    return
            for part in parts:
                self._learn(part, holds)
            return
        tested = null_test(test)
        if tested is not None and tested[0] == self.path:
            self.must = tested[1] is not holds


def merged(outcomes: Iterable[Outcome]) -> tuple[Outcome, ...]:
    """One outcome per state and origin, by the shortest way; what is merely unknown once."""
    best: dict[object, Outcome] = {}
    for outcome in outcomes:
        origin = outcome.origin
        key = (outcome.state, origin and (origin.module, origin.position))
        if outcome.state is State.UNKNOWN:
            key = (outcome.state, origin and (origin.module, origin.position))
        if key not in best or len(outcome.steps) < len(best[key].steps):
            best[key] = outcome
    return tuple(best.values())


def null_test(test: ast.expr) -> tuple[Path, bool] | None:
    """(path, True) for `path is None`, (path, False) for `path is not None`, also negated."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = null_test(test.operand)
        return (inner[0], not inner[1]) if inner else None
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    right = test.comparators[0]
    if not isinstance(right, ast.Constant) or right.value is not None:
        return None
    left = test.left.target if isinstance(test.left, ast.NamedExpr) else test.left
    dotted = dotted_name(left)
    if dotted is None or not isinstance(test.ops[0], (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)):
        return None
    return tuple(dotted.split(".")), isinstance(test.ops[0], (ast.Is, ast.Eq))


def fields_of(universe: Universe, symbol: ClassSymbol) -> tuple[str, ...]:
    """Field names of a dataclass in constructor order, bases first."""
    names: dict[str, None] = {}
    for entry in reversed(universe.program.mro(symbol).classes):
        for fact in entry.facts.attributes:
            if fact.annotation and "ClassVar" not in fact.annotation:
                names[fact.name] = None
    return tuple(names)


def _decided(function: Function, statement: ast.stmt) -> Known:
    """Tests whose value is known where `statement` runs, by their dump."""
    known: Known = {}
    node: ast.stmt | None = statement if statement in function.homes else None
    while node is not None:
        home = function.homes[node]
        if isinstance(home.parent, ast.If):
            _decide(home.parent.test, home.block is home.parent.body, known)
        for earlier in home.block[: home.index]:
            if isinstance(earlier, ast.If) and not earlier.orelse:
                if isinstance(earlier.body[-1], _EXITS):
                    _decide(earlier.test, False, known)
        node = home.parent
    return known


def _decide(test: ast.expr, holds: bool, known: Known) -> None:
    known.setdefault(ast.dump(test), holds)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        _decide(test.operand, not holds, known)
    elif isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) is holds:
        for value in test.values:
            _decide(value, holds, known)


def _applied(lambda_: ast.Lambda, call: ast.Call) -> ast.expr:
    """The body of a lambda with the arguments of `call` in place of its parameters."""
    names = [a.arg for a in lambda_.args.args]
    given = dict(zip(names, call.args, strict=False))

    class _Substitute(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return given.get(node.id, node)

    import copy

    return _Substitute().visit(copy.deepcopy(lambda_.body))  # type: ignore[no-any-return]


def _sets(function: Function, attribute: str) -> bool:
    return any(
        isinstance(target, ast.Attribute) and target.attr == attribute
        for node in function.homes
        if isinstance(node, ast.Assign)
        for target in node.targets
    )


def _step(function: Function, node: ast.AST, text: str) -> Step:
    return Step(function.module, position(node), text, function.qualname)


def _through(step: Step, outcomes: Iterable[Outcome]) -> tuple[Outcome, ...]:
    return tuple(replace(o, steps=(step, *o.steps)) for o in outcomes)
