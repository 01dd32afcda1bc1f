"""Emulated ranks and real processes give the same answers."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from dcplint.data import data_dir
from dcplint.harness.job import Job, Mode
from dcplint.harness.model import Measurement, Run
from dcplint.harness.pool import Pool

GQA, MLA = (f"dcplint.harness.control:{kind}Backend" for kind in ("GQA", "MLA"))
BAD = {
    name: f"{next(data_dir('fixtures').rglob(f'{name}_*/{file}.py'))}:PagedBackend"
    for name, file in (
        ("dcp206", "bad_shared_lengths_localised"),
        ("dcp302", "bad_global_lengths"),
        ("dcp401", "bad_none_under_dcp"),
        ("dcp402", "bad_log2_declared_ln"),
        ("dcp405", "bad_sized_by_own_heads"),
    )
}


@pytest.fixture
def pool(shared_pool: Pool) -> Pool:
    return shared_pool


def _key(measurement: Measurement) -> tuple[object, ...]:
    return measurement.rank, measurement.signal.order, measurement.measured, measurement.detail


def _assert_same(pool: Pool, target: str, probe: str, world_size: int) -> Run:
    jobs = [Job(target, probe, world_size, mode=mode.value) for mode in Mode]
    emulated, processes = (run for _, run in sorted(pool.run(jobs), key=lambda pair: pair[0]))
    first = sorted(emulated.measurements, key=_key)
    second = sorted(processes.measurements, key=_key)
    assert [(m.rank, m.signal, m.outcome) for m in first] == [
        (m.rank, m.signal, m.outcome) for m in second
    ]
    for one, other in zip(first, second, strict=True):
        assert one.measured == pytest.approx(other.measured, abs=1e-6)
    assert emulated.execution is processes.execution
    return emulated


@pytest.mark.parametrize("target", [GQA, BAD["dcp302"]])
def test_two_ranks(pool: Pool, target: str) -> None:
    run = _assert_same(pool, target, "short-i16", 2)
    assert (run.worst is None) is (target == GQA)


@pytest.mark.slow
@pytest.mark.parametrize("world_size", [2, 4])
@pytest.mark.parametrize(
    ("target", "probe"),
    [
        (GQA, "multi-query-i1"),
        (MLA, "short-i16"),
        (BAD["dcp206"], "short-i16"),
        (BAD["dcp302"], "reuse"),
        (BAD["dcp401"], "short-i16"),
        (BAD["dcp402"], "short-i16"),
        (BAD["dcp405"], "heads-6"),
    ],
)
def test_right_and_wrong(pool: Pool, target: str, probe: str, world_size: int) -> None:
    _assert_same(pool, target, probe, world_size)


@pytest.mark.slow
@pytest.mark.parametrize(("target", "said"), [(GQA, "right"), (BAD["dcp302"], "read.")])
def test_under_torchrun(target: str, said: str) -> None:
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*launch, "-m", "dcplint.harness.torchrun", "short-i16", target],
        capture_output=True,
        text=True,
        timeout=300.0,
        env={**os.environ, "TRITON_INTERPRET": "1"},
    )
    lines = sorted(line for line in done.stdout.splitlines() if line.startswith("rank "))
    assert [line.partition(":")[0] for line in lines] == ["rank 0", "rank 1"], done.stderr
    assert all("interpreted" in line for line in lines)
    assert all(said in line for line in lines) if said == "right" else said in "".join(lines)
    assert (done.returncode == 0) is (target == GQA)
