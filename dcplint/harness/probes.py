"""The probes, and which of them leave no blind spot.

Interleave 1 hides whatever ignores the interleave; lengths that fill whole cycles hide a wrong
owner; batches without an empty shard hide what an empty shard returns. So the core set has both
interleaves, ragged lengths, a length below one cycle, a length of one token, and several query
tokens per request where the backend claims to serve them. Only a backend that passes all of it is
said to be right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dcplint.harness.model import Batch, Claims, Geometry, Probe, Topology

INTERLEAVES = (1, 16)


def geometry_for(claims: Claims, num_kv_heads: int = 1) -> Geometry:
    """A small layer of the kind the backend serves, with heads for four ranks.

    One KV head is what a rank has left under DCP. Every further one is another run of the kernel's
    programs, which the interpreter pays for, so only some probes have two.
    """
    if claims.geometry is not None:
        return claims.geometry
    if claims.is_mla:
        return Geometry(num_heads=8, num_kv_heads=1, head_dim=48, v_head_dim=32, kv_lora_rank=32)
    return Geometry(num_heads=8, num_kv_heads=num_kv_heads, head_dim=32, v_head_dim=32)


def core_probes(claims: Claims, world_size: int) -> tuple[Probe, ...]:
    """The probes a backend must pass before a finding about it is refuted."""
    found: list[Probe] = []
    for interleave in INTERLEAVES:
        found.extend(_sharding(claims, Topology(world_size, interleave)))
    found.extend(_conditions(claims, Topology(world_size, 16)))
    return tuple(found)


def feature_probes(claims: Claims, world_size: int) -> tuple[Probe, ...]:
    """One probe per feature the backend claims, on and off ranks."""
    geometry = geometry_for(claims)
    many, one = Topology(world_size, 4), Topology(1, 4)
    query_len = min(2, claims.query_len(many))
    batch = Batch((133, 37, 3), (1, query_len, query_len))
    batches = (batch, _fresh(claims, many))
    large = replace(batch, magnitude=4.0)
    windowed = replace(geometry, window=20)
    capped = replace(geometry, soft_cap=2.0)
    with_sinks = replace(geometry, sinks=True)
    in_fp8 = replace(geometry, fp8=True)
    once = "do the sinks count once over ranks?"
    in_fp8_too = "does it hold for a cache of fp8?"
    offered = (
        (claims.window, Probe("window", "does it span ranks?", batches, many, windowed)),
        (claims.soft_cap, Probe("soft-cap", "are scores capped?", (large,), many, capped)),
        (claims.fp8, Probe("fp8-cache-n1", in_fp8_too, batches, one, in_fp8)),
        (claims.fp8, Probe(f"fp8-cache-n{world_size}", in_fp8_too, batches, many, in_fp8)),
        (claims.sinks, Probe("sinks-n1", once, batches, one, with_sinks)),
        (claims.sinks, Probe(f"sinks-n{world_size}", once, batches, many, with_sinks)),
    )
    return tuple(probe for claimed, probe in offered if claimed)


def head_probes(claims: Claims, world_size: int) -> tuple[Probe, ...]:
    """Gathered head counts that are no power of two, and values of another size than keys."""
    geometry = geometry_for(claims)
    batches = (Batch((70, 5), (1, 1)),)
    topology = Topology(world_size, 4)
    found = [
        Probe(
            f"heads-{local_heads}",
            f"does it serve {local_heads} heads a rank?",
            batches,
            topology,
            replace(geometry, num_heads=local_heads * world_size, num_kv_heads=1),
        )
        for local_heads in (1, 6, 12, 16)
    ]
    if not claims.is_mla and claims.geometry is None:
        wide = replace(geometry_for(claims, num_kv_heads=2), head_dim=48, v_head_dim=32)
        found.append(Probe("value-size", "are values sized as values?", batches, topology, wide))
    return tuple(found)


def all_probes(claims: Claims, world_size: int) -> tuple[Probe, ...]:
    """Everything that applies."""
    return (
        *core_probes(claims, world_size),
        *feature_probes(claims, world_size),
        *head_probes(claims, world_size),
    )


def _fresh(claims: Claims, topology: Topology) -> Batch:
    """Requests without any context, for which backends may have a path of their own."""
    length = min(5, claims.query_len(topology))
    return Batch((length, length), (length, length))


def _sharding(claims: Claims, topology: Topology) -> Iterator[Probe]:
    cycle = topology.world_size * topology.interleave
    suffix = f"-i{topology.interleave}"

    def probe(name: str, question: str, *batches: Batch, kv_heads: int = 1) -> Probe:
        layer = geometry_for(claims, kv_heads)
        return Probe(name + suffix, question, batches, topology, layer)

    turns = max(1, 64 // cycle)
    ragged = (2 * turns * cycle + cycle // 3 + 1, turns * cycle + cycle // 2 + 1, cycle + 1)
    whole = "do the shards of ragged lengths add up?"
    yield probe("ragged", whole, Batch(ragged, (1, 1, 1)), kv_heads=2)
    short = (max(1, cycle - 1), max(1, topology.interleave // 2), 1)
    nothing = "what do ranks return that hold nothing of a sequence?"
    yield probe("short", nothing, Batch(short, (1, 1, 1)), _fresh(claims, topology))
    yield probe(
        "whole-cycles",
        "is a length of whole cycles right?",
        Batch((cycle, 2 * turns * cycle), (1, 1)),
    )
    length = min(claims.query_len(topology), 5)
    if length > 1:
        phases = tuple(cycle + i * max(1, topology.interleave // 2) + 3 for i in range(3))
        # As runners order them: decodes first.
        query_lens = (length,) * 3 if claims.uniform else (1, length, min(3, length))
        yield probe(
            "multi-query",
            "are several new tokens causal in global positions?",
            Batch((*phases, length), (*query_lens, length)),
        )


def _conditions(claims: Claims, topology: Topology) -> Iterator[Probe]:
    geometry = geometry_for(claims)
    cycle = topology.world_size * topology.interleave
    usual = Batch((cycle + 21, 7), (1, 1))
    yield Probe(
        "large-scores",
        "do large scores of either sign survive?",
        (replace(usual, magnitude=1e3), replace(usual, offset=-1e4), replace(usual, offset=1e4)),
        topology,
        geometry,
    )
    yield Probe(
        "reuse",
        "does a small padded batch after a large one see only itself?",
        (
            Batch((2 * cycle + 9, cycle + 5, 50, 40), (1, 1, 1, 1)),
            Batch((19, 3), (1, 1), padding=2),
        ),
        topology,
        geometry,
    )
    yield Probe(
        "strided", "does the merge honour strides?", (usual,), topology, geometry, strided=True
    )
    yield Probe(
        "draft",
        "does an unsharded layer inside the group keep whole sequences?",
        (usual,),
        topology,
        geometry,
        draft=True,
    )
    yield Probe(
        "single-rank",
        "is one rank alone right?",
        (usual,),
        Topology(1, topology.interleave),
        geometry,
    )
