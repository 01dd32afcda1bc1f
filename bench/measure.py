"""Wall time and peak memory of a command and everything it starts."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_INTERVAL = 0.01  # seconds between samples of the process tree


@dataclass(frozen=True, slots=True)
class Measurement:
    """seconds: wall time. megabytes: largest sum of resident sizes over the process tree."""

    seconds: float
    megabytes: float
    status: int


def measure(command: Sequence[str | Path], directory: Path) -> Measurement:
    """Run `command` in `directory`, its output thrown away."""
    peak = 0
    started = time.perf_counter()
    process = subprocess.Popen(
        [str(part) for part in command],
        cwd=directory,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while process.poll() is None:
        peak = max(peak, _resident(process.pid))
        time.sleep(_INTERVAL)
    return Measurement(time.perf_counter() - started, peak / 2**20, process.returncode)


def _resident(root: int) -> int:
    """Bytes resident in process `root` and its descendants."""
    total, queue = 0, [root]
    while queue:
        pid = queue.pop()
        try:
            pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        except (OSError, IndexError):
            continue
        total += pages * 4096
        queue += map(int, children)
    return total
