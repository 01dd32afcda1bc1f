"""Which expressions are the DCP rank or size, whatever the names are that hold them.

The pack names attributes and parameters that do, and getters of the process group. What is made of
a group, or set to a rank or size, is followed from there: to variables, to attributes in the
methods of related classes and of the same module, to what functions return and to parameters.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from dcplint.facts.expressions import dotted_name
from dcplint.flow.conditions import dumped
from dcplint.flow.functions import Function, argument
from dcplint.flow.listing import family
from dcplint.flow.scenario import Scenario
from dcplint.flow.universe import Universe
from dcplint.flow.values import element_of, unpacked
from dcplint.program.symbols import ClassSymbol
from dcplint.units.dealt import Dealt
from dcplint.units.roles import RANK, SIZE, Role, role

_RENAMED = re.compile(r"(\w+)[ \t]*(?::[^=\n]*)?=[ \t]*(?:[\w.]+\.)?\Z")  # up to the old name
_BEFORE = re.compile(r"[(,]\s*(?:[\w.]+\.)?\Z")  # of a positional argument
_AFTER = re.compile(r"\s*[,)]")
_FAR = 40  # characters, from there to the comma or parenthesis before
_MOST = 2_000  # names in functions; several times real need

Place = tuple[Function, str]
"""A name in a function that may hold the rank, the size or the group."""


@dataclass
class Ranks:
    """Answers for the functions of a universe."""

    scenario: Scenario
    _named: dict[Function, Mapping[str, str]] = field(default_factory=dict)

    @property
    def universe(self) -> Universe:
        """The functions that are looked at."""
        return self.scenario.universe

    @cached_property
    def dealt(self) -> Dealt:
        """Which names hold lengths and places here."""
        return Dealt(self.scenario)

    def functions(self, pattern: re.Pattern[str] | None = None) -> Iterator[Function]:
        """The functions into which the rank may go, nested ones included, each once.

        pattern: what their text must match.
        """
        found = [f for word in self._words for f in self.universe.mentioning(word, pattern)]
        found += [
            f for f in self._held if pattern is None or pattern.search(self.universe.written(f))
        ]
        yield from dict.fromkeys(found)

    def named(self, function: Function) -> Mapping[str, str]:
        """What rank and size are called in a function (by dump), and a name that says it."""
        if function not in self._named:
            held = self._held.get(function)
            self._named[function] = self._find(function, held) if held else {}
        return self._named[function]

    def _find(self, function: Function, held: set[str]) -> Mapping[str, str]:
        vocabulary = self.universe.program.contract.vocabulary
        names = {*held, *vocabulary.group_ranks, *vocabulary.group_sizes}
        found: dict[str, str] = {}
        asked: set[str] = set()
        for nodes in function.own_nodes.values():
            for node in nodes:
                if _last(node) in names and isinstance(node, ast.expr) and role(node) is None:
                    said = dumped(node)
                    if said in asked or isinstance(getattr(node, "ctx", None), ast.Store):
                        continue
                    asked.add(said)
                    if self.scenario.is_rank(function, node):
                        found[said] = RANK
                    elif self.scenario.is_size(function, node):
                        found[said] = SIZE
        return found

    @cached_property
    def _words(self) -> Mapping[str, None]:
        """What the pack calls the rank, in kernels too."""
        ranks = self.universe.program.contract.vocabulary.ranks
        return dict.fromkeys(word for rank in ranks for word in (rank, rank.upper()))

    # Where names that hold something are handed on to others

    def _is_told(self, name: str) -> bool:
        """Whether a name tells by itself what it is, and whoever has the rank by it is known."""
        part = role(ast.Name(name))
        return part is not None and (part is not Role.RANK or name in self._words)

    @cached_property
    def _held(self) -> dict[Function, set[str]]:
        queue = list(self._origins())
        held: dict[Function, set[str]] = {}
        for function, name in queue:  # grows as it is read
            known = held.setdefault(function, set())
            if name not in known:
                known.add(name)
                found = self._handed_on(function, name)
                queue += (place for place in found if not self._is_told(place[1]))
            if len(queue) > _MOST:
                break
        return held

    def _origins(self) -> Iterator[Place]:
        """Where the group is asked for, and where a rank or size may be given another name."""
        vocabulary = self.universe.program.contract.vocabulary
        names = frozenset(name.rpartition(".")[2] for name in vocabulary.groups)
        for getter in sorted(self.universe.program.spellings(names)):
            yield from ((f, getter) for f in self.universe.mentioning(getter))
        for word in (*vocabulary.ranks, *vocabulary.sizes):
            for index in self.universe.containing(word):
                if any(self._is_renamed(self.universe.entries[index].text, word)):
                    yield from ((f, word) for f in self.universe.functions_of(index))

    def _is_renamed(self, text: str, word: str) -> Iterator[bool]:
        """Whether each occurrence of `word` is given to a name that may not say what it is.

        A positional argument goes to a parameter that is called anything.
        """
        at = text.find(word)
        while at >= 0:
            before = _RENAMED.search(text, text.rfind("\n", 0, at) + 1, at)
            if before is not None:
                yield not self._is_told(before[1])
            elif _AFTER.match(text, at + len(word)):
                yield _BEFORE.search(text, max(at - _FAR, 0), at) is not None
            at = text.find(word, at + 1)

    def _handed_on(self, function: Function, name: str) -> Iterator[Place]:
        for statement in function.mentions.get(name, ()):
            for target, value in _assigned(function, statement):
                if self._is_of_dcp(function, value, name):
                    yield from self._holding(function, target)
            if isinstance(statement, ast.Return) and statement.value is not None:
                if self._is_of_dcp(function, statement.value, name):
                    yield from self._returning(function)
            for call in function.calls.get(statement, ()):
                yield from self._receiving(function, statement, call, name)

    def _is_of_dcp(self, function: Function, node: ast.expr, name: str) -> bool:
        """Whether what is asked for by `name` makes `node` the rank, the size or the group."""
        if isinstance(node, ast.IfExp):
            sides = (node.body, node.orelse)
            if not any(self._is_of_dcp(function, side, name) for side in sides):
                return False
        elif isinstance(node, ast.NamedExpr):
            return self._is_of_dcp(function, node.value, name)
        elif name not in (
            _last(node),
            _last(node.value) if isinstance(node, ast.Attribute) else "",
        ):
            return False
        told = self.scenario
        return any(asked(function, node) for asked in (told.is_rank, told.is_size, told.is_group))

    def _holding(self, function: Function, target: str) -> Iterator[Place]:
        """Where what is assigned to `target` in `function` can be read by that name."""
        owner, _, name = target.rpartition(".")
        if owner:
            yield from self._nearby(function, name)
        else:
            yield from ((inner, name) for inner in family(function))

    def _returning(self, function: Function) -> Iterator[Place]:
        """Where the result of `function` can be asked for."""
        name = function.node.name
        if function.owner is not None:
            yield from self._nearby(function, name)
        elif function.outer is not None:
            yield from ((inner, name) for inner in family(function.outer))
        else:
            for spelling in sorted(self.universe.program.spellings(frozenset({name}))):
                yield from ((f, spelling) for f in self.universe.mentioning(spelling))

    def _receiving(
        self, function: Function, statement: ast.stmt, call: ast.Call, name: str
    ) -> Iterator[Place]:
        """The parameters for which a call passes something of DCP."""
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        of_dcp = {id(node) for node in given if self._is_of_dcp(function, node, name)}
        if not of_dcp:
            return
        built = self.scenario.lookup.built(function, call)
        made = self.scenario.lookup.constructor(built) if built is not None else None
        for callee in [made] if made else self.universe.callees(function, call, statement):
            for parameter in callee.parameters:
                if id(argument(callee, call, parameter)) in of_dcp:
                    yield from ((inner, parameter) for inner in family(callee))

    def _nearby(self, function: Function, attribute: str) -> Iterator[Place]:
        """Functions that read `attribute` of an instance of the class of `function`, perhaps."""
        read = re.compile(rf"\.{attribute}\b")
        for index in self.universe.containing(f".{attribute}"):
            module, _, owner, text = self.universe.entries[index]
            if module is function.module or self._are_related(owner, function.owner):
                if read.search(text):
                    yield from ((f, attribute) for f in self.universe.functions_of(index))

    def _are_related(self, one: ClassSymbol | None, other: ClassSymbol | None) -> bool:
        if one is None or other is None:
            return False
        return one in self.universe.ancestry(other) or other in self.universe.ancestry(one)


def _last(node: ast.AST) -> str:
    """The last name of what a node asks for."""
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return (dotted_name(node) or "") if isinstance(node, ast.Name) else ""


def _assigned(function: Function, statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """The dotted names that a statement gives something, and what."""
    if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for target in targets:
            for inner, element in unpacked(target, ()):
                dotted = dotted_name(inner)
                if dotted is not None:
                    yield dotted, element_of(statement.value, element)
    for node in function.own_nodes[statement]:
        if isinstance(node, ast.NamedExpr):
            yield node.target.id, node.value
