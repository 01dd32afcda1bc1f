"""Whatever a backend does to its process, the run goes on and nothing stays behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dcplint.harness.job import Job, Mode
from dcplint.harness.model import Execution, Run, Signal
from dcplint.harness.pool import Pool, PoolError

BACKENDS = "tests.harness.backends.misbehaving"
CONTROL = "dcplint.harness.control:GQABackend"


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    os.environ["DCPLINT_TEST_PIDS"] = str(tmp_path_factory.mktemp("pids") / "pid")
    with Pool(timeout=60.0, memory=1 << 30) as pool:
        yield pool


def _run(pool: Pool, name: str, mode: Mode = Mode.EMULATED, timeout: float = 60.0) -> Run:
    pool.timeout = timeout
    target = CONTROL if name == "control" else f"{BACKENDS}:{name}"
    ((_, run),) = pool.run([Job(target, "whole-cycles-i1", 2, mode=mode.value)])
    return run


@pytest.mark.parametrize(
    ("name", "signal", "detail"),
    [
        ("Segfault", Signal.CRASH, "killed by SIGSEGV"),
        ("Quitter", Signal.CRASH, "exited with status 0 before it was done"),
        ("Flood", Signal.ERROR, "File too large"),
        ("OneDies", Signal.CRASH, "killed by SIGKILL"),
        ("Leaver", Signal.ERROR, "SystemExit"),
        ("Hog", Signal.CRASH, "memory"),
        ("OneSkips", Signal.HANG, "[0] wait in a collective that [1] never enter"),
        ("Refusing", Signal.REFUSED, "no DCP here"),
    ],
)
def test_what_goes_wrong_is_measured(pool: Pool, name: str, signal: Signal, detail: str) -> None:
    worst = _run(pool, name).worst
    assert worst is not None
    assert worst.signal is signal
    assert detail in worst.detail
    assert _run(pool, "control").worst is None


@pytest.mark.parametrize("mode", list(Mode))
def test_an_endless_loop_ends(pool: Pool, mode: Mode) -> None:
    start = time.monotonic()
    run = _run(pool, "Endless", mode, timeout=3.0)
    assert run.worst is not None
    assert run.worst.signal is Signal.HANG
    assert time.monotonic() - start < 30.0


def test_what_nobody_waits_for_any_more_is_stopped(pool: Pool) -> None:
    pool.timeout = 60.0
    runs = pool.run([Job(t, "whole-cycles-i1", 2) for t in (f"{BACKENDS}:Endless", CONTROL)])
    start = time.monotonic()
    number, run = next(runs)
    assert (number, run.worst) == (1, None)
    runs.close()
    assert time.monotonic() - start < 40.0
    children = Path(f"/proc/{pool._process.pid}/task/{pool._process.pid}/children")
    assert children.read_text() == ""
    assert _run(pool, "control").worst is None


def test_an_lse_is_owed_where_there_is_something_to_merge(pool: Pool) -> None:
    probes = ("single-rank", "draft", "ragged-i1")
    runs = dict(pool.run([Job(f"{BACKENDS}:Mute", probe, 2) for probe in probes]))
    alone, draft, sharded = (runs[i].worst for i in range(3))
    assert (alone, draft) == (None, None)
    assert sharded is not None and sharded.signal is Signal.LSE_MISSING


def test_noise_on_stdout_changes_nothing(pool: Pool) -> None:
    run = _run(pool, "Chatter")
    assert run.worst is None
    assert run.execution is Execution.INTERPRETED
    assert len(run.measurements) == len(_run(pool, "control").measurements)


def test_a_dead_rank_takes_its_peers_along(pool: Pool) -> None:
    """Long before the time-out: the peers wait in a collective that never comes."""
    run = _run(pool, "OneDies", Mode.PROCESSES)
    assert run.worst is not None
    assert (run.worst.signal, run.worst.rank) == (Signal.CRASH, 1)
    assert run.seconds < 40.0


def test_a_skipped_collective_is_a_hang_for_processes_too(pool: Pool) -> None:
    run = _run(pool, "OneSkips", Mode.PROCESSES, timeout=8.0)
    assert run.worst is not None
    assert (run.worst.signal, run.worst.rank) in ((Signal.HANG, 0), (Signal.ERROR, 0))


def test_grandchildren_are_gone(pool: Pool) -> None:
    assert _run(pool, "Forker").worst is None
    pid = int(Path(os.environ["DCPLINT_TEST_PIDS"]).read_text())
    for _ in range(100):
        if not _alive(pid):
            return
        time.sleep(0.05)
    pytest.fail("a process stayed behind")


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


_ABANDON = """
import os, sys, threading, time
from dcplint.harness.job import Job
from dcplint.harness.pool import Pool
pool = Pool(timeout=600.0).__enter__()
print(pool._process.pid, flush=True)
job = Job("tests.harness.backends.misbehaving:Endless", "whole-cycles-i1", 2)
threading.Thread(target=lambda: list(pool.run([job])), daemon=True).start()
time.sleep(2.0)
os._exit(1)
"""


def test_an_abandoned_zygote_dies_with_its_children() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _ABANDON], capture_output=True, text=True, check=False
    )
    zygote = int(done.stdout)
    for _ in range(100):
        left = [pid for pid in _descendants_of_session(zygote) if _alive(pid)]
        if not left and not _alive(zygote):
            return
        time.sleep(0.05)
    pytest.fail(f"left behind: {left}")


def _descendants_of_session(zygote: int) -> list[int]:
    """Processes that run the zygote's command line: forked children keep it."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
            if b"dcplint.harness.zygote" in command and zygote in (int(entry.name), parent):
                found.append(int(entry.name))
    return found


