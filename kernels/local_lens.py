"""Local lengths: how many tokens of each sequence one rank holds."""

import torch
import triton
import triton.language as tl

from .shard import local_length


@triton.jit
def _local_lens_kernel(
    seq_lens_ptr, out_ptr, count, dcp_rank, dcp_world_size, interleave, BLOCK: tl.constexpr
):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = index < count
    length = tl.load(seq_lens_ptr + index, mask=mask, other=0)
    tl.store(out_ptr + index, local_length(length, dcp_rank, dcp_world_size, interleave), mask=mask)


def local_seq_lens(
    seq_lens: torch.Tensor, *, dcp_rank: int, dcp_world_size: int, interleave: int
) -> torch.Tensor:
    """Local lengths of one rank.

    seq_lens: [B] int32, global tokens. Returns [B] int32, tokens on `dcp_rank`:
    `(L // (N*I)) * I + clamp(L % (N*I) - r*I, 0, I)`.
    """
    out = torch.empty_like(seq_lens)
    count = seq_lens.numel()
    if count:
        _local_lens_kernel[(triton.cdiv(count, 256),)](
            seq_lens, out, count, dcp_rank, dcp_world_size, interleave, BLOCK=256
        )
    return out
