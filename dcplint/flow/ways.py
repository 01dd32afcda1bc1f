"""Every way through a function to a return, with the tests that lead there.

A method is walked forwards for one class: `self` and `super()` are that class's. A way that
contradicts itself cannot happen. A value that is not made here is unknown.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from dcplint.facts.expressions import dotted_name, shorten
from dcplint.flow.clauses import Bare, bare_text, can_hold, clauses
from dcplint.flow.conditions import names
from dcplint.flow.definitions import captured
from dcplint.flow.dispatch import Dispatch, receiver_name
from dcplint.flow.doubts import hoped
from dcplint.flow.functions import COMPOUND, Function, argument, callee_name, default
from dcplint.flow.graph import always_matches
from dcplint.flow.origins import KEEPING
from dcplint.flow.relevance import relevant
from dcplint.flow.settled import Settled
from dcplint.flow.single import result
from dcplint.flow.tensors import is_made
from dcplint.flow.trace import State, null_test
from dcplint.flow.way import TooManyWays, Value, Way, bind, step_at, stored, taken
from dcplint.source.tree import copied, walk

_DEPTH = 5
_WAYS = 400
_LONG = 200
_LAST = frozenset(
    {"sys.exit", "os._exit", "os.abort", "typing.assert_never", "typing_extensions.assert_never"}
)
_MISSING = frozenset({"ImportError", "ModuleNotFoundError", "AttributeError"})


@dataclass
class Walk:
    """Walks methods of one class forwards.

    closely: the tests whose flags are followed to where they are set, as an earlier walk found
    them on a way that matters; DCP alone decides the others.
    """

    dispatch: Dispatch
    settled: Settled
    closely: frozenset[ast.expr] = frozenset()
    count: int = 0
    _relevant: dict[Function, frozenset[str]] = field(default_factory=dict)

    @cached_property
    def parts(self) -> frozenset[ast.AST]:
        """Those tests with all their parts."""
        return frozenset(inner for test in self.closely for inner in walk(test))

    def ways(self, function: Function, given: Mapping[str, Value], depth: int) -> Iterator[Way]:
        """Every way to a return of `function`, called with `given`."""
        for way in self.block(function, function.node.body, Way(dict(given)), depth):
            if way.returned is None:
                step = step_at(
                    function, function.node.body[-1], f"{function.qualname} returns nothing"
                )
                way = replace(way, returned=Value(State.NONE, origin=step))
            yield way

    def block(
        self, function: Function, body: list[ast.stmt], way: Way, depth: int
    ) -> Iterator[Way]:
        """Every way through the statements of `body`; those that raise or jump are left out."""
        if not body:
            yield way
            return
        for after in self.statement(function, body[0], way, depth):
            if after.returned is not None:
                yield after
            else:
                yield from self.block(function, body[1:], after, depth)

    def statement(self, function: Function, node: ast.stmt, way: Way, depth: int) -> Iterator[Way]:
        """Every way on from `node`."""
        self.count += 1
        if self.count > _WAYS * 50:
            raise TooManyWays
        if isinstance(node, ast.Return):
            if node.value is None:
                step = step_at(function, node, f"{function.qualname} returns nothing")
                yield replace(way, returned=Value(State.NONE, origin=step))
                return
            for value, after in self.value(function, node.value, way, depth):
                yield replace(after, returned=result(function, node, value))
        elif isinstance(node, (ast.Raise, ast.Continue, ast.Break)):
            return
        elif isinstance(node, ast.Assert):
            yield from self.when(function, node.test, True, way, told=False)
        elif isinstance(node, ast.If):
            yield from self.branch(function, node, way, depth)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            targets: list[ast.expr] = []
            targets += node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from self.assign(function, targets, node.value, way, depth)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            yield from self.block(function, node.body, way, depth)
        elif isinstance(node, ast.Try):
            yield from self.tried(function, node, way, depth)
        elif isinstance(node, ast.Match):
            yield from self.cases(function, node, way, depth)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield way
        elif not self.is_last(function, node):
            yield self.blurred(function, node, way)

    def is_last(self, function: Function, node: ast.AST) -> bool:
        """Whether `node` is a call that ends the process, or runs what always raises."""
        call = node.value if isinstance(node, ast.Expr) else None
        if not isinstance(call, ast.Call):
            return False
        callee = self.dispatch.callee(function, call)
        if callee is None:
            return self.dispatch.universe.called(function, call) in _LAST
        return callee.only_raises and not callee.yields

    def tried(self, function: Function, node: ast.Try, way: Way, depth: int) -> Iterator[Way]:
        """As a `try` runs where nothing is raised, and where one of its clauses catches it."""
        body = [*node.body, *node.orelse, *node.finalbody]
        yield from self.block(function, body, way, depth)
        if not self.matters(function, node):
            return
        *before, last = node.body
        raised = way  # what the last statement was to bind is not bound
        for inner in (*before, *((last,) if last.__class__ in COMPOUND else ())):
            raised = self.blurred(function, inner, raised)
        for handler in node.handlers:
            if _asks_what_there_is(handler):
                continue
            caught = shorten(handler.type) if handler.type is not None else "an exception"
            inside = replace(raised, tests=(*raised.tests, f"{caught} is caught"))
            if handler.name is not None:
                inside = replace(inside, env={**inside.env, handler.name: Value()})
            yield from self.block(function, [*handler.body, *node.finalbody], inside, depth)

    def cases(self, function: Function, node: ast.Match, way: Way, depth: int) -> Iterator[Way]:
        """Each case of a `match`, or all at once where none matters."""
        if not self.matters(function, node):
            yield self.blurred(function, node, way)
            return
        past = [way]
        for case in node.cases:
            (edge, *_) = function.graph.at(case)[0].before
            if edge.test is not None and edge.holds:
                test = edge.test
                inside = [w for before in past for w in self.when(function, test, True, before)]
                past = [w for before in past for w in self.when(function, test, False, before)]
            else:
                bound = {name: Value() for name in captured(case)}
                inside = [replace(w, env={**w.env, **bound}) for w in past]
                if case.guard is not None:
                    inside = [w for b in inside for w in self.when(function, case.guard, True, b)]
            for w in inside:
                yield from self.block(function, case.body, w, depth)
            if case.guard is None and always_matches(case.pattern):
                return
        yield from past

    def branch(self, function: Function, node: ast.If, way: Way, depth: int) -> Iterator[Way]:
        """Both sides of a test, or both at once where neither matters."""
        if not self.matters(function, node):
            yield self.blurred(function, node, way)
            return
        for side, holds in ((node.body, True), (node.orelse, False)):
            for inside in self.when(function, node.test, holds, way):
                yield from self.block(function, side, inside, depth)

    def when(
        self, function: Function, test: ast.expr, holds: bool, way: Way, told: bool = True
    ) -> Iterator[Way]:
        """The way on which `test` came out as `holds`, if there is one."""

        def meaning(name: str) -> ast.expr | None:
            found = way.env.get(name)
            return found.meaning if found is not None else None

        bare = Bare(meaning)
        if self.is_doubt(function, test, holds, way):
            return
        known = self.truth(function, test, way)
        if known is not None:
            if known is holds:
                yield way
            return
        found = clauses(
            test, holds, lambda t: self.truth(function, t, way), lambda t: bare_text(bare, t)
        )
        under = (*way.under, *found)
        if can_hold(under):
            text = shorten(test) if holds else f"not ({shorten(test)})"
            tests = (*way.tests, text) if told else way.tests
            yield replace(way, under=under, tests=tests, asked=(*way.asked, test))

    def is_doubt(self, function: Function, test: ast.expr, holds: bool, way: Way) -> bool:
        """Whether the test finds less than there may be in what nothing is known of.

        That is what a call returned, and what is handed on among others. That code is ready for a
        None, or for no tuple, does not say that there is one.
        """
        if any(way.env[name].untold for name in names(test) if name in way.env):
            return True
        name, full = hoped(test) or ("", holds)
        found = way.env.get(name)
        return (
            full is not holds
            and found is not None
            and name not in function.parameters
            and found.state is State.UNKNOWN
            and found.meaning is None
            and (null_test(test) is not None or name in self.relevant(function))
        )

    def truth(self, function: Function, test: ast.expr, way: Way) -> bool | None:
        """What a test is on a way; None where the way does not tell."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self.truth(function, test.operand, way)
            return None if inner is None else not inner
        if isinstance(test, ast.BoolOp):
            deciding = isinstance(test.op, ast.Or)
            truths = [self.truth(function, part, way) for part in test.values]
            if deciding in truths:
                return deciding
            return None if None in truths else not deciding
        tested = null_test(test)
        if tested is not None and len(tested[0]) == 1:
            found = way.env.get(str(tested[0][0]), Value())
            if found.state is State.NONE:
                return tested[1]
            if found.state is State.SET:
                return not tested[1]
        if isinstance(test, ast.Name) and test.id in way.env:
            found = way.env[test.id]
            if found.truth is not None or test.id in function.parameters:
                return found.truth
        return self.known(function, test, test in self.parts)

    def known(self, function: Function, test: ast.expr, closely: bool) -> bool | None:
        """What a test is whenever DCP is on."""
        return (self.settled if closely else self.settled.scenario).truth(function, test)

    def matters(self, function: Function, node: ast.stmt) -> bool:
        """Whether a statement can leave the function or set what it returns."""
        relevant = self.relevant(function)
        return any(
            isinstance(inner, (ast.Return, ast.Raise, ast.Assert))
            or self.is_last(function, inner)
            or (
                isinstance(inner, ast.Name)
                and isinstance(inner.ctx, ast.Store)
                and inner.id in relevant
            )
            for inner in walk(node)
        )

    def relevant(self, function: Function) -> frozenset[str]:
        """The variables that can be what the function returns."""
        if function not in self._relevant:
            self._relevant[function] = relevant(function)
        return self._relevant[function]

    def blurred(self, function: Function, node: ast.AST, way: Way) -> Way:
        """Past what is not followed: what it may set is unknown."""
        names = stored(node)
        if function.nonlocals and any(isinstance(inner, ast.Call) for inner in walk(node)):
            names |= function.nonlocals
        return replace(way, env={**way.env, **{n: Value() for n in names}}) if names else way

    def assign(
        self, function: Function, targets: list[ast.expr], value: ast.expr, way: Way, depth: int
    ) -> Iterator[Way]:
        """Past an assignment."""
        names = {name for target in targets for name in stored(target)}
        if not names & self.relevant(function):
            env = dict(way.env)
            for target in targets:
                if isinstance(target, ast.Name):
                    env[target.id] = Value(meaning=self.meaning(value, way))
            env.update(
                {
                    n: Value()
                    for n in names
                    if n not in {t.id for t in targets if isinstance(t, ast.Name)}
                }
            )
            yield replace(way, env=env)
            return
        for found, after in self.value(function, value, way, depth):
            env = dict(after.env)
            for target in targets:
                bind(target, found, env)
            yield replace(after, env=env)

    def meaning(self, value: ast.expr, way: Way) -> ast.expr | None:
        """What a test of a variable given `value` is a test of."""
        if sum(1 for _ in walk(value)) > _LONG:
            return None

        def meaning(name: str) -> ast.expr | None:
            found = way.env.get(name)
            return found.meaning if found is not None else None

        bare: ast.expr = Bare(meaning).visit(copied(value))
        return bare

    # Expressions

    def value(
        self, function: Function, node: ast.expr, way: Way, depth: int
    ) -> Iterator[tuple[Value, Way]]:
        """What an expression can be, each with the way on which it is."""
        if isinstance(node, ast.Constant):
            if node.value is None:
                step = step_at(function, node, "None")
                yield Value(State.NONE, origin=step, truth=False, meaning=node), way
            else:
                yield Value(State.SET, truth=bool(node.value), meaning=node), way
        elif isinstance(node, ast.Name):
            yield way.env.get(node.id, Value(meaning=node)), way
        elif isinstance(node, ast.List) and len(node.elts) < 2:
            yield Value(), way  # there may be more in it by and by
        elif isinstance(node, (ast.Tuple, ast.List)):
            yield from self.display(function, node.elts, (), way, depth)
        elif isinstance(node, ast.IfExp):
            for branch, holds in ((node.body, True), (node.orelse, False)):
                for inside in self.when(function, node.test, holds, way):
                    yield from self.value(function, branch, inside, depth)
        elif isinstance(node, ast.NamedExpr):
            for found, after in self.value(function, node.value, way, depth):
                yield found, replace(after, env={**after.env, node.target.id: found})
        elif isinstance(node, ast.Subscript):
            index = node.slice.value if isinstance(node.slice, ast.Constant) else None
            for found, after in self.value(function, node.value, way, depth):
                if isinstance(index, int) and isinstance(node.value, ast.Call):
                    yield taken(found, index), after
                else:
                    yield (found.element(index) if isinstance(index, int) else Value()), after
        elif isinstance(node, ast.BinOp):
            yield Value(State.SET), way
        elif isinstance(node, ast.Call):
            yield from self.call(function, node, way, depth)
        else:
            truth = self.known(function, node, bool(self.closely))
            method = self.dispatch.held(function, node)
            yield Value(truth=truth, meaning=self.meaning(node, way), method=method), way

    def display(
        self,
        function: Function,
        rest: list[ast.expr],
        done: tuple[Value, ...],
        way: Way,
        depth: int,
    ) -> Iterator[tuple[Value, Way]]:
        """The values of a tuple's elements, left to right."""
        if not rest:
            yield Value(State.SET, elements=done), way
            return
        if isinstance(rest[0], ast.Starred):
            yield Value(), way
            return
        for found, after in self.value(function, rest[0], way, depth):
            yield from self.display(function, rest[1:], (*done, found), after, depth)

    def call(
        self, function: Function, call: ast.Call, way: Way, depth: int
    ) -> Iterator[tuple[Value, Way]]:
        """What a call returns, where it runs a function that can be read."""
        if dotted_name(call.func) in ("cast", "typing.cast") and len(call.args) == 2:
            yield from self.value(function, call.args[1], way, depth)
            return
        if isinstance(call.func, ast.Name) and call.func.id in way.env:
            method = way.env[call.func.id].method
            call = self.dispatch.written_out(call, method) if method is not None else call
        callee = self.dispatch.callee(function, call)
        if callee is None or depth >= _DEPTH:
            single = callee is None and _is_tensor(function, call)
            yield Value(single=single), self.blurred(function, call, way)
            return
        given = {
            name: self.passed(function, callee, call, name, way)
            for name in callee.parameters[1 if callee.is_method else 0 :]
        }
        for inside in list(self.ways(callee, given, depth + 1)):
            under = (*way.under, *inside.under)
            if inside.returned is not None and can_hold(under):
                after = self.blurred(function, call, way)
                tests, asked = (*way.tests, *inside.tests), (*way.asked, *inside.asked)
                yield inside.returned, replace(after, under=under, tests=tests, asked=asked)

    def passed(
        self, function: Function, callee: Function, call: ast.Call, name: str, way: Way
    ) -> Value:
        """What a call gives a parameter."""
        node = argument(callee, call, name)
        if node is None:
            return Value(untold=_passes_others(call))
        where = callee if node is default(callee, name) else function
        if isinstance(node, ast.Name) and node.id in way.env:
            found = way.env[node.id]
            known = self.truth(function, node, way) if found.truth is None else found.truth
            return replace(found, truth=known)
        if isinstance(node, ast.Constant):
            return next(self.value(where, node, way, _DEPTH))[0]
        truth = self.known(where, node, bool(self.closely))
        return Value(truth=truth, meaning=self.meaning(node, way))


def _asks_what_there_is(handler: ast.ExceptHandler) -> bool:
    """Whether a clause is for what another release, or another object, lacks."""
    return handler.type is not None and names(handler.type) <= _MISSING


def _passes_others(call: ast.Call) -> bool:
    return any(isinstance(given, ast.Starred) for given in call.args) or any(
        keyword.arg is None for keyword in call.keywords
    )


def _is_tensor(function: Function, call: ast.Call) -> bool:
    """Whether a call allocates a tensor, or gives a view or copy of one."""
    if not isinstance(call.func, ast.Attribute) or callee_name(call) not in KEEPING:
        return is_made(call)
    root = (dotted_name(call.func.value) or "").partition(".")[0]
    return root != receiver_name(function)