def test_a_backend_that_does_not_load_is_named(pool: Pool) -> None:
    with pytest.raises(PoolError, match=r"ModuleNotFoundError: No module named 'nowhere'"):
        pool.describe("nowhere:Backend", 4)
    with pytest.raises(PoolError, match="no driver runs"):
        pool.describe("builtins:int", 4)


def test_an_unhealthy_dtype_is_not_run(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job(CONTROL, "whole-cycles-i1", 2, dtype="bfloat16")
    healthy = [dtype for dtype in pool.environment["healthy"] if dtype != "bfloat16"]
    monkeypatch.setitem(pool.environment, "healthy", healthy)
    monkeypatch.setitem(pool.environment, "unrepaired", "triton 9 lacks a name")
    ((_, run),) = pool.run([job])
    assert run.execution is Execution.NOT_RUN
    (said,) = run.notes
    assert said.startswith("bfloat16 arithmetic is wrong")
    assert said.endswith(": triton 9 lacks a name")


def test_a_probe_that_does_not_apply_is_not_run(pool: Pool) -> None:
    """Nor is what cannot be loaded: that nothing came of it is not the backend's fault."""
    ((_, run),) = pool.run([Job(CONTROL, "slow-i3", 2)])
    assert run.execution is Execution.NOT_RUN
    assert run.notes == ("no probe `slow-i3` applies to it",)
    ((_, run),) = pool.run([Job("nowhere:Backend", "short-i1", 2)])
    assert run.execution is Execution.NOT_RUN
    assert "No module named 'nowhere'" in run.notes[0]


TWO = """
from dcplint.harness.contract import AttentionBackendBase
from dcplint.harness.control import GQABackend, MLABackend


class Shared(GQABackend.get_impl_cls()):
    def forward(self, *arguments):
        return super().forward(*arguments)


class Plain(GQABackend):
    pass


class Own(GQABackend):
    @staticmethod
    def get_impl_cls():
        return Shared


class Broken(GQABackend):
    @staticmethod
    def get_builder_cls():
        raise KeyError("builder")


def helper():
    return 1
"""


@pytest.mark.parametrize(
    ("symbol", "names"), [("Shared.forward", ["Own"]), ("helper", ["Plain", "Own"])]
)
def test_a_finding_is_judged_by_what_runs_its_class(
    shared_pool: Pool, tmp_path: Path, symbol: str, names: list[str]
) -> None:
    path = tmp_path / "two.py"
    path.write_text(TWO)
    found = shared_pool.backends(str(path), str(path), symbol)
    assert [t.rpartition(":")[2] for t in found["targets"]] == names
    assert "`Broken` cannot name what it runs: KeyError: 'builder'" in found["said"]
    assert ("`Plain` does not run `Shared`" in found["said"]) == ("Plain" not in names)
