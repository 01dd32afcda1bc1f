"""Contract fields: who reads them, what reaches the readers, and what falls back without them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from operator import is_not

from dcplint.contracts.model import ContractField, Refusal
from dcplint.facts.expressions import dotted_name, shorten
from dcplint.facts.model import Position
from dcplint.facts.positions import position
from dcplint.flow.conditions import conjuncts
from dcplint.flow.fallbacks import Fallback, can_derive, fallbacks_in
from dcplint.flow.functions import Function, argument, expressions
from dcplint.flow.listing import family
from dcplint.flow.provenance import Provenance
from dcplint.flow.trace import Outcome, Path, State, Step, Tracer, null_test
from dcplint.flow.types import classes_of
from dcplint.flow.universe import Universe
from dcplint.program.platform import OwnPlatform
from dcplint.program.program import Program
from dcplint.program.related import is_test
from dcplint.program.symbols import ClassSymbol
from dcplint.source.location import Tree
from dcplint.source.tree import walk

_NULL_TEST = re.compile(r"None\b|[\s)\]]or\b")


@dataclass(frozen=True, eq=False)
class Read:
    """One place that reads a field of a record. path: the record and the field, as written."""

    field: ContractField
    function: Function
    statement: ast.stmt
    node: ast.Attribute
    path: Path


@dataclass(frozen=True, slots=True)
class Guard:
    """Tests that must hold, as written: those that hold whenever DCP is on, and the others."""

    implied: str = ""
    others: str = ""


class FieldFlow:
    """The contract fields of a program, traced. Nothing is worked out before it is asked for."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._fallbacks: dict[ContractField, tuple[Fallback, ...]] = {}

    @cached_property
    def universe(self) -> Universe:
        """The functions of modules that name a field or its record, or whose builders get one.

        Those of a plugin's helper modules too, which need name neither.
        """
        builders = (s.module for s in self.program.classes("builder"))
        given = (module for module in builders if not is_test(module.facts.path))
        related = (*self.program.find_related(), *given)
        return Universe(self.program, self.program.with_helpers(related))

    @cached_property
    def tracer(self) -> Tracer:
        """Traces values through them."""
        return Tracer(self.universe)

    @cached_property
    def tracer_without_dcp(self) -> Tracer:
        """The same with DCP off."""
        return Tracer(self.universe, on=False)

    @cached_property
    def platform(self) -> OwnPlatform:
        """What a plugin's own platform leaves of the engine."""
        return OwnPlatform(self.program)

    @cached_property
    def fields(self) -> tuple[ContractField, ...]:
        """The fields that somebody owes."""
        return tuple(field for field in self.program.contract.fields if not field.optional)

    def is_record(self, symbol: ClassSymbol, field: ContractField) -> bool:
        """Whether `symbol` is the class that carries `field`, or derives from it."""
        return any(entry.dotted == field.record for entry in self.program.mro(symbol).classes)

    # Readers

    def reads(self, field: ContractField) -> Iterator[Read]:
        """Every place that takes `field` off a record, in functions that can run under DCP."""
        for function in self.universe.mentioning(field.name):
            for statement in function.mentions.get(field.name, ()):
                for node in _attributes(function, statement, field.name):
                    if not self.is_record_expression(function, node.value, field):
                        continue
                    dotted = dotted_name(node)
                    if dotted is not None and self.tracer.can_run(function, statement):
                        yield Read(field, function, statement, node, tuple(dotted.split(".")))

    def is_record_expression(
        self, function: Function, receiver: ast.expr, field: ContractField
    ) -> bool:
        """Whether `receiver` is known to be a record that carries `field`."""
        classes = classes_of(self.universe, function, receiver)
        return any(self.is_record(symbol, field) for symbol in classes)

    def consumers(self, field: ContractField) -> Iterator[Read]:
        """The reads by which metadata builders and impls use the field."""
        wanted = {"builder", "impl"}
        for read in self.reads(field):
            owner = read.function.owner
            if owner is None or not self.program.roles(owner) & wanted:
                continue
            if not self._hands_on(read):
                yield read

    def exposed(self, field: ContractField) -> Iterator[Read]:
        """The consumers that put nothing in place of a None."""
        tested: dict[tuple[Function, Path], None] = {}
        for fallback in self.fallbacks(field):
            tested[fallback.function, fallback.path] = None
        for read in self.consumers(field):
            if not any(place in tested for place in self._kept_as(read)):
                yield read

    def _kept_as(self, read: Read) -> Iterator[tuple[Function, Path]]:
        """What holds the value once it is read: itself, a variable, a parameter."""
        yield read.function, read.path
        if isinstance(read.statement, ast.Assign) and read.statement.value is read.node:
            for target in read.statement.targets:
                dotted = dotted_name(target)
                if dotted is not None:
                    yield read.function, tuple(dotted.split("."))
        for call in read.function.calls.get(read.statement, ()):
            for callee in self.universe.callees(read.function, call, read.statement):
                for name in callee.parameters:
                    if argument(callee, call, name) is read.node:
                        yield callee, (name,)

    def _hands_on(self, read: Read) -> bool:
        """Whether a read only passes the field to another record, or only tests it for None."""
        for expression in expressions(read.statement):
            for node in walk(expression):
                if isinstance(node, ast.keyword) and node.arg == read.field.name:
                    return read.node in walk(node.value)
        test = getattr(read.statement, "test", None)
        return (
            isinstance(read.statement, ast.If)
            and test is not None
            and any(
                null_test(part) == (read.path, True) or null_test(part) == (read.path, False)
                for part in conjuncts(test)
            )
        )

    # What reaches a place

    def outcomes(self, function: Function, statement: ast.stmt, path: Path) -> tuple[Outcome, ...]:
        """What `path` can be before `statement`, without the ways that the engine refuses."""
        return tuple(
            outcome
            for outcome in self.tracer.before(function, statement, path)
            if not any(map(self._is_out_of_play, outcome.steps))
            and self._comes_to(function, outcome)
        )

    def _comes_to(self, function: Function, outcome: Outcome) -> bool:
        """Whether what a plugin's function is given may be made as an outcome says."""
        origin = outcome.origin
        if origin is None or origin.module.tree is not Tree.ENGINE:
            return True
        if function.module.tree is not Tree.PROJECT:
            return True
        places = ((step.module, step.symbol) for step in outcome.steps)
        return self.platform.comes_to(places, function.owner)

    def _is_out_of_play(self, step: Step) -> bool:
        return bool(self.refusal(step)) or self.platform.replaces(step.module, step.symbol)

    def can_get(self, read: Read, outcome: Outcome) -> bool:
        """Whether a backend that reads the field is given the batch that an outcome begins with."""
        origin, owner = outcome.origin, read.function.owner
        if origin is None or owner is None:
            return True
        method = read.function.qualname[len(owner.facts.qualname) + 1 :].partition(".")[0]
        return not self.platform.keeps_from(origin.module, owner, method)

    def refusal(self, step: Step) -> Refusal | None:
        """The fact by which the engine keeps DCP away from the function that `step` lies in."""
        dotted = f"{step.module.facts.name}.{step.symbol}"
        for refusal in self.program.contract.refusals:
            if dotted == refusal.function or dotted.startswith(f"{refusal.function}."):
                return refusal
        return None

    # Where a step stands

    def guard(self, step: Step) -> Guard:
        """The tests that must hold for a step to run."""
        found = self._statement_at(step)
        return self.guard_at(*found) if found else Guard()

    def guard_at(self, function: Function, statement: ast.stmt) -> Guard:
        """The tests that must hold for a statement to run, as written.

        Those around it, and those of ways out of the function that DCP decides.
        """
        tests: dict[ast.expr, bool] = {}
        node: ast.stmt | None = statement
        while node is not None:
            home = function.homes[node]
            if isinstance(home.parent, ast.If) and home.block is home.parent.body:
                tests |= dict.fromkeys(conjuncts(home.parent.test), True)
            elif isinstance(home.parent, ast.If):
                tests[home.parent.test] = False
            node = home.parent
        around = {id(part) for test in tests for part in walk(test)}
        for test, holds in self._decided_before(function, statement):
            if not any(id(part) in around for part in conjuncts(test)):
                tests[test] = holds
        implied: list[str] = []
        others: list[str] = []
        for test in sorted(tests, key=lambda t: (t.lineno, t.col_offset)):
            is_implied = self.tracer.scenario.truth(function, test) is tests[test]
            text = shorten(test) if tests[test] else f"not ({shorten(test)})"
            (implied if is_implied else others).append(text)
        return Guard(" and ".join(implied), " and ".join(others))

    def _decided_before(
        self, function: Function, statement: ast.stmt
    ) -> Iterator[tuple[ast.expr, bool]]:
        """The tests that DCP decides, and without whose outcome `statement` is not reached."""
        here = function.graph.at(statement)
        for node in function.graph.nodes:
            for edge in node.before:
                if edge.test is None or isinstance(edge.source.statement, ast.Assert):
                    continue
                if self.tracer.scenario.truth(function, edge.test) is not edge.holds:
                    continue
                reached = function.graph.reachable(partial(is_not, edge))
                if not any(node in reached for node in here):
                    yield edge.test, edge.holds

    def none_only_under(self, step: Step) -> Iterator[tuple[Function, ast.stmt, str]]:
        """Returns of None, in functions called at a step, that cannot run with DCP on.

        With the test that leads there.
        """
        found = self._statement_at(step)
        if found is None:
            return
        function, statement = found
        for call in function.calls.get(statement, ()):
            for callee in self.universe.callees(function, call, statement):
                for node in callee.homes:
                    parent = callee.homes[node].parent
                    if not isinstance(node, ast.Return) or not _is_none(node.value):
                        continue
                    if isinstance(parent, ast.If) and not self.tracer.can_run(callee, node):
                        held = callee.homes[node].block is parent.body
                        test = shorten(parent.test)
                        yield callee, node, test if held else f"not ({test})"

    def call_at(self, step: Step) -> tuple[Function, ast.Call] | None:
        """The call that stands at a step, with its function."""
        found = self._statement_at(step)
        if found is None:
            return None
        function, statement = found
        for expression in expressions(statement):
            for node in walk(expression):
                if isinstance(node, ast.Call) and position(node) == step.position:
                    return function, node
        return None

    def fills_before(self, step: Step, name: str) -> Iterator[tuple[Function, ast.Assign]]:
        """The assignments to an attribute `name` that stand above a step, in its function.

        Those that can run under DCP, on some of the ways that lead to the step.
        """
        found = self._statement_at(step)
        if found is None:
            return
        function, at = found
        for statement in function.mentions.get(name, ()):
            if isinstance(statement, ast.Assign) and statement.lineno < at.lineno:
                stored = (t for t in statement.targets if isinstance(t, ast.Attribute))
                if any(target.attr == name for target in stored):
                    if self.tracer.can_run(function, statement):
                        yield function, statement

    def _statement_at(self, step: Step) -> tuple[Function, ast.stmt] | None:
        outermost = step.symbol.partition(".<locals>.")[0]
        for function in self.universe.named(outermost.rpartition(".")[2]):
            for candidate in family(function):
                if candidate.module is not step.module or candidate.qualname != step.symbol:
                    continue
                inside = [s for s in candidate.homes if _spans(s, step.position)]
                if inside:
                    return candidate, inside[-1]
        return None

    # Fallbacks

    def fallbacks(self, field: ContractField) -> tuple[Fallback, ...]:
        """Every branch, statement or expression that derives `field` where it is None."""
        if field not in self._fallbacks:
            self._fallbacks[field] = tuple(self._find_fallbacks(field))
        return self._fallbacks[field]

    def _find_fallbacks(self, field: ContractField) -> Iterator[Fallback]:
        provenance = self._provenance(field)
        for function in self._deriving(field):
            for statement in function.homes:
                for found in fallbacks_in(field, function, statement):
                    if _is_of_field(provenance, found) and can_derive(self.tracer, found):
                        yield found

    def _deriving(self, field: ContractField) -> Iterator[Function]:
        """Functions that may derive the field: they name it, or DCP in the engine's words."""
        vocabulary = self.program.contract.vocabulary
        groups = (name.rpartition(".")[2] for name in vocabulary.groups)
        words = [field.name, *sorted({*vocabulary.sizes, *vocabulary.ranks, *groups})]
        told: set[Function] = set()
        for word in words:
            for function in self.universe.mentioning(word, _NULL_TEST):
                if function not in told:
                    told.add(function)
                    yield function

    def _provenance(self, field: ContractField) -> Provenance:
        """Says of a value whether it is the field of a record."""

        def is_field(function: Function, record: ast.expr, name: str) -> bool:
            return name == field.name and self.is_record_expression(function, record, field)

        return Provenance(self.tracer.scenario, is_field)

    def serves_without_dcp(self, fallback: Fallback) -> bool:
        """Whether the value may be derived with DCP off, where nobody owes the field."""
        tracer, function = self.tracer_without_dcp, fallback.function
        if not can_derive(tracer, fallback) or not tracer.is_live(function):
            return False
        found = tracer.before(function, fallback.statement, fallback.path)
        return not found or any(outcome.state is not State.SET for outcome in found)


