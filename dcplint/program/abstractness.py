"""Whether a class can be instantiated: no abstract method left, as `abc` counts them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from dcplint.facts.model import FunctionFacts, Setting
from dcplint.program.flow import runs
from dcplint.program.mro import Hierarchy, Opaque
from dcplint.program.symbols import ClassSymbol, External
from dcplint.source.location import Tree

_BINDS = frozenset({Setting.CLASS_BODY, Setting.METHOD, Setting.PROPERTY})
_DECORATORS = frozenset(
    {"abstractmethod", "abstractproperty", "abstractclassmethod", "abstractstaticmethod"}
)
_ENFORCING = frozenset({"abc.ABC", "typing.Protocol", "typing_extensions.Protocol", "os.PathLike"})
_ENFORCING_MODULES = ("collections.abc.", "numbers.", "io.", "contextlib.Abstract")


@dataclass(slots=True)
class Abstractness:
    """`__abstractmethods__` of the program's classes."""

    hierarchy: Hierarchy
    _left: dict[ClassSymbol, frozenset[str]] = field(default_factory=dict)
    _said: dict[ClassSymbol, dict[str, bool]] = field(default_factory=dict)

    def of(self, symbol: ClassSymbol) -> frozenset[str] | None:
        """Names of the methods that `symbol` leaves abstract.

        Empty where nothing enforces them (no ABCMeta in the hierarchy). None where a base is
        unknown.
        """
        order = self.hierarchy.linearize(symbol)
        if order.problem or order.obstacle() is not None:
            return None
        for entry in reversed(order.classes):  # bases first: an order has no cycle
            if entry not in self._left:
                self._left[entry] = frozenset(self._abstract(entry))
        return self._left[symbol]

    def _abstract(self, symbol: ClassSymbol) -> Iterator[str]:
        """`ABCMeta.__new__`: abstract in the class itself, or in a base and not overridden."""
        order = self.hierarchy.linearize(symbol)
        if not any(self._is_enforcing(entry) for entry in order.entries):
            return
        bases = (b for b in self.hierarchy.bases(symbol) if isinstance(b, ClassSymbol))
        names = {name for base in bases for name in self._left[base]}
        for name in names | self._methods(symbol).keys():
            definers = (self._methods(entry).get(name) for entry in order.classes)
            if next((said for said in definers if said is not None), False):
                yield name

    def _methods(self, symbol: ClassSymbol) -> dict[str, bool]:
        """Whether each name that the class body binds is an abstract method."""
        if symbol not in self._said:
            abstract = {
                (method.name, method.position[:2])
                for method in symbol.facts.methods
                if is_abstract(method)
            }
            self._said[symbol] = {
                fact.name: (fact.name, fact.position[:2]) in abstract
                for fact in symbol.facts.attributes
                if fact.setting in _BINDS and runs(fact.conditions)
            }
        return self._said[symbol]

    def _is_enforcing(self, entry: ClassSymbol | Opaque) -> bool:
        if isinstance(entry, Opaque):
            return entry.base in _ENFORCING or entry.base.startswith(_ENFORCING_MODULES)
        if entry.module.tree is Tree.PACK and entry.facts.methods:
            return True
        metaclass = self.hierarchy.metaclass(entry)
        if isinstance(metaclass, ClassSymbol):
            order = self.hierarchy.linearize(metaclass).entries
            return any(isinstance(e, Opaque) and e.base == "abc.ABCMeta" for e in order)
        return isinstance(metaclass, External) and metaclass.dotted == "abc.ABCMeta"


def is_abstract(method: FunctionFacts) -> bool:
    """Whether a decorator marks the method abstract."""
    return any(d.text.rpartition(".")[2] in _DECORATORS for d in method.decorators)
