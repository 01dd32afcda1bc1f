"""What the harness says: probes, measurements, verdicts. Imports neither torch nor triton."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field


class Signal(enum.Enum):
    """A channel through which a fault can show, in the order in which they are judged.

    An earlier signal explains a later one: a rank that reads slots it does not own has a wrong
    output too, and the read set is what tells why.
    """

    REFUSED = "refused"  # the backend would not be built under DCP
    REFUSED_LATE = "refused.late"  # ... although a selector had accepted it
    CRASH = "crash"  # a signal, an exit without a result, memory exhausted
    HANG = "hang"  # time-out, or ranks waiting for each other
    ERROR = "error"  # an exception
    FIELD = "field"  # contract metadata changed by building or running
    FIELD_MISSING = "field.missing"  # a contract field reached the builder as None
    BRANCH = "branch"  # a fallback branch's reach, and what it hides
    SLOTS = "slots"  # where new tokens are written
    READ_WILD = "read.wild"  # reads outside every buffer
    READ_UNOWNED = "read.unowned"  # slots this rank does not own
    READ_MISSED = "read.missed"  # slots this rank owns and nobody else reads
    EMPTY_OUTPUT = "empty.output"  # a query that sees nothing here must get exactly 0
    EMPTY_LSE = "empty.lse"  # ... and exactly -inf
    SHAPE = "shape"  # an output for other tokens or heads than asked for
    LSE_MISSING = "lse.missing"
    LSE_BASE = "lse.base"  # the LSE is linear in the right one, with another slope
    LSE = "lse"
    LSE_PRECISION = "lse.precision"  # kept in half precision: allowed, and what it costs
    OUTPUT_LOCAL = "output.local"
    OUTPUT_MERGED = "output.merged"

    @property
    def order(self) -> int:
        """Position in the judging order, 0 first."""
        return tuple(Signal).index(self)


# A cost rather than a fault: it alone neither confirms another finding nor stops a refutation.
ADVISORY = frozenset({Signal.LSE_PRECISION})


class Outcome(enum.Enum):
    """What one measurement says."""

    PASS = "pass"
    NEAR = "near"  # between one and five times the tolerance: neither
    FAIL = "fail"


class Verdict(enum.Enum):
    """What the harness says about a finding."""

    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    INCONCLUSIVE = "inconclusive"


class Execution(enum.Enum):
    """How the backend's code was run, in falling strength."""

    NATIVE_CUDA = "native-cuda"
    NATIVE_CPU = "native-cpu"
    INTERPRETED = "interpreted"
    SUBSTITUTED = "substituted-kernel"
    BUILDER_ONLY = "builder-only"
    COMPILE_ONLY = "compile-only"
    NOT_RUN = "not-run"


@dataclass(frozen=True, slots=True)
class Topology:
    """How a sequence is spread: `interleave` consecutive tokens on each of `world_size` ranks."""

    world_size: int
    interleave: int


@dataclass(frozen=True, slots=True)
class Geometry:
    """The shape of one attention layer.

    num_heads: query heads over all ranks, after the gather. kv_lora_rank: above 0 for MLA, whose
    cache row is `kv_lora_rank` values and `head_dim - kv_lora_rank` more that are key only.
    window: in tokens, 0 for none. soft_cap: 0 for none. fp8: whether the cache is of e4m3, with
    scales of 1, and tokens are of values that it holds exactly.
    """

    num_heads: int = 8
    num_kv_heads: int = 2
    head_dim: int = 32
    v_head_dim: int = 32
    kv_lora_rank: int = 0
    page_size: int = 16
    window: int = 0
    soft_cap: float = 0.0
    sinks: bool = False
    fp8: bool = False

    @property
    def is_mla(self) -> bool:
        """Whether the cache holds latent rows."""
        return self.kv_lora_rank > 0

    @property
    def sm_scale(self) -> float:
        """The factor on the scores."""
        return float(self.head_dim**-0.5)


@dataclass(frozen=True, slots=True)
class Claims:
    """What a backend says it can do, which decides the probes it is given.

    max_query_len: new tokens of a request that it attends for. interleaves: those with which that
    may be more than one; None for any. uniform: whether it must be as many for each request.
    geometry: a small layer that it serves, where the usual one will not do. card: compute
    capabilities that it is made for, in words; empty for any. dtypes: those that it lists; it may
    well take others.
    """

    is_mla: bool
    self_merging: bool
    max_query_len: int
    window: bool
    soft_cap: bool
    sinks: bool
    geometry: Geometry | None = None
    card: str = ""
    dtypes: tuple[str, ...] = ()
    interleaves: tuple[int, ...] | None = None
    uniform: bool = False
    fp8: bool = False

    def query_len(self, topology: Topology) -> int:
        """How many new tokens of a request it attends for."""
        if self.interleaves is None or topology.interleave in self.interleaves:
            return self.max_query_len
        return 1


@dataclass(frozen=True, slots=True)
class Batch:
    """One step's requests. Lengths are global tokens, the new ones included.

    padding: requests beyond the real ones, as a captured graph has them: empty, with whatever the
    last step left in their rows. magnitude: factor on the queries, for large scores of both signs.
    offset: added to every query, keys then lying near 1, for large scores of one sign.
    """

    seq_lens: tuple[int, ...]
    query_lens: tuple[int, ...]
    padding: int = 0
    magnitude: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, slots=True)
class Probe:
    """One question to a backend: batches run one after another through the same buffers.

    strided: hand the merge views that are not contiguous. draft: give the layer a DCP size of 1
    inside the group, as a draft model's layers have it.
    """

    name: str
    question: str
    batches: tuple[Batch, ...]
    topology: Topology
    geometry: Geometry
    strided: bool = False
    draft: bool = False


@dataclass(frozen=True, slots=True)
class Measurement:
    """One number against one tolerance, on one rank."""

    signal: Signal
    rank: int
    measured: float
    tolerance: float
    outcome: Outcome
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """One probe, run once on one backend.

    reached: whether it came to the statement that it was asked to watch; None where it was asked
    for none, or the processes that could tell are gone.
    """

    probe: str
    target: str
    dtype: str
    ranks: str  # emulated or processes
    execution: Execution
    seed: int
    repro: str
    measurements: tuple[Measurement, ...]
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    substituted: tuple[str, ...] = ()
    stubbed: tuple[str, ...] = ()
    reached: bool | None = None

    @property
    def remark(self) -> Measurement | None:
        """What is beyond its tolerance and allowed all the same; None where nothing is."""
        allowed = [m for m in self.measurements if m.signal in ADVISORY]
        return next((m for m in allowed if m.outcome is not Outcome.PASS), None)

    @property
    def worst(self) -> Measurement | None:
        """The first failure in judging order, else the first near miss; None where all is well."""
        for outcome in (Outcome.FAIL, Outcome.NEAR):
            found = [
                m for m in self.measurements if m.outcome is outcome and m.signal not in ADVISORY
            ]
            if found:
                return min(found, key=lambda m: (m.signal.order, m.rank))
        return None


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A verdict on a finding, with all that is needed to doubt it.

    signal, measured, tolerance: of the measurement that settled it, None where none did.
    control: what our own kernel did in the same probe. repro: the id that runs exactly it again.
    """

    verdict: Verdict
    reason: str
    execution: Execution
    ranks: str
    environment: dict[str, str]
    signal: Signal | None
    measured: float | None
    tolerance: float | None
    control: str
    seed: int
    repro: str
    substituted: tuple[str, ...] = ()
    stubbed: tuple[str, ...] = ()
    runs: tuple[Run, ...] = field(default=(), repr=False)
