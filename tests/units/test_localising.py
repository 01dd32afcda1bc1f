"""Which calls localise lengths: the engine's helper, and functions around it."""

from pathlib import Path

from tests.flow.program import contexts

PROGRAM = """
import torch
from vllm.v1.attention.backend import AttentionMetadataBuilder, CommonAttentionMetadata
from vllm.v1.attention.backends.utils import get_dcp_local_seq_lens as shard

class Builder(AttentionMetadataBuilder):
    def own(self, lens, rank=None):
        return shard(lens, self.dcp_world_size, self.dcp_rank, 1)

    def chosen(self, lens, rank):
        return shard(lens, self.dcp_world_size, rank, 1)

    def largest(self, lens):
        return shard(lens, self.dcp_world_size, 0, 1)

    def buffered(self, n, lens):
        self.buffer[:n] = self.own(lens)
        self.buffer[n:].zero_()
        return self.buffer[:n]

    def overwritten(self, lens):
        lens.copy_(self.own(lens))
        return lens

    def guarded(self, lens):
        return lens if self.dcp_world_size == 1 else self.own(lens)

    def shifted(self, lens):
        return self.own(lens + 1)

    def shifted_after(self, lens):
        return self.own(lens) - 1

    def in_part(self, lens):
        lens[:4] = self.own(lens)[:4]
        return lens

    def sometimes(self, lens, flag):
        return self.own(lens) if flag else lens

    def itself(self, lens):
        return self.itself(lens)

    def of_another(self, lens, batch: CommonAttentionMetadata):
        return self.own(batch.seq_lens)

    def generated(self, lens):
        yield self.own(lens)

    def build(self, m: CommonAttentionMetadata, r, lens):
CALLS
"""
CALLS = {
    "shard(lens, 4, r, 1)": True,
    "shard(lens, 4, None, 1)": False,
    "self.own(lens)": True,
    "self.chosen(lens, r)": True,
    "self.chosen(lens, None)": False,
    "self.chosen(lens, 0)": False,
    "self.buffered(3, lens)": True,
    "self.overwritten(lens)": True,
    "self.guarded(lens)": True,
    "self.shifted(lens)": None,
    "self.shifted_after(lens)": None,
    "self.in_part(lens)": None,
    "self.sometimes(lens, r)": None,
    "self.itself(lens)": None,
    "self.of_another(lens, m)": None,
    "self.generated(lens)": None,
}


def test_calls(tmp_path: Path) -> None:
    """True for this rank's share, False for another quantity, None for no localisation."""
    lines = "".join(f"        {text}\n" for text in CALLS)
    (tmp_path / "plugin.py").write_text(PROGRAM.replace("CALLS\n", lines), encoding="utf-8")
    (context,) = contexts(tmp_path, "vllm==0.30.0")
    found: dict[int, bool] = {}
    for place in context.localisations:
        if place.site.function.node.name == "build":
            assert place.length is not None and not place.is_around
            found[place.site.call.lineno] = place.is_share
    first = PROGRAM[: PROGRAM.index("CALLS")].count("\n") + 1
    assert {text: found.get(first + i) for i, text in enumerate(CALLS)} == CALLS


def test_what_stands_inside_a_wrapper_is_told(tmp_path: Path) -> None:
    """So that what is passed to it is judged where it is passed."""
    (tmp_path / "plugin.py").write_text(
        PROGRAM.replace("CALLS\n", "        self.guarded(self.sometimes(lens, r))\n"),
        encoding="utf-8",
    )
    (context,) = contexts(tmp_path, "vllm==0.30.0")
    around = {p.site.function.node.name: p.is_around for p in context.localisations}
    assert around["own"] and around["guarded"] and around["overwritten"]
    assert not around["sometimes"] and not around["shifted"]
