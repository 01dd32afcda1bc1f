"""`joins`: the facts of a plugin beside those of the engine that it plugs into.

A plugin brings records, kernels and helpers of its own, and counts its own releases; what classes
promise, and who asks, is the engine's to say. So a tree that is made of both is judged once, by
what the two say together.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from dcplint.contracts.contract import Contract, Pack
from dcplint.contracts.model import (
    BlockFact,
    ContractField,
    EngineClass,
    Kernel,
    KernelArgument,
    Length,
    Localizer,
    Refusal,
    Releases,
    Term,
    Vocabulary,
)

F = TypeVar(
    "F",
    BlockFact,
    ContractField,
    EngineClass,
    Kernel,
    KernelArgument,
    Length,
    Localizer,
    Refusal,
    Term,
)


def join(host: Pack, plugin: Contract) -> Pack:
    """The pack `host` with the facts of one release of a plugin, in whatever release of its own."""
    pack = plugin.pack
    spoken = {(term.kind, term.name) for term in host.terms}
    held = (term for term in pack.terms if plugin.effective in term.releases)
    terms = host.terms + _always(t for t in held if (t.kind, t.name) not in spoken)
    return replace(
        host,
        classes=host.classes + _always(plugin.classes),
        implementations=host.implementations + _always(plugin.implementations),
        fields=host.fields + _always(plugin.fields),
        refusals=host.refusals + _always(plugin.refusals),
        lengths=host.lengths + _always(plugin.lengths),
        localizers=host.localizers + _always(plugin.localizers),
        arguments=host.arguments + _always(plugin.arguments),
        blocks=host.blocks + _always(plugin.blocks),
        kernels=host.kernels + _always(plugin.kernels),
        terms=terms,
        vocabulary=Vocabulary.of(terms, host.vocabulary.neutral),
        files={**host.files, **pack.files},
    )


def _always(facts: Iterable[F]) -> tuple[F, ...]:
    return tuple(replace(fact, releases=Releases()) for fact in facts)
