"""Trees of a plugin that has a pack of its own, beside the engine's."""

from pathlib import Path

import pytest

from tests.run.tree import Command, write

VERSION = "__version__ = version = '{release}'\n"

UTILS = """\
from dataclasses import dataclass

from vllm.v1.attention.backend import CommonAttentionMetadata


@dataclass
class AscendCommonAttentionMetadata(CommonAttentionMetadata):
    seq_lens_cpu: object = None
    dcp_local_seq_lens_cpu: object = None
"""
COMMON = """\
from vllm.distributed.parallel_state import get_dcp_group


def get_dcp_local_seq_lens(seq_lens, dcp_size, interleave_size):
    return split(seq_lens, dcp_size, interleave_size)


class DCPImplMixin:
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.dcp_rank = get_dcp_group().rank_in_group
"""
RECORDS = """\
from dataclasses import dataclass


@dataclass
class AscendMLADecodeMetadata:
    seq_lens: object
    seq_lens_list: list
    block_table: object
"""
BACKEND = """\
from dataclasses import dataclass

import torch_npu
from vllm.v1.attention.backend import MLAAttentionImpl

from vllm_ascend.attention.context_parallel.common_cp import DCPImplMixin, get_dcp_local_seq_lens
from vllm_ascend.attention.mla_v1 import AscendMLADecodeMetadata
from vllm_ascend.attention.utils import AscendCommonAttentionMetadata


@dataclass
class AscendMLADCPDecodeMetadata(AscendMLADecodeMetadata):
    cp_seq_len: list = None

    def update(self, common: AscendCommonAttentionMetadata, size, rank, interleave):
        every = get_dcp_local_seq_lens(common.seq_lens_cpu, size, interleave)
        self.cp_seq_len = {stored}


class MyImpl(AttentionImplOrMixin, MLAAttentionImpl):
    def forward_mqa(self, query, cache, meta: AscendMLADCPDecodeMetadata, layer, common):
        meta.update(common, 2, self.dcp_rank, 1)
        arguments = {"block_table": meta.block_table, "actual_seq_lengths_kv": meta.{passed}}
        {between}
        return torch_npu.npu_fused_infer_attention_score(query, cache, cache, **arguments)
"""
WRITTEN = {
    "stored": "every[:, rank].tolist()",
    "passed": "cp_seq_len",
    "between": "layer.count += 1",
    "AttentionImplOrMixin": "DCPImplMixin",
}


def findings(
    dcplint: Command, root: Path, release: str = "0.26.0rc1", select: str = "DCP302", **changed: str
) -> list[tuple[str, str]]:
    text = BACKEND
    for key, value in {**WRITTEN, **changed}.items():
        text = text.replace(f"{{{key}}}" if key.islower() else key, value)
    cp = "vllm_ascend/attention/context_parallel"
    files = {
        "vllm_ascend/__init__.py": "",
        "vllm_ascend/_version.py": VERSION.replace("{release}", release),
        "vllm_ascend/attention/__init__.py": "",
        "vllm_ascend/attention/utils.py": UTILS,
        "vllm_ascend/attention/mla_v1.py": RECORDS,
        f"{cp}/__init__.py": "",
        f"{cp}/common_cp.py": COMMON,
        f"{cp}/mla_cp.py": text,
    }
    report = dcplint.json(
        "check", write(root, files), "--engine", "vllm==0.26.0", "--select", select
    )
    assert report["engine"]["name"] == "vllm"  # judged once, by what both packs say
    return [(f["code"], f["message"]) for f in report["findings"]]


def test_this_ranks_column_is_its_length(dcplint: Command, tmp_path: Path) -> None:
    less = "(every[:, common.dcp_rank] - common.max_query_len).tolist()"
    changed = {"stored": less, "passed": "cp_seq_len"}
    found = findings(dcplint, tmp_path, select="DCP303", **changed)
    assert [code for code, _ in found] == ["DCP303"]


def test_the_plugin_as_it_is(dcplint: Command, tmp_path: Path) -> None:
    assert findings(dcplint, tmp_path) == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"passed": "seq_lens_list"}, "passes the global length `meta.seq_lens_list`"),
        ({"stored": "every.tolist()"}, "`every.tolist()`, the lengths of every rank"),
        ({"stored": "common.seq_lens_cpu.tolist()"}, "passes the global length"),
    ],
)
def test_its_own_lengths_are_followed(
    dcplint: Command, tmp_path: Path, changed: dict[str, str], said: str
) -> None:
    ((code, message),) = findings(dcplint, tmp_path, **changed)
    assert code == "DCP302"
    assert said in message


@pytest.mark.parametrize(
    "changed",
    [
        # Nothing says that a class without the mixin serves under DCP.
        {"passed": "seq_lens_list", "AttentionImplOrMixin": "Plain"},
        # What is passed in the end is not what the mapping was made of.
        {"passed": "seq_lens_list", "between": 'arguments["actual_seq_lengths_kv"] = layer.lens'},
        {"stored": "every[:, common.column].tolist()"},  # whose column that is cannot be told
    ],
)
def test_what_cannot_be_told_is_not(
    dcplint: Command, tmp_path: Path, changed: dict[str, str]
) -> None:
    assert findings(dcplint, tmp_path, **changed) == []


def test_facts_of_another_release_of_the_plugin_are_not_its(
    dcplint: Command, tmp_path: Path
) -> None:
    assert findings(dcplint, tmp_path, "0.23.0", stored="common.seq_lens_cpu.tolist()") == []


def test_a_release_that_the_pack_does_not_know_is_told_of(dcplint: Command, tmp_path: Path) -> None:
    findings(dcplint, tmp_path, "9.0.0")
    assert "vllm-ascend 9.0.0 is newer than" in dcplint.err
