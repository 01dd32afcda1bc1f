"""The decode kernels against a float64 reference, per rank and merged, on poisoned caches."""

from __future__ import annotations

import math

import pytest
import torch
from dcplint.harness.kernels.gqa_decode import gqa_decode
from dcplint.harness.kernels.lse_merge import merge_shards
from dcplint.harness.kernels.mla_decode import mla_decode

from tests.kernels.reference import Rules, attend, owned, paged

TOLERANCE = {torch.float32: (1e-5, 1e-5), torch.float16: (5e-3, 1e-4), torch.bfloat16: (4e-2, 1e-4)}


def _close(got: torch.Tensor, expected: torch.Tensor, tolerance: float) -> None:
    finite = expected.isfinite()
    assert torch.equal(got.isfinite(), finite)
    assert torch.equal(got[~finite].double(), expected[~finite])
    errors = torch.where(finite, got.double() - expected, 0.0).abs()
    assert errors.max().item() <= tolerance


def _run(
    kind: str,
    *,
    seq_lens: list[int],
    query_lens: list[int],
    dtype: torch.dtype = torch.float32,
    heads: int = 4,
    kv_heads: int = 2,
    dim: int = 32,
    v_dim: int = 32,
    world: int = 4,
    interleave: int = 16,
    page_size: int = 16,
    window: int = 0,
    soft_cap: float = 0.0,
    sinks: bool = False,
    fp8: bool = False,
    num_splits: int = 2,
    magnitude: float = 1.0,
    shift: float = 0.0,
) -> None:
    generator = torch.Generator().manual_seed(7)
    mla = kind == "mla"
    kv_heads = 1 if mla else kv_heads
    tokens = sum(query_lens)
    rules = Rules(sm_scale=dim**-0.5, window=window, soft_cap=soft_cap)
    scale = 0.5 if fp8 else 1.0
    q = (torch.randn(tokens, heads, dim, generator=generator) * magnitude).to(dtype)
    cache_dtype = torch.float8_e4m3fn if fp8 else dtype
    stored_k = [
        (torch.randn(n, kv_heads, dim, generator=generator) * 1.5 + shift).to(cache_dtype)
        for n in seq_lens
    ]
    stored_v = (
        [k[..., :v_dim] for k in stored_k]
        if mla
        else [
            torch.randn(n, kv_heads, v_dim, generator=generator).to(cache_dtype) for n in seq_lens
        ]
    )
    sink_values = torch.randn(heads, generator=generator) if sinks else None
    starts = torch.tensor([0, *query_lens]).cumsum(0).to(torch.int32)
    lens = torch.tensor(seq_lens, dtype=torch.int32)

    outs, lses = [], []
    for rank in range(world):
        mine = [owned(n, rank, world, interleave) for n in seq_lens]
        poison = math.nan
        seed = torch.Generator().manual_seed(rank)
        k_rows = [k[m] for k, m in zip(stored_k, mine, strict=True)]
        k_cache, table = paged(k_rows, page_size, poison, seed)
        local = torch.tensor([len(m) for m in mine], dtype=torch.int32)
        common = {
            "max_query_len": max(query_lens),
            "sm_scale": rules.sm_scale,
            "dcp_rank": rank,
            "dcp_world_size": world,
            "interleave": interleave,
            "window": window,
            "soft_cap": soft_cap,
            "sinks": sink_values,
            "num_splits": num_splits,
        }
        if mla:
            out, lse = mla_decode(
                q, k_cache[:, :, 0], table, local, lens, starts,
                kv_lora_rank=v_dim, kv_scale=scale, **common,
            )  # fmt: skip
        else:
            v_rows = [v[m] for v, m in zip(stored_v, mine, strict=True)]
            v_cache, same_table = paged(
                v_rows, page_size, poison, torch.Generator().manual_seed(rank)
            )
            assert torch.equal(table, same_table)
            out, lse = gqa_decode(
                q, k_cache, v_cache, table, local, lens, starts,
                k_scale=scale, v_scale=scale, **common,
            )  # fmt: skip
        outs.append(out)
        lses.append(lse)

    def expected(which: list[list[int]], counted: bool) -> tuple[torch.Tensor, torch.Tensor]:
        out = torch.zeros(tokens, heads, v_dim, dtype=torch.float64)
        lse = torch.zeros(tokens, heads, dtype=torch.float64)
        for b, length in enumerate(seq_lens):
            for i in range(query_lens[b]):
                for h in range(heads):
                    kv = h // (heads // kv_heads)
                    row = int(starts[b]) + i
                    out[row, h], lse[row, h] = attend(
                        q[row, h],
                        stored_k[b][which[b], kv].double() * scale,
                        stored_v[b][which[b], kv].double() * scale,
                        which[b],
                        length - query_lens[b] + i,
                        rules,
                        float(sink_values[h]) if counted and sink_values is not None else None,
                    )
        return out, lse

    out_tol, lse_tol = TOLERANCE[dtype]
    whole, whole_lse = expected([list(range(n)) for n in seq_lens], True)
    largest = max(1.0, *whole_lse[whole_lse.isfinite()].abs().tolist())  # a score's rounding grows
    for rank in range(world):
        mine = [owned(n, rank, world, interleave) for n in seq_lens]
        out, lse = expected(mine, rank == 0)
        _close(lses[rank], lse, lse_tol * largest)
        _close(outs[rank], out, out_tol * largest)
    merged, merged_lse = merge_shards(torch.stack(outs), torch.stack(lses))
    _close(merged_lse, whole_lse, lse_tol * largest)
    _close(merged, whole, out_tol * largest)


