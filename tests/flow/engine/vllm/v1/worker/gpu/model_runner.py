"""The second model runner: batches of its own, real ones and dummies, joined before the builder."""

from dataclasses import dataclass

from vllm.distributed.parallel_state import get_dcp_group
from vllm.v1.attention.backend import CommonAttentionMetadata
from vllm.v1.attention.backends.latent import LatentMetadataBuilder
from vllm.v1.attention.backends.lengths import get_dcp_local_seq_lens


@dataclass
class InputBatch:
    seq_lens: list
    block_table: list
    dcp_local_seq_lens: list | None = None

    @classmethod
    def make_dummy(cls, num_reqs):
        return cls(seq_lens=[1] * num_reqs, block_table=[])


class GPUModelRunner:
    def __init__(self, vllm_config):
        group = get_dcp_group()
        self.dcp_size, self.dcp_rank = group.world_size, group.rank_in_group
        self.use_dcp = self.dcp_size > 1
        self.builder = LatentMetadataBuilder(vllm_config)

    def execute_model(self, scheduled, is_dummy=False):
        if is_dummy:
            batch = InputBatch.make_dummy(len(scheduled))
        else:
            batch = self.prepare_inputs(scheduled)
        if self.use_dcp:
            batch.dcp_local_seq_lens = get_dcp_local_seq_lens(
                batch.seq_lens, self.dcp_size, self.dcp_rank
            )
        return self.prepare_attn(batch)

    def prepare_inputs(self, scheduled):
        return InputBatch(seq_lens=list(scheduled), block_table=[])

    def prepare_attn(self, batch):
        common = CommonAttentionMetadata(
            seq_lens=batch.seq_lens,
            num_reqs=len(batch.seq_lens),
            block_table=batch.block_table,
            max_seq_len=max(batch.seq_lens),
            dcp_local_seq_lens=batch.dcp_local_seq_lens,
        )
        return self.builder.build(0, common)
