"""A tree of ATOM serving by itself, as its pack describes it."""

from pathlib import Path

import pytest

from tests.run.tree import Command, write

METADATA = """\
class AttentionMetaData:
    context_lens = None
    dcp_local_context_lens = None
"""
GROUP = """\
def get_dcp_group():
    from aiter.dist.parallel_state import get_dcp_group as get

    return get()
"""
OPS = """\
def get_dcp_local_seq_lens(seq_lens, dcp_size, dcp_rank, cp_kv_cache_interleave_size=1):
    return share(seq_lens, dcp_size, dcp_rank, cp_kv_cache_interleave_size)


def dcp_all_gather(cp_group, x, dim):
    return cp_group.all_gather(x, dim=dim)


def dcp_pack_topk_candidates(logits, found, local_lens, dcp_rank, dcp_world_size, out):
    pack(logits, found, local_lens, out)


def dcp_lse_merge(out, lse, cp_group, backend="a2a"):
    return combine(out, lse, cp_group)
"""
ATTENTION = """\
from aiter.mla import mla_decode_fwd

from atom.distributed.dcp_utils import get_dcp_group
from atom.model_ops.dcp_ops import (
    dcp_all_gather,
    dcp_lse_merge,
    dcp_pack_topk_candidates,
    get_dcp_local_seq_lens,
)
from atom.utils.forward_context import AttentionMetaData


class MLAAttention:
    def __init__(self, config):
        self.dcp_world_size = config.decode_context_parallel_size
        self.dcp_group = get_dcp_group()
        self.dcp_rank = self.dcp_group.rank_in_group
        self.cp_kv_cache_interleave_size = config.dcp_config.interleave_size

    def candidates(self, metadata: AttentionMetaData, logits, found, out):
        lengths = {lengths}
        dcp_pack_topk_candidates(logits, found, lengths, self.dcp_rank, self.dcp_world_size, out)

    def decode(self, query, cache, metadata: AttentionMetaData):
        {gather}
        out, lse = mla_decode_fwd(query, cache, metadata)
        return dcp_lse_merge(out, lse, self.dcp_group)
"""
LOCAL = "get_dcp_local_seq_lens(metadata.context_lens, self.dcp_world_size, self.dcp_rank{rest})"
# Tokens dealt out one by one, whatever the interleave size.
IGNORANT = """(
            metadata.context_lens + self.dcp_world_size - 1 - self.dcp_rank
        ) // self.dcp_world_size"""
WRITTEN = {
    "lengths": LOCAL.replace("{rest}", ", self.cp_kv_cache_interleave_size"),
    "gather": "query = dcp_all_gather(self.dcp_group, query, 1)",
}


@pytest.mark.parametrize(
    ("changed", "codes"),
    [
        ({}, []),
        ({"lengths": LOCAL.replace("{rest}", "")}, ["DCP303"]),
        ({"lengths": "metadata.dcp_local_context_lens"}, []),
        ({"lengths": "metadata.context_lens"}, ["DCP302"]),
        ({"lengths": IGNORANT}, ["DCP303"]),
        ({"gather": f"if self.dcp_rank == 0:\n            {WRITTEN['gather']}"}, ["DCP307"]),
    ],
)
def test_faults_are_told(
    dcplint: Command, tmp_path: Path, changed: dict[str, str], codes: list[str]
) -> None:
    text = ATTENTION
    for key, value in {**WRITTEN, **changed}.items():
        text = text.replace(f"{{{key}}}", value)
    files = {
        "atom/__init__.py": "",
        "atom/_version.py": "__version__ = '0.1.5.dev7'\n",
        "atom/utils/forward_context.py": METADATA,
        "atom/distributed/dcp_utils.py": GROUP,
        "atom/model_ops/dcp_ops.py": OPS,
        "atom/model_ops/attention_mla.py": text,
    }
    report = dcplint.json("check", write(tmp_path, files))
    assert report["engine"]["name"] == "atom"
    assert [f["code"] for f in report["findings"]] == codes
