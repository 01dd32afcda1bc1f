"""Whether the vocabulary exists, and every line that the pack gives as a source bears it out."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dcplint.contracts.checking.comparison import Comparison, Disagreement
from dcplint.contracts.checking.engine import Place
from dcplint.contracts.model import Source

_PLACE = re.compile(r"([^\s,:@#]+)(?::(\d+))?@([^\s,:@#]+)")


def vocabulary(comparison: Comparison) -> Iterator[Disagreement]:
    """The dotted names among the words by which the engine speaks of DCP."""
    for term in comparison.contract.pack.terms:
        if "." not in term.name:
            continue
        if comparison.contract.effective in term.releases:
            yield from comparison.defined(term.name, term.source)
            if term.base and term.base not in comparison.engine.parameters(term.name):
                message = f"{term.name} has no parameter {term.base}"
                yield comparison.here(message, term.source, term.name)
        elif comparison.is_defined(term.name):
            message = f"{term.name} exists, where the pack has it in {term.releases} only"
            yield comparison.here(message, term.source, term.name)


def sources(comparison: Comparison) -> Iterator[Disagreement]:
    """Where a statement was read in this very release, its line must bear it out."""
    for source, name in _statements(comparison):
        for path, line, release in _PLACE.findall(source.text):
            if release != str(comparison.contract.version):
                continue
            text = comparison.engine.source_line(path, int(line or 1))
            place = Place(path, int(line or 1))
            if text is None:
                yield Disagreement(f"source {path}:{line} is not in the release", source)
            elif line and name not in text:
                message = f"line {line} of {path} does not mention {name}"
                yield Disagreement(message, source, place)


def _statements(comparison: Comparison) -> Iterator[tuple[Source, str]]:
    """Every source of the pack, with the name that its line must show."""
    pack = comparison.contract.pack
    for stated in (*pack.classes, *pack.implementations):
        yield stated.source, _last(stated.name)
    for moved in pack.moved:
        yield moved.source, _last(moved.name)
    for capability in pack.capabilities:
        where = [capability.source, *(d.source for d in capability.defaults)]
        where += [o.source for o in capability.overrides]
        where += [r.source for r in capability.readers]
        # A capability that the engine lacks is shown by the class that would have it.
        has = bool(capability.releases.specs)
        for source in where:
            yield source, capability.name if has else _last(capability.owner)
    for derived in pack.derived:
        yield derived.source, derived.name
    for gate in pack.gates:
        yield gate.source, gate.reads
        for caller in gate.callers:
            yield caller.source, _last(gate.function)
        for hook in gate.hooks:
            yield hook.source, _last(hook.function)
        for way in gate.bypasses:
            yield way.source, way.argument
    for accessor in pack.accessors:
        yield accessor.source, accessor.name
    for kernel in pack.kernels:
        yield kernel.source, _last(kernel.name)
    for term in pack.terms:
        yield term.source, _last(term.name)
    for length in pack.lengths:
        yield length.source, length.name
    for localizer in pack.localizers:
        yield localizer.source, _last(localizer.function)
    for argument in pack.arguments:
        yield argument.source, argument.argument
    for block in pack.blocks:
        yield block.source, block.argument or block.method or block.name


def _last(name: str) -> str:
    return name.rpartition(".")[2]
