"""What the value of an expression can be, where a trace comes to one.

A variable is followed on through the statements before it, an attribute into the object it is one
of, a call into what it returns.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dcplint.facts.expressions import dotted_name, shorten
from dcplint.flow.conditions import Conditions, Path, null_test, path_of, substituted
from dcplint.flow.functions import CallSite, Function, callee_name, written_keywords
from dcplint.flow.graph import Edge
from dcplint.flow.mappings import may_pass
from dcplint.flow.types import classes_of
from dcplint.flow.values import (
    UNKNOWN,
    Context,
    Outcome,
    Point,
    State,
    is_made,
    step,
    through,
    unpacked,
    within,
)
from dcplint.source.tree import walk

if TYPE_CHECKING:
    from dcplint.flow.trace import Tracer

_FROM_ARGUMENT = frozenset({"list", "tuple", "reversed", "sorted", "iter", "set", "next", "deque"})


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Evaluates expressions and calls for a tracer."""

    tracer: Tracer

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
            return self.tracer.at(point, path) if prop is None else prop
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
        if path[1] not in self.tracer.lookup.properties:
            return None
        owners = classes_of(self.tracer.universe, point.function, ast.Name(str(path[0])))
        found = [self.tracer.lookup.property_of(owner, path[1]) for owner in owners]
        if not found or None in found:
            return None
        return tuple(o for prop in found if prop for o in self.returned(prop, path[2:], ()))

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
        return UNKNOWN

    def _choice(self, point: Point, node: ast.IfExp, rest: Path) -> tuple[Outcome, ...]:
        truth = self.tracer.scenario.truth(point.function, node.test, point.conditions.known)
        if truth is not None:
            return self.of(point, node.body if truth else node.orelse, rest)
        tested = null_test(node.test)
        holds = tested[1] if tested else False
        path = tested[0] if tested else path_of(node.test)
        found: list[Outcome] = []
        states = self.tracer.at(point, path) if path is not None else ()
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
            truth = self.tracer.scenario.truth(point.function, value, point.conditions.known)
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
            return UNKNOWN if applied is None else self.of(point, applied, rest)
        built = self.tracer.lookup.built(point.function, call)
        if built is not None:
            return self.tracer.instances.constructed(point, call, built, rest)
        statement = point.node.statement if point.node is not None else None
        at = statement if isinstance(statement, ast.stmt) else None
        callees = self.tracer.universe.callees(point.function, call, at)
        if callees and at is not None:
            site = CallSite(point.function, at, call)
            context = within(point.context, site)
            return tuple(o for callee in callees for o in self.returned(callee, rest, context))
        if not rest and isinstance(call.func, (ast.Name, ast.Attribute)) and name != "get":
            return (Outcome(State.SET, (step(point, call, shorten(call)),)),)
        return UNKNOWN

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
            return UNKNOWN
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
        if may_pass(self.tracer.lookup, point.function, call, str(rest[0])):
            return UNKNOWN
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

    # Results

    def returned(self, callee: Function, rest: Path, context: Context) -> tuple[Outcome, ...]:
        """What a call returns, followed by `rest`; of a generator, what it yields."""
        if self.tracer.lookup.is_changed_by_decorator(callee):
            return UNKNOWN
        made = self._yielded if callee.yields else self._returns
        return self.tracer.once((callee, rest, context), lambda: made(callee, rest, context))

    def _yielded(self, callee: Function, rest: Path, context: Context) -> tuple[Outcome, ...]:
        found: list[Outcome] = []
        for at, value in callee.yields:
            for node in callee.graph.at(at) if self.tracer.can_run(callee, at) else ():
                point = Point(callee, node, context)
                if isinstance(value, ast.YieldFrom):
                    found += self.of(point, value.value, rest)
                elif rest[:1] == ("*",) and value.value is not None:
                    found += self.of(point, value.value, rest[1:])
                elif not rest:
                    found.append(Outcome(State.SET))
        return tuple(found) or UNKNOWN

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
        return tuple(found) or (() if callee.only_raises else UNKNOWN)

    def _is_taken(self, function: Function, edge: Edge) -> bool:
        if edge.source not in self.tracer.scenario.reachable(function):
            return False
        if edge.test is None:
            return True
        return self.tracer.scenario.truth(function, edge.test) is not (not edge.holds)


def _may(outcome: Outcome, is_none: bool) -> bool:
    return outcome.state is not (State.SET if is_none else State.NONE)


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
