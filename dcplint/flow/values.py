"""What a trace finds: outcomes, the steps that led to them, and the places it looks from."""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from dcplint.facts.model import Position
from dcplint.facts.positions import position
from dcplint.flow.conditions import Conditions, Path
from dcplint.flow.functions import CallSite, Function, callee_name
from dcplint.flow.graph import Node
from dcplint.program.symbols import Module

Context = tuple[CallSite, ...]
"""The calls that led into the function at hand, outermost first; empty where any may have."""

_CONTEXT = 4  # calls into calls that are told apart by their caller
_HANDING_ON = frozenset({"replace", "_replace", "copy", "deepcopy", "cast", "getattr"})


class State(enum.Enum):
    """What is known of a value."""

    SET = "set"
    NONE = "None"
    UNKNOWN = "unknown"
    ENTRY = "entry"  # unchanged since the function was entered


@dataclass(frozen=True, slots=True)
class Step:
    """One place on the way of a value.

    symbol: the function it lies in. name: the variable or attribute that is given the value
    there, if any. record: the class of the object, where the object is made there. made: the value
    is worked out there by a call.
    """

    module: Module
    position: Position
    text: str
    symbol: str
    name: str = ""
    record: object = None
    made: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """One possible value, and its way from the consumer (first) to its origin (last)."""

    state: State
    steps: tuple[Step, ...] = ()

    @property
    def origin(self) -> Step | None:
        """Where the value is made."""
        return self.steps[-1] if self.steps else None

    def producer(self, name: str = "") -> Step | None:
        """The step that gives the value: the call nearest to the consumer that works it out.

        Without one, the last assignment to something called `name`. What a constructor sets is a
        buffer to be filled in, not the filling in.
        """
        steps = [s for s in self.steps if s.name and not s.symbol.endswith(".__init__")]
        made = next((s for s in steps if s.made), None)
        named = (s for s in reversed(steps) if not name or s.name == name)
        return made or next(named, None) or self.origin


UNKNOWN = (Outcome(State.UNKNOWN),)


@dataclass(frozen=True, slots=True)
class Point:
    """A place to look from: before `node` of `function` runs, reached through `context`.

    node: None stands for the end of the function. stop: a path that is left alone where the
    function starts. conditions: what is known to hold here.
    """

    function: Function
    node: Node | None
    context: Context = ()
    stop: Path | None = None
    conditions: Conditions = field(default_factory=Conditions)


def points_of(site: CallSite, context: Context) -> list[Point]:
    """Where a call is made."""
    return [Point(site.function, node, context) for node in site.nodes]


def within(context: Context, site: CallSite) -> Context:
    """The context of a callee: none where calls are nested too deeply, or in themselves."""
    repeats = any(outer.call is site.call for outer in context)
    return () if repeats or len(context) >= _CONTEXT else (*context, site)


def step(point: Point, node: ast.AST | None, text: str) -> Step:
    """A step at `node` of the function of `point`."""
    function = point.function
    return Step(function.module, position(node or function.node), text, function.qualname)


def is_made(value: ast.expr) -> bool:
    """Whether a value is worked out by a call, not handed on from elsewhere."""
    return isinstance(value, ast.Call) and callee_name(value) not in _HANDING_ON


def through(first: Step, outcomes: Iterable[Outcome]) -> tuple[Outcome, ...]:
    """The outcomes as seen from a place before them."""
    return tuple(replace(o, steps=(first, *o.steps)) for o in outcomes)


def merged(outcomes: Iterable[Outcome]) -> tuple[Outcome, ...]:
    """One outcome per state, origin and producer, by the shortest way."""
    best: dict[object, Outcome] = {}
    for outcome in outcomes:
        places = (outcome.origin, outcome.producer() if outcome.state is State.SET else None)
        key = (outcome.state, *(step and (step.module, step.position) for step in places))
        if key not in best or len(outcome.steps) < len(best[key].steps):
            best[key] = outcome
    return tuple(best.values())


def unpacked(target: ast.expr, element: Path) -> Sequence[tuple[ast.expr, Path]]:
    """Each variable, attribute or subscript of an assignment's target, with which element it gets.

    What a starred target gets is no element: `?`.
    """
    if isinstance(target, ast.Starred):
        return ((target.value, (*element, "?")),)
    if not isinstance(target, (ast.Tuple, ast.List)):
        return ((target, element),)
    starred = next((i for i, e in enumerate(target.elts) if isinstance(e, ast.Starred)), None)
    found: list[tuple[ast.expr, Path]] = []
    for index, inner in enumerate(target.elts):
        after = starred is not None and index > starred
        found += unpacked(inner, (*element, index - len(target.elts) if after else index))
    return found


def element_of(value: ast.expr, element: Path) -> ast.expr:
    """One of the things that a value is unpacked into; an expression of what it is at least."""
    for index in element:
        given = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
        if isinstance(index, int) and 0 <= index < len(given):
            value = given[index]
        else:
            value = ast.Subscript(value, ast.Constant(index), ast.Load())
    return value
