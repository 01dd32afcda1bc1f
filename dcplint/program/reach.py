"""Whether code that belongs to a backend can run under DCP at all."""

from __future__ import annotations

from collections.abc import Iterator

from dcplint.program.dcp_use import service
from dcplint.program.program import Program
from dcplint.program.symbols import ClassSymbol


def refusing_impls(program: Program, symbol: ClassSymbol) -> tuple[ClassSymbol, ...]:
    """The impls that `symbol`, an impl or builder, works for, where a gate refuses each of them.

    Empty where any of them may run under DCP, or where it cannot be told whom it works for.
    """
    impls = tuple(dict.fromkeys(_impls_of(program, symbol)))
    known = tuple(impl for impl in impls if impl is not None)
    if known and known == impls and all(_is_refused(program, impl) for impl in known):
        return known
    return ()


def _impls_of(program: Program, symbol: ClassSymbol) -> Iterator[ClassSymbol | None]:
    """The impls that an impl or builder works for; None for one that cannot be told."""
    if "impl" in program.roles(symbol):
        yield symbol
        return
    accessors = {accessor.returns: accessor.name for accessor in program.contract.accessors}
    for backend in program.classes("backend"):
        builder = program.result(backend, accessors.get("builder", ""))
        if builder is None or symbol not in program.mro(builder).classes:
            continue
        yield program.result(backend, accessors.get("impl", ""))


def _is_refused(program: Program, impl: ClassSymbol) -> bool:
    gated = {gate.capability for gate in program.contract.gates}
    return any(
        program.promise(impl, capability).holds() is False
        for capability in program.contract.capabilities
        if capability.role == "impl" and capability.methods and capability.name in gated
    )


def serves_dcp(program: Program, symbol: ClassSymbol) -> bool:
    """Whether an impl that `symbol`, an impl or builder, works for is let through by every gate.

    True only where such an impl makes a promise that a gate asks for, and breaks none; where no
    gate asks for any, where the impl itself does DCP's work. And where nothing but DCP has the
    engine take the class.
    """
    contract = program.contract
    stated = (*contract.classes, *contract.implementations)
    taken = {one.name for one in stated if one.dcp_only}
    if taken and any(entry.dotted in taken for entry in program.mro(symbol).classes):
        return True
    impls = _impls_of(program, symbol)
    return any(impl is not None and _is_let_through(program, impl) for impl in impls)


def _is_let_through(program: Program, impl: ClassSymbol) -> bool:
    gated = {gate.capability for gate in program.contract.gates}
    promises = [
        program.promise(impl, capability).holds()
        for capability in program.contract.capabilities
        if capability.role == "impl" and capability.methods and capability.name in gated
    ]
    if not promises:
        return service(program, impl) is not None
    return True in promises and False not in promises
