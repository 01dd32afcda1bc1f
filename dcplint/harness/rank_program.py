"""What one rank does in one probe: write, build, attend, merge, and measure each step."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import torch

from dcplint.harness import judge, oracle
from dcplint.harness.contract import CommonAttentionMetadata, Group
from dcplint.harness.driver import Driver, Placement, Subject
from dcplint.harness.model import Measurement, Outcome, Probe, Signal, Topology
from dcplint.harness.recorder import Recorder, WildAccess
from dcplint.harness.shard import Shard
from dcplint.harness.workload import (
    Layout,
    Workload,
    common_metadata,
    make_workload,
    pages_needed,
    place,
)

# After these there is nothing to merge, and every rank must leave out the same collectives.
_FATAL = (Signal.LSE_MISSING, Signal.READ_WILD, Signal.SHAPE)


def run_rank(
    driver: Driver, target: type, probe: Probe, dtype: str, device: str, seed: int, group: Group
) -> tuple[Measurement, ...]:
    """Run all batches of a probe through one subject. Raises what the backend raises."""
    shard = Shard(0 if probe.draft else group.rank, _layer_topology(probe))
    torch_dtype = getattr(torch, dtype)
    first = make_workload(probe.batches[0], probe.geometry, torch_dtype, device, seed)
    placement = Placement(
        dcp_rank=shard.rank,
        dcp_world_size=shard.topology.world_size,
        interleave=shard.topology.interleave,
        group=group,
        dtype=torch_dtype,
        device=device,
        num_pages=pages_needed(probe.batches, probe.geometry, shard),
        sinks=first.sinks,
        max_query_len=max(max(batch.query_lens) for batch in probe.batches),
    )
    subject = driver.make(target, probe.geometry, placement)
    measurements: list[Measurement] = []
    for index, batch in enumerate(probe.batches):
        workload = make_workload(batch, probe.geometry, torch_dtype, device, seed + index)
        workload = dataclasses.replace(workload, sinks=first.sinks)
        layout = place(batch, probe.geometry, shard, placement.num_pages, seed + index)
        step = _Step(subject, probe, workload, layout, shard, group.rank, dtype)
        measurements.extend(step.run())
        if any(m.signal in _FATAL and m.outcome is Outcome.FAIL for m in measurements):
            break
    return tuple(measurements)


def _layer_topology(probe: Probe) -> Topology:
    if probe.draft:
        return dataclasses.replace(probe.topology, world_size=1, interleave=1)
    return probe.topology


class _Step:
    """One batch on one rank."""

    def __init__(
        self,
        subject: Subject,
        probe: Probe,
        workload: Workload,
        layout: Layout,
        shard: Shard,
        rank: int,
        dtype: str,
    ) -> None:
        self.subject = subject
        self.probe = probe
        self.workload = workload
        self.layout = layout
        self.shard = shard
        self.rank = rank
        floating = all(cache.is_floating_point() for cache in subject.caches)
        # What fp8 holds exactly loses nothing in a cache of it.
        self.dtype = dtype if floating or probe.geometry.fp8 else judge.QUANTIZED

    def run(self) -> Iterator[Measurement]:
        """Measure everything; stops early where there is nothing left to compare."""
        needed, owned = self._fill_cache()
        per_slot = list(self.subject.slot_sizes)
        yield self._measure_writes(owned, per_slot)
        common = common_metadata(
            self.workload, self.layout, self.shard, self.shard.topology.world_size > 1
        )
        before = _snapshot(common, self.workload.query)
        recorder = Recorder(self.subject.caches)
        try:
            with recorder.active():
                yield from self._measure_slots(common)
                metadata = self.subject.metadata(common)
                out, lse = self.subject.local(self.workload.query, *self._new_tokens(), metadata)
        except Exception as error:
            wild = _wild_access(error)
            if wild is None:
                raise
            yield judge.measure(Signal.READ_WILD, self.rank, 1, 0, str(wild))
            return
        if recorder.launches:
            yield judge.measure(Signal.READ_WILD, self.rank, 0, 0, "no read outside every buffer")
            yield from judge.judge_reads(self.rank, recorder.read, owned, needed, per_slot)

        tokens = self.workload.num_tokens
        if self.subject.self_merging:
            merged = out
        else:
            yield from self._measure_local(out, lse)
            if not self._has_all_heads(out) or (lse is None and self._owes_lse):
                return
            merged = out if lse is None else self._merge(out, lse)
        yield self._measure_merged(merged[:tokens])
        changed = _changed(before, _snapshot(common, self.workload.query))
        yield judge.measure(
            Signal.FIELD, self.rank, len(changed), 0, f"changed: {', '.join(changed) or 'nothing'}"
        )

    def _fill_cache(self) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """Poison everything, write every token; which elements the queries need, which are held.

        What is held is found by looking which elements the backend's own write changed, so the
        cache may be laid out in any way. A byte may be written as what it was, so a cache of bytes
        is written over two poisons.
        """
        visible = oracle.needed_tokens(self.workload, self.probe.geometry)
        if self.subject.merges_new_tokens:
            for seen, query_len in zip(visible, self.workload.batch.query_lens, strict=True):
                seen[seen.shape[0] - query_len :] = False
        poisons = [self.subject.poison]
        if not all(cache.is_floating_point() for cache in self.subject.caches):
            poisons.insert(0, 255 - self.subject.poison)
        passes = [self._write_over(poison, visible) for poison in poisons]
        needed, owned = (
            [torch.stack(masks).any(dim=0) for masks in zip(*found, strict=True)]
            for found in zip(*passes, strict=True)
        )
        return needed, owned

    def _write_over(
        self, poison: float, visible: list[torch.Tensor]
    ) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        for cache in self.subject.caches:
            cache.fill_(poison)
        masks = []
        for wanted in (True, False):
            for row, slots in enumerate(self.layout.slots):
                chosen = torch.where(visible[row] == wanted, slots, -1)
                self.subject.write(
                    self.workload.keys[row],
                    self.workload.values[row],
                    chosen.to(self.workload.query.device),
                )
            masks.append([_differs(cache, poison) for cache in self.subject.caches])
        return masks[0], masks[1]

    def _new_tokens(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values of the query tokens, zero for padding."""
        batch, padding = self.workload.batch, self.workload.batch.padding
        found = []
        for rows in (self.workload.keys, self.workload.values):
            new = torch.cat([r[-q:] for r, q in zip(rows, batch.query_lens, strict=True)])
            found.append(torch.cat([new, new.new_zeros(padding, *new.shape[1:])]))
        return found[0], found[1]

    def _measure_slots(self, common: CommonAttentionMetadata) -> Iterator[Measurement]:
        got = self.subject.slots(common)
        if got is None:
            return
        batch = self.workload.batch
        truth = torch.cat(
            [
                s[n - q :]
                for s, n, q in zip(self.layout.slots, batch.seq_lens, batch.query_lens, strict=True)
            ]
        )
        wrong = int((got.cpu()[: truth.numel()] != truth).sum())
        yield judge.measure(Signal.SLOTS, self.rank, wrong, 0, f"{wrong} tokens go to a wrong slot")

    def _measure_writes(self, owned: list[torch.Tensor], per_slot: list[int]) -> Measurement:
        held = sum(int((s >= 0).sum()) for s in self.layout.slots)
        wrong = max(
            # Bytes of a quantized cache may be padding, or come out as the poison.
            abs(excess) / size if cache.is_floating_point() else max(0, excess) / size
            for cache, mask, size in zip(self.subject.caches, owned, per_slot, strict=True)
            for excess in [int(mask.sum()) - held * size]
        )
        detail = f"{wrong:.4g} slots written too many or too few"
        return judge.measure(Signal.SLOTS, self.rank, wrong, 0, detail)

    @property
    def _owes_lse(self) -> bool:
        """Where one rank holds everything there is nothing to merge."""
        return self.shard.topology.world_size > 1

    def _has_all_heads(self, out: torch.Tensor) -> bool:
        return out.shape[:2] == self.workload.query.shape[:2]

    def _measure_local(self, out: torch.Tensor, lse: torch.Tensor | None) -> Iterator[Measurement]:
        tokens = self.workload.num_tokens
        missing = int(lse is None and self._owes_lse)
        yield judge.measure(
            Signal.LSE_MISSING, self.rank, missing, 0, "no LSE" if lse is None else "an LSE"
        )
        if not self._has_all_heads(out):
            wanted = tuple(self.workload.query.shape[:2])
            detail = f"output has shape {tuple(out.shape)}, the gathered queries {wanted}"
            yield judge.measure(Signal.SHAPE, self.rank, 1, 0, detail)
            return
        if lse is not None and lse.shape[:2] != out.shape[:2]:
            wanted = tuple(out.shape[:2])
            detail = f"the LSE has shape {tuple(lse.shape)}, its output's rows and heads {wanted}"
            yield judge.measure(Signal.SHAPE, self.rank, 1, 0, detail)
            return
        # Where the sinks are counted is the backend's choice, as long as it is once over ranks;
        # that is for the merged output to tell. Here either way is right.
        choices = [
            self._compare_local(out[:tokens], None if lse is None else lse[:tokens], counted)
            for counted in ((True, False) if self.workload.sinks is not None else (False,))
        ]
        yield from min(choices, key=lambda found: sum(m.outcome is not Outcome.PASS for m in found))

    def _compare_local(
        self, out: torch.Tensor, lse: torch.Tensor | None, with_sinks: bool
    ) -> list[Measurement]:
        expected, expected_lse = oracle.attention(
            self.workload, self.probe.geometry, self.shard, with_sinks
        )
        empty = expected_lse == -torch.inf
        if self.subject.owes_empty:
            found = list(judge.judge_empty(self.rank, out, lse, empty))
        else:
            found = []
            out = out.masked_fill(empty[..., None], 0.0)
        if lse is not None:
            found.extend(
                judge.judge_lse(self.rank, lse, expected_lse, self.subject.lse_base, self.dtype)
            )
        found.append(
            judge.judge_output(
                Signal.OUTPUT_LOCAL,
                self.rank,
                out,
                expected,
                expected_lse,
                self._largest,
                self.dtype,
            )
        )
        return found

    def _merge(self, out: torch.Tensor, lse: torch.Tensor) -> torch.Tensor:
        if self.probe.strided:
            out = out.transpose(0, 1).contiguous().transpose(0, 1)
            lse = lse.transpose(0, 1).contiguous().transpose(0, 1)
        return self.subject.merge(out, lse)

    def _measure_merged(self, merged: torch.Tensor) -> Measurement:
        expected, expected_lse = oracle.attention(self.workload, self.probe.geometry, None, True)
        world_size = self.shard.topology.world_size
        heads = self.probe.geometry.num_heads // world_size
        mine = slice(self.shard.rank * heads, (self.shard.rank + 1) * heads)
        if merged.shape != expected[:, mine].shape:
            detail = f"merged output has shape {tuple(merged.shape)}"
            return judge.measure(Signal.OUTPUT_MERGED, self.rank, float("inf"), 0, detail)
        return judge.judge_output(
            Signal.OUTPUT_MERGED, self.rank, merged, expected[:, mine], expected_lse, self._largest,
            self.dtype,
        )  # fmt: skip

    @property
    def _largest(self) -> float:
        return max(float(v.abs().max()) for v in self.workload.values)


def _differs(cache: torch.Tensor, poison: float) -> torch.Tensor:
    untouched = cache.isnan() if math.isnan(poison) else cache == poison
    return ~untouched.flatten().cpu()


def _wild_access(error: BaseException) -> WildAccess | None:
    """The wild access behind an error; the interpreter wraps what its hooks raise."""
    seen: BaseException | None = error
    while seen is not None and not isinstance(seen, WildAccess):
        seen = seen.__cause__
    return seen


def _snapshot(common: CommonAttentionMetadata, query: torch.Tensor) -> dict[str, Any]:
    fields = {f.name: getattr(common, f.name) for f in dataclasses.fields(common)}
    fields["query"] = query
    return {k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in fields.items()}


def _changed(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    def same(a: Any, b: Any) -> bool:
        if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
            return a.shape == b.shape and a.dtype == b.dtype and torch.equal(a, b)
        return type(a) is type(b) and a == b

    return [name for name, value in before.items() if not same(value, after[name])]
