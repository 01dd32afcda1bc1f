# engine: vllm==0.29.0
"""Classes that say nothing, and one that shares its code with them and does make the claim.

What would deny it for the shared code would deny it for the one that has a right to it.
"""

from vllm.distributed.parallel_state import get_dcp_group
from vllm.v1.attention.backend import AttentionImpl
from vllm.v1.attention.ops.dcp import cp_lse_ag_out_rs

from .kernels import paged_decode, paged_decode_with_lse


class TunedSplits:
    def splits(self, attn_metadata):
        return max(1, attn_metadata.max_seq_len // 4096)


class PlainImpl(AttentionImpl):  # expect: DCP101 error
    def __init__(self, *args, **kwargs):
        self.scale = kwargs["scale"]

    def forward(self, layer, query, key, value, kv_cache, attn_metadata, output):
        return paged_decode(query, kv_cache, attn_metadata.seq_lens, out=output)


class MergingImpl(AttentionImpl):
    supports_dcp = True
    can_return_lse_for_decode = True

    def __init__(self, *args, **kwargs):
        self.scale = kwargs["scale"]

    def forward(self, layer, query, key, value, kv_cache, attn_metadata, output):
        out, lse = paged_decode_with_lse(query, kv_cache, attn_metadata.dcp_local_seq_lens)
        output.copy_(cp_lse_ag_out_rs(out, lse, get_dcp_group()))
        return output


class TunedPlainImpl(TunedSplits, PlainImpl):  # expect: DCP101 error
    supports_dcp = False
    num_splits = 16


class TunedMergingImpl(TunedSplits, MergingImpl):
    num_splits = 16


class EitherImpl(PlainImpl, MergingImpl):  # expect: DCP103 note
    def forward(self, *args, **kwargs):
        return MergingImpl.forward(self, *args, **kwargs)
