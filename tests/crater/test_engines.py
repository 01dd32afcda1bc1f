"""Backends of a released engine, run from its own files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")

from dcplint.harness.job import Job
from dcplint.harness.model import Execution, Run, Signal
from dcplint.harness.pool import Pool

pytestmark = pytest.mark.crater

BACKENDS = "vllm.v1.attention.backends"
MLA = f"{BACKENDS}.mla.triton_mla:TritonMLABackend"
FLASH = f"{BACKENDS}.flash_attn:FlashAttentionBackend"


@pytest.fixture(scope="module")
def pool(request: pytest.FixtureRequest) -> Iterator[Pool]:
    find: Callable[[str], Path] = request.getfixturevalue("tree")
    with Pool(jobs=2, timeout=300.0, engine=find("vllm-0.30.0")) as opened:
        yield opened


def _runs(pool: Pool, target: str, probes: tuple[str, ...]) -> list[Run]:
    return [run for _, run in pool.run([Job(target, probe, 2) for probe in probes])]


def test_triton_mla_is_right_and_its_own_kernel_ran(pool: Pool) -> None:
    for run in _runs(pool, MLA, ("ragged-i16", "short-i1")):
        assert run.worst is None, run.worst
        assert run.execution is Execution.INTERPRETED
        assert run.substituted == ()
        assert any("concat_and_cache_mla" in name for name in run.stubbed)


def test_flash_attention_is_right_around_a_kernel_that_was_replaced(pool: Pool) -> None:
    for run in _runs(pool, FLASH, ("ragged-i16", "multi-query-i1")):
        assert run.worst is None, run.worst
        assert run.execution is Execution.SUBSTITUTED
        assert run.substituted == ("flash_attn_varlen_func",)


PLANTED = Path(__file__).parent / "planted.py"


@pytest.mark.parametrize(
    ("backend", "signal"),
    [
        ("MLAGlobalLengths", Signal.READ_UNOWNED),
        ("MLAWrongRank", Signal.READ_UNOWNED),
        ("MLAFieldDropped", Signal.ERROR),
        ("MLAStalePair", Signal.READ_MISSED),
        ("MLALog2", Signal.LSE_BASE),
        ("FlashGlobalLengths", Signal.READ_UNOWNED),
        ("FlashWrongRank", Signal.READ_UNOWNED),
        ("FlashFieldDropped", Signal.ERROR),
        ("FlashStalePair", Signal.READ_MISSED),
        ("FlashLog2", Signal.OUTPUT_MERGED),
    ],
)
def test_a_fault_planted_in_a_released_path_is_seen(
    pool: Pool, backend: str, signal: Signal
) -> None:
    (run,) = _runs(pool, f"{PLANTED}:{backend}", ("ragged-i16",))
    assert run.worst is not None
    assert run.worst.signal is signal, run.worst
