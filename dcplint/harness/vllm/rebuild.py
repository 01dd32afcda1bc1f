"""Driving the engine's own functions that rebuild batch metadata, without a model.

A micro-batch split, a proposer's extension, a fast-prefill rebuild take `CommonAttentionMetadata`
and return another. Each gets batches as a runner makes them under DCP; what comes out must still
hold the contract: `dcp_local_seq_lens` there, and the local lengths of the `seq_lens` beside it.
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Callable, Iterator
from typing import Any

import torch

from dcplint.harness.contract import CommonAttentionMetadata
from dcplint.harness.driver import Placement
from dcplint.harness.ledger import Unavailable
from dcplint.harness.model import Batch, Geometry, Topology
from dcplint.harness.ranks import LoneRank
from dcplint.harness.shard import Shard
from dcplint.harness.vllm.metadata import engine_metadata
from dcplint.harness.workload import common_metadata, make_workload, pages_needed, place

_FIELD = "dcp_local_seq_lens"
_BATCHES = (Batch((149, 97, 65), (5, 5, 5)), Batch((67, 9, 40), (1, 5, 3)))
_GEOMETRY = Geometry(num_heads=8, num_kv_heads=1, head_dim=32, v_head_dim=32)
_MANY = 4096


@dataclasses.dataclass(frozen=True, slots=True)
class Rebuilt:
    """calls: how many, over ranks and batches. missing: results without the field. stale: rows
    whose local length is not that of their global one; example: the first of them."""

    calls: int
    missing: int
    stale: int
    example: str


def probe_rebuild(function: Callable[..., Any], world_size: int) -> Rebuilt:
    """Call `function` on every rank and batch. Raises Unavailable for unknown arguments."""
    calls = missing = stale = 0
    example = ""
    for interleave in (1, 16):
        for rank in range(world_size):
            shard = Shard(rank, Topology(world_size, interleave))
            for batch in _BATCHES:
                given = _common(batch, shard)
                returned = function(**_arguments(function, given))
                calls += 1
                for found in _metadata_in(returned, type(given)):
                    lengths = getattr(found, _FIELD)
                    if lengths is None:
                        missing += 1
                        continue
                    for length, local in zip(
                        found.seq_lens.tolist(), lengths.tolist(), strict=False
                    ):
                        right = shard.local_length(length)
                        if local != right:
                            stale += 1
                            example = example or (
                                f"rank {rank} of {world_size}, interleave {interleave}: "
                                f"seq_lens {length} beside {local}, should be {right}"
                            )
    return Rebuilt(calls, missing, stale, example)


def _common(batch: Batch, shard: Shard) -> Any:
    """The engine's metadata of one batch on one rank, fast prefill armed."""
    pages = pages_needed((batch,), _GEOMETRY, shard)
    workload = make_workload(batch, _GEOMETRY, torch.float32, "cpu", 1)
    layout = place(batch, _GEOMETRY, shard, pages, 1)
    common: CommonAttentionMetadata = common_metadata(workload, layout, shard, sharded=True)
    topology = shard.topology
    placement = Placement(
        dcp_rank=shard.rank,
        dcp_world_size=topology.world_size,
        interleave=topology.interleave,
        group=LoneRank(shard.rank, topology.world_size),
        dtype=torch.float32,
        device="cpu",
        num_pages=pages,
        sinks=None,
    )
    given = engine_metadata(common, placement, _GEOMETRY.page_size)
    for name, value in (
        ("logits_indices_padded", given.query_start_loc[1:] - 1),
        ("num_logits_indices", given.num_reqs),
        ("max_logits_per_req", 1),
    ):
        if hasattr(given, name):
            setattr(given, name, value)
    return given


def _arguments(function: Callable[..., Any], given: Any) -> dict[str, Any]:
    """Arguments by what the parameters are annotated with. Raises Unavailable."""
    try:
        annotations = typing.get_type_hints(function)
    except Exception as error:
        raise Unavailable(f"its annotations cannot be read: {error}") from error
    return {
        name: _argument(name, annotations.get(name), given)
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.default is parameter.empty
    }


def _argument(name: str, wanted: Any, given: Any) -> Any:
    if wanted is type(given):
        return given
    if wanted is int:
        return 2
    if wanted is torch.Tensor:
        return torch.arange(_MANY, dtype=torch.int32)
    fields = (
        {f.name for f in dataclasses.fields(wanted)} if dataclasses.is_dataclass(wanted) else {}
    )
    if fields == {"request_slice", "token_slice"}:  # a micro-batch: the first request
        return wanted(slice(0, 1), slice(0, int(given.query_start_loc_cpu[1])))
    raise Unavailable(f"wants `{name}`, which the harness does not know how to make")


def _metadata_in(returned: Any, cls: type) -> Iterator[Any]:
    if isinstance(returned, cls):
        yield returned
    elif isinstance(returned, tuple | list):
        for item in returned:
            yield from _metadata_in(item, cls)
