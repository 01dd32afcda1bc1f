"""Records whose fields a gate is told, built without what makes it ask of DCP."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from dcplint.contracts.model import Gate
from dcplint.facts.expressions import dotted_name
from dcplint.program.gates.places import askings, calls, containing, last_name, notes, scopes_of
from dcplint.program.program import Program
from dcplint.program.related import is_test
from dcplint.program.symbols import ClassSymbol, Module
from dcplint.source.location import Tree
from dcplint.source.tree import Definition


@dataclass(frozen=True, slots=True)
class Disarmed:
    """A record that is built without what makes a gate ask, where a gate is told its fields.

    symbol: the function that builds it. told: the calls of the gate.
    """

    gate: Gate
    module: Module
    symbol: str
    record: ClassSymbol
    call: ast.Call
    told: tuple[tuple[Module, ast.Call], ...]


def disarmed(program: Program) -> Iterator[Disarmed]:
    """The constructions, in the checked tree, of its own records that leave out a gate's argument.

    Only where the record's own value for it is False or None, and nobody replaces that later.
    """
    for gate in program.contract.gates:
        found: dict[ClassSymbol, list[tuple[Module, ast.Call]]] = {}
        for module, _, node, call in askings(program, gate):
            for record in _told(program, module, node, call):
                if record.module.tree is Tree.PROJECT and _is_off(record, gate.argument):
                    found.setdefault(record, []).append((module, call))
        for record, told in found.items():
            if _is_set_later(program, record, gate):
                continue
            for module, symbol, call in _constructions(program, record):
                if not _gives(record, call, gate.argument):
                    yield Disarmed(gate, module, symbol, record, call, tuple(told))


def _told(
    program: Program, module: Module, node: Definition, call: ast.Call
) -> Iterator[ClassSymbol]:
    """The classes of the parameters whose fields a call passes on: `**x._asdict()`."""
    noted = notes(node)
    for keyword in call.keywords:
        made = keyword.value
        if keyword.arg is not None or not isinstance(made, ast.Call):
            continue
        name = (dotted_name(made.func) or "").rpartition(".")[2]
        given = made.args[0] if name == "asdict" and made.args else None
        if name == "_asdict" and isinstance(made.func, ast.Attribute):
            given = made.func.value
        annotation = noted.get(given.id) if isinstance(given, ast.Name) else None
        if annotation is None:
            continue
        dotted = dotted_name(annotation)
        if isinstance(annotation, ast.Constant):
            dotted = str(annotation.value)
        found = program.linker.name(module, dotted or "", scopes_of(node, module))
        if isinstance(found, ClassSymbol):
            yield found


def _is_off(record: ClassSymbol, argument: str | None) -> bool:
    """Whether a record has a field which its class leaves False or None."""
    return any(
        fact.name == argument and fact.value.kind == "literal" and not fact.value.value
        for fact in record.facts.attributes
    )


def _is_set_later(program: Program, record: ClassSymbol, gate: Gate) -> bool:
    """Whether a record is copied with the gate's argument somewhere."""
    signs = frozenset({"replace("})
    return any(
        last_name(call) in ("replace", "_replace")
        and any(k.arg == gate.argument for k in call.keywords)
        for module in _at_hand(program, record)
        for _, node in containing(program, module, signs, also=gate.argument or "")
        for call in calls(node)
    )


def _constructions(program: Program, record: ClassSymbol) -> Iterator[tuple[Module, str, ast.Call]]:
    """The calls that build a record: tests are no part of the engine."""
    signs = frozenset(f"{n}(" for n in program.spellings(frozenset({record.facts.name})))
    for module in _at_hand(program, record):
        if is_test(module.facts.path):
            continue
        for facts, node in containing(program, module, signs):
            for call in calls(node):
                dotted = dotted_name(call.func)
                if (
                    dotted
                    and program.linker.name(module, dotted, scopes_of(node, module)) is record
                ):
                    yield module, facts.qualname, call


def _at_hand(program: Program, record: ClassSymbol) -> tuple[Module, ...]:
    """The modules that are looked at anyway, and the one that a record stands in."""
    return tuple(dict.fromkeys((*program.checked, record.module)))


def _gives(record: ClassSymbol, call: ast.Call, argument: str | None) -> bool:
    """Whether a construction passes a field, or may: by name, by position, or with others."""
    named = {keyword.arg for keyword in call.keywords}
    if None in named or argument in named or any(isinstance(a, ast.Starred) for a in call.args):
        return True
    fields = [fact.name for fact in record.facts.attributes if fact.annotation and not fact.scope]
    return argument in fields[: len(call.args)]
