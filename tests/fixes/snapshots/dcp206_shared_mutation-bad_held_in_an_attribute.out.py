# engine: vllm==0.30.0
"""The builder keeps the record's tensor, and stores into it there."""

from vllm.v1.attention.backend import AttentionMetadataBuilder, CommonAttentionMetadata


class KeepingBuilder(AttentionMetadataBuilder):
    def build(self, common_prefix_len, common_attn_metadata: CommonAttentionMetadata):
        self.lens = common_attn_metadata.seq_lens.clone()
        self.lens -= self.sinks  # expect: DCP206
        return self.lens


class Plan:
    lens = None


class PlanningBuilder(AttentionMetadataBuilder):
    def build(self, common_prefix_len, common_attn_metadata: CommonAttentionMetadata):
        plan = Plan()
        plan.lens = common_attn_metadata.seq_lens[: common_attn_metadata.num_reqs].clone()
        if self.window:
            plan.lens.clamp_(max=self.window)  # expect: DCP206
        return plan


class ByAVariableBuilder(AttentionMetadataBuilder):
    def build(self, common_prefix_len, common_attn_metadata: CommonAttentionMetadata):
        self.cm = common_attn_metadata
        lens = self.cm.seq_lens.clone()
        lens[1:] -= self.sinks  # expect: DCP206
        return lens
