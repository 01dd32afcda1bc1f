"""Faults put into the control, one edit of kernel, builder or merge source each; and variants
that are written differently and right.

Each mutant names the rule whose kind of fault it is and the signal that must give it away: the
first to fail, in judging order, in the first probe of the rule's prediction that fails.
"""

# ruff: noqa: E501  (source lines are quoted as they stand)

from __future__ import annotations

from dataclasses import dataclass

from dcplint.harness.model import Signal

CONTROL = "control.py"
GQA = "kernels/gqa_decode.py"
MLA = "kernels/mla_decode.py"
MERGE = "kernels/lse_merge.py"
SPLITS = "kernels/splits.py"
SHARD = "kernels/shard.py"


@dataclass(frozen=True)
class Edit:
    """Replace the first (`nth=0`) or last (`nth=-1`) occurrence of `old`."""

    file: str
    old: str
    new: str
    nth: int = 0


@dataclass(frozen=True)
class Mutant:
    name: str
    rule: str
    signal: Signal
    edits: tuple[Edit, ...]
    backend: str = "GQABackend"


@dataclass(frozen=True)
class Variant:
    name: str
    edits: tuple[Edit, ...]
    backend: str = "GQABackend"


_RETURN = "        return out, lse\n"
_TAKES = "        local_lens = common.dcp_local_seq_lens\n"


def _lse(expression: str) -> tuple[Edit, ...]:
    return (Edit(CONTROL, _RETURN, f"        return out, {expression}\n"),)


def _lengths(expression: str) -> tuple[Edit, ...]:
    return (Edit(CONTROL, _TAKES, f"        local_lens = {expression}\n"),)


def _local(rank: str) -> str:
    """The right formula, for the rank given by an expression."""
    cycle = "(self.dcp_world_size * self.interleave)"
    rest = f"(common.seq_lens % {cycle} - {rank} * self.interleave).clamp(0, self.interleave)"
    return f"common.seq_lens // {cycle} * self.interleave + {rest}"


def _corrected(replacement: str, *more: Edit) -> tuple[Edit, ...]:
    old = "    corrected, _ = correct_shard(out, lses, impl.dcp_rank)\n"
    return (Edit(CONTROL, old, replacement), *more)


