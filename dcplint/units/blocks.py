"""What a number has to do with the blocks of the KV cache when DCP is on.

A block holds some tokens on each rank, and stands for as many times that of the sequence's tokens
as there are ranks. Which attributes, arguments and results are what, the pack says; a variable is
what every assignment in force gave it, a parameter what every caller passes, an attribute all that
it is set to. Where two of them differ, and for anything else, nothing is known.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from dcplint.contracts.model import BlockFact
from dcplint.facts.expressions import dotted_name, shorten
from dcplint.flow.conditions import Path, dumped
from dcplint.flow.dataclasses import constructor_argument, is_record
from dcplint.flow.definitions import definitions_at
from dcplint.flow.functions import Function, argument, callee_name, fits
from dcplint.flow.graph import Node, Role
from dcplint.flow.listing import Classes
from dcplint.flow.scenario import Scenario
from dcplint.flow.types import annotated, attribute_settings, narrowed
from dcplint.flow.universe import Universe
from dcplint.program.blocked import Named, block_ids
from dcplint.program.symbols import ClassSymbol, Module
from dcplint.source.tree import walk
from dcplint.units.lattice import Mark
from dcplint.units.operations import DIVIDING, loaded, operands
from dcplint.units.owners import declared, owners

_DEPTH = 8  # values in terms of values
_WORK = 100  # expressions for one question
_LINKS = 6  # classes by way of others
_SAME = frozenset({"int", "cast"})  # calls that give their last argument
_EITHER = frozenset({"min", "max"})
_ROUNDING = frozenset({"ceil", "floor", "int", "round"})
_RANGES = frozenset({"range", "np.arange", "numpy.arange", "torch.arange"})
_PAIRING = frozenset({"zip", "enumerate"})
_LISTING = frozenset({"list", "tuple", "array", "asarray", "tensor", "as_tensor"})
_TRAIL = 6


Given = tuple[Function, "Node | None", ast.expr]
"""An expression that something stands for, and the function and the node that evaluate it."""


class Counts(enum.Enum):
    """What a number counts; or that a list holds ids of blocks, or a sequence's tokens."""

    SEQUENCE = "sequence"
    RANK_BLOCK = "rank-block"
    SEQUENCE_BLOCK = "sequence-block"
    BLOCK_IDS = "block-ids"
    TOKENS = "tokens"


