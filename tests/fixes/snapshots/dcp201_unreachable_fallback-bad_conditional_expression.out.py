# engine: vllm==0.30.0
"""The same as one expression; target and dummy batches come from one helper that fills them in."""

from vllm.distributed.parallel_state import get_dcp_group
from vllm.v1.attention.backend import AttentionMetadataBuilder, CommonAttentionMetadata

from .lengths import get_dcp_local_seq_lens


def make_common(seq_lens, num_reqs):
    shards = get_dcp_group().world_size
    local = get_dcp_local_seq_lens(seq_lens, shards) if shards > 1 else None
    return CommonAttentionMetadata(
        seq_lens=seq_lens, num_reqs=num_reqs, dcp_local_seq_lens=local
    )


class PagedMetadataBuilder(AttentionMetadataBuilder):
    def __init__(self, kv_cache_spec, layer_names, vllm_config, device):
        self.shards = get_dcp_group().world_size

    def build(self, common_prefix_len, common_attn_metadata: CommonAttentionMetadata):
        given = common_attn_metadata.dcp_local_seq_lens
        if self.shards == 1:
            return common_attn_metadata.seq_lens
        return given


def step(builder: PagedMetadataBuilder, batch, dummy):
    builder.build(0, make_common(batch.seq_lens, batch.num_reqs))
    builder.build(0, make_common(dummy.seq_lens, dummy.num_reqs))
