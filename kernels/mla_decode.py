"""Paged MLA decode over one rank's shard, split along the KV length, with LSE.

The cache holds one latent row per token: `kv_lora_rank` values that serve as key and as value,
then `rope_dim` values that are key only (512 + 64 in the models that introduced it). A program
takes a tile of query rows (query positions x heads) and one split of the local KV range.
"""

import torch
import triton
import triton.language as tl

from .fp8 import e4m3_to_fp16
from .shard import global_position, local_length
from .splits import choose_splits, interpreted_block, join_splits


@triton.jit
def _mla_split_kernel(
    q_ptr,
    kv_ptr,
    block_table_ptr,
    local_lens_ptr,
    seq_lens_ptr,
    query_start_ptr,
    out_ptr,
    lse_ptr,
    sm_scale,
    v_scale,
    soft_cap,
    window,
    dcp_rank,
    dcp_world_size,
    interleave,
    num_splits,
    num_heads,
    stride_qt,
    stride_qh,
    stride_kp,
    stride_ks,
    stride_bt,
    stride_os,
    stride_ot,
    stride_oh,
    stride_ls,
    stride_lt,
    PAGE_SIZE: tl.constexpr,
    LORA_RANK: tl.constexpr,
    ROPE_DIM: tl.constexpr,
    BLOCK_C: tl.constexpr,
    BLOCK_R: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    CAUSAL: tl.constexpr,
    WINDOW: tl.constexpr,
    SOFT_CAP: tl.constexpr,
    FP8: tl.constexpr,
):
    request = tl.program_id(0)
    tile = tl.program_id(1)
    split = tl.program_id(2)

    query_start = tl.load(query_start_ptr + request)
    query_len = tl.load(query_start_ptr + request + 1) - query_start
    if tile * BLOCK_M >= query_len * num_heads:
        return
    local_len = tl.load(local_lens_ptr + request)
    seq_len = tl.load(seq_lens_ptr + request)

    row = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    row_mask = row < query_len * num_heads
    token = (query_start + row // num_heads).to(tl.int64)
    head = row % num_heads
    position = seq_len - query_len + row // num_heads
    dim_c = tl.arange(0, BLOCK_C)
    dim_r = tl.arange(0, BLOCK_R)
    q_row = q_ptr + token * stride_qt + head * stride_qh
    q_c = tl.load(
        q_row[:, None] + dim_c[None, :],
        mask=row_mask[:, None] & (dim_c < LORA_RANK)[None, :],
        other=0.0,
    )
    q_r = tl.load(
        q_row[:, None] + LORA_RANK + dim_r[None, :],
        mask=row_mask[:, None] & (dim_r < ROPE_DIM)[None, :],
        other=0.0,
    )

    first = 0
    if WINDOW:
        # Nothing before the window of the tile's first row can count.
        reach = seq_len - query_len + tile * BLOCK_M // num_heads - window + 1
        first = local_length(tl.maximum(reach, 0), dcp_rank, dcp_world_size, interleave)
        first = first // BLOCK_N * BLOCK_N
    split_len = tl.cdiv(tl.cdiv(tl.maximum(local_len - first, 0), BLOCK_N), num_splits) * BLOCK_N
    start = first + split * split_len
    stop = tl.minimum(start + split_len, local_len)

    top = tl.full([BLOCK_M], -float("inf"), tl.float32)
    weight_sum = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, BLOCK_C], tl.float32)
    for block in range(start, stop, BLOCK_N):
        local = block + tl.arange(0, BLOCK_N)
        here = local < stop
        page = tl.load(
            block_table_ptr + request.to(tl.int64) * stride_bt + local // PAGE_SIZE,
            mask=here,
            other=0,
        ).to(tl.int64)
        kv_row = kv_ptr + page * stride_kp + (local % PAGE_SIZE) * stride_ks
        latent = tl.load(
            kv_row[:, None] + dim_c[None, :],
            mask=here[:, None] & (dim_c < LORA_RANK)[None, :],
            other=0,
        )
        rope = tl.load(
            kv_row[None, :] + LORA_RANK + dim_r[:, None],
            mask=here[None, :] & (dim_r < ROPE_DIM)[:, None],
            other=0,
        )
        if FP8:
            latent = e4m3_to_fp16(latent)
            rope = e4m3_to_fp16(rope)
        latent = latent.to(q_c.dtype)
        scores = tl.dot(q_c, tl.trans(latent), input_precision="ieee")
        scores = tl.dot(q_r, rope.to(q_r.dtype), scores, input_precision="ieee") * sm_scale
        if SOFT_CAP:
            scores = soft_cap * (
                2.0 / (1.0 + tl.exp2(scores * (-2.8853900817779268 / soft_cap))) - 1.0
            )
        keep = here[None, :] & row_mask[:, None]
        if CAUSAL:
            where_from = global_position(local, dcp_rank, dcp_world_size, interleave)
            keep = keep & (where_from[None, :] <= position[:, None])
        if WINDOW:
            where_from = global_position(local, dcp_rank, dcp_world_size, interleave)
            keep = keep & (where_from[None, :] > position[:, None] - window)
        scores = tl.where(keep, scores, -float("inf"))

        new_top = tl.maximum(top, tl.max(scores, axis=1))
        anchor = tl.where(new_top == -float("inf"), 0.0, new_top)
        weights = tl.exp2((scores - anchor[:, None]) * 1.4426950408889634)
        kept = tl.exp2((top - anchor) * 1.4426950408889634)
        acc = acc * kept[:, None] + tl.dot(weights.to(latent.dtype), latent, input_precision="ieee")
        weight_sum = weight_sum * kept + tl.sum(weights, axis=1)
        top = new_top

    divisor = tl.where(weight_sum == 0.0, 1.0, weight_sum)
    tl.store(
        out_ptr
        + split * stride_os
        + token[:, None] * stride_ot
        + head[:, None] * stride_oh
        + dim_c[None, :],
        acc / divisor[:, None] * v_scale,
        mask=row_mask[:, None] & (dim_c < LORA_RANK)[None, :],
    )
    tl.store(
        lse_ptr + split * stride_ls + token * stride_lt + head,
        top + tl.log(divisor),
        mask=row_mask,
    )


