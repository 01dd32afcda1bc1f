# engine: vllm==0.30.0
"""Where no rank has any context, one call does it all, and leaves out what the others pass."""

from vllm.distributed.parallel_state import get_dcp_group
from vllm.v1.attention.backend import AttentionImpl
from vllm.v1.attention.backends.fa_utils import flash_attn_varlen_func
from vllm.v1.attention.ops.merge_attn_states import merge_attn_states


class CappedImpl(AttentionImpl):
    supports_dcp = True
    can_return_lse_for_decode = True

    def __init__(self, *args, **kwargs): ...

    def forward(self, layer, query, key, value, kv_cache, meta, output):
        if self.dcp_world_size > 1:
            return self._over_ranks(query, key, value, kv_cache, meta, output)
        return flash_attn_varlen_func(
            q=query, k=kv_cache, v=kv_cache, out=output, softcap=self.cap, alibi_slopes=self.slopes
        )

    def _over_ranks(self, query, key, value, kv_cache, meta, output):
        if meta.max_context == 0:
            flash_attn_varlen_func(  # expect: DCP404
                q=query, k=key, v=value, out=output, alibi_slopes=self.slopes, softcap=self.cap
            )
            return output
        every = get_dcp_group().all_gather(query.contiguous(), dim=1)
        context, context_lse = self._of_context(every, kv_cache)
        own, own_lse = flash_attn_varlen_func(
            q=query,
            k=key,
            v=value,
            softcap=self.cap,
            alibi_slopes=self.slopes,
            return_softmax_lse=True,
        )
        merge_attn_states(output, context, context_lse, own, own_lse)
        return output

    def _of_context(self, every, kv_cache):
        return flash_attn_varlen_func(
            q=every,
            k=kv_cache,
            v=kv_cache,
            softcap=self.cap,
            alibi_slopes=self.slopes,
            return_softmax_lse=True,
        )
