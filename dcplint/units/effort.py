"""How much work a question about units may take, so that no code makes a run hang.

What a question could not look into is unknown, and the answers that rest on it are not remembered:
another question, which starts afresh, may get further.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from dcplint.flow.functions import Function

_DEPTH = 24  # values in terms of values
_WORK = 1_500  # expressions for one question
_STEPS = 150_000  # nodes and expressions for one function's questions: five times real need

MOST_CALLS = 3
"""Calls into calls that are looked into."""

MOST_SITES = 24
"""Callers and constructions that are worth looking at."""


@dataclass
class Effort:
    """What the question at hand has taken up.

    work: the expressions it asked for. cuts: how often something was left out.
    """

    work: int = 0
    cuts: int = 0
    _steps: int = 0
    _spent: dict[Function, int] = field(default_factory=dict)

    @contextmanager
    def on(self, function: Function) -> Iterator[None]:
        """One question. A function that has taken up too many steps gets no more of them."""
        self.work = 0
        self._steps = self._spent.get(function, 0)
        yield
        self._spent[function] = self._steps

    def step(self) -> bool:
        """One more step, where the function has one left."""
        self._steps += 1
        if self._steps > _STEPS:
            self.cuts += 1
            return False
        return True

    def expression(self, depth: int) -> bool:
        """Whether one more expression may be looked into, so deep inside others."""
        if not self.step():
            return False
        if depth > _DEPTH or self.work > _WORK:
            self.cuts += 1
            return False
        return True
