# engine: vllm==0.30.0
"""A micro-batch is the whole batch field by field, except for one."""

from vllm.distributed.parallel_state import get_dcp_group
from vllm.v1.attention.backend import AttentionMetadataBuilder, CommonAttentionMetadata

from .lengths import get_dcp_local_seq_lens


class RowsMetadataBuilder(AttentionMetadataBuilder):
    def build(self, common_prefix_len, common_attn_metadata: CommonAttentionMetadata):
        return common_attn_metadata.dcp_local_seq_lens[: common_attn_metadata.num_reqs]


def slice_requests(common: CommonAttentionMetadata, part):
    seq_lens = common.seq_lens[part]
    return CommonAttentionMetadata(  # expect: DCP204
        seq_lens=seq_lens,
        num_reqs=part.stop - part.start,
        block_table_tensor=common.block_table_tensor[part],
        slot_mapping=common.slot_mapping,
        dcp_local_seq_lens=(
            None
            if common.dcp_local_seq_lens is None
            else common.dcp_local_seq_lens[part]
        ),
    )


def execute(builder: RowsMetadataBuilder, batch, parts):
    common = CommonAttentionMetadata(
        seq_lens=batch.seq_lens,
        num_reqs=batch.num_reqs,
        block_table_tensor=batch.block_table,
        slot_mapping=batch.slots,
        dcp_local_seq_lens=get_dcp_local_seq_lens(batch.seq_lens, get_dcp_group().world_size),
    )
    return [builder.build(0, slice_requests(common, part)) for part in parts]
