"""Lengths of shards."""


def get_dcp_local_seq_lens(seq_lens, world_size, rank, interleave=1):
    whole = world_size * interleave
    return [
        n // whole * interleave + min(max(n % whole - rank * interleave, 0), interleave)
        for n in seq_lens
    ]
