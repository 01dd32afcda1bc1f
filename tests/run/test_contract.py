"""`dcplint capabilities --contract`, over the little engine of the flow tests."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.flow.test_engine import BUILDER, DRAFTER, FIRST, SECOND, SPLIT, SPLITTER, Edit
from tests.flow.test_engine import engine as engine
from tests.run.conftest import dcplint as dcplint
from tests.run.tree import Command

AGAINST = ("--engine", "vllm==0.30.0")


def test_producers_and_readers_with_their_guards(
    dcplint: Command, engine: Callable[..., Path]
) -> None:
    tree = engine()
    (contract,) = dcplint.json("capabilities", tree, "--contract", *AGAINST)["contracts"]
    field = next(f for f in contract["fields"] if f["name"] == "dcp_local_seq_lens")
    assert field["record"].endswith(".CommonAttentionMetadata") and not field["optional"]
    producers = {place["path"]: place for place in field["producers"]}
    assert {FIRST, SECOND, DRAFTER} <= producers.keys()
    assert producers[FIRST]["symbol"] == "GPUModelRunner._build_attention_metadata"
    assert producers[FIRST]["guard"] == {"implied_by_dcp": "self.dcp_world_size > 1", "other": ""}
    assert producers[FIRST]["reaches"] == ["LatentMetadataBuilder.build"]
    assert field["gaps"] == []
    (reader,) = field["readers"]
    assert reader["path"] == BUILDER and reader["every_way_known"]


def test_gaps(dcplint: Command, engine: Callable[..., Path]) -> None:
    tree = engine(Edit(SPLITTER, SPLIT, ""))
    (contract,) = dcplint.json("capabilities", tree, "--contract", *AGAINST)["contracts"]
    field = next(f for f in contract["fields"] if f["name"] == "dcp_local_seq_lens")
    assert [(gap["symbol"], gap["path"]) for gap in field["gaps"]] == [("_requests", SPLITTER)]


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_for_people(dcplint: Command, engine: Callable[..., Path], form: str) -> None:
    done = dcplint("capabilities", engine(), "--contract", "--output-format", form, *AGAINST)
    assert "GPUModelRunner._build_attention_metadata" in done.out
    assert "self.dcp_world_size > 1" in done.out and f"{FIRST}:26" in done.out