_SCALED = {Counts.RANK_BLOCK: Counts.SEQUENCE_BLOCK}
_UNSCALED = {Counts.SEQUENCE_BLOCK: Counts.RANK_BLOCK}


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of an expression. trail: where it got it, origin first."""

    counts: Counts
    fact: BlockFact
    trail: tuple[Mark, ...]

    def at(self, mark: Mark) -> Known:
        """The same, seen after one more place; what says more of the last place replaces it."""
        before = self.trail[:-1] if self.trail[-1].node is mark.node else self.trail
        return replace(self, trail=(*before, mark)[-_TRAIL:])


@dataclass(frozen=True, slots=True)
class Element:
    """What a loop goes through, and which part of each element it takes. at: of its node, if any.

    filtered: not everything is gone through.
    """

    iterable: ast.expr
    path: Path
    at: Node | None
    filtered: bool

    @property
    def source(self) -> ast.expr | None:
        """What it is one element of, by `zip` and `enumerate` too."""
        call, path = self.iterable, self.path
        if isinstance(call, ast.Call) and path and isinstance(path[0], int):
            index = path[0] - 1 if callee_name(call) == "enumerate" else path[0]
            if callee_name(call) in _PAIRING and 0 <= index < len(call.args):
                return call.args[index] if not path[1:] else None
        return call if not path else None


@dataclass
class Blocks:
    """Answers for the functions of a universe."""

    scenario: Scenario
    _named: dict[Module, Named] = field(default_factory=dict)
    _results: dict[ast.AugAssign, ast.BinOp] = field(default_factory=dict)
    _memo: dict[object, Known | None] = field(default_factory=dict)
    _active: set[object] = field(default_factory=set)
    _comprehended: dict[Function, dict[str, list[Element]]] = field(default_factory=dict)
    _work: int = 0

    @property
    def universe(self) -> Universe:
        """The functions that are looked at."""
        return self.scenario.universe

    @cached_property
    def _facts(self) -> Mapping[str, list[BlockFact]]:
        """What counts, by the name of an attribute, an argument, or a method that returns it."""
        found: dict[str, list[BlockFact]] = {}
        for fact in self.universe.program.contract.blocks:
            if fact.counts:
                found.setdefault(fact.name or fact.argument or fact.method, []).append(fact)
        return found

    # Questions

    @cached_property
    def ids(self) -> frozenset[str]:
        """The attributes that hold ids of blocks, and the methods that return some."""
        return block_ids(self.universe.program.contract.pack)

    def cutting(self) -> Iterator[Function]:
        """The functions that get ids of blocks, and seem to count them by the size of one."""
        for index, (module, _, _, text) in enumerate(self.universe.entries):
            if any(word in text for word in self.ids) and self._names(module).counts(text):
                yield from self.universe.functions_of(index)

    def may_be_size(self, function: Function, node: ast.expr) -> bool:
        """Whether the module calls the size of a block what `node` is called, by its text."""
        name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
        return name in self._names(function.module).blocks

    def multiplying(self) -> Iterator[Function]:
        """The functions that seem to multiply the size of a block by that of the group."""
        for index, (module, _, _, text) in enumerate(self.universe.entries):
            if "*" in text and self._names(module).multiplies(text):
                yield from self.universe.functions_of(index)

    def _names(self, module: Module) -> Named:
        if module not in self._named:
            program = self.universe.program
            text = program.modules.text(module.tree, module.facts.path).text
            self._named[module] = Named(text, program.contract)
        return self._named[module]

    def known(self, function: Function, at: Node | None, node: ast.expr) -> Known | None:
        """What `node` is where `at` evaluates it, or (None) wherever it is evaluated."""
        if not self._active:
            self._work = 0
        key = (function, at, dumped(node))
        if key in self._memo:
            return self._memo[key]
        self._work += 1
        if key in self._active or len(self._active) > _DEPTH or self._work > _WORK:
            return None
        self._active.add(key)
        found = self._of(function, at, node)
        self._active.discard(key)
        if not self._active or found is not None:
            self._memo[key] = found
        return found

    def is_size(self, function: Function, node: ast.expr, steps: int = _DEPTH) -> bool:
        """Whether `node` is the DCP size whatever it is asked for, and not of some groups only."""
        if isinstance(node, ast.IfExp):
            truth = self.scenario.truth(function, node.test)
            return truth is not None and self.is_size(
                function, node.body if truth else node.orelse, steps
            )
        if not steps or not self.scenario.is_size(function, node):
            return False
        values = self.scenario.meanings(function, node)
        return all(self.is_size(*value, steps - 1) for value in values)

    def facts_of(self, symbol: ClassSymbol, name: str) -> Iterator[BlockFact]:
        """What the pack says of an attribute of a class; nothing where every rank has it whole."""
        entries = {entry.dotted for entry in self.universe.program.mro(symbol).classes}
        for fact in self._facts.get(name, ()):
            if fact.name and fact.record in entries and not entries.intersection(fact.whole):
                yield fact

    def classes(
        self, function: Function, at: Node | None, node: ast.expr, steps: int = _LINKS
    ) -> Classes:
        """The classes of `node`, or of its elements where it is a list; empty where not known."""
        here = at.statement if at is not None else None
        found = narrowed(self.universe, function, here, node) if isinstance(here, ast.stmt) else ()
        found = found or owners(self.universe, function, node)
        if found or not steps:
            return found
        steps -= 1
        values: list[Given] = []
        if isinstance(node, ast.Subscript):
            values = [(function, at, node.value)]
        elif isinstance(node, ast.Name):
            elements = list(self.elements(function, at, node.id))
            if any(element.source is None for element in elements):
                return ()
            values = [(function, e.at, e.source) for e in elements if e.source is not None]
            values = values or list(self._given(function, at, node.id) or ())
        elif isinstance(node, ast.Attribute):
            outer = self.classes(function, at, node.value, steps)
            noted = _each(declared(self.universe.program, owner, node.attr) for owner in outer)
            if noted:
                return noted
            set_ = [s for o in outer for s in attribute_settings(self.universe, o, node.attr)]
            values = [(method, None, value) for method, value, _ in set_ if value is not None]
        elif isinstance(node, ast.Call):
            callees = self.universe.callees(function, node)
            return _each(annotated(self.universe, c, c.node.returns) for c in callees)
        return _each(self.classes(*value, steps) for value in values)

    def elements(self, function: Function, at: Node | None, name: str) -> Iterator[Element]:
        """The loops and comprehensions that bind a variable."""
        if name not in function.local_names:
            yield from self._of_comprehensions(function).get(name, ())
        for value, place, path in self.definitions(function, at, name):
            if value is not None and isinstance(place.statement, (ast.For, ast.AsyncFor)):
                yield Element(value, path[1:], place, False)

    # Expressions

    def _of(self, function: Function, at: Node | None, node: ast.expr) -> Known | None:
        if isinstance(node, ast.IfExp):
            truth = self.scenario.truth(function, node.test)
            sides = [node.body, node.orelse] if truth is None else []
            sides = sides or [node.body if truth else node.orelse]
            return _agreed(self.known(function, at, side) for side in sides)
        if isinstance(node, ast.NamedExpr):
            return self.known(function, at, node.value)
        if isinstance(node, ast.Subscript):
            return _ids(self.known(function, at, node.value))
        if isinstance(node, ast.ListComp):
            (loop, *others) = node.generators
            if others or loop.ifs or dotted_name(node.elt) != dotted_name(loop.target):
                return None
            return _ids(self.known(function, at, loop.iter))
        if isinstance(node, ast.BinOp):
            return self._computed(function, at, node)
        if isinstance(node, ast.Call):
            return self._called(function, at, node)
        if isinstance(node, ast.Attribute):
            found = self._attribute(function, at, node)
            return found or self._followed(function, at, node)
        if isinstance(node, ast.Name):
            return self._followed(function, at, node)
        return None

    def _computed(self, function: Function, at: Node | None, node: ast.BinOp) -> Known | None:
        mark = Mark(function, node, shorten(node))
        if isinstance(node.op, (ast.Add, ast.Sub)):
            parts = [self.known(function, at, side) for side in (node.left, node.right)]
            known = [part for part in parts if part is not None]
            plain = [side for side in (node.left, node.right) if isinstance(side, ast.Constant)]
            if len(known) + len(plain) == 2 and known:
                if all(part.counts is Counts.SEQUENCE for part in known):
                    return known[0].at(mark)
        elif isinstance(node.op, ast.Mult):
            for side, other in ((node.left, node.right), (node.right, node.left)):
                if self.is_size(function, other):
                    return self._changed(function, at, side, _SCALED, mark)
        elif isinstance(node.op, ast.FloorDiv) and self.is_size(function, node.right):
            return self._changed(function, at, node.left, _UNSCALED, mark)
        return None

    def _changed(
        self,
        function: Function,
        at: Node | None,
        node: ast.expr,
        changes: dict[Counts, Counts],
        mark: Mark,
    ) -> Known | None:
        known = self.known(function, at, node)
        if known is None or known.counts not in changes:
            return None
        return replace(known, counts=changes[known.counts]).at(mark)

    def _called(self, function: Function, at: Node | None, call: ast.Call) -> Known | None:
        name = callee_name(call)
        for fact in self._facts.get(name, ()):
            if fact.method and not fact.argument and self.is_call_of(function, at, call, fact):
                return Known(Counts(fact.counts), fact, (Mark(function, call, shorten(call)),))
        if name in _SAME and call.args and isinstance(call.func, ast.Name):
            return self.known(function, at, call.args[-1])
        if bounds_of_range(call):
            return self._within(function, at, call)
        if name == "len" and len(call.args) == 1:
            known = self.known(function, at, call.args[0])
            if known is None or known.counts is not Counts.TOKENS:
                return None
            return replace(known, counts=Counts.SEQUENCE).at(Mark(function, call, shorten(call)))
        if name in _LISTING and call.args:
            return _ids(self.known(function, at, call.args[0]))
        if name in _EITHER and isinstance(call.func, ast.Name):
            parts = [a for a in call.args if not isinstance(a, ast.Constant)]
            return _agreed(self.known(function, at, part) for part in parts)
        return self._followed(function, at, call)

    def is_call_of(
        self, function: Function, at: Node | None, call: ast.Call, fact: BlockFact
    ) -> bool:
        """Whether a call runs the method that a fact is about."""
        if callee_name(call) != fact.method or not isinstance(call.func, ast.Attribute):
            return False
        found = self.classes(function, at, call.func.value)
        if not found:  # whatever has a method of that name, if only one class does
            callees = (c for c in self.universe.callees(function, call) if fits(c, call))
            found = tuple(callee.owner for callee in callees if callee.owner is not None)
        return bool(found) and all(
            any(entry.dotted == fact.record for entry in self.universe.program.mro(symbol).classes)
            for symbol in found
        )

    def _attribute(self, function: Function, at: Node | None, node: ast.Attribute) -> Known | None:
        if node.attr not in self._facts:
            return None
        found = self.classes(function, at, node.value)
        facts = [list(self.facts_of(symbol, node.attr)) for symbol in found]
        if not facts or not all(facts):
            return None
        said = {fact.counts for each in facts for fact in each}
        if len(said) > 1:
            return None
        fact = facts[0][0]
        return Known(Counts(fact.counts), fact, (Mark(function, node, shorten(node)),))

    def _followed(self, function: Function, at: Node | None, node: ast.expr) -> Known | None:
        if isinstance(node, ast.Name):
            owed = self._owed(function, at, node.id)
            if owed is not None:
                return owed
            elements = list(self.elements(function, at, node.id))
            if elements:
                return _agreed(self._element(function, element) for element in elements)
            values = self._given(function, at, node.id)
            if not values:
                return self._unpacked(function, at, node.id)
        else:
            meant = self.scenario.meanings(function, node)
            values = [(where, _evaluated(where, value), value) for where, value in meant]
            if not values and isinstance(node, ast.Attribute):
                values = list(self._constructed(function, at, node))
        known = _agreed(self.known(*value) for value in values)
        if known is None or isinstance(node, ast.Call):
            return known
        where, _, value = values[0]
        name, said = dotted_name(node), shorten(value)
        return known.at(Mark(where, value, f"{name} = {said}")) if name != said else known

    def _element(self, function: Function, element: Element) -> Known | None:
        source = element.source
        if source is None:
            return None
        known = self.known(function, element.at, source)
        return known if bounds_of_range(source) else _ids(known)

    def _within(self, function: Function, at: Node | None, call: ast.Call) -> Known | None:
        """What `range()` goes through: tokens, if it is as many."""
        bounds = [b for b in bounds_of_range(call) if not isinstance(b, ast.Constant)]
        known = _agreed(self.known(function, at, bound) for bound in bounds)
        return known if known is not None and known.counts is Counts.SEQUENCE else None

    def _unpacked(self, function: Function, at: Node | None, name: str) -> Known | None:
        """What a variable is that assignments give a part of something: of ids of blocks, some."""
        given = list(self.definitions(function, at, name))
        return _agreed(
            _ids(self.known(function, place, value)) if value is not None and path else None
            for value, place, path in given
        )

    def _constructed(self, function: Function, at: Node | None, node: ast.Attribute) -> list[Given]:
        """What all that make a record pass for one of its fields; nothing where it may change."""
        lookup, values = self.scenario.lookup, list[Given]()
        for symbol in self.classes(function, at, node.value):
            sites = list(lookup.constructions(symbol))
            if (
                not sites
                or not is_record(self.universe, symbol)
                or lookup.stores(symbol, node.attr)
            ):
                return []
            for site in sites:
                passed = constructor_argument(self.universe, site.call, symbol, node.attr)
                if passed is None:
                    return []
                values += [(site.function, place, passed) for place in site.nodes[:1]]
        return values

    # Variables

    def _owed(self, function: Function, at: Node | None, name: str) -> Known | None:
        """What the engine hands an override of a method that the pack speaks of."""
        if name not in function.parameters or function.owner is None or function.rebinds(name):
            return None
        for fact in self._facts.get(name, ()):
            if fact.argument != name or fact.method != function.node.name:
                continue
            for entry in self.universe.program.mro(function.owner).classes:
                if entry.dotted == fact.record:
                    spec = function.node.args
                    taken = (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)
                    place = next(a for a in taken if a.arg == name)
                    mark = Mark(function, place, f"`{name}` of {fact.record}.{fact.method}")
                    return Known(Counts(fact.counts), fact, (mark,))
        return None

    def _given(self, function: Function, at: Node | None, name: str) -> list[Given]:
        """All that a variable can have been given before `at`; nothing where that is not known."""
        if at is None or name not in function.local_names:
            found = self.scenario.meanings(function, ast.Name(name, ast.Load()))
            return [(where, _evaluated(where, value), value) for where, value in found]
        values: list[Given] = []
        for value, place, path in self.definitions(function, at, name):
            if place.role is Role.ENTRY:
                passed = self._passed(function, name)
                if not passed:
                    return []
                values += passed
            elif value is None or path:
                return []
            else:
                values.append((function, place, value))
        return values

    def _passed(self, function: Function, name: str) -> list[Given]:
        """What every call passes for a parameter that is surely one of this function."""
        values: list[Given] = []
        for site in self.universe.callers(function):
            if self.universe.callees(site.function, site.call, site.statement) != (function,):
                continue  # of whatever has a method of that name
            passed = argument(function, site.call, name)
            if passed is None:
                return []
            reachable = self.scenario.reachable(site.function)
            values += [(site.function, at, passed) for at in site.nodes if at in reachable]
        return values

    def definitions(
        self, function: Function, at: Node | None, name: str
    ) -> Iterator[tuple[ast.expr | None, Node, Path]]:
        """The definitions of a variable that can be in force before `at`, with DCP on."""
        if at is None:
            return
        seen: set[Node] = set()
        queue = list(self._before(function, at))
        while queue:
            place = queue.pop()
            if place in seen:
                continue
            seen.add(place)
            found = list(definitions_at(place, name))
            if isinstance(place.statement, ast.AugAssign) and found:
                yield self.result(place.statement), place, ()
            elif found:
                yield from found
            elif place.role is Role.ENTRY:
                yield None, place, ()
            else:
                queue += self._before(function, place)

    def result(self, statement: ast.AugAssign) -> ast.BinOp:
        """What `a *= b` gives `a`, as an expression."""
        if statement not in self._results:
            made = ast.BinOp(loaded(statement.target), statement.op, statement.value)
            self._results[statement] = ast.copy_location(made, statement)
        return self._results[statement]

    def _before(self, function: Function, node: Node) -> Iterator[Node]:
        reachable = self.scenario.reachable(function)
        for edge in node.before:
            truth = self.scenario.truth(function, edge.test) if edge.test is not None else None
            if edge.source in reachable and (truth is None or truth is edge.holds):
                yield edge.source

    def _of_comprehensions(self, function: Function) -> dict[str, list[Element]]:
        if function not in self._comprehended:
            found: dict[str, list[Element]] = {}
            for statement, nodes in function.own_nodes.items():
                for node in nodes:
                    for generator in getattr(node, "generators", ()):
                        at = next(iter(function.graph.at(statement)), None)
                        for name, path in _targets(generator.target):
                            element = Element(generator.iter, path, at, bool(generator.ifs))
                            found.setdefault(name, []).append(element)
            self._comprehended[function] = found
        return self._comprehended[function]


def quotient(node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """What is divided by what: by an operator or a function, rounded up or down.

    Of `divmod()`, the first part is the quotient.
    """
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv):
        return node.left, node.right
    if isinstance(node, ast.Call):
        given = operands(node)
        if callee_name(node) in (*DIVIDING, "divmod") and len(given) == 2:
            return given[0], given[1]
        if callee_name(node) in _ROUNDING and len(node.args) == 1:
            inner = node.args[0]
            if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Div):
                return inner.left, inner.right
    return None


def _evaluated(function: Function, node: ast.expr) -> Node | None:
    """Where a function evaluates an expression of its own."""
    for name in (n.id for n in walk(node) if isinstance(n, ast.Name)):
        for statement in function.mentions.get(name, ()):
            if any(inner is node for inner in function.own_nodes[statement]):
                return next(iter(function.graph.at(statement)), None)
    return None


def bounds_of_range(node: ast.expr) -> list[ast.expr]:
    """Where `range()` begins and ends; nothing for any other expression."""
    if isinstance(node, ast.Call) and dotted_name(node.func) in _RANGES:
        return node.args[:2]
    return []


def _ids(known: Known | None) -> Known | None:
    """What is known of ids of blocks; of a number, nothing is known of its parts."""
    return known if known is not None and known.counts is Counts.BLOCK_IDS else None


def _targets(target: ast.expr, path: Path = ()) -> Iterator[tuple[str, Path]]:
    if isinstance(target, ast.Name):
        yield target.id, path
    elif isinstance(target, (ast.Tuple, ast.List)):
        for index, inner in enumerate(target.elts):
            yield from _targets(inner, (*path, index))


def _each(found: Iterable[Iterable[ClassSymbol]]) -> Classes:
    """All of them, each once; none where one of them is not known."""
    lists = [tuple(each) for each in found]
    return tuple(dict.fromkeys(c for each in lists for c in each)) if all(lists) else ()


def _agreed(found: Iterable[Known | None]) -> Known | None:
    known = list(found)
    first = known[0] if known else None
    same = first is not None and all(k is not None and k.counts is first.counts for k in known)
    return first if same else None
