# engine: vllm==0.29.0
"""A base, a mixin that speaks of something else, and two heirs: each is a backend of its own."""

import vllm.v1.attention.backend as engine

from .kernels import paged_decode, quantised_decode


class WithScales:
    supports_quant_query_input = True

    def scales(self, layer):
        return layer._q_scale, layer._k_scale, layer._v_scale


class FamilyImpl(engine.AttentionImpl):  # expect: DCP101 error
    supports_dcp = False

    def __init__(self, *args, **kwargs):
        self.scale = kwargs["scale"]

    def forward(self, layer, query, key, value, kv_cache, attn_metadata, output):
        return paged_decode(query, kv_cache, attn_metadata.seq_lens, out=output)


class QuantisedImpl(WithScales, FamilyImpl):  # expect: DCP101 error
    def forward(self, layer, query, key, value, kv_cache, attn_metadata, output):
        return quantised_decode(query, kv_cache, attn_metadata.seq_lens, self.scales(layer), output)


class TunedImpl(QuantisedImpl):  # expect: DCP101 error
    num_splits = 16
