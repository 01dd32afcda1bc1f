"""Branch events in a real builder, on batches as the runner makes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dcplint.harness.driver import ContractDriver
from dcplint.harness.fallback import Reach, branch_at, probe_fallback
from dcplint.harness.targets import load_target

FIELD = "dcp_local_seq_lens"
BUILDER = """
from dcplint.harness.contract import AttentionBackendBase, MetadataBuilderBase
from dcplint.harness.control import DecodeMetadata, GQAImpl


class Builder(MetadataBuilderBase):
    def build(self, common):
        local = common.dcp_local_seq_lens
        {body}
        return DecodeMetadata(
            common.query_start_loc, common.seq_lens, local, common.block_table, 1
        )

    def right(self, lens):
        cycle = self.dcp_world_size * self.interleave
        rest = (lens % cycle - self.dcp_rank * self.interleave).clamp(0, self.interleave)
        return lens // cycle * self.interleave + rest

    def slot_mapping(self, common):
        return common.positions


class Backend(AttentionBackendBase):
    @staticmethod
    def get_impl_cls():
        return GQAImpl

    @staticmethod
    def get_builder_cls():
        return Builder
"""


def _probe(tmp_path: Path, body: str, needle: str) -> Reach:
    path = tmp_path / f"{abs(hash(body))}.py"
    path.write_text(BUILDER.replace("{body}", body))
    lines = path.read_text().splitlines()
    line = next(i for i, text in enumerate(lines, 1) if needle in text)
    column = lines[line - 1].index(needle) + 1
    target = load_target(f"{path}:Backend")
    span = branch_at(path.read_text(), line, column)
    return probe_fallback(ContractDriver(), target, path, span, FIELD, 4)


@pytest.mark.parametrize(
    ("body", "needle", "taken", "without"),
    [
        (
            "if local is None:\n            local = self.right(common.seq_lens)",
            "local is None",
            0,
            "same",
        ),
        (
            "if local is None:\n            local = common.seq_lens",
            "local is None",
            0,
            "changed",
        ),
        (
            "if local is None:\n            raise ValueError('owed')",
            "local is None",
            0,
            "ValueError",
        ),
        (
            "local = local if local is not None else self.right(common.seq_lens)",
            "local is not None",
            0,
            "same",
        ),
        (
            "local = None\n        if local is None:\n            local = common.seq_lens",
            "local is None",
            32,
            "same",
        ),
        (
            "local = None\n        local = local if local is not None else common.seq_lens",
            "local is not None",
            32,
            "same",
        ),
        (
            "if common.num_reqs == 2:\n            local = None\n        "
            "if local is None:\n            local = self.right(common.seq_lens)",
            "local is None",
            8,
            "same",
        ),
    ],
)
def test_reach(tmp_path: Path, body: str, needle: str, taken: int, without: str) -> None:
    reach = _probe(tmp_path, body, needle)
    assert (reach.builds, reach.taken, reach.without) == (32, taken, without)


def test_a_condition_that_says_nothing_of_none() -> None:
    with pytest.raises(LookupError, match="does not compare with None"):
        branch_at("if x:\n    pass\n", 1, 4)
    with pytest.raises(LookupError, match="no condition on None starts at 2:1"):
        branch_at("if x is None:\n    pass\n", 2, 1)
