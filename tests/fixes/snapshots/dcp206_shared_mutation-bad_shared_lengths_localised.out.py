# engine: dcplint==0.1.0
"""The shared lengths become local ones, for every layer that comes after."""

import torch

from dcplint.harness.contract import (
    AttentionBackendBase,
    CommonAttentionMetadata,
    MetadataBuilderBase,
)
from dcplint.harness.control import DecodeMetadata, GQAImpl


class PagedBuilder(MetadataBuilderBase):
    def build(self, common: CommonAttentionMetadata):
        local_lens = common.seq_lens.clone()
        if self.dcp_world_size > 1:
            local_lens[:] = common.dcp_local_seq_lens  # expect: DCP206
        return DecodeMetadata(
            query_start_loc=common.query_start_loc,
            seq_lens=common.seq_lens,
            local_lens=local_lens,
            block_table=common.block_table,
            max_query_len=common.max_query_len,
        )

    def slot_mapping(self, common):
        page_size = self.geometry.page_size
        chunk = common.positions // self.interleave
        mine = chunk % self.dcp_world_size == self.dcp_rank
        local = chunk // self.dcp_world_size * self.interleave + common.positions % self.interleave
        page = common.block_table[common.request_ids, local // page_size].long()
        return torch.where(mine, page * page_size + local % page_size, -1)


class PagedBackend(AttentionBackendBase):
    @staticmethod
    def get_impl_cls():
        return GQAImpl

    @staticmethod
    def get_builder_cls():
        return PagedBuilder
