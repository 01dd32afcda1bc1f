"""Classes whose constructor is made from their fields: dataclasses and named tuples."""

from __future__ import annotations

import ast
import textwrap

from dcplint.facts.model import Position, Setting
from dcplint.flow.functions import written_keywords
from dcplint.flow.universe import Universe
from dcplint.program.symbols import ClassSymbol
from dcplint.source.location import Tree

_MAKERS = frozenset({"dataclass", "NamedTuple", "config", "define", "Struct", "BaseModel"})


def is_record(universe: Universe, symbol: ClassSymbol) -> bool:
    """Whether instances are made by naming fields."""
    for entry in universe.program.mro(symbol).classes:
        if entry.module.tree is Tree.PACK and any(f.annotation for f in entry.facts.attributes):
            return True
        said = (*entry.facts.decorators, *entry.facts.bases)
        if any(e.text.partition("(")[0].rpartition(".")[2] in _MAKERS for e in said):
            return True
    return False


def fields_of(universe: Universe, symbol: ClassSymbol) -> tuple[str, ...]:
    """Field names in constructor order, bases first."""
    names: dict[str, None] = {}
    for entry in reversed(universe.program.mro(symbol).classes):
        for fact in entry.facts.attributes:
            if fact.annotation and not fact.scope and "ClassVar" not in fact.annotation:
                names[fact.name] = None
    return tuple(names)


def field_default(universe: Universe, symbol: ClassSymbol, name: str) -> bool | None:
    """Whether the class's own value for `name` is something (True) or None (False).

    None where the class has no such value.
    """
    for entry in universe.program.mro(symbol).classes:
        for fact in reversed(entry.facts.attributes):
            if fact.name == name and fact.setting is Setting.CLASS_BODY:
                if fact.value.kind == "call" and fact.value.text.rpartition(".")[2] == "field":
                    return _of_field_call(universe, entry, fact.position)
                return not (fact.value.kind == "literal" and fact.value.value is None)
    return None


def _of_field_call(universe: Universe, owner: ClassSymbol, place: Position) -> bool | None:
    """The same for `name: T = field(default=…)`, which stands at `place`."""
    text = universe.program.modules.text(owner.module.tree, owner.module.facts.path)
    source = textwrap.dedent(text.between(place[0], place[2]))
    try:
        (statement,) = ast.parse(source).body
    except (SyntaxError, ValueError):
        return True
    value = getattr(statement, "value", None)
    for keyword in value.keywords if isinstance(value, ast.Call) else ():
        if keyword.arg == "default":
            return not (isinstance(keyword.value, ast.Constant) and keyword.value.value is None)
        if keyword.arg in ("default_factory", "factory"):
            return True
    return None


def constructor_argument(
    universe: Universe, call: ast.Call, built: ClassSymbol, name: str
) -> ast.expr | None:
    """What a call that makes a record passes for field `name`."""
    for keyword in written_keywords(call):
        if keyword.arg == name:
            return keyword.value
    fields = fields_of(universe, built)
    whole = all(entry.module.tree is not Tree.PACK for entry in universe.program.mro(built).classes)
    if whole and name in fields and not any(isinstance(a, ast.Starred) for a in call.args):
        index = fields.index(name)
        if index < len(call.args):
            return call.args[index]
    return None
