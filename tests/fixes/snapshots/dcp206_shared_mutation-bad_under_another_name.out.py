# engine: vllm==0.30.0
"""The batch's lengths are stored into under another name: one of two, of several, or by choice."""

from vllm.v1.attention.backend import AttentionMetadataBuilder, CommonAttentionMetadata


class UnpackingBuilder(AttentionMetadataBuilder):
    def build(self, common_prefix_len, common_attn_metadata: CommonAttentionMetadata):
        lens, tables = common_attn_metadata.seq_lens, common_attn_metadata.block_table_tensor
        lens -= common_prefix_len  # expect: DCP206
        return lens, tables


class SlicingBuilder(AttentionMetadataBuilder):
    def build(self, common_prefix_len, common_attn_metadata: CommonAttentionMetadata):
        count = common_attn_metadata.num_reqs
        rows = common_attn_metadata.seq_lens[:count].clone()
        rows -= common_prefix_len  # expect: DCP206
        return rows


class ChoosingBuilder(AttentionMetadataBuilder):
    def build(self, common_prefix_len, common_attn_metadata: CommonAttentionMetadata):
        padded = common_attn_metadata.num_actual_tokens < self.capacity
        lens = self.padded_lens if padded else common_attn_metadata.seq_lens
        lens.sub_(common_prefix_len)  # expect: DCP206
        return lens


class SometimesCloningBuilder(AttentionMetadataBuilder):
    """It clones for one feature, and stores with or without it."""

    def build(self, common_prefix_len, common_attn_metadata: CommonAttentionMetadata):
        lens = common_attn_metadata.seq_lens
        if self.use_cuda_graph:
            lens = lens.clone()
        lens[common_attn_metadata.num_decodes :] -= common_prefix_len  # expect: DCP206
        return lens
