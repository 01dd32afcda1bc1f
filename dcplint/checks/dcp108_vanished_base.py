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
```

## Good
```python
from vllm.v1.attention.backend import AttentionImpl
```

## How it is confirmed
Nothing is run: that the name does not exist in the release is the finding.

## Known limits
Without the engine's source (`--engine-path`, or an installed engine) only the names that the pack
lists as moved are known to be gone.
"""

from __future__ import annotations

from collections.abc import Iterator

from dcplint.checks.base import Context, Rule
from dcplint.checks.capability_evidence import pack_location
from dcplint.facts.model import Binding, Condition, Position, Source
from dcplint.findings.model import Evidence, Finding, Severity, Tree
from dcplint.program.mro import Opaque
from dcplint.program.symbols import ClassSymbol, Module, Vanished

RULE = Rule(
    code="DCP108",
    name="vanished-base",
    summary="flags plugin bases and imports that the target release no longer has",
    severity=Severity.ERROR,
    since="0.1.0",
    probe="none: the absence of the name is a fact of the release",
)


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding per vanished name and place, in modules that have to do with attention."""
    program = context.program
    package = context.contract.pack.package
    for module in program.checked:
        if module.facts.name.partition(".")[0] == package:
            continue
        related = any(program.roles(symbol) for symbol in module.classes)
        told: set[str] = set()
        for binding in module.facts.bindings:
            gone = _vanished_import(context, module, binding, related)
            if gone is not None and gone not in told:
                told.add(gone)
                yield _finding(context, module, gone, binding.position, "")
        for symbol in module.classes:
            for gone, place in _vanished_bases(context, symbol):
                if gone not in told and not _is_conditional(symbol.facts.conditions):
                    told.add(gone)
                    yield _finding(context, module, gone, place, symbol.facts.qualname)


def _vanished_import(
    context: Context, module: Module, binding: Binding, related: bool
) -> str | None:
    """The engine name that an import asks for and the release does not have."""
    package = context.contract.pack.package
    target = binding.target
    if binding.source is not Source.IMPORT or not target.startswith(f"{package}."):
        return None
    if _is_conditional(binding.conditions):
        return None
    if context.contract.missing(target) is not None:
        found = context.program.linker.absolute(target)
        in_source = isinstance(found, (ClassSymbol, Module)) and found_in_source(found)
        return None if in_source else target
    if related and isinstance(context.program.linker.absolute(target), Vanished):
        return target
    return None


def found_in_source(found: ClassSymbol | Module) -> bool:
    """Whether a symbol was read in the engine's own source, which overrides the pack."""
    module = found.module if isinstance(found, ClassSymbol) else found
    return module.tree is not Tree.PACK


def _vanished_bases(context: Context, symbol: ClassSymbol) -> Iterator[tuple[str, Position]]:
    package = context.contract.pack.package
    for base, place in zip(context.program.hierarchy.bases(symbol), symbol.facts.base_positions):
        if isinstance(base, Opaque) and base.vanished.startswith(f"{package}."):
            if _concerns_attention(context, symbol):
                yield base.vanished, place


def _concerns_attention(context: Context, symbol: ClassSymbol) -> bool:
    """Whether the class speaks of the contract: states a capability, or has an accessor."""
    words = {c.name for c in context.contract.capabilities}
    words |= {a.name for a in context.contract.accessors}
    words |= {m for c in context.contract.capabilities for m in c.methods}
    return any(fact.name in words for fact in symbol.facts.attributes)


def _is_conditional(conditions: tuple[Condition, ...]) -> bool:
    """Whether the code survives without the name: guarded, for the type checker, or under a test."""
    return any(not (c.kind == "type-checking" and c.negated) for c in conditions)


def _finding(
    context: Context, module: Module, gone: str, place: Position, symbol: str
) -> Finding:
    contract = context.contract
    engine = f"{contract.pack.engine} {contract.version}"
    known = contract.missing(gone)
    steps: tuple[Evidence, ...] = ()
    message = f"`{gone}` does not exist in {engine}"
    if known is not None:
        moved, successor = known
        had = f"; releases that have it: {moved.releases}"
        message += f"; use `{successor}`" if successor else "; it has no successor"
        steps = (Evidence(f"{moved.name} is gone{had}", pack_location(context, moved.source.line)),)
    return RULE.finding(
        message, context.program.location(module, place), symbol=symbol, evidence=steps
    )