def _is_of_field(provenance: Provenance, fallback: Fallback) -> bool:
    """Whether what is tested is the field of a record, or a variable that was given it."""
    function = fallback.function
    return any(
        provenance.is_from_field(function, node, fallback.path)
        for node in function.graph.at(fallback.statement)
    )


def _spans(node: ast.stmt, place: Position) -> bool:
    line, column, end_line, end_column = position(node)
    return (line, column) <= place[:2] and place[2:] <= (end_line, end_column)


def producers(outcomes: tuple[Outcome, ...], field: ContractField) -> tuple[Step, ...]:
    """The steps that give the field its value, one per place: the origin of each set outcome."""
    found: dict[object, Step] = {}
    for outcome in outcomes:
        if outcome.state is State.SET:
            step = outcome.producer(field.name)
            if step is not None:
                found.setdefault((step.module, step.position[0]), step)
    return tuple(found.values())


def gaps(outcomes: tuple[Outcome, ...]) -> tuple[Outcome, ...]:
    """The outcomes that leave the field None."""
    return tuple(outcome for outcome in outcomes if outcome.state is State.NONE)


def _attributes(function: Function, statement: ast.stmt, name: str) -> Iterator[ast.Attribute]:
    for node in function.own_nodes[statement]:
        if isinstance(node, ast.Attribute) and (node.attr, type(node.ctx)) == (name, ast.Load):
            yield node


def _is_none(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)
