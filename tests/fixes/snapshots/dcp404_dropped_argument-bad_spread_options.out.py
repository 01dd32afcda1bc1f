# engine: vllm==0.30.0
"""The argument travels in a mapping, or in a call made ready beforehand."""

from functools import partial

from vllm.v1.attention.backend import AttentionImpl

from .kernels import merge, varlen_attention


class MappingImpl(AttentionImpl):
    supports_dcp = True
    can_return_lse_for_decode = True

    def __init__(self, sinks=None, **kwargs):
        self.scale = kwargs["scale"]
        self.sinks = sinks

    def forward(self, layer, query, key, value, kv_cache, attn_metadata, output):
        common = {"q": query, "kv": kv_cache, "scale": self.scale}
        if self.dcp_world_size > 1:
            lens = attn_metadata.dcp_local_seq_lens
            return merge(*varlen_attention(seqused_k=lens, **common))  # expect: DCP404
        options = dict(common, s_aux=self.sinks)
        return varlen_attention(seqused_k=attn_metadata.seq_lens, **options)


class AddedImpl(AttentionImpl):
    supports_dcp = True
    can_return_lse_for_decode = True

    def __init__(self, sinks=None, **kwargs):
        self.sinks = sinks

    def forward(self, layer, query, key, value, kv_cache, attn_metadata, output):
        options = {"q": query, "kv": kv_cache}
        if self.dcp_world_size > 1:
            options["seqused_k"] = attn_metadata.dcp_local_seq_lens
        else:
            options["seqused_k"] = attn_metadata.seq_lens
            options["s_aux"] = self.sinks
        return varlen_attention(**options)  # expect: DCP404


class ReadyImpl(AttentionImpl):
    supports_dcp = True
    can_return_lse_for_decode = True

    def __init__(self, logits_soft_cap=0.0, **kwargs):
        self.cap = logits_soft_cap
        self._whole = partial(varlen_attention, softcap=self.cap)
        self._shard = partial(varlen_attention, return_softmax_lse=True)

    def forward(self, layer, query, key, value, kv_cache, attn_metadata, output):
        if self.dcp_world_size > 1:
            return merge(*self._shard(q=query, kv=kv_cache, softcap=self.cap))  # expect: DCP404
        return self._whole(q=query, kv=kv_cache)
