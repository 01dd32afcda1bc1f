"""How much work a question may take, whoever has asked what before.

What is remembered is charged for as if it were found out anew, once in a question: else whether a
question can be answered would hang on the questions before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

_WALKS = 6_000  # for one question
_STEPS = 150_000  # statements that they come to: an engine needs 6,000, a plugin with it 120,000


@dataclass(slots=True)
class _Bill:
    """What an answer took: its own walks and steps, and the remembered answers it rests on."""

    walks: int = 1
    steps: int = 0
    parts: list[object] = field(default_factory=list)


@dataclass
class Budget:
    """What the question at hand has taken up."""

    _walks: int = 0
    _steps: int = 0
    _open: list[_Bill] = field(default_factory=list)
    _known: dict[object, _Bill] = field(default_factory=dict)
    _charged: set[object] = field(default_factory=set)

    def begin(self) -> None:
        """A question is asked."""
        self._walks = self._steps = 0
        self._charged.clear()
        self._open.clear()

    @property
    def is_spent(self) -> bool:
        """Whether there is none left."""
        return self._walks > _WALKS or self._steps > _STEPS

    def step(self) -> bool:
        """Whether the question at hand may take one more step, which is then taken."""
        self._steps += 1
        if self._open:
            self._open[-1].steps += 1
        return self._steps <= _STEPS

    def enter(self) -> None:
        """A walk begins."""
        self._walks += 1
        self._open.append(_Bill())

    def leave(self, key: object | None) -> None:
        """A walk is over. key: under which its answer is remembered, if it is."""
        bill = self._open.pop()
        if key is not None:
            self._known[key] = bill
            self._charged.add(key)
            bill = _Bill(0, 0, [key])
        if self._open:
            outer = self._open[-1]
            outer.walks += bill.walks
            outer.steps += bill.steps
            outer.parts += bill.parts

    def recall(self, key: object) -> None:
        """A remembered answer is made use of."""
        if self._open:
            self._open[-1].parts.append(key)
        queue = [key]
        while queue:
            part = queue.pop()
            if part not in self._charged:
                self._charged.add(part)
                bill = self._known[part]
                self._walks += bill.walks
                self._steps += bill.steps
                queue += bill.parts
