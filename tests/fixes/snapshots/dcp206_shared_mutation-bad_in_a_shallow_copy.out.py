# engine: vllm==0.30.0
"""A copy of the record holds the same tensors."""

import copy
import dataclasses
from copy import copy as shallow
from dataclasses import replace

from vllm.v1.attention.backend import AttentionMetadataBuilder, CommonAttentionMetadata


class SinkBuilder(AttentionMetadataBuilder):
    def build(self, common_prefix_len, common_attn_metadata: CommonAttentionMetadata):
        mine = copy.copy(common_attn_metadata)
        mine.seq_lens[: mine.num_reqs] -= self.sinks  # expect: DCP206
        return mine


class RenamingBuilder(AttentionMetadataBuilder):
    def build(self, common_prefix_len, common_attn_metadata: CommonAttentionMetadata):
        common_attn_metadata = shallow(common_attn_metadata)
        lens = common_attn_metadata.seq_lens.clone()
        lens.sub_(self.sinks)  # expect: DCP206
        return common_attn_metadata


class OtherPartsBuilder(AttentionMetadataBuilder):
    def build(self, common_prefix_len, common_attn_metadata: CommonAttentionMetadata):
        batch = replace(common_attn_metadata, max_seq_len=self.longest)
        batch.seq_lens -= self.sinks  # expect: DCP206
        return batch


class RecordBuilder(AttentionMetadataBuilder):
    def build(self, common_prefix_len, common_attn_metadata: CommonAttentionMetadata):
        batch = common_attn_metadata.replace(num_actual_tokens=self.tokens)
        batch.seq_lens[1:].clamp_(max=self.window)  # expect: DCP206
        return batch


class CopyOfACopyBuilder(AttentionMetadataBuilder):
    def build(self, common_prefix_len, common_attn_metadata: CommonAttentionMetadata):
        first = dataclasses.replace(common_attn_metadata, max_seq_len=self.longest)
        second = copy.copy(first)
        second.seq_lens += 1  # expect: DCP206
        return second


class SharedAllTheSameBuilder(AttentionMetadataBuilder):
    """The lengths are named, and are the ones that it got."""

    def build(self, common_prefix_len, common_attn_metadata: CommonAttentionMetadata):
        cm = common_attn_metadata
        batch = dataclasses.replace(cm, seq_lens=cm.seq_lens[: cm.num_reqs], max_seq_len=1)
        batch.seq_lens -= self.sinks  # expect: DCP206
        return batch


def trim(common, k):
    common.seq_lens.sub_(k)


class HelpedBuilder(AttentionMetadataBuilder):
    def build(self, common_prefix_len, common_attn_metadata: CommonAttentionMetadata):
        mine = copy.copy(common_attn_metadata).clone()
        mine.max_seq_len = self.longest
        trim(mine, self.sinks)  # expect: DCP206
        return super().build(common_prefix_len, mine)
