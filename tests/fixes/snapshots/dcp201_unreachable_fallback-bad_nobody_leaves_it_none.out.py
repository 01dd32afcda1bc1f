# engine: vllm==0.30.0
"""The runner's one join point fills the lengths in; the builder derives them all the same."""

from vllm.distributed.parallel_state import get_dcp_group
from vllm.v1.attention.backend import AttentionMetadataBuilder, CommonAttentionMetadata

from .lengths import get_dcp_local_seq_lens


class LatentMetadataBuilder(AttentionMetadataBuilder):
    def __init__(self, kv_cache_spec, layer_names, vllm_config, device):
        self.dcp_world_size = get_dcp_group().world_size
        self.interleave = vllm_config.parallel_config.cp_kv_cache_interleave_size

    def build(self, common_prefix_len, common_attn_metadata: CommonAttentionMetadata):
        local = common_attn_metadata.dcp_local_seq_lens
        if self.dcp_world_size > 1:
            assert local is not None
        return local


class Runner:
    def __init__(self, config, builder: LatentMetadataBuilder):
        self.dcp_world_size = config.parallel_config.decode_context_parallel_size
        self.builder = builder

    def execute(self, batch):
        common = CommonAttentionMetadata(seq_lens=batch.seq_lens, num_reqs=batch.num_reqs)
        if self.dcp_world_size > 1:
            common.dcp_local_seq_lens = get_dcp_local_seq_lens(batch.seq_lens, self.dcp_world_size)
        return self.builder.build(0, common)
