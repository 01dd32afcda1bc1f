# engine: vllm==0.30.0
"""Prefill takes its rows out of the batch and blanks what belongs to decode: too much of it."""

from vllm.distributed.parallel_state import get_dcp_group
from vllm.v1.attention.backend import AttentionMetadataBuilder, CommonAttentionMetadata

from .lengths import get_dcp_local_seq_lens


class RowsMetadataBuilder(AttentionMetadataBuilder):
    def build(self, common_prefix_len, common_attn_metadata: CommonAttentionMetadata):
        return common_attn_metadata.dcp_local_seq_lens


class PrefillMetadataBuilder(RowsMetadataBuilder):
    def build(self, common_prefix_len, common_attn_metadata: CommonAttentionMetadata):
        rows = common_attn_metadata.prefill_rows
        common = CommonAttentionMetadata(  # expect: DCP204
            seq_lens=common_attn_metadata.seq_lens[rows],
            num_reqs=len(rows),
            dcp_local_seq_lens=(
                None
                if common_attn_metadata.dcp_local_seq_lens is None
                else common_attn_metadata.dcp_local_seq_lens[rows]
            ),
        )
        return super().build(common_prefix_len, common)


def execute(builder: PrefillMetadataBuilder, batch):
    shards = get_dcp_group().world_size
    local = get_dcp_local_seq_lens(batch.seq_lens, shards) if shards > 1 else None
    common = CommonAttentionMetadata(
        seq_lens=batch.seq_lens, num_reqs=batch.num_reqs, dcp_local_seq_lens=local
    )
    return builder.build(0, common)
