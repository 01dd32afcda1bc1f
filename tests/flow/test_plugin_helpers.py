"""A plugin's helpers are looked into wherever they stand and whatever they are imported as."""

from pathlib import Path

import pytest

from dcplint.checks import dcp303_open_coded_length
from tests.flow.program import contexts

_PLUGIN = """
from vllm.distributed.parallel_state import get_dcp_group
from vllm.v1.attention.backend import AttentionMetadataBuilder, CommonAttentionMetadata
from vllm.v1.attention.backends.utils import get_dcp_local_seq_lens
{outside}

class Own(AttentionMetadataBuilder):
    def build(self, prefix, common: CommonAttentionMetadata):
        every = self.vllm_config.parallel_config.cp_kv_cache_interleave_size
        {inside}
        group = get_dcp_group()
        steps = common.query_start_loc[1:] - common.query_start_loc[:-1]
        lens = {lens}
        {called}(lens, steps)
        return lens
"""
_LOCAL = "get_dcp_local_seq_lens(common.seq_lens, group.world_size, group.rank_in_group, every)"
_FAR = "def less(x, k):\n    x -= k\n"
_NEAR = """
from . import far
from .far import less as renamed
assigned = far.less
"""
_OVER = "from .far import less as f\n\ndef over(y, n):\n    f(y, n)\n"


def _told(
    tmp_path: Path, outside: str, inside: str, called: str, lens: str
) -> set[tuple[str, int]]:
    """Path and line of what DCP303 finds."""
    own = _PLUGIN.format(outside=outside, inside=inside, called=called, lens=lens)
    modules = {"__init__": "", "far": _FAR, "near": _NEAR, "over": _OVER, "own": own}
    for name, text in modules.items():
        path = tmp_path / f"plugin/{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (context,) = contexts(tmp_path, "vllm==0.33.0")
    places = [found.location for found in dcp303_open_coded_length.check(context)]
    return {(place.path, place.line) for place in places}


@pytest.mark.parametrize(
    ("outside", "inside", "called"),
    [
        ("from .far import less", "", "less"),
        ("from .far import less as other", "", "other"),
        ("", "from .far import less as other", "other"),
        ("from . import far", "", "far.less"),
        ("from .near import renamed as other", "", "other"),
        ("from .near import assigned", "", "assigned"),
        ("from . import near", "", "near.assigned"),
        ("from .over import over as other", "", "other"),
    ],
)
def test_helpers_without_a_word_of_the_engine(
    tmp_path: Path, outside: str, inside: str, called: str
) -> None:
    assert _told(tmp_path / "bad", outside, inside, called, _LOCAL) == {("plugin/far.py", 2)}
    assert _told(tmp_path / "good", outside, inside, called, "common.seq_lens") == set()
