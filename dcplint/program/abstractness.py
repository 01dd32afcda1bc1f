"""Whether a class can be instantiated: no abstract method left after the MRO."""

from __future__ import annotations

from dcplint.facts.model import FunctionFacts, Setting
from dcplint.findings.model import Tree
from dcplint.program.mro import Hierarchy, Opaque
from dcplint.program.symbols import ClassSymbol

_BINDS = frozenset({Setting.CLASS_BODY, Setting.METHOD, Setting.PROPERTY, Setting.EXTERNAL})
_ABSTRACT_DECORATORS = frozenset(
    {"abstractmethod", "abstractproperty", "abstractclassmethod", "abstractstaticmethod"}
)


def abstract_methods(hierarchy: Hierarchy, symbol: ClassSymbol) -> frozenset[str] | None:
    """Names of the methods that `symbol` leaves abstract, as `__abstractmethods__`.

    Empty where nothing enforces them (no ABCMeta in the hierarchy). None where a base is unknown.
    """
    order = hierarchy.linearize(symbol)
    if order.problem or order.obstacle() is not None:
        return None
    if not any(_is_enforcing(entry) for entry in order.entries):
        return frozenset()
    left: set[str] = set()
    for entry in reversed(order.classes):
        left -= {f.name for f in entry.facts.attributes if f.setting in _BINDS}
        left |= {m.name for m in entry.facts.methods if is_abstract(m)}
    return frozenset(left)


def is_abstract(method: FunctionFacts) -> bool:
    """Whether a decorator marks the method abstract."""
    return any(d.text.rpartition(".")[2] in _ABSTRACT_DECORATORS for d in method.decorators)


def _is_enforcing(entry: ClassSymbol | Opaque) -> bool:
    if isinstance(entry, Opaque):
        return entry.base in ("abc.ABC", "typing.Protocol")
    if entry.module.tree is Tree.PACK and entry.facts.methods:
        return True
    metaclass = dict(entry.facts.keywords).get("metaclass")
    return metaclass is not None and metaclass.text.rpartition(".")[2] in ("ABCMeta", "EnumMeta")
