"""What local lengths may go into, by names alone: asked before any question that costs something.

From where a localizer is called or a local length is read, to the variables of that function and to
the parameters of those that it calls.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from functools import cached_property

from dcplint.facts.expressions import dotted_name
from dcplint.flow.functions import Function, argument
from dcplint.flow.universe import Universe
from dcplint.source.location import Tree
from dcplint.source.tree import children
from dcplint.units.stores import stores

_MOST = 1_000  # functions; several times real need


@dataclass
class Spread:
    """Answers for the functions of a universe.

    words: the last names by which local lengths are made and read. shared: those of them by which
    other lengths are read too, which say nothing of what a function hands on.
    """

    universe: Universe
    words: frozenset[str]
    shared: frozenset[str]
    _names: dict[Function, Set[str]] = field(default_factory=dict)

    def functions(
        self, pattern: re.Pattern[str], handed: re.Pattern[str] | None = None
    ) -> Iterator[Function]:
        """The functions of the checked tree in which something may be local, each once.

        pattern: what their text must match; handed: where they are given what is local, if that
        is something else, for a parameter may be called anything.
        """
        found = [f for w in sorted(self.words) for f in self.universe.mentioning(w, pattern)]
        matches = (handed or pattern).search
        found += [f for f in self._received if matches(self.universe.written(f))]
        for function in dict.fromkeys(found):
            if function.module.tree is Tree.PROJECT:
                yield function

    def may_be_local(self, function: Function, node: ast.expr) -> bool:
        """Whether something local may go into `node`."""
        return _has_one(node, self._inside(function), self.words)

    def _inside(self, function: Function) -> Set[str]:
        if function not in self._names:
            self._names[function] = self._closed(function, self.words)
        return self._names[function]

    @cached_property
    def _received(self) -> dict[Function, set[str]]:
        """The parameters for which a call may pass something local."""
        words = self.words - self.shared
        queue = [f for word in sorted(words) for f in self.universe.mentioning(word)]
        found: dict[Function, set[str]] = {}
        for function in queue:  # grows as it is read
            names = self._closed(function, words, found)
            for callee, parameters in self._handed_on(function, names, words):
                known = found.setdefault(callee, set())
                if not parameters <= known:
                    known |= parameters
                    queue.append(callee)
            if len(queue) > _MOST:
                break
        return found

    def _handed_on(
        self, function: Function, names: Set[str], words: frozenset[str]
    ) -> Iterator[tuple[Function, set[str]]]:
        """The functions that a function calls, and the parameters for which something is local."""
        for statement, calls in function.calls.items():
            for call in calls:
                given = (*call.args, *(keyword.value for keyword in call.keywords))
                local = {id(node) for node in given if _has_one(node, names, words)}
                for callee in self.universe.callees(function, call, statement) if local else ():
                    taking = callee.parameters
                    yield callee, {n for n in taking if id(argument(callee, call, n)) in local}

    def _closed(
        self,
        function: Function,
        words: frozenset[str],
        received: dict[Function, set[str]] | None = None,
    ) -> Set[str]:
        """The dotted names of a function that may hold something local."""
        taken = self._received if received is None else received
        names = {*taken.get(function, ())}
        if function.outer is not None:
            names |= self._closed(function.outer, words, taken)
        given = list(stores(function))
        before = -1
        while len(names) > before:
            before = len(names)
            for target, value in given:
                if target not in names and _has_one(value, names, words):
                    names.add(target)
        return names


def _has_one(node: ast.AST, names: Set[str], words: frozenset[str]) -> bool:
    """Whether one of the names goes into `node`. An attribute is known by its own name alone."""
    queue = [node]
    for inner in queue:  # grows as it is read
        if isinstance(inner, ast.Attribute):
            if inner.attr in words or (names and dotted_name(inner) in names):
                return True
        elif isinstance(inner, ast.Name):
            if inner.id in names or inner.id in words:
                return True
        else:
            if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
                queue.append(inner.func.value)
            queue += children(inner)
    return False
