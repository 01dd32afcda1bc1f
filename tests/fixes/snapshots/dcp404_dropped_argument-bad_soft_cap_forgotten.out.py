# engine: vllm==0.30.0
"""The soft cap reaches the kernel without DCP, and not with it."""

from vllm.v1.attention.backend import AttentionImpl

from .kernels import merge, varlen_attention


class CappedImpl(AttentionImpl):
    supports_dcp = True
    can_return_lse_for_decode = True

    def __init__(self, soft_cap=0.0, **kwargs):
        self.scale = kwargs["scale"]
        self.soft_cap = soft_cap

    def forward(self, layer, query, key, value, kv_cache, attn_metadata, output):
        if self.dcp_world_size > 1:
            return self._forward_with_dcp(query, kv_cache, attn_metadata)
        return varlen_attention(
            q=query,
            kv=kv_cache,
            seqused_k=attn_metadata.seq_lens,
            softmax_scale=self.scale,
            causal=True,
            softcap=self.soft_cap,
        )

    def _forward_with_dcp(self, query, kv_cache, attn_metadata):
        out, lse = varlen_attention(  # expect: DCP404
            q=query,
            kv=kv_cache,
            seqused_k=attn_metadata.dcp_local_seq_lens,
            softmax_scale=self.scale,
            causal=False,
            softcap=self.soft_cap,
        )
        return merge(out, lse)
