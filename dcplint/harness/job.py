"""What the pool sends to a process, and what comes back. Plain data, as JSON."""

from __future__ import annotations

import enum
from dataclasses import asdict, dataclass
from typing import Any

from dcplint.harness.model import Execution, Measurement, Outcome, Run, Signal

# The targets that must pass every probe, see `control.py`.
GQA_CONTROL = "dcplint.harness.control:GQABackend"
MLA_CONTROL = "dcplint.harness.control:MLABackend"


class Mode(enum.Enum):
    """How the ranks of a probe are run."""

    EMULATED = "emulated"  # threads of one process that take turns
    PROCESSES = "processes"  # one process each, over torch.distributed


@dataclass(frozen=True, slots=True)
class Job:
    """One probe on one backend.

    target: `module:Class` or `file.py:Class`. kernels: a folder to take `dcplint.harness.kernels`
    from instead of our own, empty for our own. site: `file.py:line` of a statement to watch, empty
    for none; it changes nothing of what is run.
    """

    target: str
    probe: str
    world_size: int
    dtype: str = "float32"
    device: str = "cpu"
    mode: str = Mode.EMULATED.value
    seed: int = 1
    kernels: str = ""
    site: str = ""

    @property
    def repro(self) -> str:
        """The id by which `dcplint confirm --repro` runs exactly this again."""
        parts = (self.probe, f"n{self.world_size}", self.dtype, self.device, self.mode)
        return ":".join((*parts, f"s{self.seed}", self.target))

    @staticmethod
    def from_repro(repro: str) -> Job:
        """The job that an id stands for. Raises ValueError."""
        parts = repro.split(":", 6)
        if len(parts) != 7 or parts[1][:1] != "n" or parts[5][:1] != "s":
            raise ValueError(f"{repro!r} is not a repro id")
        probe, world_size, dtype, device, mode, seed, target = parts
        return Job(target, probe, int(world_size[1:]), dtype, device, mode, int(seed[1:]))

    @property
    def processes(self) -> int:
        """How many processes it takes."""
        return self.world_size if self.mode == Mode.PROCESSES.value else 1

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


def measurement_to_json(measurement: Measurement) -> dict[str, Any]:
    """As plain data; infinities survive Python's own JSON."""
    return {
        **asdict(measurement),
        "signal": measurement.signal.value,
        "outcome": measurement.outcome.value,
    }


def measurement_from_json(data: dict[str, Any]) -> Measurement:
    """The reverse of `measurement_to_json`."""
    return Measurement(
        **{**data, "signal": Signal(data["signal"]), "outcome": Outcome(data["outcome"])}
    )


def failed(signal: Signal, rank: int, detail: str) -> Measurement:
    """A measurement that says no more than that something went wrong."""
    return Measurement(signal, rank, 1.0, 0.0, Outcome.FAIL, detail)


def make_run(
    job: Job,
    measurements: tuple[Measurement, ...],
    execution: Execution,
    seconds: float,
    notes: tuple[str, ...] = (),
) -> Run:
    """The run of a job."""
    return Run(
        probe=job.probe,
        target=job.target,
        dtype=job.dtype,
        ranks=job.mode,
        execution=execution,
        seed=job.seed,
        repro=job.repro,
        measurements=measurements,
        notes=notes,
        seconds=seconds,
    )
