"""The right answer, in float64, over whole sequences or over one rank's tokens."""

from __future__ import annotations

import torch

from dcplint.harness.model import Geometry
from dcplint.harness.shard import Shard
from dcplint.harness.workload import Workload


def attention(
    workload: Workload, geometry: Geometry, shard: Shard | None, with_sinks: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Out [T, H, Dv] and natural-log lse [T, H] in float64, for the real query tokens.

    shard: whose tokens count; None for all. A query that sees nothing has output 0 and lse -inf.
    with_sinks: whether the sinks' weight is counted in.
    """
    outs, lses = [], []
    group = geometry.num_heads // geometry.num_kv_heads
    start = 0
    for row, (length, query_len) in enumerate(
        zip(workload.batch.seq_lens, workload.batch.query_lens, strict=True)
    ):
        held = torch.tensor(
            range(length) if shard is None else shard.positions(length), dtype=torch.int64
        )
        query = workload.query[start : start + query_len].double().cpu()
        keys = workload.keys[row].cpu()[held].double().repeat_interleave(group, dim=1)
        values = workload.values[row].cpu()[held].double().repeat_interleave(group, dim=1)
        scores = torch.einsum("qhd,khd->qhk", query, keys) * geometry.sm_scale
        if geometry.soft_cap:
            scores = geometry.soft_cap * torch.tanh(scores / geometry.soft_cap)
        at = torch.arange(length - query_len, length)[:, None]
        seen = held[None, :] <= at
        if geometry.window:
            seen &= held[None, :] > at - geometry.window
        scores = scores.masked_fill(~seen[:, None, :], -torch.inf)
        logits = scores
        if with_sinks and workload.sinks is not None:
            column = workload.sinks.double().cpu()[None, :, None].expand(query_len, -1, 1)
            logits = torch.cat([scores, column], dim=-1)
        lse = torch.logsumexp(logits, dim=-1)
        anchor = torch.where(lse.isfinite(), lse, 0.0)
        weights = torch.exp(scores - anchor[..., None])
        outs.append(torch.einsum("qhk,khd->qhd", weights, values))
        lses.append(lse)
        start += query_len
    return torch.cat(outs), torch.cat(lses)


def needed_tokens(workload: Workload, geometry: Geometry) -> list[torch.Tensor]:
    """Per request, which global positions some query of the batch may see: [L_b] bool."""
    needed = []
    for length, query_len in zip(workload.batch.seq_lens, workload.batch.query_lens, strict=True):
        first = length - query_len - geometry.window + 1 if geometry.window else 0
        needed.append(torch.arange(length) >= first)
    return needed
