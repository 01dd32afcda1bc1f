"""A plugin builds on an engine class or module that the target release no longer has.

## What it flags
A base class, or an import of an engine name that DCP code relies on, that does not exist in the
release the plugin is judged against; the message names the successor where the contract pack knows
one. Imports that the code itself survives (`except ImportError`), that only a type checker sees, or
that stand under a version test are left alone.

## Why it breaks
The plugin fails at import, and the engine, which loads plugins by entry point, goes on without it:
the model then runs on another backend than the one that was asked for.

## Bad
```python
from vllm.attention.backends.abstract import AttentionImpl


class MyImpl(AttentionImpl):
    supports_dcp = False
```

## Good
```python
from vllm.v1.attention.backend import AttentionImpl


class MyImpl(AttentionImpl):
    supports_dcp = False
```

## How it is confirmed
Nothing is run: that the name does not exist in the release is the finding.

## Known limits
Without the engine's source (`--engine-path`, or an installed engine) only the names that the pack
lists as moved are known to be gone.
Imports are looked at in the files that are read anyway: those with a class that plays a role, or
that speak of a capability.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from dcplint.checks.base import Context, Rule
from dcplint.checks.capability_evidence import pack_location
from dcplint.contracts.contract import Contract
from dcplint.facts.model import Condition, Position, Source
from dcplint.findings.model import Evidence, Finding, Severity, Tree
from dcplint.program.symbols import Module, Symbol, Vanished

RULE = Rule(
    code="DCP108",
    name="vanished-base",
    summary="flags plugin bases and imports that the target release no longer has",
    severity=Severity.ERROR,
    since="0.1.0",
    probe="none: the absence of the name is a fact of the release",
    follows=False,
)

_ATTENTION = frozenset({"impl", "backend", "builder"})


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding per module and vanished engine module or name, imports and bases together."""
    package = context.contract.pack.package
    for module in context.program.checked:
        if module.facts.name.partition(".")[0] == package:
            continue
        uses = [*_imports(context, module), *_bases(context, module)]
        for gone, found in groupby(sorted(uses, key=_by_cause), key=lambda use: use.gone):
            yield _finding(context, module, gone, list(found))


@dataclass(frozen=True, slots=True)
class _Use:
    """One use of an engine name that is gone. gone: the module or name that is missing."""

    gone: str
    name: str
    position: Position
    symbol: str = ""


def _by_cause(use: _Use) -> tuple[str, Position]:
    return (use.gone, use.position)


def _imports(context: Context, module: Module) -> Iterator[_Use]:
    """Imports of engine names that the release does not have."""
    program, contract = context.program, context.contract
    attention = any(program.roles(symbol) & _ATTENTION for symbol in module.classes)
    for binding in module.facts.bindings:
        target = binding.target
        if binding.source is not Source.IMPORT or _is_survived(binding.conditions):
            continue
        if not target.startswith(f"{contract.pack.package}."):
            continue
        found = program.linker.absolute(target)
        known = contract.missing(target)
        if known is not None and not _is_in_source(found):
            yield _Use(known[0].name, target, binding.position)
        elif attention and isinstance(found, Vanished):
            yield _Use(found.dotted, target, binding.position)


def _bases(context: Context, module: Module) -> Iterator[_Use]:
    """Bases that the release does not have, of classes that speak of the contract."""
    words = {c.name for c in context.contract.capabilities}
    words |= {a.name for a in context.contract.accessors}
    words |= {m for c in context.contract.capabilities for m in c.methods}
    for symbol in module.classes:
        if _is_survived(symbol.facts.conditions):
            continue
        if not any(fact.name in words for fact in symbol.facts.attributes):
            continue
        for found, place in context.program.absent_bases(symbol):
            known = context.contract.missing(found.dotted)
            of_engine = found.dotted.startswith(f"{context.contract.pack.package}.")
            if known or (of_engine and isinstance(found, Vanished)):
                gone = known[0].name if known else found.dotted
                yield _Use(gone, found.dotted, place, symbol.facts.qualname)


def _is_in_source(found: Symbol) -> bool:
    """Whether the name was found in the engine's own source, which overrides the pack."""
    module = found if isinstance(found, Module) else getattr(found, "module", None)
    return isinstance(module, Module) and module.tree is not Tree.PACK


def _is_survived(conditions: tuple[Condition, ...]) -> bool:
    """Whether the code goes on without the name: guarded, under a test, or never run."""
    return any(not (c.kind == "type-checking" and c.negated) for c in conditions)


def _finding(context: Context, module: Module, gone: str, uses: list[_Use]) -> Finding:
    program, contract = context.program, context.contract
    known = contract.missing(gone)
    message = f"`{gone}` does not exist in {contract.pack.engine} {contract.version}"
    steps = []
    if known is not None:
        moved, successor = known
        message += f"; use `{successor}`" if successor else "; it has no successor"
        steps.append(
            Evidence(
                f"releases that have {moved.name}: {moved.releases}",
                pack_location(moved.source),
            )
        )
    steps += [
        Evidence(_replacement(contract, use), program.location(module, use.position))
        for use in uses
        if use.name != gone
    ]
    bases = [use for use in uses if use.symbol]
    if bases:
        message += f"; `{bases[0].symbol}` derives from it"
    return RULE.finding(
        message,
        program.location(module, uses[0].position),
        symbol=bases[0].symbol if bases else "",
        evidence=tuple(steps),
    )


def _replacement(contract: Contract, use: _Use) -> str:
    known = contract.missing(use.name)
    if known is None or known[1] is None:
        return f"`{use.name}` has no known successor"
    return f"`{use.name}` is now `{known[1]}`"
