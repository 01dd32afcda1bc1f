"""How many KV splits a decode launch uses."""

import torch
import triton

from .lse_merge import merge_shards


def interpreted_block(rows: int) -> tuple[int, int]:
    """Query rows and keys of a program where kernels are interpreted; `rows` is what there is.

    The interpreter pays for operations first, so one program takes all rows of a small batch. Two
    splits of short sequences still have a block of keys each.
    """
    return max(16, min(64, triton.next_power_of_2(rows))), 32


def choose_splits(q: torch.Tensor, programs: int, max_local_len: int, block_n: int) -> int:
    """Splits so that about two waves of programs fill the card, none shorter than a block.

    programs: launch size without splits. max_local_len: an upper bound in local tokens (the block
    table's width will do); nothing is read back from the device.
    """
    if not q.is_cuda:
        return 2
    processors = torch.cuda.get_device_properties(q.device).multi_processor_count
    wanted = triton.cdiv(2 * processors, max(programs, 1))
    return max(1, min(wanted, triton.cdiv(max_local_len, 4 * block_n), 64))


def join_splits(
    partial_out: torch.Tensor,
    partial_lse: torch.Tensor,
    sinks: torch.Tensor | None,
    dcp_rank: int,
    out_dtype: torch.dtype,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Merge the splits of one rank; rank 0 alone adds the sinks, so they count once over ranks."""
    counted = sinks if dcp_rank == 0 else None
    return merge_shards(partial_out, partial_lse, sinks=counted, out_dtype=out_dtype)
