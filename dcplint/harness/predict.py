"""What each rule predicts: where a real fault of its kind shows, and by which signal.

A finding is confirmed by a predicted signal only. Another failure means that the backend is wrong
in another way than the finding says, which confirms nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from dcplint.harness.model import ADVISORY, Signal

_READS = frozenset({Signal.READ_WILD, Signal.READ_UNOWNED, Signal.READ_MISSED})
_LSES = frozenset({Signal.LSE_MISSING, Signal.LSE_BASE, Signal.LSE})
_OUTPUTS = frozenset({Signal.SHAPE, Signal.OUTPUT_LOCAL, Signal.OUTPUT_MERGED})
_EMPTY = frozenset({Signal.EMPTY_OUTPUT, Signal.EMPTY_LSE})
# A claim to do DCP is refuted by anything that goes wrong under it, except a refusal.
_ANY = frozenset(Signal) - ADVISORY - {Signal.REFUSED, Signal.BRANCH}


@dataclass(frozen=True, slots=True)
class Prediction:
    """Probes by the beginning of their name, most telling first, and the signals that confirm."""

    probes: tuple[str, ...]
    signals: frozenset[Signal]


_SHARDING = ("ragged-i16", "short-i16", "ragged-i1", "whole-cycles", "multi-query")
_LENGTHS = Prediction((*_SHARDING, "reuse"), _READS | _EMPTY | {Signal.ERROR})
_CLAIM = Prediction((*_SHARDING, "large-scores", "strided"), _ANY)

PREDICTIONS: dict[str, Prediction] = {
    "DCP101": _CLAIM,
    "DCP102": _CLAIM,
    "DCP103": _CLAIM,
    "DCP105": Prediction(_SHARDING, _LSES | {Signal.ERROR}),
    "DCP203": _LENGTHS,
    "DCP204": _LENGTHS,
    "DCP205": _LENGTHS,
    "DCP206": Prediction(("ragged-i16", "reuse"), frozenset({Signal.FIELD})),
    "DCP301": Prediction(("draft", *_SHARDING), _READS | {Signal.ERROR}),
    "DCP302": _LENGTHS,
    "DCP303": Prediction(_LENGTHS.probes, _LENGTHS.signals | {Signal.SLOTS}),
    "DCP304": _LENGTHS,
    "DCP305": _LENGTHS,
    "DCP307": Prediction(_SHARDING, frozenset({Signal.HANG})),
    "DCP308": Prediction(_SHARDING, _READS | {Signal.SLOTS}),
    "DCP401": Prediction(_SHARDING, frozenset({Signal.LSE_MISSING, Signal.ERROR})),
    "DCP402": Prediction(("ragged-i16",), frozenset({Signal.LSE_BASE, Signal.OUTPUT_MERGED})),
    "DCP403": Prediction(("ragged-i16",), frozenset({Signal.LSE_PRECISION})),
    # A window too narrow shows as tokens that nobody reads.
    "DCP404": Prediction(("window", "soft-cap", "sinks"), _LSES | _OUTPUTS | {Signal.READ_MISSED}),
    "DCP405": Prediction(("heads", "value-size"), _READS | _LSES | _OUTPUTS | {Signal.ERROR}),
    "DCP406": Prediction(("window", "soft-cap", "sinks", "multi-query"), _LSES | _OUTPUTS),
    "DCP407": Prediction(_SHARDING, frozenset({Signal.LSE_MISSING, Signal.ERROR})),
}

# Settled by branch events in the builder instead of a probe.
FALLBACK_RULES = frozenset({"DCP201"})


def select(prediction: Prediction, probes: tuple[str, ...]) -> tuple[str, ...]:
    """The probes among those that apply which the prediction names, in its order."""
    chosen: dict[str, None] = {}
    for prefix in prediction.probes:
        chosen.update(dict.fromkeys(p for p in probes if p.startswith(prefix)))
    return tuple(chosen)
