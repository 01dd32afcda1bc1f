"""Wall time, processor time and peak memory of a command and everything it starts."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_INTERVAL = 0.02  # seconds between samples of the process tree


@dataclass(frozen=True, slots=True)
class Measurement:
    """seconds: wall time. cpu: user and system time of all processes, which a busy machine changes
    little. megabytes: largest sum of resident memory over the process tree, shared pages once."""

    seconds: float
    cpu: float
    megabytes: float
    status: int


def measure(
    command: Sequence[str | Path], directory: Path, environment: Mapping[str, str] | None = None
) -> Measurement:
    """Run `command` in `directory`, its output thrown away."""
    peak = 0
    before = os.times()
    started = time.perf_counter()
    process = subprocess.Popen(
        [str(part) for part in command],
        cwd=directory,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while True:
        try:  # a sleep would add up to an interval to what is over in two of them
            process.wait(_INTERVAL)
            break
        except subprocess.TimeoutExpired:
            peak = max(peak, _resident(process.pid))
    seconds = time.perf_counter() - started
    after = os.times()
    cpu = after.children_user + after.children_system
    cpu -= before.children_user + before.children_system
    return Measurement(seconds, cpu, peak / 2**10, process.returncode)


def _resident(root: int) -> int:
    """Kilobytes resident in process `root` and its descendants, a shared page counted once."""
    total, queue = 0, [root]
    while queue:
        pid = queue.pop()
        try:
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        except OSError:
            continue
        pss = next((line for line in rollup.splitlines() if line.startswith("Pss:")), "Pss: 0 kB")
        total += int(pss.split()[1])
        queue += map(int, children)
    return total
