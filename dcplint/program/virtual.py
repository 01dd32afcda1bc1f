"""Engine modules as a pack describes them, for when the engine's source is not at hand."""

from __future__ import annotations

from collections.abc import Iterator

from dcplint.contracts.contract import Contract
from dcplint.contracts.model import BlockFact, EngineClass
from dcplint.facts.model import (
    AttributeFact,
    Binding,
    ClassFacts,
    Expression,
    FunctionFacts,
    ModuleFacts,
    Position,
    Setting,
    Source,
)

_ABSTRACT = Expression("name", "abc.abstractmethod")


def virtual_modules(contract: Contract) -> dict[str, ModuleFacts]:
    """Facts of every module in which the contract places a class, by dotted name.

    Positions are lines of the pack, which is what evidence then points at.
    """
    bindings: dict[str, list[Binding]] = {}
    stated: dict[str, str] = {}  # the pack file that speaks of a module
    classes: dict[str, list[ClassFacts]] = {}
    for engine_class in (*contract.classes, *contract.implementations):
        module, _, name = engine_class.name.rpartition(".")
        place = _position(engine_class.source.line)
        bindings.setdefault(module, []).append(Binding(name, Source.CLASS, place))
        stated.setdefault(module, engine_class.source.pack)
        classes.setdefault(module, []).append(_class(contract, engine_class))
        for alias in engine_class.aliases:
            elsewhere, _, other = alias.rpartition(".")
            imported = Binding(other, Source.IMPORT, place, target=engine_class.name)
            bindings.setdefault(elsewhere, []).append(imported)
        for base in engine_class.bases:
            top = base.partition(".")[0]
            bindings[module].append(Binding(top, Source.IMPORT, place, target=top))
    known = {c.name for c in (*contract.classes, *contract.implementations)}
    for name, facts in _records(contract).items():
        if name in known:
            continue
        module, _, short = name.rpartition(".")
        place = _position(facts[0].source.line)
        top = name.partition(".")[0]
        bindings.setdefault(module, []).append(Binding(short, Source.CLASS, place))
        bindings[module].append(Binding(top, Source.IMPORT, place, target=top))
        stated.setdefault(module, facts[0].source.pack)
        classes.setdefault(module, []).append(_record(name, facts))
        for alias in dict.fromkeys(alias for f in facts if f.record == name for alias in f.aliases):
            elsewhere, _, other = alias.rpartition(".")
            imported = Binding(other, Source.IMPORT, place, target=name)
            bindings.setdefault(elsewhere, []).append(imported)
    return {
        name: ModuleFacts(
            path=stated.get(name, contract.pack.path),
            name=name,
            is_package=any(other.startswith(f"{name}.") for other in bindings),
            bindings=tuple(bindings.get(name, ())),
            exports=None,
            classes=tuple(classes.get(name, ())),
            functions=(),
        )
        for name in sorted(bindings.keys() | {p for name in bindings for p in _packages(name)})
    }


def _records(contract: Contract) -> dict[str, list[BlockFact]]:
    """The records of which the contract says what they have to do with blocks, by name."""
    found: dict[str, list[BlockFact]] = {}
    for fact in contract.blocks:
        for name in (fact.record, *fact.kinds):
            found.setdefault(name, []).append(fact)
    return found


def _record(name: str, facts: list[BlockFact]) -> ClassFacts:
    short, place = name.rpartition(".")[2], _position(facts[0].source.line)
    bases = dict.fromkeys(fact.record for fact in facts if name in fact.kinds)
    return ClassFacts(
        name=short,
        qualname=short,
        position=place,
        lines=(place[0], place[0]),
        bases=tuple(Expression("name", base) for base in bases),
        attributes=tuple(
            AttributeFact(
                fact.name,
                Setting.CLASS_BODY,
                place,
                Expression("other", "not at hand"),
                fact.holds or "int",
            )
            for fact in facts
            if fact.name and fact.record == name
        ),
        methods=(),
    )


def _packages(name: str) -> Iterator[str]:
    """The packages that hold module `name`: `import a.b.c` binds the outermost."""
    parts = name.split(".")
    return (".".join(parts[:length]) for length in range(1, len(parts)))


def _class(contract: Contract, engine_class: EngineClass) -> ClassFacts:
    name = engine_class.name.rpartition(".")[2]
    line = engine_class.source.line
    methods: list[tuple[str, tuple[Expression, ...]]] = [
        (method, (_ABSTRACT,)) for method in engine_class.abstract
    ]
    methods += [(method, ()) for method in engine_class.defines]
    return ClassFacts(
        name=name,
        qualname=name,
        position=_position(line),
        lines=(line, line),
        bases=tuple(Expression("name", base) for base in engine_class.bases),
        attributes=tuple(_attributes(contract, engine_class)),
        methods=tuple(
            FunctionFacts(method, f"{name}.{method}", _position(line), (line, line), decorators)
            for method, decorators in methods
        ),
    )


def _attributes(contract: Contract, engine_class: EngineClass) -> Iterator[AttributeFact]:
    for method in (*engine_class.abstract, *engine_class.defines):
        place = _position(engine_class.source.line)
        yield AttributeFact(method, Setting.METHOD, place, Expression("other", "not at hand"))
    yield from _fields(contract, engine_class)
    for capability in contract.capabilities:
        if capability.owner == engine_class.name:
            default = capability.default_at(contract.effective)
            if default is not None:
                yield _stated(capability.name, default.value, default.source.line)
            elif capability.delegates is not None:
                place = _position(capability.source.line)
                asks = Expression("other", f"{capability.delegates}().{capability.name}")
                yield AttributeFact(capability.name, Setting.METHOD, place, asks)
        override = capability.override_at(engine_class.name, contract.effective)
        if override is not None:
            yield _stated(capability.name, override.value, override.source.line)


def _fields(contract: Contract, engine_class: EngineClass) -> Iterator[AttributeFact]:
    """The contract fields that the class carries, None where nobody fills them in."""
    for field in contract.fields:
        if field.record == engine_class.name:
            place = _position(field.source.line)
            nothing = Expression("literal", value=None)
            yield AttributeFact(field.name, Setting.CLASS_BODY, place, nothing, "Any")


def _stated(name: str, value: bool, line: int) -> AttributeFact:
    literal = Expression("literal", value=value)
    return AttributeFact(name, Setting.CLASS_BODY, _position(line), literal)


def _position(line: int) -> Position:
    return (line, 0, line, 0)