def mla_decode(
    q: torch.Tensor,
    kv_cache: torch.Tensor,
    block_table: torch.Tensor,
    local_seq_lens: torch.Tensor,
    seq_lens: torch.Tensor,
    query_start_loc: torch.Tensor,
    *,
    kv_lora_rank: int,
    max_query_len: int,
    sm_scale: float,
    dcp_rank: int = 0,
    dcp_world_size: int = 1,
    interleave: int = 1,
    window: int = 0,
    soft_cap: float = 0.0,
    sinks: torch.Tensor | None = None,
    kv_scale: float = 1.0,
    num_splits: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention of `q` over this rank's shard of the latent cache.

    q: [T, H, C + R] fp16, bf16 or fp32, the absorbed queries of all requests one after another,
    H after any gather over ranks. kv_cache: [P, page_size, C + R] of q's dtype or float8_e4m3fn
    (`kv_scale` turns stored values into real ones); the first C = `kv_lora_rank` columns are the
    values. Lengths, block table, window, soft cap and sinks as in `gqa_decode.gqa_decode`.

    Returns out [T, H, C] of q's dtype and lse [T, H] fp32, natural log; 0 and -inf for a query
    that sees nothing here.
    """
    if q.stride(-1) != 1:
        q = q.contiguous()
    tokens, heads, dim = q.shape
    page_size = kv_cache.shape[1]
    fp8 = kv_cache.dtype == torch.float8_e4m3fn
    if fp8:
        kv_cache = kv_cache.view(torch.uint8)
    block_m = 16
    wide = q.dtype == torch.float32
    block_n = 16 if wide else 32
    if not q.is_cuda:
        block_m, block_n = interpreted_block(max_query_len * heads)
    # Decoding fp8 takes registers: more threads on NVIDIA; AMD's waves have twice the registers,
    # but only while there are no more than four.
    num_warps = 8 if fp8 and torch.version.hip is None else 4
    requests = block_table.shape[0]
    tiles = triton.cdiv(max_query_len * heads, block_m)
    splits = num_splits or choose_splits(
        q, requests * tiles, block_table.shape[1] * page_size, block_n
    )
    partial_out = torch.empty(
        (splits, tokens, heads, kv_lora_rank), dtype=torch.float32, device=q.device
    )
    partial_lse = torch.empty((splits, tokens, heads), dtype=torch.float32, device=q.device)
    if tokens:
        _mla_split_kernel[(requests, tiles, splits)](
            q,
            kv_cache,
            block_table,
            local_seq_lens,
            seq_lens,
            query_start_loc,
            partial_out,
            partial_lse,
            sm_scale * kv_scale,
            kv_scale,
            soft_cap,
            window,
            dcp_rank,
            dcp_world_size,
            interleave,
            splits,
            heads,
            *q.stride()[:2],
            *kv_cache.stride()[:2],
            block_table.stride(0),
            *partial_out.stride()[:3],
            *partial_lse.stride()[:2],
            PAGE_SIZE=page_size,
            LORA_RANK=kv_lora_rank,
            ROPE_DIM=dim - kv_lora_rank,
            BLOCK_C=max(16, triton.next_power_of_2(kv_lora_rank)),
            BLOCK_R=max(16, triton.next_power_of_2(dim - kv_lora_rank)),
            BLOCK_M=block_m,
            BLOCK_N=block_n,
            CAUSAL=max_query_len > 1,
            WINDOW=window > 0,
            SOFT_CAP=soft_cap > 0.0,
            FP8=fp8,
            num_warps=num_warps,
            num_stages=1 if fp8 else 2,
        )
    return join_splits(partial_out, partial_lse, sinks, dcp_rank, q.dtype)
