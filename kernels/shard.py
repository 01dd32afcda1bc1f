"""Device-side arithmetic of the interleave sharding, used by the kernels of this folder."""

import triton
import triton.language as tl


@triton.jit
def local_length(length, dcp_rank, dcp_world_size, interleave):
    """How many of the first `length` (global) tokens lie on `dcp_rank`. Elementwise, int32."""
    cycle = dcp_world_size * interleave
    rest = length % cycle - dcp_rank * interleave
    return (length // cycle) * interleave + tl.minimum(tl.maximum(rest, 0), interleave)


@triton.jit
def global_position(local, dcp_rank, dcp_world_size, interleave):
    """The global position of a rank's `local`-th token. Elementwise, int32."""
    return (local // interleave * dcp_world_size + dcp_rank) * interleave + local % interleave
