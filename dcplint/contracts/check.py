"""Compares a pack with an engine release: what it names exists, and says what the pack says.

Dates are compared in both directions: a fact must hold where the pack says so, and must not where
its `releases` leave the release out.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from dcplint.contracts.checking import classes, promises, records, sources
from dcplint.contracts.checking.comparison import Comparison, Disagreement
from dcplint.contracts.checking.engine import Engine
from dcplint.contracts.contract import Contract

_COMPARISONS = (
    classes.classes,
    classes.moved_names,
    promises.capabilities,
    promises.derived_values,
    promises.gates,
    promises.accessors,
    records.contract_fields,
    records.outputs,
    records.refusals,
    records.kernels,
    records.lengths,
    records.blocks,
    sources.vocabulary,
    sources.sources,
)


def disagreements(contract: Contract, engine: Engine) -> Iterator[Disagreement]:
    """Everything the contract says that the release does not, in the order of the pack's lines."""
    comparison = Comparison(contract, engine)
    every = chain.from_iterable(compare(comparison) for compare in _COMPARISONS)
    yield from sorted(dict.fromkeys(every), key=lambda d: (d.source.pack, d.source.line, d.message))
