"""Whether code that belongs to a backend can run under DCP at all."""

from __future__ import annotations

from dcplint.program.program import Program
from dcplint.program.symbols import ClassSymbol


def refusing_impls(program: Program, symbol: ClassSymbol) -> tuple[ClassSymbol, ...]:
    """The impls that `symbol`, an impl or builder, works for, where a gate refuses each of them.

    Empty where any of them may run under DCP, or where it cannot be told whom it works for.
    """
    impls = _impls_of(program, symbol)
    if impls and all(_is_refused(program, impl) for impl in impls):
        return impls
    return ()


def _impls_of(program: Program, symbol: ClassSymbol) -> tuple[ClassSymbol, ...]:
    if "impl" in program.roles(symbol):
        return (symbol,)
    found: dict[ClassSymbol, None] = {}
    accessors = {accessor.returns: accessor.name for accessor in program.contract.accessors}
    for backend in program.classes("backend"):
        builder = program.result(backend, accessors.get("builder", ""))
        if builder is None or symbol not in program.mro(builder).classes:
            continue
        impl = program.result(backend, accessors.get("impl", ""))
        if impl is None:
            return ()
        found[impl] = None
    return tuple(found)


def _is_refused(program: Program, impl: ClassSymbol) -> bool:
    gated = {gate.capability for gate in program.contract.gates}
    return any(
        program.promise(impl, capability).holds() is False
        for capability in program.contract.capabilities
        if capability.role == "impl" and capability.methods and capability.name in gated
    )
