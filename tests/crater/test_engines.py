"""Backends of a released engine, run from its own files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")

from dcplint.harness.job import Job
from dcplint.harness.model import Execution, Run, Signal
from dcplint.harness.pool import Pool

pytestmark = [pytest.mark.crater, pytest.mark.xdist_group("engine")]

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


def test_sinks_are_lost_between_ranks_and_kept_on_one(pool: Pool) -> None:
    """DCP404 of `FlashAttentionImpl._forward_with_dcp`."""
    alone, sharded = _runs(pool, FLASH, ("sinks-n1", "sinks-n2"))
    assert alone.worst is None, alone.worst
    assert sharded.worst is not None
    assert sharded.worst.signal is Signal.OUTPUT_MERGED


def test_an_lse_kept_in_half_precision_is_measured(pool: Pool) -> None:
    """DCP403 of `TritonMLAImpl.forward_mqa`."""
    ((_, run),) = pool.run([Job(MLA, "short-i1", 2, "float16")])
    assert run.worst is None, run.worst
    assert any(m.signal is Signal.LSE_PRECISION and m.measured > 1e-4 for m in run.measurements)


def test_a_cache_of_fp8_is_run_as_another_configuration(pool: Pool) -> None:
    """TritonMLA does DCP with it too; TritonAttention's is right on one rank, and only there."""
    triton = f"{BACKENDS}.triton_attn:TritonAttentionBackend"
    alone, sharded = _runs(pool, MLA, ("fp8-cache-n1", "fp8-cache-n2"))
    assert (alone.worst, sharded.worst) == (None, None)
    alone, sharded = _runs(pool, triton, ("fp8-cache-n1", "fp8-cache-n2"))
    assert alone.worst is None
    assert sharded.worst is not None
    assert sharded.worst.signal is Signal.READ_UNOWNED
    assert "current_platform.has_device_capability() = True" in sharded.stubbed


PLANTED = Path(__file__).parent / "planted.py"


@pytest.mark.parametrize(
    ("backend", "probe", "signal"),
    [
        ("MLAGlobalLengths", "ragged-i16", Signal.READ_UNOWNED),
        ("MLAWrongRank", "ragged-i16", Signal.READ_UNOWNED),
        ("MLAFieldDropped", "ragged-i16", Signal.ERROR),
        ("MLAStalePair", "ragged-i16", Signal.READ_MISSED),
        ("MLALog2", "ragged-i16", Signal.LSE_BASE),
        ("MLALocalMask", "multi-query-i1", Signal.LSE),
        ("MLALocalMask", "multi-query-i16", Signal.LSE),
        ("FlashMLALocalMask", "multi-query-i1", Signal.LSE),
        ("FlashGlobalLengths", "ragged-i16", Signal.READ_UNOWNED),
        ("FlashWrongRank", "ragged-i16", Signal.READ_UNOWNED),
        ("FlashFieldDropped", "ragged-i16", Signal.ERROR),
        ("FlashStalePair", "ragged-i16", Signal.READ_MISSED),
        ("FlashLog2", "ragged-i16", Signal.OUTPUT_MERGED),
    ],
)
def test_a_fault_planted_in_a_released_path_is_seen(
    pool: Pool, backend: str, probe: str, signal: Signal
) -> None:
    (run,) = _runs(pool, f"{PLANTED}:{backend}", (probe,))
    assert run.worst is not None
    assert run.worst.signal is signal, run.worst


def test_several_new_tokens_of_a_latent_layer_are_right_where_none_is_masked_wrongly(
    pool: Pool,
) -> None:
    """What `MLALocalMask` and `FlashMLALocalMask` are one fault away from."""
    flash = f"{BACKENDS}.mla.flashattn_mla:FlashAttnMLABackend"
    several = ("multi-query-i1", "multi-query-i16")
    runs = [*_runs(pool, f"{PLANTED}:MLASeveralTokens", several), *_runs(pool, flash, several[:1])]
    assert [run.worst for run in runs] == [None] * 3
    assert [run.execution for run in runs[:2]] == [Execution.INTERPRETED] * 2
    assert "multi-query-i1" not in pool.describe(MLA, 2)["probes"]  # a prefill in this release


@pytest.mark.parametrize(
    ("path", "symbol", "kind"),
    [
        ("worker/ubatch_utils.py", "_make_metadata_with_slice", "missing"),
        (
            "attention/backends/utils.py",
            "make_kv_sharing_fast_prefill_common_attn_metadata",
            "missing",
        ),
        ("spec_decode/utils.py", "extend_all_queries_by_N", "stale"),
    ],
)
def test_functions_that_rebuild_metadata_are_driven(
    pool: Pool, path: str, symbol: str, kind: str
) -> None:
    assert pool.engine is not None
    seen = pool.rebuild(str(pool.engine / "vllm" / "v1" / path), symbol, 2)
    other = "stale" if kind == "missing" else "missing"
    assert (seen[kind] > 0, seen[other]) == (True, 0), seen


def test_what_the_harness_cannot_make_is_said(pool: Pool) -> None:
    assert pool.engine is not None
    path = pool.engine / "vllm/v1/spec_decode/dflash.py"
    seen = pool.rebuild(str(path), "DFlashProposer.set_inputs_first_pass", 2)
    assert seen == {"error": "wants `self`, which the harness does not know how to make"}
