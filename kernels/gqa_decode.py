"""Paged GQA/MQA decode over one rank's shard, split along the KV length, with LSE.

Each program takes a tile of query rows that share a KV head (query positions x grouped heads) and
one split of the local KV range; `splits.join_splits` merges the splits. Causal and window bounds
compare global positions, since a rank's local index says nothing about order against other ranks.
"""

import torch
import triton
import triton.language as tl

from .fp8 import e4m3_to_fp16
from .shard import global_position, local_length
from .splits import choose_splits, interpreted_block, join_splits


@triton.jit
def _gqa_split_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
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
    num_kv_heads,
    stride_qt,
    stride_qh,
    stride_kp,
    stride_ks,
    stride_kh,
    stride_vp,
    stride_vs,
    stride_vh,
    stride_bt,
    stride_os,
    stride_ot,
    stride_oh,
    stride_ls,
    stride_lt,
    PAGE_SIZE: tl.constexpr,
    GROUP: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    V_DIM: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_DV: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    CAUSAL: tl.constexpr,
    WINDOW: tl.constexpr,
    SOFT_CAP: tl.constexpr,
    FP8: tl.constexpr,
):
    request = tl.program_id(0)
    kv_head = tl.program_id(1) % num_kv_heads
    tile = tl.program_id(1) // num_kv_heads
    split = tl.program_id(2)

    query_start = tl.load(query_start_ptr + request)
    query_len = tl.load(query_start_ptr + request + 1) - query_start
    if tile * BLOCK_M >= query_len * GROUP:
        return
    local_len = tl.load(local_lens_ptr + request)
    seq_len = tl.load(seq_lens_ptr + request)

    row = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    row_mask = row < query_len * GROUP
    token = (query_start + row // GROUP).to(tl.int64)
    head = kv_head * GROUP + row % GROUP
    position = seq_len - query_len + row // GROUP
    dim = tl.arange(0, BLOCK_D)
    dim_v = tl.arange(0, BLOCK_DV)
    q = tl.load(
        q_ptr + token[:, None] * stride_qt + head[:, None] * stride_qh + dim[None, :],
        mask=row_mask[:, None] & (dim < HEAD_DIM)[None, :],
        other=0.0,
    )

    first = 0
    if WINDOW:
        # Nothing before the window of the tile's first row can count.
        reach = seq_len - query_len + tile * BLOCK_M // GROUP - window + 1
        first = local_length(tl.maximum(reach, 0), dcp_rank, dcp_world_size, interleave)
        first = first // BLOCK_N * BLOCK_N
    split_len = tl.cdiv(tl.cdiv(tl.maximum(local_len - first, 0), BLOCK_N), num_splits) * BLOCK_N
    start = first + split * split_len
    stop = tl.minimum(start + split_len, local_len)

    top = tl.full([BLOCK_M], -float("inf"), tl.float32)
    weight_sum = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, BLOCK_DV], tl.float32)
    for block in range(start, stop, BLOCK_N):
        local = block + tl.arange(0, BLOCK_N)
        here = local < stop
        page = tl.load(
            block_table_ptr + request.to(tl.int64) * stride_bt + local // PAGE_SIZE,
            mask=here,
            other=0,
        ).to(tl.int64)
        slot = local % PAGE_SIZE
        k = tl.load(
            k_ptr
            + (page * stride_kp + slot * stride_ks)[None, :]
            + kv_head * stride_kh
            + dim[:, None],
            mask=here[None, :] & (dim < HEAD_DIM)[:, None],
            other=0,
        )
        if FP8:
            k = e4m3_to_fp16(k)
        scores = tl.dot(q, k.to(q.dtype), input_precision="ieee") * sm_scale
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
        v = tl.load(
            v_ptr
            + (page * stride_vp + slot * stride_vs)[:, None]
            + kv_head * stride_vh
            + dim_v[None, :],
            mask=here[:, None] & (dim_v < V_DIM)[None, :],
            other=0,
        )
        if FP8:
            v = e4m3_to_fp16(v)
        v = v.to(q.dtype)
        acc = acc * kept[:, None] + tl.dot(weights.to(v.dtype), v, input_precision="ieee")
        weight_sum = weight_sum * kept + tl.sum(weights, axis=1)
        top = new_top

    divisor = tl.where(weight_sum == 0.0, 1.0, weight_sum)
    tl.store(
        out_ptr
        + split * stride_os
        + token[:, None] * stride_ot
        + head[:, None] * stride_oh
        + dim_v[None, :],
        acc / divisor[:, None] * v_scale,
        mask=row_mask[:, None] & (dim_v < V_DIM)[None, :],
    )
    tl.store(
        lse_ptr + split * stride_ls + token * stride_lt + head,
        top + tl.log(divisor),
        mask=row_mask,
    )


