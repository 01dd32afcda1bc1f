"""Sharding arithmetic on the device against walking over every token."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl
from dcplint.harness.kernels.fp8 import e4m3_to_fp16
from dcplint.harness.kernels.local_lens import local_seq_lens
from dcplint.harness.kernels.shard import global_position

from tests.kernels.reference import owned


@triton.jit
def _positions_kernel(out_ptr, rank, world, interleave, BLOCK: tl.constexpr):
    local = tl.arange(0, BLOCK)
    tl.store(out_ptr + local, global_position(local, rank, world, interleave))


@triton.jit
def _decode_kernel(bits_ptr, out_ptr):
    at = tl.arange(0, 256)
    tl.store(out_ptr + at, e4m3_to_fp16(tl.load(bits_ptr + at)))


@pytest.mark.parametrize("world", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("interleave", [1, 2, 5, 16])
def test_local_lengths_and_positions(world: int, interleave: int) -> None:
    lens = torch.arange(0, 300, dtype=torch.int32)
    for rank in range(world):
        got = local_seq_lens(lens, dcp_rank=rank, dcp_world_size=world, interleave=interleave)
        assert got.tolist() == [len(owned(n, rank, world, interleave)) for n in range(300)]
        positions = torch.empty(64, dtype=torch.int32)
        _positions_kernel[(1,)](positions, rank, world, interleave, BLOCK=64)
        assert positions.tolist() == owned(64 * world + 64, rank, world, interleave)[:64]


def test_no_sequences() -> None:
    empty = torch.empty(0, dtype=torch.int32)
    assert local_seq_lens(empty, dcp_rank=0, dcp_world_size=2, interleave=1).shape == (0,)


def test_every_e4m3_byte() -> None:
    """The hand-made conversion agrees with torch's on all 256 bytes, NaN included."""
    bits = torch.arange(256, dtype=torch.int32).to(torch.uint8)
    out = torch.empty(256, dtype=torch.float16)
    _decode_kernel[(1,)](bits, out)
    torch.testing.assert_close(
        out, bits.view(torch.float8_e4m3fn).half(), rtol=0, atol=0, equal_nan=True
    )
