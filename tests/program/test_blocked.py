"""By which names a module speaks of the sizes of blocks and of the group."""

from __future__ import annotations

import pytest
from packaging.version import Version

from dcplint.contracts.packs import find_packs
from dcplint.program.blocked import Named

CONTRACT = find_packs()["vllm"].at(Version("0.33.0"))


@pytest.mark.parametrize(
    "line",
    [
        "x = config.block_size * config.dcp_size",
        "x = (config.block_size) * dcp_world_size",
        "x = dcp_size * groups[i].kv_cache_spec.block_size",
        "page = config.block_size\nx = page * dcp_size",
        "n = get_dcp_group().world_size\nself.page: int = c.block_size\nx = self.page * n",
        "f(page=spec.block_size)\nx = page * (\n    parallel.decode_context_parallel_size\n)",
        "page, n = c.block_size, c.dcp_size\npage *= n",
        "for page in [s.block_size for s in specs]:\n    x = page * dcp_size",
    ],
)
def test_multiplied(line: str) -> None:
    assert Named(line, CONTRACT).multiplies(line)


@pytest.mark.parametrize(
    "line",
    [
        "x = config.block_size * num_heads",
        "x = config.block_size ** dcp_size",
        "page = config.page_bytes\nx = page * dcp_size",
        "x = f(config.block_size, dcp_size)",
    ],
)
def test_not_multiplied(line: str) -> None:
    assert not Named(line, CONTRACT).multiplies(line)


@pytest.mark.parametrize(
    ("line", "divides"),
    [
        ("x = tokens // config.block_size", True),
        ("x = cdiv(len(request.tokens), self.block_size)", True),
        ("page = config.block_size\nx = -(-tokens // page)", True),
        ("x = ceil(tokens / (config.block_size))", True),
        ("x = config.block_size // ratio", False),
        ("x = cdiv(tokens, chunk)", False),
    ],
)
def test_divides(line: str, divides: bool) -> None:
    assert Named(line, CONTRACT).divides(line) is divides


def test_counts_by_a_helper() -> None:
    names = Named("def pages(n):\n    return n // c.block_size\n\ndef f(n):\n    pass\n", CONTRACT)
    assert not names.counts("ids[:f(n)]")
    assert not Named("def pages(n):\n    return n // chunk\n", CONTRACT).counts("ids[:pages(n)]")
    text = f"\n{names.text}"
    assert Named(text, CONTRACT).counts("ids[: self.pages(n)]")


def test_sizes_that_are_returned() -> None:
    text = "\ndef page(c):\n    return c.block_size\n"
    assert Named(text, CONTRACT).divides("n // page(c)")
