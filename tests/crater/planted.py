"""Faults in TritonMLA's and FlashAttention's real paths, as subclasses of the released classes.

Each backend differs from the engine's own by one fault. Loaded by the harness beside the engine,
never imported by tests.
"""

from __future__ import annotations

import copy
import functools
import math
from typing import Any

import torch
from vllm.config import get_current_vllm_config
from vllm.v1.attention.backends.flash_attn import (
    FlashAttentionBackend,
    FlashAttentionImpl,
    FlashAttentionMetadataBuilder,
)
from vllm.v1.attention.backends.mla.flashattn_mla import (
    FlashAttnMLABackend,
    FlashAttnMLAImpl,
)
from vllm.v1.attention.backends.mla.triton_mla import (
    TritonMLABackend,
    TritonMLAImpl,
    TritonMLAMetadataBuilder,
)
from vllm.v1.attention.backends.utils import get_dcp_local_seq_lens


def _local(builder: Any, lengths: Any, rank_off_by: int = 0) -> Any:
    from vllm.distributed.parallel_state import get_dcp_group

    group = get_dcp_group()
    rank = (group.rank_in_group + rank_off_by) % group.world_size
    interleave = builder.cp_kv_cache_interleave_size
    return get_dcp_local_seq_lens(lengths, group.world_size, rank, interleave)


class _MLABuilder(TritonMLAMetadataBuilder):
    def lengths(self, common: Any) -> Any:
        raise NotImplementedError

    def build(self, common_prefix_len: int, common_attn_metadata: Any, *rest: Any) -> Any:
        changed = common_attn_metadata.replace(
            dcp_local_seq_lens=self.lengths(common_attn_metadata)
        )
        return super().build(common_prefix_len, changed, *rest)


class _GlobalMLABuilder(_MLABuilder):
    def lengths(self, common: Any) -> Any:
        return common.seq_lens


class _WrongRankMLABuilder(_MLABuilder):
    def lengths(self, common: Any) -> Any:
        return _local(self, common.seq_lens, rank_off_by=1)


class _DroppedMLABuilder(_MLABuilder):
    def lengths(self, common: Any) -> Any:
        return None


class _StaleMLABuilder(_MLABuilder):
    def lengths(self, common: Any) -> Any:
        """Of the step before, eight tokens a request ago."""
        return _local(self, (common.seq_lens - 8).clamp(min=0))


class _Log2MLAImpl(TritonMLAImpl):
    def forward_mqa(self, *arguments: Any, **options: Any) -> Any:
        out, lse = super().forward_mqa(*arguments, **options)
        return out, lse / math.log(2.0)


class MLAGlobalLengths(TritonMLABackend):
    @staticmethod
    def get_builder_cls() -> Any:
        return _GlobalMLABuilder


class MLAWrongRank(TritonMLABackend):
    @staticmethod
    def get_builder_cls() -> Any:
        return _WrongRankMLABuilder


class MLAFieldDropped(TritonMLABackend):
    @staticmethod
    def get_builder_cls() -> Any:
        return _DroppedMLABuilder


class MLAStalePair(TritonMLABackend):
    @staticmethod
    def get_builder_cls() -> Any:
        return _StaleMLABuilder


class MLALog2(TritonMLABackend):
    @staticmethod
    def get_impl_cls() -> Any:
        return _Log2MLAImpl


class _SeveralTokensMLABuilder(TritonMLAMetadataBuilder):
    """Takes several new tokens of a request for a decode under DCP too."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.reorder_batch_threshold = 1 + self.vllm_config.num_speculative_tokens


class _SeveralTokensMLAImpl(TritonMLAImpl):
    """A decode row per token, whose own length is the mask."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.interleave = get_current_vllm_config().parallel_config.cp_kv_cache_interleave_size

    def forward_mqa(self, q: Any, cache: Any, metadata: Any, layer: Any) -> Any:
        rows = q[0].shape[0] if isinstance(q, tuple) else q.shape[0]
        decode = copy.copy(metadata.decode)
        tokens = rows // decode.seq_lens.shape[0]
        before = torch.arange(1 - tokens, 1, dtype=decode.seq_lens.dtype)
        decode.seq_lens = self.lengths(decode, before).flatten().clamp(min=0)
        decode.block_table = decode.block_table.repeat_interleave(tokens, dim=0)
        metadata = copy.copy(metadata)
        metadata.decode = decode
        return super().forward_mqa(q, cache, metadata, layer)

    def lengths(self, decode: Any, before: Any) -> Any:
        if self.dcp_world_size == 1:
            return decode.seq_lens[:, None] + before
        seen = decode.dcp_tot_seq_lens[:, None] + before
        return get_dcp_local_seq_lens(
            seen.flatten(), self.dcp_world_size, self.dcp_rank, self.interleave
        )


