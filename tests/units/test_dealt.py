"""What a parameter holds, by what every caller passes: each `helper_N(x)` with what it is given."""

from pathlib import Path

from tests.flow.program import contexts

PRELUDE = """
from vllm.distributed.parallel_state import get_dcp_group
from vllm.v1.attention.backend import AttentionMetadataBuilder, CommonAttentionMetadata

def same(x):
    return x.to("cpu")

class Builder(AttentionMetadataBuilder):
    def __init__(self, config):
        group = get_dcp_group()
        self.n, self.me = group.world_size, group.rank_in_group
        self.held = config.tokens
        self.heads = config.heads

    def build(self, m: CommonAttentionMetadata, k, flag):
        lens = m.seq_lens
        new = m.query_start_loc[1:] - m.query_start_loc[:-1]
        ahead = self.n - 1 - self.me
"""
PASSED = {
    "lens": "amount_len",
    "m.seq_lens[:k].cpu()": "amount_len",
    "self.held": "amount_len",
    "same(lens)": "amount_len",
    "lens - new": "amount_len",
    "lens + 1": "amount_len",
    "1 + lens": "amount_len",
    "lens if flag else m.seq_lens": "amount_len",
    "(kept := lens)": "amount_len",
    "m.slot_mapping": "amount_pos",
    "m.positions[:k]": "amount_pos",
    "lens - self.me": None,
    "lens + ahead": None,
    "lens * 2": None,
    "lens // k": None,
    "m.slot_mapping + 1": None,
    "lens if flag else m.positions": None,
    "self.heads": None,
    "m.max_seq_len": None,
    "k": None,
    "new": None,
    "*lens": None,
}


def test_parameters(tmp_path: Path) -> None:
    source = PRELUDE
    for index, passed in enumerate(PASSED):
        source += f"        helper_{index}({passed}, self.n, self.me)\n"
    for index in range(len(PASSED)):
        source += f"\ndef helper_{index}(amount, of, at):\n    return amount // of - at\n"
    (tmp_path / "plugin.py").write_text(source, encoding="utf-8")
    (context,) = contexts(tmp_path, "vllm==0.30.0")
    ranks = context.ranks
    found = {
        passed: next((name for _, name in ranks.dealt.named(function)), None)
        for index, passed in enumerate(PASSED)
        for function in ranks.universe.named(f"helper_{index}")
    }
    assert found == PASSED


def test_names_that_say_another_thing(tmp_path: Path) -> None:
    """What is passed decides; and functions in terms of themselves end."""
    source = PRELUDE + (
        "        paged(lens, self.n, self.me)\n"
        "        rebound(lens, self.n, self.me)\n"
        "        around(self.heads, self.n, self.me)\n"
        "        kept(lens, self.n, self.me)\n"
        "        self.later = kept\n"
        "\ndef kept(x, of, at):\n    return x // of - at\n"
        "\ndef paged(max_block, of, at):\n    return max_block // of - at\n"
        "\ndef rebound(x, of, at):\n    x = x - 1\n    return rebound(x // of - at, of, at)\n"
        "\ndef around(y, of, at):\n    return around(y, of, at) + y // of - at\n"
    )
    (tmp_path / "plugin.py").write_text(source, encoding="utf-8")
    (context,) = contexts(tmp_path, "vllm==0.30.0")
    found = {
        name: [said for _, said in context.ranks.dealt.named(function)]
        for name in ("paged", "rebound", "around", "kept")
        for function in context.ranks.universe.named(name)
    }
    assert found == {"paged": ["len_0"], "rebound": [], "around": [], "kept": []}
