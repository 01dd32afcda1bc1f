"""Whether records, functions and kernels have the fields and parameters that the pack names."""

from __future__ import annotations

from collections.abc import Iterator

from dcplint.contracts.checking.comparison import Comparison, Disagreement
from dcplint.contracts.model import Kernel


def contract_fields(comparison: Comparison) -> Iterator[Disagreement]:
    """Metadata that the runner owes: each field is there, and only where the pack has it."""
    for stated in comparison.contract.fields:
        missing = list(comparison.defined(stated.record, stated.source))
        yield from missing
        if not missing and stated.name not in comparison.engine.fields(stated.record):
            message = f"{stated.record} has no field {stated.name}"
            yield comparison.here(message, stated.source, stated.record)
    present = {(stated.record, stated.name) for stated in comparison.contract.fields}
    for stated in comparison.contract.pack.fields:
        key = (stated.record, stated.name)
        if key in present or not comparison.is_defined(stated.record):
            continue
        if stated.name in comparison.engine.fields(stated.record):
            message = (
                f"{stated.record}.{stated.name} exists, where the pack has it in "
                f"{stated.releases} only"
            )
            yield comparison.here(message, stated.source, stated.record)


def outputs(comparison: Comparison) -> Iterator[Disagreement]:
    """Methods that owe a value."""
    for output in comparison.contract.outputs:
        described = (s for s in comparison.described() if s.role == output.role)
        methods = (
            comparison.engine.methods(s.name) for s in described if comparison.is_defined(s.name)
        )
        if not any(output.method in found for found in methods):
            message = f"no class of role {output.role} has a method {output.method}"
            yield Disagreement(message, output.source)


def refusals(comparison: Comparison) -> Iterator[Disagreement]:
    """Functions that cannot run under DCP."""
    for refusal in comparison.contract.refusals:
        yield from comparison.defined(refusal.function, refusal.source)


def kernels(comparison: Comparison) -> Iterator[Disagreement]:
    """Functions that compute attention."""
    for kernel in comparison.contract.kernels:
        yield from _kernel(comparison, kernel)


def _kernel(comparison: Comparison, kernel: Kernel) -> Iterator[Disagreement]:
    """Another project's kernel is only imported: the line of its source shows that."""
    if not comparison.is_own(kernel.name):
        return
    missing = list(comparison.defined(kernel.name, kernel.source))
    yield from missing
    named = [*kernel.unless, *filter(None, (kernel.rank, kernel.interleave))]
    for name in () if missing else named:
        if name not in comparison.engine.parameters(kernel.name):
            message = f"{kernel.name} has no parameter {name}"
            yield comparison.here(message, kernel.source, kernel.name)


def lengths(comparison: Comparison) -> Iterator[Disagreement]:
    """What counts tokens: attributes, localizers, arguments of kernels."""
    for length in comparison.contract.lengths:
        yield from comparison.attribute(length.record, length.name, length.source)
    for localizer in comparison.contract.localizers:
        wanted = (*localizer.parameters, localizer.length, localizer.rank, localizer.out)
        yield from comparison.parameters(localizer.function, wanted, localizer.source)
    package = comparison.contract.pack.package
    for argument in comparison.contract.arguments:
        if argument.function.partition(".")[0] == package:
            wanted = (argument.argument, argument.given, None)
            yield from comparison.parameters(argument.function, wanted, argument.source)


def blocks(comparison: Comparison) -> Iterator[Disagreement]:
    """What counts tokens of blocks, or holds their ids."""
    for block in comparison.contract.blocks:
        if block.name:
            yield from comparison.attribute(block.record, block.name, block.source)
        else:
            method = f"{block.record}.{block.method}"
            yield from comparison.parameters(method, (block.argument or None,), block.source)
        for alias in block.aliases:
            if comparison.engine.resolve(alias) != block.record:
                yield Disagreement(f"{alias} is not {block.record}", block.source)
        for record in (*block.kinds, *block.whole, *filter(None, (block.holds,))):
            yield from comparison.defined(record, block.source)
