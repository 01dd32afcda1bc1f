"""What a runner hands to the builders, and what a builder is."""

from dataclasses import dataclass, replace


@dataclass
class CommonAttentionMetadata:
    seq_lens: list
    num_reqs: int
    block_table: list
    max_seq_len: int
    dcp_local_seq_lens: list | None = None
    causal: bool = True

    def replace(self, **changes):
        return replace(self, **changes)


class AttentionMetadataBuilder:
    def __init__(self, vllm_config):
        self.vllm_config = vllm_config

    def build(self, common_prefix_len, common_attn_metadata: CommonAttentionMetadata):
        raise NotImplementedError

    def build_for_drafting(self, common_attn_metadata: CommonAttentionMetadata):
        return self.build(0, common_attn_metadata)
