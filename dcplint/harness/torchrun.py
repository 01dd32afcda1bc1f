"""One probe on the ranks that torchrun started, on one machine or several.

    torchrun --nproc-per-node 4 -m dcplint.harness.torchrun PROBE TARGET [DTYPE] [DEVICE]

Each rank prints its first failure; the exit status is 1 where there is one. No process is isolated
from another here, and there is no control: use it to see one probe on real hardware.
"""

from __future__ import annotations

import os
import sys

from dcplint.harness import worker
from dcplint.harness.job import Job, Mode, make_run, measurement_from_json
from dcplint.harness.model import Execution


def main(arguments: list[str]) -> int:
    """Run this process's rank."""
    probe, target, dtype, device = (*arguments, *("float32", "cpu")[len(arguments) - 2 :])
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    environment = worker.prepare(device, "")
    if device == "cpu" and dtype not in environment["healthy"]:
        _say(rank, f"{dtype} arithmetic is wrong in this interpreter")
        return 1
    job = Job(target, probe, world_size, dtype, device, Mode.PROCESSES.value)
    answer = worker.participate_under_torchrun(job)
    measurements = tuple(measurement_from_json(m) for m in answer["measurements"])
    run = make_run(job, measurements, Execution(answer["execution"]), 0.0)
    worst = run.worst
    said = "right" if worst is None else f"{worst.signal.value}: {worst.detail}"
    _say(rank, f"{run.execution.value}, {len(measurements)} measurements, {said}")
    return int(worst is not None)


def _say(rank: int, what: str) -> None:
    """Print a line in one piece: the ranks write to the same place, unbuffered."""
    sys.stdout.write(f"rank {rank}: {what}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
