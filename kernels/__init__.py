"""Triton kernels for attention over an interleave-sharded, paged KV cache.

One file per operation: device code, launcher, shapes. Every kernel runs compiled on a GPU and
interpreted on a CPU (`TRITON_INTERPRET=1`, set before the first import) from the same source.

Shared conventions: lengths and positions count tokens, *global* before sharding, *local* on one
rank; token `i` lives on rank `(i // interleave) % dcp_world_size`; an LSE is the natural log of the
summed exponentials of the scaled scores, and an empty shard has output 0 and LSE -inf.
"""