_S = Signal
MUTANTS: tuple[Mutant, ...] = (
    # What an LSE is.
    Mutant("no LSE", "DCP401", _S.LSE_MISSING, _lse("None")),
    Mutant("LSE only while one rank", "DCP407", _S.LSE_MISSING, _lse(
        "lse if self.dcp_world_size == 1 else None")),
    Mutant("LSE converted to base 2, declared base e", "DCP402", _S.LSE_BASE, _lse(
        "lse * 1.4426950408889634")),
    Mutant("kernel stores log2 instead of ln", "DCP402", _S.LSE_BASE, (
        Edit(MERGE, "top + tl.log2(divisor) / TO_LOG2, mask", "top * TO_LOG2 + tl.log2(divisor), mask"),
    )),
    Mutant("MLA stores log2 instead of ln", "DCP402", _S.LSE_BASE, (
        Edit(CONTROL, _RETURN, "        return out, lse / 0.6931471805599453\n", -1),
    ), "MLABackend"),
    Mutant("LSE of unscaled scores", "DCP103", _S.LSE, _lse("lse / self.geometry.sm_scale")),
    Mutant("unscaled scores", "DCP103", _S.LSE, (
        Edit(GQA, 'input_precision="ieee") * sm_scale', 'input_precision="ieee")'),
    )),
    Mutant("softmax in base 2, scores in base e", "DCP103", _S.LSE, (
        Edit(GQA, "tl.exp2((scores - anchor[:, None]) * 1.4426950408889634)",
             "tl.exp2(scores - anchor[:, None])"),
    )),
    Mutant("LSE is the running maximum only", "DCP103", _S.LSE, (
        Edit(GQA, "top + tl.log(divisor)", "top"),
    )),
    Mutant("LSE kept in bf16", "DCP403", _S.LSE_PRECISION, _lse("lse.to(torch.bfloat16)")),
    Mutant("LSE kept in fp16", "DCP403", _S.LSE_PRECISION, _lse("lse.half()")),
    Mutant("LSE passes through fp16", "DCP103", _S.LSE, _lse("lse.half().float()")),
    # What an empty shard returns.
    Mutant("NaN as the LSE of an empty shard", "DCP101", _S.EMPTY_LSE, _lse(
        "torch.where(lse == -torch.inf, torch.nan, lse)")),
    Mutant("0 as the LSE of an empty shard", "DCP101", _S.EMPTY_LSE, _lse(
        "torch.where(lse == -torch.inf, 0.0, lse)")),
    Mutant("-1e30 as the LSE of an empty shard", "DCP101", _S.EMPTY_LSE, _lse(
        "lse.clamp(min=-1e30)")),
    Mutant("+inf as the LSE of an empty shard", "DCP101", _S.EMPTY_LSE, _lse(
        "torch.where(lse == -torch.inf, torch.inf, lse)")),
    Mutant("0/0 as the output of an empty shard", "DCP101", _S.EMPTY_OUTPUT, (
        Edit(MERGE, "    divisor = tl.where(weight_sum == 0.0, 1.0, weight_sum)\n",
             "    divisor = weight_sum\n"),
    )),
    Mutant("-inf minus -inf in the merge of splits", "DCP101", _S.EMPTY_OUTPUT, (
        Edit(MERGE, '        anchor = tl.where(new_top == -float("inf"), 0.0, new_top)\n',
             "        anchor = new_top\n"),
    )),
    Mutant("MLA: last output kept for an empty shard", "DCP101", _S.EMPTY_OUTPUT, (
        Edit(CONTROL, _RETURN, "        out[lse == -torch.inf] = 1.0\n" + _RETURN, -1),
    ), "MLABackend"),
    # Which tokens are read.
    Mutant("global lengths", "DCP302", _S.READ_UNOWNED, _lengths("common.seq_lens")),
    Mutant("MLA: global lengths", "DCP302", _S.READ_UNOWNED, _lengths("common.seq_lens"),
           "MLABackend"),
    Mutant("ceil(L / N), interleave ignored", "DCP303", _S.READ_UNOWNED, _lengths(
        "-(-common.seq_lens // self.dcp_world_size)")),
    Mutant("floor(L / N), rest forgotten", "DCP303", _S.READ_UNOWNED, _lengths(
        "common.seq_lens // self.dcp_world_size")),
    Mutant("whole chunks only", "DCP303", _S.READ_MISSED, _lengths(
        "common.seq_lens // (self.dcp_world_size * self.interleave) * self.interleave")),
    Mutant("rest not clamped at 0", "DCP303", _S.READ_MISSED, _lengths(
        _local("self.dcp_rank").replace("clamp(0, ", "clamp(-self.interleave, "))),
    Mutant("one too many where L fills whole cycles", "DCP303", _S.READ_UNOWNED, _lengths(
        "(common.seq_lens - self.dcp_rank) // self.dcp_world_size + 1")),
    Mutant("one too few where L fills whole cycles", "DCP303", _S.READ_MISSED, _lengths(
        "common.dcp_local_seq_lens - (common.seq_lens % (self.dcp_world_size * self.interleave)"
        " == 0).to(torch.int32)")),
    Mutant("localised, then one subtracted", "DCP303", _S.READ_MISSED, _lengths(
        "(common.dcp_local_seq_lens - 1).clamp(min=0)")),
    Mutant("one subtracted, then localised", "DCP303", _S.READ_MISSED, _lengths(
        _local("self.dcp_rank").replace("common.seq_lens", "(common.seq_lens - 1)"))),
    Mutant("the next rank's length", "DCP303", _S.READ_UNOWNED, _lengths(
        _local("((self.dcp_rank + 1) % self.dcp_world_size)"))),
    Mutant("rank 0's length on every rank", "DCP305", _S.READ_UNOWNED, _lengths(_local("0"))),
    Mutant("an upper bound as the length", "DCP305", _S.READ_UNOWNED, _lengths(
        "-(-common.seq_lens // (self.dcp_world_size * self.interleave)) * self.interleave")),
    Mutant("interleave 1 in the formula", "DCP303", _S.READ_UNOWNED, _lengths(
        _local("self.dcp_rank").replace("self.interleave", "1"))),
    Mutant("derived although the layer is not sharded", "DCP301", _S.READ_MISSED, (
        Edit(CONTROL, "        self._local_lens: torch.Tensor | None = None\n",
             "        self._local_lens: torch.Tensor | None = None\n        self._group = dcp.group\n"),
        Edit(CONTROL, "            local_lens = common.seq_lens\n",
             "            local_lens = common.seq_lens // self._group.world_size\n"),
    )),
    Mutant("stale rows behind a smaller batch", "DCP205", _S.READ_UNOWNED, (
        Edit(CONTROL, "        self._local_lens[common.num_reqs :].zero_()\n", ""),
    )),
    Mutant("lengths of the first batch kept", "DCP205", _S.READ_UNOWNED, (
        Edit(CONTROL, "            self._local_lens = local_lens.new_zeros(self._MAX_REQS)\n",
             "            self._local_lens = local_lens.new_zeros(self._MAX_REQS)\n"
             "            self._local_lens[: common.num_reqs].copy_(local_lens)\n"),
        Edit(CONTROL, "        self._local_lens[common.num_reqs :].zero_()\n", ""),
        Edit(CONTROL, "        self._local_lens[: common.num_reqs].copy_(local_lens[: common.num_reqs])\n", ""),
    )),
    Mutant("one split more than there is room for", "DCP103", _S.READ_MISSED, (
        Edit(GQA, "            splits,\n            num_kv_heads,\n",
             "            splits + 1,\n            num_kv_heads,\n"),
    )),
    Mutant("split length rounded down", "DCP103", _S.READ_MISSED, (
        Edit(GQA, "tl.cdiv(tl.cdiv(tl.maximum(local_len - first, 0), BLOCK_N), num_splits)",
             "(tl.cdiv(tl.maximum(local_len - first, 0), BLOCK_N) // num_splits)"),
    )),
    Mutant("pages looked up by global position", "DCP308", _S.READ_UNOWNED, (
        Edit(GQA, " + local // PAGE_SIZE,",
             " + global_position(local, dcp_rank, dcp_world_size, interleave) // PAGE_SIZE,"),
    )),
    Mutant("offset in the page by global position", "DCP308", _S.READ_UNOWNED, (
        Edit(GQA, "        slot = local % PAGE_SIZE\n",
             "        slot = global_position(local, dcp_rank, dcp_world_size, interleave) % PAGE_SIZE\n"),
    )),
    Mutant("no mask on the last block", "DCP302", _S.READ_UNOWNED, (
        Edit(GQA, "        here = local < stop\n", "        here = local < stop + PAGE_SIZE\n"),
    )),
    # Where tokens are written.
    Mutant("owner i % N, interleave ignored", "DCP308", _S.SLOTS, (
        Edit(CONTROL, "        mine = chunk % self.dcp_world_size == self.dcp_rank\n",
             "        mine = positions % self.dcp_world_size == self.dcp_rank\n"),
    )),
    Mutant("local index i // N, interleave ignored", "DCP303", _S.SLOTS, (
        Edit(CONTROL, "        local = chunk // self.dcp_world_size * interleave + positions % interleave\n",
             "        local = positions // self.dcp_world_size\n"),
    )),
    Mutant("global position as a local slot", "DCP308", _S.SLOTS, (
        Edit(CONTROL, "        local = chunk // self.dcp_world_size * interleave + positions % interleave\n",
             "        local = positions\n"),
    )),
    Mutant("tokens of other ranks written too", "DCP308", _S.SLOTS, (
        Edit(CONTROL, "        mine = slot_mapping >= 0\n",
             "        mine = torch.ones_like(slot_mapping, dtype=torch.bool)\n"),
    )),
    Mutant("nothing written where the first token is another rank's", "DCP308", _S.SLOTS, (
        Edit(CONTROL, "        mine = slot_mapping >= 0\n",
             "        if slot_mapping[0] < 0:\n            return\n        mine = slot_mapping >= 0\n"),
    )),
    # What the runner shares.
    Mutant("local lengths stored into the shared lengths", "DCP206", _S.FIELD, _lengths(
        "common.seq_lens.copy_(common.dcp_local_seq_lens)")),
    Mutant("query scaled in place", "DCP206", _S.FIELD, (
        Edit(CONTROL, "        k_cache, v_cache = kv_cache\n",
             "        k_cache, v_cache = kv_cache\n        query.mul_(1.0001)\n"),
    )),
    # Causality and features.
    Mutant("causal bound on local indices", "DCP103", _S.EMPTY_OUTPUT, (
        Edit(GQA, "keep & (where_from[None, :] <= position[:, None])",
             "keep & (local[None, :] <= position[:, None])"),
    )),
    Mutant("MLA: causal bound on local indices", "DCP103", _S.EMPTY_OUTPUT, (
        Edit(MLA, "keep & (where_from[None, :] <= position[:, None])",
             "keep & (local[None, :] <= position[:, None])"),
    ), "MLABackend"),
    Mutant("query positions from the local length", "DCP103", _S.LSE, (
        Edit(GQA, "    position = seq_len - query_len + row // GROUP\n",
             "    position = local_len - query_len + row // GROUP\n"),
    )),
    Mutant("causal bound excludes the token itself", "DCP103", _S.LSE, (
        Edit(GQA, "(where_from[None, :] <= position[:, None])",
             "(where_from[None, :] < position[:, None])"),
    )),
    Mutant("interleave 1 in the kernel's positions", "DCP103", _S.LSE, (
        Edit(SHARD, "    return (local // interleave * dcp_world_size + dcp_rank) * interleave"
             " + local % interleave\n", "    return local * dcp_world_size + dcp_rank\n"),
    )),
    Mutant("masked scores set to -1e4", "DCP101", _S.EMPTY_OUTPUT, (
        Edit(GQA, 'scores = tl.where(keep, scores, -float("inf"))',
             "scores = tl.where(keep, scores, -1e4)"),
    )),
    Mutant("soft cap dropped", "DCP404", _S.LSE, (
        Edit(GQA, "SOFT_CAP=soft_cap > 0.0", "SOFT_CAP=False"),
    )),
    Mutant("MLA: soft cap dropped", "DCP404", _S.LSE, (
        Edit(CONTROL, "            soft_cap=self.geometry.soft_cap,\n", "", -1),
    ), "MLABackend"),
    Mutant("window dropped", "DCP404", _S.LSE, (
        Edit(CONTROL, "            window=self.geometry.window,\n", ""),
    )),
    Mutant("window one too wide", "DCP404", _S.LSE, (
        Edit(GQA, "(where_from[None, :] > position[:, None] - window)",
             "(where_from[None, :] >= position[:, None] - window)"),
    )),
    Mutant("window of local tokens", "DCP404", _S.READ_MISSED, (
        Edit(CONTROL, "            window=self.geometry.window,\n",
             "            window=-(-self.geometry.window // self.dcp_world_size),\n"),
    )),
    Mutant("sinks on every rank", "DCP404", _S.OUTPUT_MERGED, (
        Edit(SPLITS, "sinks if dcp_rank == 0 else None", "sinks"),
    )),
    Mutant("sinks dropped", "DCP404", _S.OUTPUT_MERGED, (
        Edit(CONTROL, "            sinks=self.sinks,\n", ""),
    )),
    # Heads and sizes.
    Mutant("local heads of the gathered query", "DCP405", _S.SHAPE, (
        Edit(CONTROL, "        out, lse = gqa_decode(\n            query,\n",
             "        out, lse = gqa_decode(\n            query[:, : self.num_heads],\n"),
    )),
    Mutant("values sized as keys", "DCP405", _S.READ_WILD, (
        Edit(GQA, "            V_DIM=v_dim,\n", "            V_DIM=head_dim,\n"),
        Edit(GQA, "triton.next_power_of_2(v_dim)", "triton.next_power_of_2(head_dim)"),
    )),
    Mutant("heads grouped by the local count", "DCP405", _S.LSE, (
        Edit(GQA, "    head = kv_head * GROUP + row % GROUP\n",
             "    head = row % GROUP * num_kv_heads + kv_head\n"),
    )),
    # The merge.
    Mutant("corrected twice", "DCP103", _S.OUTPUT_MERGED, _corrected(
        "    corrected, _ = correct_shard(out, lses, impl.dcp_rank)\n"
        "    corrected, _ = correct_shard(corrected, lses, impl.dcp_rank)\n")),
    Mutant("another rank's LSE", "DCP103", _S.OUTPUT_MERGED, _corrected(
        "    corrected, _ = correct_shard(out, lses.flip(0), impl.dcp_rank)\n")),
    Mutant("merged in base 2, LSE in base e", "DCP402", _S.OUTPUT_MERGED, _corrected(
        '    corrected, _ = correct_shard(out, lses, impl.dcp_rank, base="2")\n')),
    Mutant("averaged over ranks", "DCP103", _S.OUTPUT_MERGED, _corrected(
        "    corrected = out.float() / impl.dcp_world_size\n")),
    Mutant("heads of the next rank", "DCP103", _S.OUTPUT_MERGED, (
        Edit(CONTROL, "corrected.transpose(0, 1).contiguous()",
             "corrected.transpose(0, 1).roll(impl.num_heads, 0).contiguous()"),
    )),
    Mutant("strides of the output ignored", "DCP103", _S.OUTPUT_MERGED, (
        Edit(MERGE, "            *out.stride(),\n", "            heads * v_dim,\n            v_dim,\n"
             "            1,\n"),
    )),
    Mutant("ranks without tokens leave out the merge", "DCP307", _S.HANG, (
        Edit(CONTROL, "    lses = impl.group.all_gather(lse)\n",
             "    if not bool(lse.isfinite().any()):\n        return out[:, : impl.num_heads]\n"
             "    lses = impl.group.all_gather(lse)\n"),
    )),
)  # fmt: skip

