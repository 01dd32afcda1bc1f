"""A little engine with two runners, a splitter and a drafter: the verdict on one fallback.

The verdict comes from what can reach the fallback, however the code on the way is written.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from dcplint.checks import dcp201_unreachable_fallback, dcp202_masking_fallback
from dcplint.findings.model import Applicability, Finding, Role
from dcplint.fixes.edits import make_edit
from dcplint.fixes.files import EditableText
from tests.flow.program import contexts

ENGINE = Path(__file__).parent / "engine"
BUILDER = "vllm/v1/attention/backends/latent.py"
FIRST = "vllm/v1/worker/gpu_model_runner.py"
SECOND = "vllm/v1/worker/gpu/model_runner.py"
SPLITTER = "vllm/v1/worker/splitter.py"
DRAFTER = "vllm/v1/spec_decode/proposer.py"


@dataclass(frozen=True)
class Edit:
    """`old`, which stands once in `file`, becomes `new`. An empty `old` writes the file anew."""

    file: str
    old: str
    new: str


def findings(tree: Path) -> list[Finding]:
    (context,) = contexts(tree, "vllm==0.30.0")
    checks = (dcp201_unreachable_fallback.check, dcp202_masking_fallback.check)
    return [found for check in checks for found in check(context)]


@pytest.fixture
def engine(tmp_path: Path) -> Callable[..., Path]:
    """The engine after some edits."""

    def edited(*edits: Edit) -> Path:
        tree = tmp_path / "engine"
        shutil.copytree(ENGINE, tree)
        for folder in [p for p in (tree / "vllm").rglob("*") if p.is_dir()]:
            (folder / "__init__.py").touch()
        (tree / "vllm" / "__init__.py").touch()
        for edit in edits:
            path = tree / edit.file
            text = path.read_text() if edit.old else edit.old
            assert text.count(edit.old) == 1 or not edit.old
            path.parent.mkdir(exist_ok=True)
            path.write_text(text.replace(edit.old, edit.new) if edit.old else edit.new)
        return tree

    return edited


@pytest.fixture
def judge(engine: Callable[..., Path]) -> Callable[..., Finding]:
    """The one finding on the engine's fallback after some edits."""

    def judged(*edits: Edit) -> Finding:
        (finding,) = findings(engine(*edits))
        return finding

    return judged


FILL = """\
        if self.dcp_world_size > 1:
            common.dcp_local_seq_lens = get_dcp_local_seq_lens(
                seq_lens, self.dcp_world_size, self.dcp_rank
            )
"""
FALLBACK = """\
            if local is None:
                local = get_dcp_local_seq_lens(
                    seq_lens, self.dcp_world_size, get_dcp_group().rank_in_group
                )
"""
SPLIT = "        dcp_local_seq_lens=local[part] if local is not None else None,\n"
JOINED = """\
        if self.use_dcp:
            batch.dcp_local_seq_lens = get_dcp_local_seq_lens(
                batch.seq_lens, self.dcp_size, self.dcp_rank
            )
        return self.prepare_attn(batch)

    def prepare_inputs(self, scheduled):
        return InputBatch(seq_lens=list(scheduled), block_table=[])
"""

