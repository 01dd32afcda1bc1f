"""A builder that reads the local lengths, and falls back where they are missing."""

from vllm.distributed.parallel_state import get_dcp_group
from vllm.v1.attention.backend import AttentionMetadataBuilder, CommonAttentionMetadata
from vllm.v1.attention.backends.lengths import get_dcp_local_seq_lens


class LatentMetadataBuilder(AttentionMetadataBuilder):
    def __init__(self, vllm_config):
        super().__init__(vllm_config)
        self.dcp_world_size = get_dcp_group().world_size

    def build(self, common_prefix_len, common_attn_metadata: CommonAttentionMetadata):
        seq_lens = common_attn_metadata.seq_lens
        local = common_attn_metadata.dcp_local_seq_lens
        if self.dcp_world_size > 1:
            assert seq_lens is not None
            if local is None:
                local = get_dcp_local_seq_lens(
                    seq_lens, self.dcp_world_size, get_dcp_group().rank_in_group
                )
            seq_lens = local
        return seq_lens, common_attn_metadata.block_table
