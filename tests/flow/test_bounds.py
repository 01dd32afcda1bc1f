"""Large programs take no more than they are worth."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dcplint.flow import aliases
from dcplint.flow.definitions import Definition, definitions_at
from dcplint.flow.graph import Node
from tests.checks.fixture import lint
from tests.flow.laboratory import Laboratory

_SECONDS = 20  # generous: a machine under load is slow, an exponent is slower


def _traced(tmp_path: Path, text: str) -> set[str]:
    started = time.process_time()
    found = Laboratory.of(tmp_path, text).traced()
    assert time.process_time() - started < _SECONDS
    return found


def test_a_chain_of_two_thousand_calls(tmp_path: Path) -> None:
    links = "".join(f"def f{n}(m):\n    return f{n + 1}(m)\n\n\n" for n in range(2_000))
    text = (
        f"{links}def f2000(m):\n    return m\n\n\n"
        "def main(choose):\n    Builder().build(f0(CommonAttentionMetadata([4])))\n"
    )
    assert _traced(tmp_path, text) == {"unknown"}


def test_a_short_chain_is_followed(tmp_path: Path) -> None:
    links = "".join(f"def f{n}(m):\n    return f{n + 1}(m)\n\n\n" for n in range(8))
    text = (
        f"{links}def f8(m):\n    return m\n\n\n"
        "def main(choose):\n    Builder().build(f0(CommonAttentionMetadata([4])))\n"
    )
    assert _traced(tmp_path, text) == {"None"}


def test_two_hundred_callers_of_two_hundred(tmp_path: Path) -> None:
    layers = "".join(
        f"def layer{n}(m):\n" + "".join(f"    layer{n + 1}(m)\n" for _ in range(200)) + "\n\n"
        for n in range(4)
    )
    text = f"{layers}def layer4(m):\n    Builder().build(m)\n\n\ndef main(choose):\n" + "".join(
        f"    layer0(CommonAttentionMetadata([{n}]))\n" for n in range(200)
    )
    assert _traced(tmp_path, text) <= {"None", "unknown"}


def test_thirty_independent_branches(tmp_path: Path) -> None:
    branches = "".join(
        f"    flag{n} = choose()\n    if flag{n}:\n        m.num_reqs = {n}\n" for n in range(30)
    )
    again = "".join(f"    if flag{n}:\n        m.max_seq_len = {n}\n" for n in range(30))
    text = (
        "def main(choose):\n    m = CommonAttentionMetadata([4])\n"
        f"{branches}{again}    if flag3:\n        m.dcp_local_seq_lens = [1]\n"
        "    Builder().build(m)\n"
    )
    assert _traced(tmp_path, text) == {"None", "set"}


def test_deeply_nested_code(tmp_path: Path) -> None:
    nested = "".join(f"{'    ' * n}if choose():\n" for n in range(1, 40))
    text = (
        f"def main(choose):\n    m = CommonAttentionMetadata([4])\n{nested}"
        f"{'    ' * 40}m.dcp_local_seq_lens = [1]\n    Builder().build(m)\n"
    )
    assert _traced(tmp_path, text) == {"None", "set"}


def test_nested_loops_that_carry_the_record_around(tmp_path: Path) -> None:
    loops = "".join(f"{'    ' * n}for _ in range(2):\n" for n in range(1, 12))
    text = (
        f"def main(choose):\n    m = n = CommonAttentionMetadata([4])\n{loops}"
        f"{'    ' * 12}m, n = n, m.replace(dcp_local_seq_lens=[1])\n    Builder().build(m)\n"
    )
    assert {"set"} <= _traced(tmp_path, text)


def test_expressions_nested_beyond_reason(tmp_path: Path) -> None:
    text = (
        "def main(choose):\n    x = " + "(" * 80 + "1" + ")" * 80 + "\n"
        f"    y = {' + '.join('x' for _ in range(120))}\n"
        "    m = CommonAttentionMetadata([y], dcp_local_seq_lens=[1])\n    Builder().build(m)\n"
    )
    assert _traced(tmp_path, text) == {"set"}


def test_a_thousand_reassignments_that_may_each_be_skipped(tmp_path: Path) -> None:
    cuts = "".join(f"    if choose({n}):\n        x = x[:{n}]\n" for n in range(1_000))
    text = (
        f"def main(choose):\n    x = choose()\n{cuts}"
        "    Builder().build(CommonAttentionMetadata([4], dcp_local_seq_lens=x))\n"
    )
    assert _traced(tmp_path, text) <= {"set", "unknown"}


def test_stores_between_hundreds_of_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a function's stores go into is found with a bounded effort for all of them."""
    copies = "".join(
        f"        if self.f{n}:\n            lens = lens.clone()\n        lens[{n}] = 0\n"
        for n in range(120)
    )
    text = (
        "from vllm.v1.attention.backend import AttentionMetadataBuilder, CommonAttentionMetadata\n"
        "class Builder(AttentionMetadataBuilder):\n"
        "    def build(self, prefix, m: CommonAttentionMetadata):\n"
        f"        lens = m.seq_lens\n{copies}"
    )
    looked_at = 0

    def counted(node: Node, name: str) -> Iterator[Definition]:
        nonlocal looked_at
        looked_at += 1
        return definitions_at(node, name)

    monkeypatch.setattr(aliases, "definitions_at", counted)
    report = lint({"plugin.py": text}, tmp_path, "vllm==0.33.0", frozenset({"DCP206"}))
    assert [finding.code for finding in report.findings] == ["DCP206"]
    assert looked_at < 40_000
