"""The fix that capability rules share: a class says what it promises."""

from __future__ import annotations

from dcplint.checks.base import Context
from dcplint.contracts.model import Capability
from dcplint.findings.changes import StateAttribute
from dcplint.findings.model import Applicability, Fix, Tree
from dcplint.program.attributes import Kind
from dcplint.program.dcp_use import service
from dcplint.program.symbols import ClassSymbol


def denial(context: Context, symbol: ClassSymbol, capability: Capability) -> Fix | None:
    """State that `symbol` cannot do it; None where something speaks for the claim.

    The statement belongs in the attention class furthest up that the claim is as empty for, and
    takes the claim from nobody who may have a right to it.
    """
    for speaker in reversed(context.program.promise(symbol, capability).walked):
        heirs = _heirs(context, speaker, capability)
        # A mixin that is no attention class itself is none of its own heirs.
        if speaker in heirs and all(_is_empty(context, heir, capability) for heir in heirs):
            return statement(context, speaker, capability, False, Applicability.SAFE)
    return None


def statement(
    context: Context,
    symbol: ClassSymbol,
    capability: Capability,
    value: bool,
    applicability: Applicability,
) -> Fix:
    """State the capability in the body of `symbol`."""
    program = context.program
    first, last = symbol.facts.lines
    change = StateAttribute(
        program.location(symbol.module, (first, 0, last, 0)),
        program.location_of(symbol),
        capability.name,
        value,
        tuple(c.name for c in context.contract.capabilities if c.role == capability.role),
    )
    return Fix(f"state `{capability.name} = {value}` in {symbol}", applicability, change)


def _heirs(
    context: Context, speaker: ClassSymbol, capability: Capability
) -> tuple[ClassSymbol, ...]:
    """The classes that a statement in `speaker` would speak for, itself included."""
    program = context.program
    if program.is_engine_base(speaker) or program.abstract_methods(speaker) != frozenset():
        return ()  # it speaks for classes that are not there yet
    return program.heirs(speaker, capability)


def _is_empty(context: Context, symbol: ClassSymbol, capability: Capability) -> bool:
    """Whether nobody makes the claim, or what it rests on is missing, and no DCP code at hand."""
    program = context.program
    claim = program.promise(symbol, capability)
    if claim.kind is not Kind.DEFAULT:
        return claim.holds() is False
    denied = False
    for name in capability.implies:
        other = context.contract.capability(capability.role, name)
        if other is not None:
            holds = program.promise(symbol, other).holds()
            if holds is not False:
                return False
            denied = True
    return denied and not any(
        service(program, owner) is not None
        for owner in claim.walked
        if owner.module.tree is not Tree.PACK
    )
