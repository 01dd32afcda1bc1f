# engine: vllm==0.29.0
"""Nobody says anything about DCP, and the class cannot return an LSE either."""

from vllm.v1.attention.backend import AttentionBackend, AttentionImpl

from .kernels import paged_decode


class PagedBackend(AttentionBackend):
    @staticmethod
    def get_name():
        return "PAGED"

    @staticmethod
    def get_impl_cls():
        return PagedImpl


class PagedImpl(AttentionImpl):  # expect: DCP101 error
    supports_dcp = False

    def __init__(self, num_heads, head_size, scale, num_kv_heads, kv_cache_dtype="auto"):
        self.num_heads = num_heads
        self.scale = scale
        self.num_kv_heads = num_kv_heads

    def forward(self, layer, query, key, value, kv_cache, attn_metadata, output):
        paged_decode(
            query,
            kv_cache,
            attn_metadata.block_table,
            attn_metadata.seq_lens,
            sm_scale=self.scale,
            out=output,
        )
        return output
