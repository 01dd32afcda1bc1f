"""What each rule predicts: where a real fault of its kind shows, and by which signal.

A finding is confirmed by a predicted signal only. Another failure means that the backend is wrong
in another way than the finding says, which confirms nothing.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from dcplint.harness.model import ADVISORY, Signal

_READS = frozenset({Signal.READ_WILD, Signal.READ_UNOWNED, Signal.READ_MISSED})
_LSES = frozenset({Signal.LSE_MISSING, Signal.LSE_BASE, Signal.LSE})
_OUTPUTS = frozenset({Signal.SHAPE, Signal.OUTPUT_LOCAL, Signal.OUTPUT_MERGED})
_EMPTY = frozenset({Signal.EMPTY_OUTPUT, Signal.EMPTY_LSE})
# A claim to do DCP is refuted by anything that goes wrong under it, except a refusal.
_ANY = frozenset(Signal) - ADVISORY - {Signal.REFUSED, Signal.BRANCH, Signal.FIELD_MISSING}


class Part(enum.Enum):
    """What a rule speaks of, which matters where a reference stands in for the kernel."""

    AROUND = "what surrounds the kernel"  # settled all the same
    GIVEN = "what the kernel is given"  # a reference need not heed all of it: never refuted
    KERNEL = "the kernel itself"  # neither confirmed nor refuted


@dataclass(frozen=True, slots=True)
class Prediction:
    """Probes by the beginning of their name, most telling first, and the signals that confirm.

    topics: words of a finding's message that single out one of the probes, where the rule speaks
    of several features. may_refuse: whether a backend that refuses a feature does right.
    alone: it is about what comes of having several ranks, so an engine's impl, which runs on
    stand-ins, must be right on one rank alone. part: what it is about. half: whether it
    shows in half precision only.
    """

    probes: tuple[str, ...]
    signals: frozenset[Signal]
    topics: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    may_refuse: bool = False
    alone: bool = False
    part: Part = Part.AROUND
    half: bool = False

    def about(self, message: str) -> Prediction | None:
        """What is predicted of the feature that `message` names; None for one without a probe."""
        if not self.topics:
            return self
        words = set(re.findall(r"\w+", message.lower()))
        named = tuple(probe for probe, topic in self.topics.items() if words & set(topic))
        return replace(self, probes=named, topics={}) if named else None


_SHARDING = ("ragged-i16", "short-i16", "ragged-i1", "whole-cycles", "multi-query")
_LENGTHS = Prediction((*_SHARDING, "reuse"), _READS | _EMPTY | {Signal.ERROR}, part=Part.GIVEN)
_TOPICS = {
    "window": ("window", "window_size", "window_left", "sliding_window"),
    "soft-cap": ("soft_cap", "softcap", "logits_soft_cap"),
    "sinks": ("sinks", "sink", "s_aux"),
    "multi-query": (
        "max_query_len",
        "query_start_loc",
        "causal",
        "interleave",
        "mtp",
        "speculative",
    ),
}
# A window too narrow shows as tokens that nobody reads.
_FEATURE = Prediction(
    tuple(_TOPICS),
    _LSES | _OUTPUTS | _EMPTY | {Signal.READ_MISSED},
    _TOPICS,
    may_refuse=True,
    part=Part.GIVEN,
)
_CLAIM = Prediction((*_SHARDING, "large-scores", "strided"), _ANY, alone=True)

PREDICTIONS: dict[str, Prediction] = {
    "DCP101": _CLAIM,
    "DCP102": _CLAIM,
    "DCP103": _CLAIM,
    "DCP104": Prediction(("short-i1",), frozenset({Signal.REFUSED})),
    "DCP105": Prediction(_SHARDING, _LSES | {Signal.ERROR, Signal.REFUSED_LATE}),
    "DCP205": _LENGTHS,
    "DCP206": Prediction(("ragged-i16", "reuse"), frozenset({Signal.FIELD})),
    "DCP208": Prediction(("draft",), frozenset({Signal.ERROR})),
    "DCP301": Prediction(("draft", *_SHARDING), _READS | {Signal.ERROR}, part=Part.GIVEN),
    "DCP302": _LENGTHS,
    "DCP303": replace(_LENGTHS, signals=_LENGTHS.signals | {Signal.SLOTS}),
    "DCP304": _LENGTHS,
    "DCP305": _LENGTHS,
    "DCP307": Prediction(_SHARDING, frozenset({Signal.HANG})),
    "DCP308": Prediction(_SHARDING, _READS | {Signal.SLOTS}),
    "DCP401": Prediction(_SHARDING, frozenset({Signal.LSE_MISSING, Signal.ERROR})),
    "DCP402": Prediction(
        ("ragged-i16",), frozenset({Signal.LSE_BASE, Signal.OUTPUT_MERGED}), part=Part.KERNEL
    ),
    "DCP403": Prediction(
        ("ragged-i16",), frozenset({Signal.LSE_PRECISION}), part=Part.KERNEL, half=True
    ),
    "DCP404": _FEATURE,
    "DCP405": Prediction(
        ("heads", "value-size"), _READS | _LSES | _OUTPUTS | {Signal.ERROR}, part=Part.GIVEN
    ),
    "DCP406": _FEATURE,
    "DCP407": Prediction(_SHARDING, frozenset({Signal.LSE_MISSING, Signal.ERROR})),
    "DCP408": Prediction(("ragged-i16",), _LSES | _OUTPUTS | {Signal.ERROR}, part=Part.KERNEL),
}


class Gap(enum.Enum):
    """What a rule says of a contract field that may be None, and how the builder deals with it."""

    NEVER_MET = "the branch for None never runs"
    HIDDEN = "the branch for None runs, and hides that nobody filled the field in"
    MISSING = "the field reaches a builder as None"
    SILENT = "the builder goes on without the field instead of failing"


# Settled in the builder, with and without the field, instead of by a probe.
FALLBACKS = {
    "DCP201": Gap.NEVER_MET,
    "DCP202": Gap.HIDDEN,
    "DCP203": Gap.MISSING,
    "DCP204": Gap.MISSING,
    "DCP207": Gap.SILENT,
}


def select(prediction: Prediction, probes: tuple[str, ...]) -> tuple[str, ...]:
    """The probes among those that apply which the prediction names, in its order."""
    chosen: dict[str, None] = {}
    for prefix in prediction.probes:
        chosen.update(dict.fromkeys(p for p in probes if p.startswith(prefix)))
    return tuple(chosen)


# On a real engine these are about functions that make metadata of metadata, which are driven
# directly: the harness's batches do not pass through the engine's runner.
REBUILDS = frozenset({"DCP203", "DCP204", "DCP205"})
