"""The first model runner: one metadata object per step, split into micro-batches when asked."""

from vllm.distributed.parallel_state import get_dcp_group
from vllm.v1.attention.backend import CommonAttentionMetadata
from vllm.v1.attention.backends.latent import LatentMetadataBuilder
from vllm.v1.attention.backends.lengths import get_dcp_local_seq_lens
from vllm.v1.spec_decode.proposer import Proposer
from vllm.v1.worker.splitter import split_requests


class GPUModelRunner:
    def __init__(self, vllm_config):
        self.dcp_world_size = get_dcp_group().world_size
        self.dcp_rank = get_dcp_group().rank_in_group
        self.builder = LatentMetadataBuilder(vllm_config)
        self.drafter = Proposer(vllm_config)

    def _build_attention_metadata(self, seq_lens, block_table, parts):
        common = CommonAttentionMetadata(
            seq_lens=seq_lens,
            num_reqs=len(seq_lens),
            block_table=block_table,
            max_seq_len=max(seq_lens),
        )
        if self.dcp_world_size > 1:
            common.dcp_local_seq_lens = get_dcp_local_seq_lens(
                seq_lens, self.dcp_world_size, self.dcp_rank
            )
        if parts:
            return [self.builder.build(0, part) for part in split_requests(common, parts)]
        return self.builder.build(0, common)

    def execute_model(self, seq_lens, block_table, parts=()):
        self._build_attention_metadata(seq_lens, block_table, parts)
        self.drafter.propose(seq_lens, block_table)

    def _dummy_run(self, num_reqs):
        self._build_attention_metadata([1] * num_reqs, [], ())