VARIANTS: tuple[Variant, ...] = (
    Variant("the formula instead of the runner's lengths", _lengths(_local("self.dcp_rank"))),
    Variant("MLA: the formula instead of the runner's lengths", _lengths(_local("self.dcp_rank")),
            "MLABackend"),
    Variant("lengths by counting positions", _lengths(
        "torch.stack([((torch.arange(int(n), device=common.seq_lens.device) // self.interleave)"
        " % self.dcp_world_size == self.dcp_rank).sum() for n in common.seq_lens])"
        ".to(torch.int32)")),
    Variant("LSE and merge in base 2, declared so", (
        Edit(CONTROL, '    """Grouped-query attention', '    lse_base_on_e = False\n    """Grouped-query attention'),
        Edit(CONTROL, _RETURN, "        return out, lse * 1.4426950408889634\n"),
        Edit(CONTROL, "correct_shard(out, lses, impl.dcp_rank)",
             'correct_shard(out, lses, impl.dcp_rank, base="2")'),
    )),
    Variant("one split", (
        Edit(CONTROL, "            sinks=self.sinks,\n",
             "            sinks=self.sinks,\n            num_splits=1,\n"),
    )),
    Variant("more splits than blocks", (
        Edit(CONTROL, "            sinks=self.sinks,\n",
             "            sinks=self.sinks,\n            num_splits=5,\n"),
    )),
    Variant("other block sizes", (
        Edit(GQA, "block_m, block_n = interpreted_block(max_query_len * group)",
             "block_m, block_n = 32, 16"),
    )),
    Variant("always causal", (Edit(GQA, "CAUSAL=max_query_len > 1", "CAUSAL=True"),)),
    Variant("softmax in base e", (
        Edit(GQA, "tl.exp2((scores - anchor[:, None]) * 1.4426950408889634)",
             "tl.exp(scores - anchor[:, None])"),
    )),
    Variant("outputs gathered and merged on every rank", _corrected(
        "    whole, _ = merge_shards(impl.group.all_gather(out), lses)\n"
        "    return whole[:, impl.dcp_rank * impl.num_heads :][:, : impl.num_heads]\n"
        "    corrected, _ = correct_shard(out, lses, impl.dcp_rank)\n",
        Edit(CONTROL, "lse_merge import correct_shard", "lse_merge import correct_shard, merge_shards"))),
    Variant("weights in float64", _corrected(
        "    weight = (lse.double() - torch.logsumexp(lses.double(), 0)).exp()\n"
        "    corrected = (out.double() * torch.nan_to_num(weight)[..., None]).float()\n")),
    Variant("all-reduce and slice", (
        Edit(CONTROL, "    return impl.group.reduce_scatter(by_head).transpose(0, 1).to(out.dtype)\n",
             "    summed = impl.group.all_reduce(by_head).transpose(0, 1).to(out.dtype)\n"
             "    return summed[:, impl.dcp_rank * impl.num_heads :][:, : impl.num_heads]\n"),
    )),
    Variant("sinks counted on the last rank", (
        Edit(SPLITS, "sinks if dcp_rank == 0 else None", "sinks"),
        Edit(CONTROL, "            sinks=self.sinks,\n",
             "            sinks=self.sinks if self.dcp_rank == self.dcp_world_size - 1 else None,\n"),
    )),
    Variant("merges in its own forward", (
        Edit(CONTROL, '    """Grouped-query attention', '    merges_in_forward = True\n    """Grouped-query attention'),
        Edit(CONTROL, _RETURN, "        return _merge(self, out, lse), None\n"),
    )),
    Variant("metadata cloned before use", (
        Edit(CONTROL, "            block_table=common.block_table,\n",
             "            block_table=common.block_table.clone(),\n"),
    )),
    Variant("slots token by token", (
        Edit(CONTROL, "        local = chunk // self.dcp_world_size * interleave + positions % interleave\n",
             "        local = torch.tensor([sum((j // interleave) % self.dcp_world_size =="
             " (i // interleave) % self.dcp_world_size for j in range(i)) for i in"
             " positions.tolist()], device=positions.device)\n"),
    )),
)  # fmt: skip
