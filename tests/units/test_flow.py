"""Which unit an expression has: each `reveal(x)` of a small program, with what it should be."""

import ast
from pathlib import Path

import pytest

from dcplint.units.lattice import Several, Value
from tests.flow.program import contexts

PRELUDE = """
import numpy as np
import torch
from dataclasses import dataclass
from vllm.utils import cdiv
from vllm.v1.attention.backend import AttentionMetadataBuilder, CommonAttentionMetadata
from vllm.v1.attention.backends.utils import get_dcp_local_seq_lens as shard

def keeps(x, y=None):
    return x[:4] if y is None else y

def share(lens, size, rank):
    return shard(lens, size, rank, 1)

@dataclass
class Plan:
    lens: object
    other: object = None

class Builder(AttentionMetadataBuilder):
    def __init__(self, config):
        self.dcp_world_size = config.parallel_config.decode_context_parallel_size
        self.sharded = self.dcp_world_size > 1
        self.buffer = torch.zeros(8)

    def plan(self, m: CommonAttentionMetadata):
        return Plan(lens=m.seq_lens, other=m.dcp_local_seq_lens)

    def build(self, m: CommonAttentionMetadata, n, r, flag, page):
"""
CASES = {
    "m.seq_lens[:n].to(torch.int32).clone()": "global length",
    "m.dcp_local_seq_lens.cpu().numpy()": "local length",
    "m.seq_lens_cpu_upper_bound": "upper bound of the global length",
    "m.seq_lens.max()": "upper bound of the global length",
    "shard(m.seq_lens, n, r, 1)": "local length",
    "shard(m.seq_lens, n, None, 1)": "all ranks' length",
    "shard(m.seq_lens, n, None, 1)[:n]": "all ranks' length",
    "shard(m.seq_lens, n, None, 1)[:, r]": None,
    "shard(m.seq_lens, n, 0, 1)": "upper bound of the local length",
    "shard(seq_lens=m.seq_lens, dcp_size=n, dcp_rank=r)": "local length",
    "shard(m.seq_lens, n)": None,  # the rank is left to a default that is not known
    "share(m.seq_lens, n, r)": "local length",
    "keeps(m.seq_lens)": "global length",
    "keeps(n, y=m.dcp_local_seq_lens)": None,  # the two ways disagree
    "m.query_start_loc[1:] - m.query_start_loc[:-1]": "global query length",
    "m.seq_lens - (m.query_start_loc[1:] - m.query_start_loc[:-1])": "global context length",
    "m.seq_lens.sub(m.max_query_len)": "global context length",
    "m.seq_lens + torch.arange(4)": "global length per query row",
    "m.dcp_local_seq_lens - m.max_query_len": None,
    "m.seq_lens + m.seq_lens": None,
    "m.seq_lens + n": None,
    "m.seq_lens - 1": "global length",
    "(m.seq_lens + page - 1) // page": "global page count",
    "-(-m.dcp_local_seq_lens // page)": "local page count",
    "cdiv(m.seq_lens, page)": "global page count",
    "m.seq_lens // page": "global quantity",
    "m.seq_lens // self.dcp_world_size": None,
    "torch.where(flag, m.seq_lens, 0)": "global length",
    "torch.minimum(m.seq_lens, m.dcp_local_seq_lens)": None,
    "m.seq_lens if n else m.dcp_local_seq_lens": None,
    "m.dcp_local_seq_lens if self.sharded else m.seq_lens": "local length",
    "m.seq_lens if self.dcp_world_size == 1 else m.dcp_local_seq_lens": "local length",
    "(m.seq_lens, m.dcp_local_seq_lens)[1]": "local length",
    "m.slot_mapping": None,
    "n": None,
    "m.seq_lens.T": None,
    "m.seq_lens.sum()": None,
    "(x := m.seq_lens)": "global length",
}
BLOCKS = {
    "renamed": ("a = m.seq_lens\nb = a[:n]\nc, d = b, n\nreveal(c)", "global length"),
    "either way": ("a = m.seq_lens\nif flag:\n    a = m.dcp_local_seq_lens\nreveal(a)", None),
    "DCP is on": (
        "a = m.seq_lens\nif self.sharded:\n    a = m.dcp_local_seq_lens\nreveal(a)",
        "local length",
    ),
    "nothing otherwise": ("a = None\nif flag:\n    a = m.seq_lens\nreveal(a)", "global length"),
    "a buffer": (
        "self.buffer[:n] = m.dcp_local_seq_lens\nself.buffer[n:] = 0\nreveal(self.buffer[:n])",
        "local length",
    ),
    "a buffer filled by copy_": (
        "self.buffer[:n].copy_(m.seq_lens)\nreveal(self.buffer)",
        "global length",
    ),
    "a buffer filled by out=": (
        "buf = torch.empty(n)\ntorch.sub(m.seq_lens, m.max_query_len, out=buf)\nreveal(buf)",
        "global context length",
    ),
    "a buffer of two": (
        "self.buffer[:n] = m.dcp_local_seq_lens\nself.buffer[n:] = m.seq_lens\nreveal(self.buffer)",
        None,
    ),
    "in place": ("a = m.seq_lens\na -= m.max_query_len\nreveal(a)", "global context length"),
    "in place, a part": (
        "a = m.seq_lens\na[n:] -= m.max_query_len\nreveal(a)",
        "global quantity",
    ),
    "in place, unknown": ("a = m.seq_lens\na *= n\nreveal(a)", None),
    "a loop": (
        "a = m.seq_lens\nfor i in range(n):\n    a = a[:i]\nreveal(a)",
        "global length",
    ),
    "a loop that changes it": (
        "a = m.seq_lens\nfor i in range(n):\n    a = m.dcp_local_seq_lens\nreveal(a)",
        None,
    ),
    "an element": ("for a in m.seq_lens.tolist():\n    reveal(a)", "global length"),
    "zip": ("for i, a in zip(flag, m.dcp_local_seq_lens):\n    reveal(a)", "local length"),
    "enumerate": ("for i, a in enumerate(m.seq_lens):\n    reveal(a)", "global length"),
    "a record": ("p: Plan = self.plan(m)\nreveal(p.lens)", "global length"),
    "a record's other field": ("p: Plan = self.plan(m)\nreveal(p.other)", "local length"),
    "an alias of a record": ("q = m\nreveal(q.seq_lens)", "global length"),
    "a record that is replaced": ("p = self.plan(m)\np = flag\nreveal(p.lens)", None),
    "what is declared holds": ("m = flag\nreveal(m.seq_lens)", "global length"),
    "a walrus": ("if (a := m.seq_lens) is not None:\n    reveal(a)", "global length"),
    "a context manager": ("a = m.seq_lens\nwith flag as a:\n    reveal(a)", None),
    "a function of itself": ("a = n\nwhile flag:\n    a = keeps(a)\nreveal(a)", None),
}


