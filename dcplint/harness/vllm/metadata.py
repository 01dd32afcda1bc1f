"""The engine's batch metadata, made of the harness's as a runner makes it."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch

from dcplint.harness.contract import CommonAttentionMetadata
from dcplint.harness.driver import Placement
from dcplint.harness.vllm import engine


def engine_metadata(common: CommonAttentionMetadata, placement: Placement, page_size: int) -> Any:
    """`CommonAttentionMetadata` of the engine, with the fields that this release has.

    Padding requests have no query token of their own, as in a captured graph: the tokens beyond the
    last real one belong to nobody and go to slot -1.
    """
    cls = engine.find(
        "vllm.v1.attention.backend:CommonAttentionMetadata",
        "vllm.v1.attention.backends.utils:CommonAttentionMetadata",
    )
    total = int(common.query_start_loc[common.num_reqs])
    tokens = int(common.query_start_loc[-1])
    query_start_loc = common.query_start_loc.clamp(max=total)
    seq_lens = common.seq_lens.clone()
    on_cpu = query_start_loc.cpu()
    positions = torch.zeros(tokens, dtype=torch.int64, device=seq_lens.device)
    positions[:total] = common.positions
    computed = (seq_lens.cpu() - on_cpu.diff()).clamp(min=0)
    local = common.dcp_local_seq_lens
    local = None if local is None else local.clone()
    offered = {
        "query_start_loc": query_start_loc,
        "query_start_loc_cpu": on_cpu,
        "seq_lens": seq_lens,
        "seq_lens_cpu": seq_lens.cpu(),
        "_seq_lens_cpu": seq_lens.cpu(),
        "seq_lens_cpu_upper_bound": seq_lens.cpu(),
        "num_computed_tokens_cpu": computed,
        "_num_computed_tokens_cpu": computed,
        "num_reqs": int(seq_lens.shape[0]),
        "num_actual_tokens": tokens,
        "max_query_len": common.max_query_len,
        "max_seq_len": int(seq_lens.max()),
        "block_table_tensor": common.block_table,
        "slot_mapping": slot_mapping(common, placement, page_size, tokens),
        "causal": True,
        "dcp_local_seq_lens": local,
        "dcp_local_seq_lens_cpu": None if local is None else local.cpu(),
        "dcp_local_seq_lens_cpu_upper_bound": None if local is None else local.cpu(),
        "positions": positions,
        "is_prefilling": torch.zeros(int(seq_lens.shape[0]), dtype=torch.bool),
    }
    names = {f.name for f in dataclasses.fields(cls) if f.init}
    return cls(**{name: value for name, value in offered.items() if name in names})


def slot_mapping(
    common: CommonAttentionMetadata, placement: Placement, page_size: int, tokens: int
) -> torch.Tensor:
    """Where a runner has each new token stored on this rank: [tokens] int64, -1 for elsewhere."""
    interleave, world_size = placement.interleave, placement.dcp_world_size
    chunk = common.positions // interleave
    local = chunk // world_size * interleave + common.positions % interleave
    page = common.block_table[common.request_ids, local // page_size].long()
    slots = torch.where(
        chunk % world_size == placement.dcp_rank, page * page_size + local % page_size, -1
    )
    padded = slots.new_full((tokens,), -1)
    padded[: slots.shape[0]] = slots
    return padded
