"""Trees that have to do with more than one engine, or with little of one."""

import re
from pathlib import Path

import pytest

from tests.run.tree import SILENT, Command, write, write_engine

TWO = {
    "mine/for_vllm.py": SILENT,
    "mine/for_sglang.py": "from sglang.srt.layers.attention.base_attn_backend import A\n",
}


def test_the_source_of_one_engine_is_read_for_a_tree_of_two(
    dcplint: Command, tmp_path: Path
) -> None:
    plugin = write(tmp_path / "plugin", dict(TWO))
    engine = write_engine(tmp_path / "engine", "0.29.0", default=True)
    found = dcplint.check(plugin, "--engine-path", engine)
    assert (found.status, found.err) == (1, "")
    assert found.verdicts == [("DCP101", "SilentImpl")]


def test_every_place_that_is_shown_can_be_opened(
    dcplint: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "plugin", {"a.py": SILENT})
    write_engine(tmp_path / "engine", "0.29.0", default=True)
    monkeypatch.chdir(tmp_path)
    out = dcplint("check", "plugin", "--engine-path", "engine").out
    shown = re.findall(r"--> (\S+?):\d+:\d+ \(?(pack|vllm|in)", out)
    assert {tree for _, tree in shown} == {"pack", "vllm", "in"}
    assert all(Path(path).is_file() for path, _ in shown)
    assert "--> engine/vllm/v1/attention/backend.py:" in out  # from here where it lies below


def test_a_folder_without_either_is_refused(dcplint: Command, tmp_path: Path) -> None:
    plugin = write(tmp_path / "plugin", dict(TWO))
    assert dcplint.check(plugin, "--engine-path", tmp_path).status == 2
    assert "no package `sglang` there" in dcplint.err


# A module that exchanges between the ranks and says nothing else of DCP.
EXCHANGE = """\
from vllm.distributed.parallel_state import get_dcp_group


def exchange(candidates, dcp_rank, topk):
    {before}
    return get_dcp_group().all_gather(candidates, dim=1)[:topk]
"""


@pytest.mark.parametrize(
    ("before", "codes"),
    [
        ("if dcp_rank == 0:\n        return candidates", ["DCP307"]),
        ("if candidates.shape[0] == 0:\n        return candidates", []),
    ],
)
def test_modules_that_only_name_the_group_are_read(
    dcplint: Command, tmp_path: Path, before: str, codes: list[str]
) -> None:
    text = EXCHANGE.replace("{before}", before)
    plugin = write(tmp_path / "plugin", {"mine/impl.py": SILENT, "mine/topk.py": text})
    found = dcplint.json("check", plugin, "--engine", "vllm==0.30.0", "--select", "DCP307")
    assert [f["code"] for f in found["findings"]] == codes


def test_an_engine_in_which_nothing_is_recognised_is_told_of(
    dcplint: Command, tmp_path: Path
) -> None:
    files = {
        "vllm/__init__.py": '__version__ = "0.11.2"\n',
        "vllm/v1/attention/backend.py": "class Renamed:\n    pass\n",
    }
    dcplint("check", write(tmp_path / "old", files))
    assert "no attention class of vllm 0.11.2 is one that rules/vllm.yaml describes" in dcplint.err
    dcplint("check", write_engine(tmp_path / "new", "0.29.0", default=True))
    assert "describes" not in dcplint.err


MERGING = """\
from vllm.distributed.parallel_state import get_dcp_group
from vllm.v1.attention.backend import AttentionImpl
from vllm.v1.attention.ops.dcp import cp_lse_ag_out_rs


class MergingImpl(AttentionImpl):
    def __init__(self, *args):
        pass

    def forward(self, query, *args):
        return cp_lse_ag_out_rs(*self.decode(query), get_dcp_group())
"""
PLATFORM = """\
from vllm.platforms.interface import Platform


class MyPlatform(Platform):
    @classmethod
    def get_attn_backend_cls(cls, selected, config):
        return "mine.attention.MyBackend"
"""


@pytest.mark.parametrize("asks", [True, False])
def test_a_refusal_that_nobody_asks_for_is_told_as_one(
    dcplint: Command, tmp_path: Path, asks: bool
) -> None:
    files = {"mine/impl.py": MERGING, "mine/platform.py": "" if asks else PLATFORM}
    plugin = write(tmp_path / "plugin", files)
    report = dcplint.json("check", plugin, "--engine", "vllm==0.30.0", "--select", "DCP104")
    (found,) = report["findings"]
    assert found["message"].endswith("`MyPlatform.get_attn_backend_cls` asks no gate") is not asks