ALIKE = {
    "as it stands": (),
    "a producer behind a helper of another module": (
        Edit(FIRST, FILL, "        fill_in(common, self.dcp_world_size, self.dcp_rank)\n"),
        Edit(
            FIRST,
            "from vllm.v1.worker.splitter",
            "from vllm.v1.worker.filler import fill_in\nfrom vllm.v1.worker.splitter",
        ),
        Edit(
            "vllm/v1/worker/filler.py",
            "",
            "from vllm.v1.attention.backends.lengths import get_dcp_local_seq_lens\n\n\n"
            "def fill_in(metadata, shards, rank):\n"
            "    if shards == 1:\n"
            "        return\n"
            "    lengths = get_dcp_local_seq_lens(metadata.seq_lens, shards, rank)\n"
            "    metadata.dcp_local_seq_lens = lengths\n",
        ),
    ),
    "an unrelated dataclass with the same field": (
        Edit(
            SPLITTER,
            "def split_requests",
            "from dataclasses import dataclass\n\n\n@dataclass\nclass Draft:\n"
            "    seq_lens: list\n    dcp_local_seq_lens: list | None = None\n\n\n"
            "def drafts(common):\n    return [Draft(common.seq_lens)]\n\n\ndef split_requests",
        ),
    ),
    "the local has another name": (
        Edit(
            BUILDER,
            "        local = common_attn_metadata.dcp_local_seq_lens\n",
            "        shard = common_attn_metadata.dcp_local_seq_lens\n",
        ),
        Edit(
            BUILDER,
            FALLBACK,
            FALLBACK.replace("local is", "shard is").replace("local =", "shard ="),
        ),
        Edit(BUILDER, "seq_lens = local\n", "seq_lens = shard\n"),
    ),
    "the guard moved into a property of a base class": (
        Edit(
            BUILDER,
            "class LatentMetadataBuilder(AttentionMetadataBuilder):\n",
            "class Sharded(AttentionMetadataBuilder):\n    @property\n    def is_sharded(self):\n"
            "        return get_dcp_group().world_size > 1\n\n\n"
            "class LatentMetadataBuilder(Sharded):\n",
        ),
        Edit(BUILDER, "if self.dcp_world_size > 1:", "if self.is_sharded:"),
    ),
    "the builder is two functions": (
        Edit(BUILDER, FALLBACK, "            local = self._local(local, seq_lens)\n"),
        Edit(
            BUILDER,
            "        return seq_lens, common_attn_metadata.block_table\n",
            "        return seq_lens, common_attn_metadata.block_table\n\n"
            "    def _local(self, given, seq_lens):\n        if given is not None:\n"
            "            return given\n        return get_dcp_local_seq_lens(\n"
            "            seq_lens, self.dcp_world_size, get_dcp_group().rank_in_group\n        )\n",
        ),
    ),
    "the field passes through a small dataclass": (
        Edit(
            BUILDER,
            "class LatentMetadataBuilder(",
            "from dataclasses import dataclass\n\n\n@dataclass\nclass Lengths:\n    total: list\n"
            "    shard: list | None = None\n\n\nclass LatentMetadataBuilder(",
        ),
        Edit(
            BUILDER,
            "        local = common_attn_metadata.dcp_local_seq_lens\n",
            "        lengths = Lengths(seq_lens, shard=common_attn_metadata.dcp_local_seq_lens)\n"
            "        local = lengths.shard\n",
        ),
    ),
    "the fallback is a conditional expression": (
        Edit(
            BUILDER,
            FALLBACK,
            "            local = local if local is not None else get_dcp_local_seq_lens(\n"
            "                seq_lens, self.dcp_world_size, get_dcp_group().rank_in_group\n"
            "            )\n",
        ),
    ),
    "the fallback is an `or`": (
        Edit(
            BUILDER,
            FALLBACK,
            "            local = local or get_dcp_local_seq_lens(seq_lens, self.dcp_world_size)\n",
        ),
    ),
    "the second runner asks the group itself": (
        Edit(SECOND, "if self.use_dcp:", "if get_dcp_group().world_size != 1:"),
    ),
    "the splitter replaces": (
        Edit(
            SPLITTER,
            "    return CommonAttentionMetadata(\n        seq_lens=seq_lens,",
            "    return common.replace(\n        seq_lens=seq_lens,",
        ),
    ),
    "splits are made in a loop": (
        Edit(
            SPLITTER,
            "    return [_requests(common, part) for part in parts]\n",
            "    split = []\n    for part in parts:\n"
            "        split.append(_requests(common, part))\n    return split\n",
        ),
    ),
    "the drafter's metadata comes from a class method": (
        Edit(
            "vllm/v1/attention/backend.py",
            "    def replace(self",
            "    @classmethod\n    def of(cls, seq_lens, block_table, local):\n"
            "        return cls(seq_lens, len(seq_lens), block_table, max(seq_lens), local)\n\n"
            "    def replace(self",
        ),
        Edit(
            DRAFTER,
            "        common = CommonAttentionMetadata(\n            seq_lens=ahead,\n"
            "            num_reqs=len(ahead),\n            block_table=block_table,\n"
            "            max_seq_len=max(ahead),\n"
            "            dcp_local_seq_lens=local,\n        )\n",
            "        common = CommonAttentionMetadata.of(ahead, block_table, local)\n",
        ),
    ),
    "a test makes metadata without it": (
        Edit(
            "tests/test_latent.py",
            "",
            "from vllm.v1.attention.backend import CommonAttentionMetadata\n"
            "from vllm.v1.attention.backends.latent import LatentMetadataBuilder\n\n\n"
            "def test_build():\n"
            "    LatentMetadataBuilder({}).build(0, CommonAttentionMetadata([1], 1, [], 1))\n",
        ),
    ),
}


@pytest.mark.parametrize("edits", ALIKE.values(), ids=ALIKE)
def test_nobody_leaves_it_none(judge: Callable[..., Finding], edits: tuple[Edit, ...]) -> None:
    finding = judge(*edits)
    assert finding.code == "DCP201", finding.message
    filled = {e.location.path for e in finding.evidence if e.role is Role.PRODUCER}
    assert {SECOND, DRAFTER} <= filled
    assert {FIRST, "vllm/v1/worker/filler.py"} & filled


