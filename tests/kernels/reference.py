"""Attention over one rank's tokens, written out token by token in float64."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Rules:
    """What a query may see and how its scores are formed."""

    sm_scale: float
    window: int = 0
    soft_cap: float = 0.0


def attend(
    q: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    positions: list[int],
    query_position: int,
    rules: Rules,
    sink: float | None = None,
) -> tuple[torch.Tensor, float]:
    """One query row [D] over keys [n, D] and values [n, Dv] at global `positions`."""
    kept = [
        i
        for i, position in enumerate(positions)
        if position <= query_position
        and not (rules.window and position <= query_position - rules.window)
    ]
    scores = keys[kept].double() @ q.double() * rules.sm_scale
    if rules.soft_cap:
        scores = rules.soft_cap * torch.tanh(scores / rules.soft_cap)
    logits = scores if sink is None else torch.cat([scores, scores.new_tensor([sink])])
    if not logits.numel():
        return torch.zeros(values.shape[1], dtype=torch.float64), -math.inf
    weights = torch.softmax(logits, 0)[: len(kept)]
    return weights @ values[kept].double(), torch.logsumexp(logits, 0).item()


def owned(length: int, rank: int, world: int, interleave: int) -> list[int]:
    """Global positions of the tokens on `rank`, in local order, by walking over all tokens."""
    return [i for i in range(length) if (i // interleave) % world == rank]


def paged(
    rows: list[torch.Tensor], page_size: int, poison: float, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Put each sequence's rows [n, ...] into randomly placed pages; all else is `poison`.

    Page 0 is never handed out: unused block table entries point there.
    """
    counts = [math.ceil(len(r) / page_size) for r in rows]
    order = (torch.randperm(sum(counts) + 2, generator=generator) + 1).tolist()
    cache = torch.full((len(order) + 1, page_size, *rows[0].shape[1:]), poison).to(rows[0].dtype)
    table = torch.zeros(len(rows), max([*counts, 1]) + 1, dtype=torch.int32)
    for b, row in enumerate(rows):
        for p in range(counts[b]):
            page = order.pop()
            table[b, p] = page
            part = row[p * page_size : (p + 1) * page_size]
            cache[page, : len(part)] = part
    return cache, table
