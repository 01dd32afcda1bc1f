"""The merge kernels: bases, empty shards, NaN and infinities, strides."""

from __future__ import annotations

import math

import pytest
import torch
from dcplint.harness.kernels.lse_merge import correct_shard, merge_shards

INF = math.inf


def _reference(
    outs: torch.Tensor, lses: torch.Tensor, base: float, sinks: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    natural = lses.double() * math.log(base)
    usable = natural.isfinite()
    weights = torch.where(usable, natural, -INF).exp()
    total = weights.sum(0)
    if sinks is not None:
        total = total + sinks.double().exp()
    values = torch.where(usable[..., None], outs.double(), 0.0)
    out = (values * weights[..., None]).sum(0) / torch.where(total > 0, total, 1.0)[..., None]
    return out, total.log() / math.log(base)


@pytest.mark.parametrize("base", ["e", "2"])
@pytest.mark.parametrize("sinks", [False, True])
@pytest.mark.parametrize("shards", [1, 3, 4])
def test_merge(base: str, sinks: bool, shards: int) -> None:
    generator = torch.Generator().manual_seed(1)
    outs = torch.randn(shards, 3, 5, 24, generator=generator)
    lses = torch.randn(shards, 3, 5, generator=generator) * 3
    sink_values = torch.randn(5, generator=generator) if sinks else None
    out, lse = merge_shards(outs, lses, base=base, sinks=sink_values)
    expected, expected_lse = _reference(outs, lses, math.e if base == "e" else 2.0, sink_values)
    assert (out - expected).abs().max() < 1e-6
    assert (lse - expected_lse).abs().max() < 2e-6


@pytest.mark.parametrize("marker", [-INF, INF, math.nan])
@pytest.mark.parametrize("garbage", [math.nan, INF, 3.0])
def test_empty_shards_have_no_weight(marker: float, garbage: float) -> None:
    """Whatever stands in for an empty shard, and whatever its output row holds."""
    generator = torch.Generator().manual_seed(1)
    outs = torch.randn(3, 2, 2, 16, generator=generator)
    lses = torch.randn(3, 2, 2, generator=generator)
    outs[1, 0], lses[1, 0] = garbage, marker
    outs[:, 1], lses[:, 1] = garbage, marker
    out, lse = merge_shards(outs, lses)
    expected, expected_lse = _reference(outs[[0, 2]], lses[[0, 2]], math.e)
    assert (out[0] - expected[0]).abs().max() < 1e-6
    assert (lse[0] - expected_lse[0]).abs().max() < 1e-6
    assert torch.equal(out[1], torch.zeros(2, 16))
    assert torch.equal(lse[1], torch.full((2,), -INF))

    parts = [correct_shard(outs[r], lses, r) for r in range(3)]
    assert (sum(p[0] for p in parts) - out).abs().max() < 1e-6
    assert all(torch.equal(p[1][1], lse[1]) for p in parts)


@pytest.mark.parametrize("base", ["e", "2"])
def test_corrected_shards_sum_to_the_merge(base: str) -> None:
    generator = torch.Generator().manual_seed(2)
    outs = torch.randn(4, 3, 2, 24, generator=generator).half()
    lses = torch.randn(4, 3, 2, generator=generator)
    before = outs.clone()
    merged, merged_lse = merge_shards(outs, lses, base=base, out_dtype=torch.float32)
    parts = [correct_shard(outs[r], lses, r, base=base) for r in range(4)]
    assert (sum(p[0] for p in parts) - merged).abs().max() < 1e-6
    assert all((p[1] - merged_lse).abs().max() < 1e-6 for p in parts)
    assert torch.equal(outs, before)


@pytest.mark.parametrize("magnitude", [1e3, 6e4, -6e4])
def test_large_lses(magnitude: float) -> None:
    """Weights come from differences, so a common offset costs no digits."""
    generator = torch.Generator().manual_seed(2)
    outs = torch.randn(3, 1, 1, 16, generator=generator)
    lses = (torch.randn(3, 1, 1, generator=generator) * 4).round() / 4
    out, lse = merge_shards(outs, lses + magnitude)
    expected, expected_lse = merge_shards(outs, lses)
    assert (out - expected).abs().max() < 1e-6
    assert (lse - magnitude - expected_lse).abs().max() < abs(magnitude) * 2e-7


def test_strided_inputs() -> None:
    generator = torch.Generator().manual_seed(3)
    outs = torch.randn(3, 16, 2, 8, generator=generator).permute(0, 2, 3, 1)
    lses = torch.randn(2, 8, 6, generator=generator).permute(2, 0, 1)[::2]
    assert not outs.is_contiguous() and not lses.is_contiguous()
    for strided, plain in zip(
        merge_shards(outs, lses), merge_shards(outs.contiguous(), lses.contiguous()), strict=True
    ):
        assert torch.equal(strided, plain)
    strided = correct_shard(outs[1], lses, 1)[0]
    assert torch.equal(strided, correct_shard(outs[1].contiguous(), lses.contiguous(), 1)[0])


def test_no_tokens() -> None:
    out, lse = merge_shards(torch.empty(2, 0, 3, 16), torch.empty(2, 0, 3))
    assert out.shape == (0, 3, 16) and lse.shape == (0, 3)
