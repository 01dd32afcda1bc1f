# engine: vllm==0.30.0
"""A view shares its memory: clamping one is clamping the batch's own lengths."""

from vllm.v1.attention.backend import AttentionMetadataBuilder, CommonAttentionMetadata


class WindowMetadataBuilder(AttentionMetadataBuilder):
    def __init__(self, kv_cache_spec, layer_names, vllm_config, device):
        self.window = kv_cache_spec.sliding_window

    def build(self, common_prefix_len, common_attn_metadata: CommonAttentionMetadata):
        rows = common_attn_metadata.seq_lens.view(-1).clone()
        rows.clamp_(max=self.window)  # expect: DCP206
        return rows