class _LocalMaskMLAImpl(_SeveralTokensMLAImpl):
    def lengths(self, decode: Any, before: Any) -> Any:
        return decode.seq_lens[:, None] + before


class MLASeveralTokens(TritonMLABackend):
    """Right: the others of its kind show what is wrong with them, not with this."""

    @staticmethod
    def get_builder_cls() -> Any:
        return _SeveralTokensMLABuilder

    @staticmethod
    def get_impl_cls() -> Any:
        return _SeveralTokensMLAImpl


class MLALocalMask(MLASeveralTokens):
    @staticmethod
    def get_impl_cls() -> Any:
        return _LocalMaskMLAImpl


class _LocalMaskFlashMLAImpl(FlashAttnMLAImpl):
    def forward_mqa(self, *arguments: Any, **options: Any) -> Any:
        """The kernel is not told of the other ranks."""
        place = self.dcp_world_size, self.dcp_rank
        self.dcp_world_size, self.dcp_rank = 1, 0
        try:
            return super().forward_mqa(*arguments, **options)
        finally:
            self.dcp_world_size, self.dcp_rank = place


class FlashMLALocalMask(FlashAttnMLABackend):
    @staticmethod
    def get_impl_cls() -> Any:
        return _LocalMaskFlashMLAImpl


class _FlashBuilder(FlashAttentionMetadataBuilder):
    def contexts(self, common: Any) -> Any:
        raise NotImplementedError

    def build(self, common_prefix_len: int, common_attn_metadata: Any, *rest: Any) -> Any:
        metadata = super().build(common_prefix_len, common_attn_metadata, *rest)
        metadata.dcp_context_kv_lens = self.contexts(common_attn_metadata)
        metadata.max_dcp_context_kv_len = common_attn_metadata.max_seq_len
        return metadata


class _GlobalFlashBuilder(_FlashBuilder):
    def contexts(self, common: Any) -> Any:
        return common.seq_lens - common.naive_query_lens()


class _WrongRankFlashBuilder(_FlashBuilder):
    def contexts(self, common: Any) -> Any:
        return _local(self, common.seq_lens - common.naive_query_lens(), rank_off_by=1)


class _DroppedFlashBuilder(_FlashBuilder):
    def contexts(self, common: Any) -> Any:
        return None


class _StaleFlashBuilder(_FlashBuilder):
    def contexts(self, common: Any) -> Any:
        lengths = common.seq_lens - common.naive_query_lens() - 8
        return _local(self, lengths.clamp(min=0))


class _Log2FlashImpl(FlashAttentionImpl):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.dcp_combine = functools.partial(self.dcp_combine, is_lse_base_on_e=False)


class FlashGlobalLengths(FlashAttentionBackend):
    @staticmethod
    def get_builder_cls() -> Any:
        return _GlobalFlashBuilder


class FlashWrongRank(FlashAttentionBackend):
    @staticmethod
    def get_builder_cls() -> Any:
        return _WrongRankFlashBuilder


class FlashFieldDropped(FlashAttentionBackend):
    @staticmethod
    def get_builder_cls() -> Any:
        return _DroppedFlashBuilder


class FlashStalePair(FlashAttentionBackend):
    @staticmethod
    def get_builder_cls() -> Any:
        return _StaleFlashBuilder


class FlashLog2(FlashAttentionBackend):
    @staticmethod
    def get_impl_cls() -> Any:
        return _Log2FlashImpl