_SLOW = pytest.mark.slow


@pytest.mark.parametrize("kind", ["gqa", "mla"])
@pytest.mark.parametrize(
    ("dtype", "interleave"),
    [
        (torch.float32, 16),
        (torch.bfloat16, 1),
        pytest.param(torch.float32, 1, marks=_SLOW),
        pytest.param(torch.bfloat16, 16, marks=_SLOW),
        pytest.param(torch.float16, 1, marks=_SLOW),
        pytest.param(torch.float16, 16, marks=_SLOW),
    ],
    ids=str,
)
def test_single_query(kind: str, dtype: torch.dtype, interleave: int) -> None:
    """Ragged lengths, one shorter than a cycle, one of a single token, one empty."""
    _run(
        kind,
        seq_lens=[133, 70, 21, 1, 0],
        query_lens=[1] * 5,
        dtype=dtype,
        interleave=interleave,
        dim=48 if kind == "mla" else 32,
    )


@pytest.mark.parametrize("kind", ["gqa", "mla"])
@pytest.mark.parametrize(
    ("world", "interleave"),
    [(4, 4), (1, 1), pytest.param(4, 1, marks=_SLOW), pytest.param(2, 16, marks=_SLOW)],
)
def test_multi_query_is_causal_in_global_positions(kind: str, world: int, interleave: int) -> None:
    """Mixed query lengths, prefill included, over every phase of the owner cycle."""
    _run(
        kind,
        seq_lens=[67, 9, 40],
        query_lens=[5, 9, 1],
        world=world,
        interleave=interleave,
        page_size=4,
        dim=48 if kind == "mla" else 32,
    )


@pytest.mark.parametrize("kind", ["gqa", "mla"])
@pytest.mark.parametrize(
    "features",
    [
        pytest.param({"window": 20}, marks=_SLOW),
        pytest.param({"soft_cap": 5.0, "magnitude": 4.0}, marks=_SLOW),
        pytest.param({"sinks": True}, marks=_SLOW),
        {"window": 20, "soft_cap": 5.0, "sinks": True, "magnitude": 4.0},
    ],
    ids=str,
)
@pytest.mark.parametrize("world", [1, 4])
def test_features(kind: str, features: dict[str, float], world: int) -> None:
    """Window, soft cap and sinks, alone and together; sinks count once for any world size."""
    _run(
        kind,
        seq_lens=[133, 37, 2],
        query_lens=[2, 1, 2],
        world=world,
        interleave=4,
        dim=48 if kind == "mla" else 32,
        **features,
    )


@pytest.mark.parametrize("kind", ["gqa", "mla"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_fp8_cache(kind: str, dtype: torch.dtype) -> None:
    _run(kind, seq_lens=[70, 5], query_lens=[1, 1], dtype=dtype, fp8=True, dim=48, v_dim=32)


@pytest.mark.parametrize("kind", ["gqa", "mla"])
@pytest.mark.parametrize("num_splits", [1, 8, pytest.param(3, marks=_SLOW)])
def test_more_splits_than_blocks(kind: str, num_splits: int) -> None:
    _run(
        kind, seq_lens=[300, 3], query_lens=[1, 1], num_splits=num_splits, world=2, interleave=1,
        dim=48 if kind == "mla" else 32,
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["gqa", "mla"])
def test_large_scores(kind: str) -> None:
    """Scores beyond 1e3 in both directions overflow no exponential."""
    _run(
        kind, seq_lens=[70, 20], query_lens=[1, 1], magnitude=400.0, interleave=4,
        dim=48 if kind == "mla" else 32,
    )  # fmt: skip


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_scores_beyond_finite_infinities(sign: float) -> None:
    """All scores below -5e4 (or above): a mask value that is merely large would show."""
    _run(
        "gqa", seq_lens=[70, 20], query_lens=[1, 1], magnitude=2e4, shift=sign * 200.0, heads=2,
        interleave=4,
    )  # fmt: skip


def test_heads_and_values_of_odd_sizes() -> None:
    _run("gqa", seq_lens=[70], query_lens=[2], heads=12, kv_heads=2, dim=24, v_dim=40, interleave=4)
    _run("gqa", seq_lens=[33], query_lens=[1], heads=6, kv_heads=6, dim=16, v_dim=16, interleave=4)
    _run("mla", seq_lens=[70], query_lens=[2], heads=24, dim=40, v_dim=24, interleave=4)


def test_full_mla_shape() -> None:
    _run("mla", seq_lens=[50], query_lens=[1], heads=2, dim=576, v_dim=512, dtype=torch.float16)


def test_strided_queries() -> None:
    """A query sliced out of a wider tensor gives what its copy gives."""
    generator = torch.Generator().manual_seed(0)
    wide = torch.randn(2, 8, 64, generator=generator)
    cache = torch.randn(4, 16, 2, 32, generator=generator)
    table = torch.tensor([[1, 2], [3, 0]], dtype=torch.int32)
    lens = torch.tensor([20, 7], dtype=torch.int32)
    starts = torch.tensor([0, 1, 2], dtype=torch.int32)
    for q in (wide[:, ::2, 16:48], wide[:, :4, ::2]):
        strided = gqa_decode(
            q, cache, cache, table, lens, lens, starts, max_query_len=1, sm_scale=1.0
        )
        plain = gqa_decode(
            q.contiguous(), cache, cache, table, lens, lens, starts, max_query_len=1, sm_scale=1.0
        )
        assert torch.equal(strided[0], plain[0])
        assert torch.equal(strided[1], plain[1])
