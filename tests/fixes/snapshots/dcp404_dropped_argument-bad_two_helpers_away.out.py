# engine: vllm==0.30.0
"""The sharded path leaves early, and its kernel call is two helpers away."""

from vllm.v1.attention.backend import AttentionImpl

from .kernels import gather_heads, merge, varlen_attention


class SinkImpl(AttentionImpl):
    supports_dcp = True
    can_return_lse_for_decode = True

    def __init__(self, sinks=None, **kwargs):
        self.scale = kwargs["scale"]
        self.sinks = sinks
        self.is_sharded = self.dcp_world_size > 1

    def forward(self, layer, query, key, value, kv_cache, attn_metadata, output):
        if self.is_sharded:
            return self._sharded(query, kv_cache, attn_metadata)
        return self._plain(query, kv_cache, attn_metadata)

    def _plain(self, query, kv_cache, attn_metadata):
        return varlen_attention(
            q=query, kv=kv_cache, seqused_k=attn_metadata.seq_lens, s_aux=self.sinks
        )

    def _sharded(self, query, kv_cache, attn_metadata):
        out, lse = self._partial(gather_heads(query), kv_cache, attn_metadata.dcp_local_seq_lens)
        return merge(out, lse)

    def _partial(self, query, kv_cache, lens):
        return varlen_attention(q=query, kv=kv_cache, seqused_k=lens)  # expect: DCP404


class CappedImpl(AttentionImpl):
    """The guard is asked once, and one helper serves both sides."""

    supports_dcp = True
    can_return_lse_for_decode = True

    def __init__(self, logits_soft_cap=0.0, **kwargs):
        self.logits_soft_cap = logits_soft_cap

    def forward(self, layer, query, key, value, kv_cache, attn_metadata, output):
        sharded = self.dcp_world_size != 1
        if not sharded:
            return self._attend(query, kv_cache, attn_metadata.seq_lens, self.logits_soft_cap)
        return merge(*self._attend(query, kv_cache, attn_metadata.dcp_local_seq_lens))

    def _attend(self, query, kv_cache, lens, cap=None):
        return varlen_attention(q=query, kv=kv_cache, lens=lens, softcap=self.logits_soft_cap)  # expect: DCP404
