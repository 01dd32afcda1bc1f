"""The functions of some modules, found by name and by text, so that few are ever parsed."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple
from weakref import WeakKeyDictionary

from dcplint.facts.expressions import dotted_name
from dcplint.facts.model import FunctionFacts
from dcplint.flow.functions import CallSite, Function, callee_name, launched
from dcplint.program.program import Program
from dcplint.program.symbols import ClassSymbol, Module

_NAMES = re.compile(r"\w+")
_SPACED = bytes(c if chr(c).isalnum() or c == ord("_") else ord(" ") for c in range(256))
_REFERRED = re.compile(r"(?![ \t]*[\w(:]|[ \t]*=(?!=))")
# What follows an attribute that is assigned to, or whose own attribute is; seldom anything else.
_ASSIGNED = re.compile(r"\b(?:\.[\w.]+)?\s*(?:[-+*/|&]?=(?!=)|:[^\n=]*=(?!=)|[,)][^\n()=]*=(?!=))")

Classes = tuple[ClassSymbol, ...]
"""Each once, in the order in which they are met: what a search costs must not vary with it."""

Setting = tuple[Function, "ast.expr | None", "ast.expr | None"]
"""A method, the value it sets an attribute to, and the annotation it gives it."""


_PARSED: WeakKeyDictionary[Program, dict[tuple[Module, tuple[int, int]], tuple[Function, ...]]] = (
    WeakKeyDictionary()
)
"""The functions of a program, with those nested in them: all listings of it share them."""


class Entry(NamedTuple):
    """An outermost function or a method (then `owner` is its class), and its source."""

    module: Module
    facts: FunctionFacts
    owner: ClassSymbol | None
    text: str


@dataclass
class Listing:
    """All functions of `modules`.

    settings and instances remember what `flow.types` has worked out.
    """

    program: Program
    modules: tuple[Module, ...]
    _sites: dict[tuple[int, str], tuple[CallSite, ...]] = field(default_factory=dict)
    _called: dict[str, tuple[int, ...]] = field(default_factory=dict)
    _named: dict[str, tuple[int, ...]] = field(default_factory=dict)
    settings: dict[tuple[ClassSymbol, str], tuple[Setting, ...]] = field(default_factory=dict)
    _heirs: dict[tuple[ClassSymbol, str], tuple[Function, ...]] = field(default_factory=dict)
    _ancestry: dict[ClassSymbol, frozenset[ClassSymbol]] = field(default_factory=dict)
    instances: dict[tuple[Function, ast.expr], tuple[ClassSymbol, ...]] = field(
        default_factory=dict
    )

    def __post_init__(self) -> None:
        self._parsed = _PARSED.setdefault(self.program, {})

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """Every outermost function and method."""
        found = []
        for module in self.modules:
            owned: list[tuple[FunctionFacts, ClassSymbol | None]]
            owned = [(f, None) for f in module.facts.functions]
            owned += [(m, symbol) for symbol in module.classes for m in symbol.facts.methods]
            for facts, owner in owned:
                found.append(Entry(module, facts, owner, self.text(module, facts)))
        return tuple(found)

    def _calling(self, name: str) -> tuple[int, ...]:
        """The entries that seem to call something called `name`, or define it."""
        if name not in self._called:
            word = f"{name}("
            found = []
            for index in self._spelled(name):
                text = self.entries[index].text
                at = text.find(word)
                while at > 0 and ends_word(text[at - 1]):
                    at = text.find(word, at + 1)
                if at >= 0:
                    found.append(index)
            self._called[name] = tuple(found)
        return self._called[name]

    @cached_property
    def _by_name(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for index, (_, facts, _, _) in enumerate(self.entries):
            found.setdefault(facts.name, []).append(index)
        return found

    @cached_property
    def _by_place(self) -> dict[tuple[Module, tuple[int, int]], int]:
        return {(e.module, e.facts.lines): index for index, e in enumerate(self.entries)}

    @cached_property
    def _naming(self) -> tuple[str, dict[str, list[int]]]:
        """The names that occur, one to a line, and the entries of each."""
        found: dict[str, list[int]] = {}
        for index, (_, _, _, text) in enumerate(self.entries):
            for name in _names_in(text):
                found.setdefault(name, []).append(index)
        return "\n".join(("", *found, "")), found

    def _spelled(self, name: str) -> Sequence[int]:
        """The entries in which `name` occurs, in order."""
        return self._naming[1].get(name, ())

    def _with_name(self, part: str) -> Iterable[int]:
        """The entries in which a name that contains `part` occurs, in order."""
        if part not in self._named:
            names, entries = self._naming
            found: list[list[int]] = []
            at = names.find(part)
            while at >= 0:
                end = names.index("\n", at)
                found.append(entries[names[names.rindex("\n", 0, at) + 1 : end]])
                at = names.find(part, end)
            merged = found[0] if len(found) == 1 else sorted({i for some in found for i in some})
            self._named[part] = tuple(merged)
        return self._named[part]

    def containing(self, word: str) -> Iterator[int]:
        """The entries whose text contains `word`."""
        part = max(_NAMES.findall(word), key=len, default="")
        near = self._with_name(part) if part else range(len(self.entries))
        return (i for i in near if part == word or word in self.entries[i].text)

    def sets(self, module: Module, facts: FunctionFacts, dotted: str) -> bool:
        """Whether the text of a function seems to assign to `dotted`."""
        text = self.text(module, facts)
        at = text.find(dotted)
        while at >= 0:
            if _ASSIGNED.match(text, at + len(dotted)):
                return True
            at = text.find(dotted, at + 1)
        return False

    def stored(self, attribute: str) -> dict[int, set[bool]]:
        """The entries that seem to assign to `attribute`, and whether it is one of `self`."""
        word = f".{attribute}"
        found: dict[int, set[bool]] = {}
        for index in self._with_name(attribute):
            text = self.entries[index].text
            at = text.find(word)
            while at >= 0:
                if _ASSIGNED.match(text, at + len(word)):
                    found.setdefault(index, set()).add(text.endswith("self", 0, at))
                at = text.find(word, at + 1)
        return found

    def referring(self, name: str, before: str, other: str = "") -> Iterator[Function]:
        """Functions whose text names `name` without calling or assigning to it there.

        before: what may stand before the name; other: what may not.
        """
        for index in self._spelled(name):
            text = self.entries[index].text
            at = text.find(name)
            while at >= 0:
                after = at + len(name)
                stands = text[at - 1] in before if before else not ends_word(text[at - 1], other)
                if at and stands and _REFERRED.match(text, after):
                    yield from self.functions_of(index)
                    break
                at = text.find(name, after)

    def mentioning(self, word: str, pattern: re.Pattern[str] | None = None) -> Iterator[Function]:
        """Every function, nested ones included, whose outermost function contains `word`.

        pattern: what its text must match too.
        """
        for index in self.containing(word):
            if pattern is None or pattern.search(self.entries[index].text):
                yield from self.functions_of(index)

    def matching(
        self,
        suits: Callable[[str], object],
        wanted: Callable[[ClassSymbol | None], bool] = lambda owner: True,
    ) -> Iterator[Function]:
        """Every function, nested ones included, whose outermost function's text suits.

        wanted: which classes' methods are looked at (None: functions of no class).
        """
        for index, (_, _, owner, text) in enumerate(self.entries):
            if wanted(owner) and suits(text):
                yield from self.functions_of(index)

    def heirs(self, owner: ClassSymbol, name: str) -> tuple[Function, ...]:
        """Methods called `name` of the classes that derive from `owner`."""
        key = (owner, name)
        if key not in self._heirs:
            self._heirs[key] = tuple(self._find_heirs(owner, name))
        return self._heirs[key]

    def _find_heirs(self, owner: ClassSymbol, name: str) -> Iterator[Function]:
        for index in self._by_name.get(name, ()):
            heir = self.entries[index].owner
            if heir is not None and heir is not owner and owner in self.ancestry(heir):
                yield from self.functions_of(index)[:1]

    def ancestry(self, symbol: ClassSymbol) -> frozenset[ClassSymbol]:
        """A class and those that it derives from."""
        if symbol not in self._ancestry:
            self._ancestry[symbol] = frozenset(self.program.mro(symbol).classes)
        return self._ancestry[symbol]

    def named(self, name: str) -> Iterator[Function]:
        """Functions and methods called `name`, nested ones excluded."""
        for index in self._by_name.get(name, ()):
            yield from self.functions_of(index)[:1]

    def listed(self, name: str) -> Iterator[str]:
        """The source of what is called `name`, unparsed."""
        return (self.entries[index].text for index in self._by_name.get(name, ()))

    def calling(self, name: str) -> Iterator[tuple[Module, str]]:
        """Module and qualified name of the functions that call something called `name`."""
        for index in self._calling(name):
            module, facts, _, _ = self.entries[index]
            yield module, facts.qualname

    def keys_named(self, name: str) -> Iterator[tuple[Module, str]]:
        """Module and qualified name of the functions called `name`."""
        for index in self._by_name.get(name, ()):
            module, facts, _, _ = self.entries[index]
            yield module, facts.qualname

    def text(self, module: Module, facts: FunctionFacts) -> str:
        """The source of the function that `facts` describes."""
        return self.program.modules.source(module, facts)

    def written(self, function: Function) -> str:
        """The source of a function, without its decorators."""
        text = self.program.modules.text(function.module.tree, function.module.facts.path)
        return text.between(function.node.lineno, function.node.end_lineno or 0)

    def function(self, module: Module, facts: FunctionFacts) -> Function | None:
        """The function that `facts` describes."""
        key = (module, facts.lines)
        index = self._by_place.get(key)
        if index is not None:
            return next(iter(self.functions_of(index)), None)
        node = self.program.function(module, facts)
        if node is None:
            return None
        if key not in self._parsed:  # an ancestor's method, in a module outside the universe
            owner = next((c for c in module.classes if facts in c.facts.methods), None)
            self._parsed[key] = tuple(family(Function(module, node, facts.qualname, owner)))
        return self._parsed[key][0]

    def calls_of(self, name: str) -> tuple[CallSite, ...]:
        """Every call, anywhere in the universe, whose callee's last name is `name`."""
        return tuple(site for index in self._calling(name) for site in self._calls_in(index, name))

    def _calls_in(self, index: int, name: str) -> tuple[CallSite, ...]:
        """The calls of an entry whose callee's last name is `name`."""
        key = (index, name)
        if key not in self._sites:
            self._sites[key] = tuple(
                CallSite(function, statement, call)
                for function in self.functions_of(index)
                for statement, made in function.calls.items()
                for call in made
                if callee_name(call) == name
            )
        return self._sites[key]

    def launches_of(self, name: str) -> Iterator[CallSite]:
        """Every call, anywhere in the universe, of a kernel called `name` on a grid."""
        for function in self.mentioning(f"{name}["):
            for statement, made in function.calls.items():
                for call in made:
                    if call.func is not (kernel := launched(call)):
                        if (dotted_name(kernel) or "").rpartition(".")[2] == name:
                            yield CallSite(function, statement, call)

    def functions_of(self, index: int) -> tuple[Function, ...]:
        """The function of an entry, then those nested in it."""
        module, facts, owner, _ = self.entries[index]
        key = (module, facts.lines)
        if key not in self._parsed:
            node = self.program.function(module, facts)
            top = Function(module, node, facts.qualname, owner) if node is not None else None
            self._parsed[key] = tuple(family(top)) if top is not None else ()
        return self._parsed[key]


def _names_in(text: str) -> set[str]:
    """The names that occur in a text, each once."""
    if text.isascii():  # in half the time
        return set(text.encode().translate(_SPACED).decode().split())
    return set(_NAMES.findall(text))


def ends_word(character: str, other: str = "") -> bool:
    """Whether a name goes on to the left with `character`, or that is one of `other`."""
    return character == "_" or character.isalnum() or character in other


def family(function: Function) -> Iterator[Function]:
    """A function and those nested in it."""
    yield function
    for nested in function.nested:
        yield from family(nested)
