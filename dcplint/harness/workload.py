"""What a probe's batch consists of: tokens, queries, and where each rank's pages lie."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from dcplint.harness.contract import CommonAttentionMetadata
from dcplint.harness.model import Batch, Geometry
from dcplint.harness.shard import Shard

# Pages that belong to nobody. Unused block table entries point at the first; a real page number
# there would let a stray read go unnoticed, an invalid one would crash instead of being measured.
_TRAP_PAGES = 2


@dataclass(frozen=True, slots=True)
class Workload:
    """The tokens of one batch, the same on every rank.

    query: [T, H, D], keys[b]: [L_b, Hkv, D], values[b]: [L_b, Hkv, Dv], all rounded to the dtype
    under test. Padding requests have one query token each, at the end, and no keys.
    """

    batch: Batch
    query: torch.Tensor
    keys: tuple[torch.Tensor, ...]
    values: tuple[torch.Tensor, ...]
    sinks: torch.Tensor | None

    @property
    def num_tokens(self) -> int:
        """Query tokens of real requests."""
        return sum(self.batch.query_lens)


def make_workload(
    batch: Batch, geometry: Geometry, dtype: torch.dtype, device: str, seed: int
) -> Workload:
    """Random tokens of order one, from `seed` alone."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator).to(dtype).to(device)

    kv_heads = geometry.num_kv_heads
    keys = tuple(normal(n, kv_heads, geometry.head_dim) for n in batch.seq_lens)
    if batch.offset:
        keys = tuple((k * 0.1 + 1.0).to(dtype) for k in keys)
    if geometry.fp8:
        keys = tuple(map(_in_e4m3, keys))
    values = (
        tuple(k[..., : geometry.kv_lora_rank] for k in keys)
        if geometry.is_mla
        else tuple(normal(n, kv_heads, geometry.v_head_dim) for n in batch.seq_lens)
    )
    if geometry.fp8:
        values = tuple(map(_in_e4m3, values))
    tokens = sum(batch.query_lens) + batch.padding
    query = normal(tokens, geometry.num_heads, geometry.head_dim)
    query = (query * batch.magnitude + batch.offset).to(dtype)
    sinks = torch.randn(geometry.num_heads, generator=generator).to(device)
    return Workload(batch, query, keys, values, sinks if geometry.sinks else None)


def _in_e4m3(values: torch.Tensor) -> torch.Tensor:
    """Rounded to what float8_e4m3fn holds."""
    return values.to(torch.float8_e4m3fn).to(values.dtype)


@dataclass(frozen=True, slots=True)
class Layout:
    """Where one rank keeps its part of a batch.

    block_table: [B, max_pages] int32. slots[b]: [L_b] int64 for every token, -1 for one of
    another rank. num_pages: pages to allocate, trap pages included.
    """

    block_table: torch.Tensor
    slots: tuple[torch.Tensor, ...]
    num_pages: int


def place(batch: Batch, geometry: Geometry, shard: Shard, num_pages: int, seed: int) -> Layout:
    """Hand out pages in random order, never a trap page.

    A page number stands for the same tokens on every rank, as engines have it: `page_size` local
    tokens of each. So the random order is that of `seed`, not of the rank.
    """
    rows = len(batch.seq_lens) + batch.padding
    counts = [_pages_of(n, geometry, shard) for n in batch.seq_lens]
    generator = torch.Generator().manual_seed(seed)
    order = (torch.randperm(num_pages - _TRAP_PAGES, generator=generator) + _TRAP_PAGES).tolist()
    # As wide as if nothing were sharded, so that a read by global length stays inside the table.
    width = max([-(-n // geometry.page_size) for n in batch.seq_lens]) + 1
    table = torch.zeros(rows, width, dtype=torch.int32)
    slots = []
    for row, length in enumerate(batch.seq_lens):
        pages = [order.pop() for _ in range(counts[row])]
        table[row, : len(pages)] = torch.tensor(pages, dtype=torch.int32)
        mine = torch.full((length,), -1, dtype=torch.int64)
        for local, position in enumerate(shard.positions(length)):
            page, offset = divmod(local, geometry.page_size)
            mine[position] = pages[page] * geometry.page_size + offset
        slots.append(mine)
    return Layout(table, tuple(slots), num_pages)


def pages_needed(batches: tuple[Batch, ...], geometry: Geometry, shard: Shard) -> int:
    """Pages for the largest batch, trap pages included; the same on every rank."""
    largest = max(sum(_pages_of(n, geometry, shard) for n in b.seq_lens) for b in batches)
    return largest + _TRAP_PAGES


def _pages_of(length: int, geometry: Geometry, shard: Shard) -> int:
    topology = shard.topology
    held = max(Shard(r, topology).local_length(length) for r in range(topology.world_size))
    return -(-held // geometry.page_size)


def common_metadata(
    workload: Workload, layout: Layout, shard: Shard, sharded: bool
) -> CommonAttentionMetadata:
    """What the runner hands to the builder. `sharded`: whether DCP is on for this layer."""
    batch = workload.batch
    device = workload.query.device
    query_lens = [*batch.query_lens, *[1] * batch.padding]
    seq_lens = [*batch.seq_lens, *[0] * batch.padding]
    positions = [
        n - q + i for n, q in zip(batch.seq_lens, batch.query_lens, strict=True) for i in range(q)
    ]
    local = [shard.local_length(n) for n in seq_lens]

    def ints(values: list[int], dtype: torch.dtype = torch.int32) -> torch.Tensor:
        return torch.tensor(values, dtype=dtype, device=device)

    rows = [b for b, q in enumerate(batch.query_lens) for _ in range(q)]
    return CommonAttentionMetadata(
        query_start_loc=ints([0, *query_lens]).cumsum(0).to(torch.int32),
        seq_lens=ints(seq_lens),
        block_table=layout.block_table.to(device),
        positions=ints(positions, torch.int64),
        request_ids=ints(rows, torch.int64),
        num_reqs=len(batch.seq_lens),
        max_query_len=max([*query_lens, 1]),
        dcp_local_seq_lens=ints(local) if sharded else None,
    )