def test_the_evidence_is_the_argument(judge: Callable[..., Finding]) -> None:
    *producers, guard = judge().evidence
    told = {(e.location.path, e.location.line): e.message for e in producers}
    first, second = told[FIRST, 26], told[SECOND, 35]
    assert "GPUModelRunner._build_attention_metadata fills in" in first
    assert "under `self.dcp_world_size > 1`" in first
    assert "GPUModelRunner.execute_model fills in" in second and "under `self.use_dcp`" in second
    assert guard.role is Role.GUARD and "self.dcp_world_size > 1" in guard.message


FIXED = {
    "as it stands": "            assert local is not None\n",
    "the fallback is a conditional expression": "            assert local is not None\n",
    "the fallback is an `or`": "            assert local is not None\n",
}


@pytest.mark.parametrize(("form", "left"), FIXED.items(), ids=FIXED)
def test_the_fix_deletes_the_fallback(engine: Callable[..., Path], form: str, left: str) -> None:
    tree = engine(*ALIKE[form])
    (finding,) = findings(tree)
    assert finding.fix is not None and finding.fix.applicability is Applicability.UNSAFE
    path = tree / finding.location.path
    edit = make_edit(finding.fix.change, path.read_text().split("\n"))
    assert edit is not None
    path.write_bytes(EditableText.of(path.read_bytes()).edited([edit]))
    text = path.read_text()
    assert left in text and "get_dcp_local_seq_lens(" not in text
    assert findings(tree) == []


GAPS = {
    "the first runner's assignment is gone": (
        (Edit(FIRST, FILL, ""),),
        {"GPUModelRunner._build_attention_metadata"},
    ),
    "it stands under an unrelated condition": (
        (
            Edit(
                FIRST,
                FILL,
                FILL.replace("self.dcp_world_size > 1:", "self.dcp_world_size > 1 and parts:"),
            ),
        ),
        {"GPUModelRunner._build_attention_metadata"},
    ),
    "it stands behind an early return": (
        (
            Edit(
                FIRST,
                FILL,
                "        if not block_table:\n"
                f"            return self.builder.build(0, common)\n{FILL}",
            ),
        ),
        {"GPUModelRunner._build_attention_metadata"},
    ),
    "the second runner fills in real batches only": (
        (
            Edit(
                SECOND,
                JOINED,
                "        return self.prepare_attn(batch)\n\n"
                "    def prepare_inputs(self, scheduled):\n"
                "        local = get_dcp_local_seq_lens(scheduled, self.dcp_size, self.dcp_rank)\n"
                "        return InputBatch(list(scheduled), [], local)\n",
            ),
        ),
        {"InputBatch.make_dummy"},
    ),
    "the splitter drops it": ((Edit(SPLITTER, SPLIT, ""),), {"_requests"}),
    "the drafter does without": (
        (Edit(DRAFTER, "            dcp_local_seq_lens=local,\n", ""),),
        {"Proposer.propose"},
    ),
    "a model calls a helper without a word of the field": (
        (
            Edit(
                "vllm/v1/worker/gpu/attn_utils.py",
                "",
                "from vllm.v1.attention.backend import CommonAttentionMetadata\n\n\n"
                "def build_attn_metadata(builder, seq_lens, dcp_local_seq_lens=None):\n"
                "    common = CommonAttentionMetadata(\n"
                "        seq_lens, len(seq_lens), [], max(seq_lens), dcp_local_seq_lens\n"
                "    )\n"
                "    return builder.build(0, common)\n",
            ),
            Edit(
                "vllm/models/diffusion.py",
                "",
                "from vllm.v1.worker.gpu.attn_utils import build_attn_metadata\n\n\n"
                "class DiffusionState:\n    def prepare_attn(self, batch, builder):\n"
                "        return build_attn_metadata(builder, batch.seq_lens)\n",
            ),
        ),
        {"DiffusionState.prepare_attn"},
    ),
    "two gaps at once": (
        (Edit(FIRST, FILL, ""), Edit(DRAFTER, "            dcp_local_seq_lens=local,\n", "")),
        {"GPUModelRunner._build_attention_metadata", "Proposer.propose"},
    ),
}


@pytest.mark.parametrize(("edits", "gaps"), GAPS.values(), ids=GAPS)
def test_gaps_are_named(
    judge: Callable[..., Finding], edits: tuple[Edit, ...], gaps: set[str]
) -> None:
    finding = judge(*edits)
    assert finding.code == "DCP202", finding.message
    named = finding.message.partition("filled in by ")[2].split("), ")
    assert {name.partition(" (")[0] for name in named} == gaps
    told = [e.message for e in finding.evidence if e.role is Role.PRODUCER]
    assert any("fills in" in message for message in told)