def gqa_decode(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    block_table: torch.Tensor,
    local_seq_lens: torch.Tensor,
    seq_lens: torch.Tensor,
    query_start_loc: torch.Tensor,
    *,
    max_query_len: int,
    sm_scale: float,
    dcp_rank: int = 0,
    dcp_world_size: int = 1,
    interleave: int = 1,
    window: int = 0,
    soft_cap: float = 0.0,
    sinks: torch.Tensor | None = None,
    k_scale: float = 1.0,
    v_scale: float = 1.0,
    num_splits: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention of `q` over this rank's shard.

    q: [T, H, D] fp16, bf16 or fp32, the queries of all requests one after another.
    k_cache: [P, page_size, Hkv, D], v_cache: [P, page_size, Hkv, Dv], of q's dtype or
    float8_e4m3fn (`k_scale`, `v_scale` then turn stored values into real ones).
    block_table: [B, max_pages] int32, page of each local page index; entries past the local
    length are not read. local_seq_lens: [B] int32, tokens on this rank, new ones included.
    seq_lens: [B] int32, global tokens, new ones included. query_start_loc: [B+1] int32.
    window: how many global positions a query sees, itself included; 0 for all.
    soft_cap: scores become `soft_cap * tanh(score / soft_cap)`; 0 for none.
    sinks: [H] fp32 natural-log logits, counted on rank 0 only.

    Returns out [T, H, Dv] of q's dtype and lse [T, H] fp32, natural log; 0 and -inf for a query
    that sees nothing here.
    """
    if q.stride(-1) != 1:
        q = q.contiguous()
    tokens, heads, head_dim = q.shape
    _, page_size, num_kv_heads, v_dim = v_cache.shape
    group = heads // num_kv_heads
    fp8 = k_cache.dtype == torch.float8_e4m3fn
    if fp8:
        k_cache, v_cache = k_cache.view(torch.uint8), v_cache.view(torch.uint8)
    wide = q.dtype == torch.float32
    block_m = 16 if wide or max_query_len * group <= 16 else 32
    block_n = 16 if wide else 32 if fp8 or head_dim > 128 else 64
    if not q.is_cuda:
        block_m, block_n = interpreted_block(max_query_len * group)
    requests = block_table.shape[0]
    tiles = triton.cdiv(max_query_len * group, block_m)
    splits = num_splits or choose_splits(
        q, requests * num_kv_heads * tiles, block_table.shape[1] * page_size, block_n
    )
    partial_out = torch.empty((splits, tokens, heads, v_dim), dtype=torch.float32, device=q.device)
    partial_lse = torch.empty((splits, tokens, heads), dtype=torch.float32, device=q.device)
    if tokens:
        _gqa_split_kernel[(requests, num_kv_heads * tiles, splits)](
            q,
            k_cache,
            v_cache,
            block_table,
            local_seq_lens,
            seq_lens,
            query_start_loc,
            partial_out,
            partial_lse,
            sm_scale * k_scale,
            v_scale,
            soft_cap,
            window,
            dcp_rank,
            dcp_world_size,
            interleave,
            splits,
            num_kv_heads,
            *q.stride()[:2],
            *k_cache.stride()[:3],
            *v_cache.stride()[:3],
            block_table.stride(0),
            *partial_out.stride()[:3],
            *partial_lse.stride()[:2],
            PAGE_SIZE=page_size,
            GROUP=group,
            HEAD_DIM=head_dim,
            V_DIM=v_dim,
            BLOCK_D=max(16, triton.next_power_of_2(head_dim)),
            BLOCK_DV=max(16, triton.next_power_of_2(v_dim)),
            BLOCK_M=block_m,
            BLOCK_N=block_n,
            CAUSAL=max_query_len > 1,
            WINDOW=window > 0,
            SOFT_CAP=soft_cap > 0.0,
            FP8=fp8,
            num_warps=8 if wide else 4,
            num_stages=2,
        )
    return join_splits(partial_out, partial_lse, sinks, dcp_rank, q.dtype)