def _revealed(directory: Path, body: str, source: Path | None = None) -> list[str | None]:
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    path = directory / "plugin.py"
    path.write_text(PRELUDE + lines, encoding="utf-8")
    (context,) = contexts(directory, "vllm==0.30.0", source)
    found: list[str | None] = []
    for function in context.fields.universe.named("build"):
        for statement, calls in function.calls.items():
            for call in calls:
                if isinstance(call.func, ast.Name) and call.func.id == "reveal":
                    value = context.units.value(function, statement, call.args[0])
                    assert not isinstance(value, Several)
                    found.append(str(value.unit) if isinstance(value, Value) else None)
    return found


def test_expressions(tmp_path: Path) -> None:
    found = _revealed(tmp_path, "\n".join(f"reveal({text})" for text in CASES))
    assert dict(zip(CASES, found, strict=True)) == CASES


@pytest.mark.parametrize(
    ("rank", "call", "unit"),
    [
        ("None", "shard(m.seq_lens, n)", "all ranks' length"),
        ("None", "shard(m.seq_lens, n, **flag)", None),
        ("None", "shard(*flag)", None),
        ("0", "shard(m.seq_lens, n)", "upper bound of the local length"),
    ],
)
def test_a_rank_left_to_its_default(rank: str, call: str, unit: str | None, tmp_path: Path) -> None:
    source, plugin = tmp_path / "source", tmp_path / "plugin"
    module = source / "vllm/v1/attention/backends/utils.py"
    module.parent.mkdir(parents=True)
    plugin.mkdir()
    for folder in list(module.relative_to(source).parents)[:-1]:
        (source / folder / "__init__.py").touch()
    (module.parents[1] / "backend.py").write_text(
        "class AttentionMetadataBuilder: ...\nclass CommonAttentionMetadata: ...\n",
        encoding="utf-8",
    )
    module.write_text(
        f"def get_dcp_local_seq_lens(seq_lens, dcp_size=1, dcp_rank={rank}, chunk=1): ...\n",
        encoding="utf-8",
    )
    assert _revealed(plugin, f"reveal({call})", source) == [unit]


@pytest.mark.parametrize("name", BLOCKS)
def test_statements(name: str, tmp_path: Path) -> None:
    body, unit = BLOCKS[name]
    assert _revealed(tmp_path, body) == [unit]


def test_depth_is_bounded(tmp_path: Path) -> None:
    """A chain of ten thousand variables, and an expression nested by the hundred, end."""
    chain = "a0 = m.seq_lens\n" + "".join(f"a{i + 1} = a{i}[:n]\n" for i in range(400))
    assert _revealed(tmp_path, f"{chain}reveal(a400)") == [None]
    deep = "m.seq_lens" + ".clone()" * 60
    assert _revealed(tmp_path, f"reveal({deep})") == [None]


def test_work_is_bounded(tmp_path: Path) -> None:
    """Doubling at every step would take 2^40 evaluations."""
    lines = ["a0 = m.seq_lens"]
    lines += [f"a{i + 1} = torch.minimum(a{i}, a{i}[:n])" for i in range(40)]
    assert _revealed(tmp_path, "\n".join([*lines, "reveal(a40)"])) == [None]
