"""A drafter: it looks one token ahead, so its lengths are its own."""

from vllm.distributed.parallel_state import get_dcp_group
from vllm.v1.attention.backend import CommonAttentionMetadata
from vllm.v1.attention.backends.latent import LatentMetadataBuilder
from vllm.v1.attention.backends.lengths import get_dcp_local_seq_lens


class Proposer:
    def __init__(self, vllm_config):
        self.builder = LatentMetadataBuilder(vllm_config)

    def propose(self, seq_lens, block_table):
        ahead = [n + 1 for n in seq_lens]
        group = get_dcp_group()
        local = None
        if group.world_size > 1:
            local = get_dcp_local_seq_lens(ahead, group.world_size, group.rank_in_group)
        common = CommonAttentionMetadata(
            seq_lens=ahead,
            num_reqs=len(ahead),
            block_table=block_table,
            max_seq_len=max(ahead),
            dcp_local_seq_lens=local,
        )
        return self.builder.build_for_drafting(common)
