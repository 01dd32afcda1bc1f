"""The control: a right backend on our own kernels, which must pass every probe in every run.

It is also the backend that the mutation table edits, so builder, slots and merge are written out
here rather than inherited.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from dcplint.harness.contract import (
    AttentionBackendBase,
    AttentionImplBase,
    CommonAttentionMetadata,
    DCPConfig,
    MetadataBuilderBase,
    MLAImplBase,
)
from dcplint.harness.kernels.gqa_decode import gqa_decode
from dcplint.harness.kernels.lse_merge import correct_shard
from dcplint.harness.kernels.mla_decode import mla_decode
from dcplint.harness.model import Geometry

Caches = tuple[torch.Tensor, ...]


@dataclass(frozen=True, slots=True)
class DecodeMetadata:
    """What the kernels take. `local_lens` counts tokens on this rank, `seq_lens` global ones."""

    query_start_loc: torch.Tensor
    seq_lens: torch.Tensor
    local_lens: torch.Tensor
    block_table: torch.Tensor
    max_query_len: int


class DecodeBuilder(MetadataBuilderBase):
    """Builds into buffers of its own, as a backend must whose graph is captured once."""

    _MAX_REQS = 64

    def __init__(self, geometry: Geometry, dcp: DCPConfig) -> None:
        super().__init__(geometry, dcp)
        self._local_lens: torch.Tensor | None = None

    def build(self, common: CommonAttentionMetadata) -> DecodeMetadata:
        """Take the runner's local lengths; rows beyond the real requests are zeroed."""
        local_lens = common.dcp_local_seq_lens
        if self.dcp_world_size == 1:
            local_lens = common.seq_lens
        elif local_lens is None:
            raise ValueError("the runner owes dcp_local_seq_lens under DCP")
        if self._local_lens is None:
            self._local_lens = local_lens.new_zeros(self._MAX_REQS)
        self._local_lens[common.num_reqs :].zero_()
        self._local_lens[: common.num_reqs].copy_(local_lens[: common.num_reqs])
        return DecodeMetadata(
            query_start_loc=common.query_start_loc,
            seq_lens=common.seq_lens,
            local_lens=self._local_lens[: common.seq_lens.shape[0]],
            block_table=common.block_table,
            max_query_len=common.max_query_len,
        )

    def slot_mapping(self, common: CommonAttentionMetadata) -> torch.Tensor:
        """Global position to local token to page and offset; -1 for another rank's token."""
        positions, interleave = common.positions, self.interleave
        page_size = self.geometry.page_size
        chunk = positions // interleave
        mine = chunk % self.dcp_world_size == self.dcp_rank
        local = chunk // self.dcp_world_size * interleave + positions % interleave
        page = common.block_table[common.request_ids, local // page_size].long()
        return torch.where(mine, page * page_size + local % page_size, -1)


def _merge(impl: AttentionImplBase, out: torch.Tensor, lse: torch.Tensor) -> torch.Tensor:
    if impl.dcp_world_size == 1:
        return out
    lses = impl.group.all_gather(lse)
    corrected, _ = correct_shard(out, lses, impl.dcp_rank)
    by_head = corrected.transpose(0, 1).contiguous()
    return impl.group.reduce_scatter(by_head).transpose(0, 1).to(out.dtype)


class GQAImpl(AttentionImplBase):
    """Grouped-query attention, one split of the KV heads shared by all gathered query heads."""

    supports_dcp = True
    can_return_lse_for_decode = True
    max_query_len = 64
    supports_window = True
    supports_soft_cap = True
    supports_sinks = True
    supports_fp8_cache = True

    def write(
        self, kv_cache: Caches, key: torch.Tensor, value: torch.Tensor, slot_mapping: torch.Tensor
    ) -> None:
        """See `AttentionImplBase`."""
        mine = slot_mapping >= 0
        slots = slot_mapping[mine]
        for cache, rows in zip(kv_cache, (key, value), strict=True):
            cache.view(-1, *cache.shape[2:])[slots] = rows[mine].to(cache.dtype)

    def forward(
        self, query: torch.Tensor, kv_cache: Caches, metadata: DecodeMetadata
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """See `AttentionImplBase`."""
        k_cache, v_cache = kv_cache
        out, lse = gqa_decode(
            query,
            k_cache,
            v_cache,
            metadata.block_table,
            metadata.local_lens,
            metadata.seq_lens,
            metadata.query_start_loc,
            max_query_len=metadata.max_query_len,
            sm_scale=self.geometry.sm_scale,
            dcp_rank=self.dcp_rank,
            dcp_world_size=self.dcp_world_size,
            interleave=self.interleave,
            window=self.geometry.window,
            soft_cap=self.geometry.soft_cap,
            sinks=self.sinks,
        )
        return out, lse

    def merge(self, out: torch.Tensor, lse: torch.Tensor) -> torch.Tensor:
        """See `AttentionImplBase`."""
        return _merge(self, out, lse)


class MLAImpl(MLAImplBase):
    """Multi-head latent attention with absorbed queries."""

    supports_dcp = True
    can_return_lse_for_decode = True
    max_query_len = 64
    supports_window = True
    supports_soft_cap = True
    supports_sinks = True
    supports_fp8_cache = True

    def write(
        self, kv_cache: Caches, key: torch.Tensor, value: torch.Tensor, slot_mapping: torch.Tensor
    ) -> None:
        """See `AttentionImplBase`."""
        (cache,) = kv_cache
        mine = slot_mapping >= 0
        cache.view(-1, cache.shape[-1])[slot_mapping[mine]] = key[mine, 0].to(cache.dtype)

    def forward(
        self, query: torch.Tensor, kv_cache: Caches, metadata: DecodeMetadata
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """See `AttentionImplBase`."""
        out, lse = mla_decode(
            query,
            kv_cache[0],
            metadata.block_table,
            metadata.local_lens,
            metadata.seq_lens,
            metadata.query_start_loc,
            kv_lora_rank=self.geometry.kv_lora_rank,
            max_query_len=metadata.max_query_len,
            sm_scale=self.geometry.sm_scale,
            dcp_rank=self.dcp_rank,
            dcp_world_size=self.dcp_world_size,
            interleave=self.interleave,
            window=self.geometry.window,
            soft_cap=self.geometry.soft_cap,
            sinks=self.sinks,
        )
        return out, lse

    def merge(self, out: torch.Tensor, lse: torch.Tensor) -> torch.Tensor:
        """See `AttentionImplBase`."""
        return _merge(self, out, lse)


class GQABackend(AttentionBackendBase):
    """The control for grouped-query attention."""

    @staticmethod
    def get_impl_cls() -> type[AttentionImplBase]:
        """See `AttentionBackendBase`."""
        return GQAImpl

    @staticmethod
    def get_builder_cls() -> type[MetadataBuilderBase]:
        """See `AttentionBackendBase`."""
        return DecodeBuilder


class MLABackend(AttentionBackendBase):
    """The control for latent attention."""

    @staticmethod
    def get_impl_cls() -> type[AttentionImplBase]:
        """See `AttentionBackendBase`."""
        return MLAImpl

    @staticmethod
    def get_builder_cls() -> type[MetadataBuilderBase]:
        """See `AttentionBackendBase`."""
        return DecodeBuilder
