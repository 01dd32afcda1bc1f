"""Merging partial attention outputs by their LSE.

`out = sum_r out_r * exp(lse_r - lse)`, `lse = log sum_r exp(lse_r)`. The same kernel joins the KV
splits of one rank and the shards of all ranks. A shard whose LSE is -inf, +inf (the empty-shard
value of some kernels) or NaN has no weight, and whatever its output holds is not read into the
sum: 0 * NaN would be NaN.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _usable(lse):
    """`lse` with NaN and +inf turned into -inf."""
    return tl.where((lse == lse) & (lse != float("inf")), lse, -float("inf"))


@triton.jit
def _weighted(out, weight):
    """`out` [R, D] times `weight` [R], exactly 0 where the weight is."""
    return tl.where(weight[:, None] > 0.0, out * weight[:, None], 0.0)


@triton.jit
def _merge_kernel(
    outs_ptr,
    lses_ptr,
    sinks_ptr,
    out_ptr,
    lse_ptr,
    num_rows,
    num_heads,
    num_shards,
    stride_os,
    stride_ot,
    stride_oh,
    stride_od,
    stride_ls,
    stride_lt,
    stride_lh,
    TO_LOG2: tl.constexpr,
    HAS_SINKS: tl.constexpr,
    V_DIM: tl.constexpr,
    BLOCK_R: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64) * BLOCK_R + tl.arange(0, BLOCK_R)
    row_mask = row < num_rows
    token = row // num_heads
    head = row % num_heads
    dim = tl.arange(0, BLOCK_D)
    mask = row_mask[:, None] & (dim < V_DIM)[None, :]
    outs = outs_ptr + (token * stride_ot + head * stride_oh)[:, None] + (dim * stride_od)[None, :]
    lses = lses_ptr + token * stride_lt + head * stride_lh

    # One pass: rescale the running sum whenever a larger LSE turns up. Differences are formed in
    # the caller's base and only then turned to base 2, so that a large LSE costs no digits.
    top = tl.full([BLOCK_R], -float("inf"), tl.float32)
    if HAS_SINKS:
        sinks = tl.load(sinks_ptr + head, mask=row_mask, other=0.0).to(tl.float32)
        top = sinks * (1.4426950408889634 / TO_LOG2)
    weight_sum = tl.where(top == -float("inf"), 0.0, 1.0)
    acc = tl.zeros([BLOCK_R, BLOCK_D], tl.float32)
    for shard in range(0, num_shards):
        lse = _usable(tl.load(lses + shard * stride_ls, mask=row_mask, other=0.0).to(tl.float32))
        new_top = tl.maximum(top, lse)
        anchor = tl.where(new_top == -float("inf"), 0.0, new_top)
        weight = tl.exp2((lse - anchor) * TO_LOG2)
        kept = tl.exp2((top - anchor) * TO_LOG2)
        out = tl.load(outs + shard * stride_os, mask=mask, other=0.0).to(tl.float32)
        acc = acc * kept[:, None] + _weighted(out, weight)
        weight_sum = weight_sum * kept + weight
        top = new_top

    divisor = tl.where(weight_sum == 0.0, 1.0, weight_sum)
    tl.store(
        out_ptr + row[:, None] * V_DIM + dim[None, :],
        (acc / divisor[:, None]).to(out_ptr.dtype.element_ty),
        mask=mask,
    )
    tl.store(lse_ptr + row, top + tl.log2(divisor) / TO_LOG2, mask=row_mask)


@triton.jit
def _correct_kernel(
    out_ptr,
    lses_ptr,
    result_ptr,
    lse_ptr,
    dcp_rank,
    num_rows,
    num_heads,
    num_shards,
    stride_ot,
    stride_oh,
    stride_od,
    stride_ls,
    stride_lt,
    stride_lh,
    TO_LOG2: tl.constexpr,
    V_DIM: tl.constexpr,
    BLOCK_R: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64) * BLOCK_R + tl.arange(0, BLOCK_R)
    row_mask = row < num_rows
    token = row // num_heads
    head = row % num_heads
    dim = tl.arange(0, BLOCK_D)
    mask = row_mask[:, None] & (dim < V_DIM)[None, :]
    lses = lses_ptr + token * stride_lt + head * stride_lh

    top = tl.full([BLOCK_R], -float("inf"), tl.float32)
    weight_sum = tl.zeros([BLOCK_R], tl.float32)
    for shard in range(0, num_shards):
        lse = _usable(tl.load(lses + shard * stride_ls, mask=row_mask, other=0.0).to(tl.float32))
        new_top = tl.maximum(top, lse)
        anchor = tl.where(new_top == -float("inf"), 0.0, new_top)
        kept = tl.exp2((top - anchor) * TO_LOG2)
        weight_sum = weight_sum * kept + tl.exp2((lse - anchor) * TO_LOG2)
        top = new_top

    divisor = tl.where(weight_sum == 0.0, 1.0, weight_sum)
    anchor = tl.where(top == -float("inf"), 0.0, top)
    mine = _usable(tl.load(lses + dcp_rank * stride_ls, mask=row_mask, other=0.0).to(tl.float32))
    weight = tl.exp2((mine - anchor) * TO_LOG2) / divisor
    out = tl.load(
        out_ptr + (token * stride_ot + head * stride_oh)[:, None] + (dim * stride_od)[None, :],
        mask=mask,
        other=0.0,
    )
    tl.store(
        result_ptr + row[:, None] * V_DIM + dim[None, :],
        _weighted(out.to(tl.float32), weight),
        mask=mask,
    )
    tl.store(lse_ptr + row, top + tl.log2(divisor) / TO_LOG2, mask=row_mask)


_TO_LOG2 = {"e": 1.4426950408889634, "2": 1.0}


def _rows_per_program(tensor: torch.Tensor, rows: int, block_d: int) -> int:
    """Enough rows for about 2,048 elements on a GPU; the interpreter pays for each program."""
    if tensor.is_cuda:
        return max(1, 2048 // block_d)
    return min(triton.next_power_of_2(rows), max(1, 65536 // block_d))


def merge_shards(
    outs: torch.Tensor,
    lses: torch.Tensor,
    *,
    base: str = "e",
    sinks: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Join partial outputs held on one device.

    outs: [N, T, H, Dv] any float dtype, any strides. lses: [N, T, H], in `base` ("e" or "2").
    sinks: [H] natural-log logits that add weight and no value; pass them in one place only, or
    they are counted more than once. Returns out [T, H, Dv] of `out_dtype` (default: that of
    `outs`) and lse [T, H] fp32 in the same base; 0 and -inf where every shard is empty.
    """
    num_shards, tokens, heads, v_dim = outs.shape
    out = torch.empty((tokens, heads, v_dim), dtype=out_dtype or outs.dtype, device=outs.device)
    lse = torch.empty((tokens, heads), dtype=torch.float32, device=outs.device)
    if tokens:
        block_d = triton.next_power_of_2(v_dim)
        block_r = _rows_per_program(outs, tokens * heads, block_d)
        _merge_kernel[(triton.cdiv(tokens * heads, block_r),)](
            outs,
            lses,
            sinks,
            out,
            lse,
            tokens * heads,
            heads,
            num_shards,
            *outs.stride(),
            *lses.stride(),
            TO_LOG2=_TO_LOG2[base],
            HAS_SINKS=sinks is not None,
            V_DIM=v_dim,
            BLOCK_R=block_r,
            BLOCK_D=block_d,
        )
    return out, lse


