"""The oracle, the workload and the page layout against a reference written token by token."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from dcplint.harness.model import Batch, Geometry, Topology
from dcplint.harness.oracle import attention, needed_tokens
from dcplint.harness.shard import Shard
from dcplint.harness.workload import make_workload, pages_needed, place
from tests.kernels.reference import Rules, attend, owned

BATCH = Batch((37, 9, 2), (3, 9, 1))
GEOMETRIES = {
    "plain": Geometry(),
    "features": Geometry(window=5, soft_cap=2.0, sinks=True),
    "mla": Geometry(num_kv_heads=1, head_dim=48, v_head_dim=32, kv_lora_rank=32),
}


@pytest.mark.parametrize("name", list(GEOMETRIES))
@pytest.mark.parametrize("rank", [None, 0, 2])
def test_attention(name: str, rank: int | None) -> None:
    geometry = GEOMETRIES[name]
    topology = Topology(4, 3)
    shard = None if rank is None else Shard(rank, topology)
    workload = make_workload(BATCH, geometry, torch.float32, "cpu", seed=3)
    rules = Rules(geometry.sm_scale, geometry.window, geometry.soft_cap)
    for counted in (False, True):
        out, lse = attention(workload, geometry, shard, counted)
        row = 0
        for b, (length, new) in enumerate(zip(BATCH.seq_lens, BATCH.query_lens, strict=True)):
            mine = list(range(length)) if rank is None else owned(length, rank, 4, 3)
            for i in range(new):
                for head in range(geometry.num_heads):
                    kv = head // (geometry.num_heads // geometry.num_kv_heads)
                    use_sink = counted and workload.sinks is not None
                    expected, expected_lse = attend(
                        workload.query[row, head],
                        workload.keys[b][mine, kv],
                        workload.values[b][mine, kv],
                        mine,
                        length - new + i,
                        rules,
                        float(workload.sinks[head]) if use_sink else None,
                    )
                    assert (out[row, head] - expected).abs().max() < 1e-12
                    assert lse[row, head].item() == pytest.approx(expected_lse, abs=1e-12)
                row += 1


def test_a_workload_depends_on_the_seed_alone() -> None:
    one, same, other = (
        make_workload(BATCH, Geometry(), torch.bfloat16, "cpu", seed=s) for s in (1, 1, 2)
    )
    assert torch.equal(one.query, same.query)
    assert torch.equal(one.keys[0], same.keys[0])
    assert not torch.equal(one.query, other.query)


@pytest.mark.parametrize("interleave", [1, 3, 16])
def test_every_token_has_one_slot_on_one_rank(interleave: int) -> None:
    geometry, topology = Geometry(page_size=4), Topology(4, interleave)
    batch = dataclasses.replace(BATCH, seq_lens=(133, 70, 1), query_lens=(1, 1, 1), padding=1)
    layouts = []
    for rank in range(4):
        shard = Shard(rank, topology)
        pages = pages_needed((batch,), geometry, shard)
        layouts.append(place(batch, geometry, shard, pages, seed=1))
        used = torch.cat(layouts[-1].slots)
        used = used[used >= 0]
        assert used.unique().numel() == used.numel()
        assert int(used.max()) < pages * geometry.page_size
        assert int(used.min()) >= 2 * geometry.page_size  # trap pages hold nothing
        for row, length in enumerate(batch.seq_lens):
            held = owned(length, rank, 4, interleave)
            slots = layouts[-1].slots[row][held]
            local = torch.arange(len(held))
            page = layouts[-1].block_table[row, local // 4].long()
            assert torch.equal(slots, page * 4 + local % 4)
        assert torch.equal(layouts[0].block_table, layouts[-1].block_table)
    for row in range(3):
        holders = sum((layout.slots[row] >= 0).int() for layout in layouts)
        assert torch.equal(holders, torch.ones_like(holders))


def test_needed_tokens_are_those_some_query_sees() -> None:
    workload = make_workload(BATCH, Geometry(window=5), torch.float32, "cpu", seed=1)
    first, second, third = needed_tokens(workload, Geometry(window=5))
    assert first.tolist() == [i >= 30 for i in range(37)]
    assert second.all() and third.all()
    assert all(n.all() for n in needed_tokens(workload, Geometry()))
