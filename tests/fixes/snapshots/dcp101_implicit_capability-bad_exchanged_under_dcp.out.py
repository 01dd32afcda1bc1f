# engine: vllm==0.29.0
"""With DCP the backend hands out another class, and what `PagedImpl` inherits is asked of nobody.

`LatentImpl` looks the same, but a second backend hands it out whatever DCP says.
"""

from functools import lru_cache

from vllm.config import get_current_vllm_config
from vllm.v1.attention.backend import AttentionBackend, AttentionImpl

from .kernels import paged_decode


@lru_cache(maxsize=1)
def shards_the_cache():
    return get_current_vllm_config().parallel_config.decode_context_parallel_size > 1


class PagedImpl(AttentionImpl):  # expect: DCP101 note
    supports_dcp = False

    def __init__(self, *args, **kwargs):
        self.scale = kwargs["scale"]

    def forward(self, layer, query, key, value, kv_cache, attn_metadata, output):
        return paged_decode(query, kv_cache, attn_metadata.seq_lens, out=output)


class LatentImpl(AttentionImpl):  # expect: DCP101 error
    supports_dcp = False

    def __init__(self, *args, **kwargs):
        self.scale = kwargs["scale"]

    def forward(self, layer, query, key, value, kv_cache, attn_metadata, output):
        return paged_decode(query, kv_cache, attn_metadata.seq_lens, out=output)


class ShardedImpl(PagedImpl):
    supports_dcp = True
    can_return_lse_for_decode = True


class PagedBackend(AttentionBackend):
    @staticmethod
    def get_impl_cls():
        if shards_the_cache():
            return ShardedImpl
        return PagedImpl


class LatentBackend(AttentionBackend):
    @staticmethod
    def get_impl_cls():
        return ShardedImpl if shards_the_cache() else LatentImpl


class LatentBackendForSmallCards(AttentionBackend):
    @staticmethod
    def get_impl_cls():
        return LatentImpl