def correct_shard(
    out: torch.Tensor, lses: torch.Tensor, dcp_rank: int, *, base: str = "e"
) -> tuple[torch.Tensor, torch.Tensor]:
    """One rank's share of the merged output, given the LSEs of all ranks; sum it over ranks.

    out: [T, H, Dv], this rank's partial output, left untouched. lses: [N, T, H] in `base`.
    Returns the weighted output [T, H, Dv] fp32 and the merged lse [T, H] fp32 in the same base.
    """
    num_shards = lses.shape[0]
    tokens, heads, v_dim = out.shape
    result = torch.empty((tokens, heads, v_dim), dtype=torch.float32, device=out.device)
    lse = torch.empty((tokens, heads), dtype=torch.float32, device=out.device)
    if tokens:
        block_d = triton.next_power_of_2(v_dim)
        block_r = _rows_per_program(out, tokens * heads, block_d)
        _correct_kernel[(triton.cdiv(tokens * heads, block_r),)](
            out,
            lses,
            result,
            lse,
            dcp_rank,
            tokens * heads,
            heads,
            num_shards,
            *out.stride(),
            *lses.stride(),
            TO_LOG2=_TO_LOG2[base],
            V_DIM=v_dim,
            BLOCK_R=block_r,
            BLOCK_D=block_d,
        )
    return result, lse
