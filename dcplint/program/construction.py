"""What constructors set, in the order in which they run.

`__new__`, `__init__` and `__init_subclass__` run up the MRO as long as each calls the next; what a
method sets after that call overrides what the call set.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from dcplint.facts.model import COMPUTED, AttributeFact, Condition, FunctionFacts, Setting
from dcplint.program.flow import in_force, runs
from dcplint.program.modules import Modules
from dcplint.program.mro import Hierarchy, Opaque
from dcplint.program.symbols import ClassSymbol
from dcplint.source.location import Tree
from dcplint.source.tree import walk

_CONSTRUCTORS = ("__new__", "__init__")
Set = tuple[ClassSymbol, AttributeFact]
"""A class and what one of its methods sets."""


@dataclass(slots=True)
class Construction:
    """Follows constructors through the hierarchy."""

    modules: Modules
    hierarchy: Hierarchy
    _calls: dict[tuple[ClassSymbol, str], int | None] = field(default_factory=dict)

    def sets(self, symbol: ClassSymbol, name: str) -> tuple[list[Set], bool]:
        """What construction may leave in attribute `name`, and whether it surely sets it."""
        if not self._is_set(symbol, name, Setting.INSTANCE):
            return [], False
        events = [
            event
            for constructor in _CONSTRUCTORS
            for event in self._events(symbol, constructor, name, Setting.INSTANCE)
        ]
        # A generated constructor (of a dataclass) has no method; its facts have no scope.
        for entry in self.hierarchy.linearize(symbol).classes:
            facts = entry.said(name)
            events += ((entry, f) for f in facts if f.setting is Setting.INSTANCE and not f.scope)
        real = (event for event in events if runs(event[1].conditions))
        return in_force(real, lambda event: event[1].conditions)

    def sets_later(self, symbol: ClassSymbol, name: str) -> list[Set]:
        """What other methods set: whether and when they run cannot be told."""
        return [
            (entry, fact)
            for entry in self.hierarchy.linearize(symbol).classes
            for fact in entry.said(name)
            if fact.setting is Setting.INSTANCE
            and fact.scope not in ("", *_CONSTRUCTORS)
            and fact.name != COMPUTED
        ]

    def sets_on_subclass(self, symbol: ClassSymbol, name: str) -> Iterator[Set]:
        """What `__init_subclass__` of the bases of `symbol` sets on it, in order."""
        if self._is_set(symbol, name, Setting.DECORATOR):
            hook = "__init_subclass__"
            yield from self._events(symbol, hook, name, Setting.DECORATOR, skip_own=True)

    def chain(
        self, symbol: ClassSymbol, constructor: str, skip_own: bool = False
    ) -> Iterator[tuple[ClassSymbol, int | None, bool]]:
        """The classes whose `constructor` runs, the line of its call of the next, and certainty.

        Past a class whose source is not known, whether anything runs is uncertain.
        """
        certain = True
        for entry in self.hierarchy.linearize(symbol).entries:
            if isinstance(entry, Opaque):
                certain = certain and entry.neutral
                continue
            method = next((m for m in reversed(entry.facts.methods) if m.name == constructor), None)
            if method is None or (skip_own and entry is symbol):
                continue
            line = self._call_of_next(entry, method)
            yield entry, line, certain
            if line is None:
                return

    def _events(
        self,
        symbol: ClassSymbol,
        constructor: str,
        name: str,
        setting: Setting,
        skip_own: bool = False,
    ) -> list[Set]:
        before: list[Set] = []
        after: list[Set] = []
        for entry, line, certain in self.chain(symbol, constructor, skip_own):
            facts = entry.said(name)
            own = [f for f in facts if f.setting is setting and f.scope == constructor]
            if not certain:
                own = [_uncertain(fact) for fact in own]
            early = [f for f in own if line is None or f.position[0] < line]
            before += ((entry, fact) for fact in early)
            after[:0] = ((entry, fact) for fact in own[len(early) :])
        return before + after

    def _is_set(self, symbol: ClassSymbol, name: str, setting: Setting) -> bool:
        classes = self.hierarchy.linearize(symbol).classes
        return any(f.setting is setting for entry in classes for f in entry.said(name))

    def _call_of_next(self, owner: ClassSymbol, method: FunctionFacts) -> int | None:
        """The line in which the method calls the same method of a base, if it does."""
        key = (owner, method.name)
        if key not in self._calls:
            self._calls[key] = self._find_call(owner, method)
        return self._calls[key]

    def _find_call(self, owner: ClassSymbol, method: FunctionFacts) -> int | None:
        if owner.module.tree is Tree.PACK:
            return method.lines[0]
        node = self.modules.function(owner.module, method)
        if node is None:
            return None
        lines = [
            call.lineno
            for call in walk(node)
            if isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and call.func.attr == method.name
        ]
        return min(lines, default=None)


def _uncertain(fact: AttributeFact) -> AttributeFact:
    hidden = Condition("a base whose source is not known calls on")
    return AttributeFact(
        fact.name,
        fact.setting,
        fact.position,
        fact.value,
        fact.annotation,
        fact.scope,
        (*fact.conditions, hidden),
    )
