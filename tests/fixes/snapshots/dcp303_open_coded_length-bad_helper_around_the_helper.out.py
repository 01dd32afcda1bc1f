# engine: vllm==0.30.0
"""The engine's helper is wrapped; what goes into the wrapper is a piece, or is local already."""

import torch

from vllm.v1.attention.backend import AttentionMetadataBuilder, CommonAttentionMetadata
from vllm.v1.attention.backends.utils import get_dcp_local_seq_lens


def portion(tokens, shards, shard, stripe):
    if shards == 1:
        return tokens
    own = get_dcp_local_seq_lens(tokens, shards, shard, stripe)
    return own.to(torch.int32)


class WrappingBuilder(AttentionMetadataBuilder):
    def own(self, tokens):
        return portion(tokens, self.dcp_world_size, self.dcp_rank, self.interleave)

    def own_in_place(self, tokens, rows, is_view):
        share = self.own(tokens)
        if is_view:
            tokens.copy_(share)
            return tokens
        held = self.rows_buffer[:rows]
        held.copy_(share)
        return held

    def build(self, common_prefix_len, batch: CommonAttentionMetadata):
        starts = torch.arange(self.chunks)[:, None] * self.chunk
        ends = torch.minimum(batch.seq_lens[None], starts + self.chunk)
        pieces = ends - starts
        return self.own(pieces)  # expect: DCP303

    def build_rows(self, batch: CommonAttentionMetadata):
        begin = self.begin
        upto = torch.min(batch.seq_lens, begin + self.chunk)
        return self.own_in_place(upto - begin, 4, False)  # expect: DCP303

    def twice(self, batch: CommonAttentionMetadata):
        lens = self.own(batch.seq_lens)
        return get_dcp_local_seq_lens(  # expect: DCP303
            lens, self.dcp_world_size, self.dcp_rank, self.interleave
        )

    def of_the_field(self, batch: CommonAttentionMetadata):
        rows = batch.dcp_local_seq_lens[: batch.num_reqs].clone()
        return self.own_in_place(rows, batch.num_reqs, True)  # expect: DCP206, DCP303

    def of_every_rank(self, batch: CommonAttentionMetadata):
        lens = batch.dcp_local_seq_lens
        return portion(lens, self.dcp_world_size, None, self.interleave)  # expect: DCP303

    def first_rows(self, share, batch: CommonAttentionMetadata):
        return share - batch.max_query_len  # expect: DCP303

    def handed_on(self, batch: CommonAttentionMetadata):
        return self.first_rows(batch.dcp_local_seq_lens, batch)

    def once_more(self, share):
        return get_dcp_local_seq_lens(share, self.dcp_world_size, self.dcp_rank, self.interleave)

    def anew(self, batch: CommonAttentionMetadata):
        return self.once_more(batch.dcp_local_seq_lens)  # expect: DCP303
