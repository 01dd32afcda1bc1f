"""What an attribute of an object can be: what its constructor, methods and class make it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dcplint.facts.expressions import shorten
from dcplint.flow.conditions import Path
from dcplint.flow.dataclasses import constructor_argument, field_default, fields_of, is_record
from dcplint.flow.functions import CallSite, Function
from dcplint.flow.mappings import may_pass
from dcplint.flow.values import (
    UNKNOWN,
    Outcome,
    Point,
    State,
    Step,
    is_made,
    points_of,
    step,
    through,
    within,
)
from dcplint.program.symbols import ClassSymbol

if TYPE_CHECKING:
    from dcplint.flow.trace import Tracer


@dataclass(frozen=True, slots=True)
class Instances:
    """Follows attributes into objects for a tracer."""

    tracer: Tracer

    def attribute(self, function: Function, path: Path) -> tuple[Outcome, ...]:
        """`self.name…`: whatever the class's methods set it to."""
        owner = function.owner
        if owner is None:
            return UNKNOWN
        return self.tracer.once((owner, path[1:]), lambda: self._attribute_values(owner, path[1:]))

    def _attribute_values(self, owner: ClassSymbol, rest: Path) -> Iterable[Outcome]:
        """What the constructor leaves, unless other methods set it too: which ran last is open."""
        name = str(rest[0])
        prop = self.tracer.lookup.property_of(owner, name)
        if prop is not None:
            return self.tracer.evaluation.returned(prop, rest[1:], ())
        first = list(self._constructed_value(owner, rest))
        later = list(self._set_later(owner, rest))
        if not later:
            return first or UNKNOWN
        kept = [o for o in first if o.state is not State.NONE]
        return (*kept, *later, *(UNKNOWN if len(kept) < len(first) else ()))

    def _constructed_value(self, owner: ClassSymbol, rest: Path) -> Iterator[Outcome]:
        """What `self.name…` is once the object is made, by any of its constructors."""
        for init in self.tracer.lookup.constructors(owner):
            if init.parameters:
                path = (init.parameters[0], *rest)
                for outcome in self.tracer.at(Point(init, None, (), path), path):
                    if outcome.state is not State.ENTRY:
                        yield outcome
                    else:
                        yield from self._class_value(owner, rest)
        if not self.tracer.lookup.constructors(owner):
            yield from self._class_value(owner, rest)

    def _class_value(self, owner: ClassSymbol, rest: Path) -> Iterator[Outcome]:
        """What the class's body says, or, for a record, what its instances are made with."""
        name, universe = str(rest[0]), self.tracer.universe
        if is_record(universe, owner) and name in fields_of(universe, owner):
            made = [
                outcome
                for site in self.tracer.lookup.constructions(owner)
                if self.tracer.can_run(site.function, site.statement)
                for point in points_of(site, ())
                for outcome in self._field(point, site.call, owner, rest)
            ]
            yield from made or UNKNOWN
            return
        default = field_default(universe, owner, name)
        if default is None:
            return
        if len(rest) == 1 and isinstance(default, bool):
            state = State.SET if default else State.NONE
            text = f"{owner.facts.name}.{name} = None"
            origin = Step(owner.module, owner.facts.position, text, owner.facts.qualname)
            yield Outcome(state, (origin,))
        else:
            yield from UNKNOWN

    def _set_later(self, owner: ClassSymbol, rest: Path) -> Iterator[Outcome]:
        """What methods other than the constructor, and code outside the class, leave it as."""
        asked: set[object] = set()
        for function, statement, target in self.tracer.lookup.stores(owner, str(rest[0])):
            written = target[1:]
            reaches = written == rest[: len(written)] and self.tracer.can_run(function, statement)
            if reaches and (function, target[0]) not in asked:
                asked.add((function, target[0]))
                path = (target[0], *rest)
                found = self.tracer.at(Point(function, None, (), path), path)
                yield from (o for o in found if o.state is not State.ENTRY)

    def constructed(
        self, point: Point, call: ast.Call, built: ClassSymbol, rest: Path
    ) -> tuple[Outcome, ...]:
        """An attribute of a new object, as its constructor leaves it."""
        if not rest:
            return (Outcome(State.SET),)
        if isinstance(rest[0], str):
            prop = self.tracer.lookup.property_of(built, rest[0])
            if prop is not None:
                return self.tracer.evaluation.returned(prop, rest[1:], ())
        init = self.tracer.lookup.constructor(built)
        if init is None or not init.parameters or point.node is None:
            return self._field(point, call, built, rest)
        statement = point.node.statement
        if not isinstance(statement, ast.stmt):
            return UNKNOWN
        path = (init.parameters[0], *rest)
        site = CallSite(point.function, statement, call)
        context = within(point.context, site) or (site,)
        found: list[Outcome] = []
        for outcome in self.tracer.at(Point(init, None, context, path), path):
            if outcome.state is not State.ENTRY:
                found.append(outcome)
            elif init.node.name == "__post_init__":
                found += self._field(point, call, built, rest)
            else:
                found += self._class_value(built, rest) or UNKNOWN
        return tuple(found) or UNKNOWN

    def _field(
        self, point: Point, call: ast.Call, built: ClassSymbol, rest: Path
    ) -> tuple[Outcome, ...]:
        """A field of a new record: the argument that sets it, or the class's default."""
        name = rest[0]
        if not is_record(self.tracer.universe, built):
            return tuple(self._class_value(built, rest)) or UNKNOWN
        if isinstance(name, int):  # a named tuple taken apart
            fields = fields_of(self.tracer.universe, built)
            if not -len(fields) <= name < len(fields):
                return UNKNOWN
            name = fields[name]
        passed = constructor_argument(self.tracer.universe, call, built, name)
        if passed is not None:
            text = f"{built} is built with {name}={shorten(passed)}"
            here = replace(step(point, call, text), name=name, record=built, made=is_made(passed))
            return through(here, self.tracer.evaluation.of(point, passed, rest[1:]))
        starred = any(isinstance(a, ast.Starred) for a in call.args)
        if starred or len(rest) > 1 or may_pass(self.tracer.lookup, point.function, call, name):
            return UNKNOWN
        default = field_default(self.tracer.universe, built, name)
        if default is None:
            return UNKNOWN
        text = f"{built} is built without {name}"
        here = replace(step(point, call, text), name=name, record=built)
        return (Outcome(State.SET if default else State.NONE, (here,)),)
