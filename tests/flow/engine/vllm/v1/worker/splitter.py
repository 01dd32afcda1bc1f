"""Micro-batches: the same metadata for some of the requests."""

from vllm.v1.attention.backend import CommonAttentionMetadata


def split_requests(common: CommonAttentionMetadata, parts):
    return [_requests(common, part) for part in parts]


def _requests(common: CommonAttentionMetadata, part):
    seq_lens = common.seq_lens[part]
    local = common.dcp_local_seq_lens
    return CommonAttentionMetadata(
        seq_lens=seq_lens,
        num_reqs=len(seq_lens),
        block_table=common.block_table[part],
        max_seq_len=max(seq_lens),
        dcp_local_seq_lens=local[part] if local is not None else None,
    )
