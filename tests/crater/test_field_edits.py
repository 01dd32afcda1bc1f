"""One fallback in real engines: vllm#53664 put it into the MLA builder, vllm#56429 took it out.

The edits stand in for what no release has: the fallback itself, repaired ways to it, and ways that
are broken. Line numbers belong to the pinned releases.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.crater.releases import linked_copy
from tests.run.conftest import dcplint as dcplint
from tests.run.tree import Command

pytestmark = pytest.mark.crater

BUILDER = "vllm/model_executor/layers/attention/mla_attention.py"
FIRST = "vllm/v1/worker/gpu_model_runner.py"
SPLITTER = "vllm/v1/worker/ubatch_utils.py"
DRAFTER = "vllm/v1/spec_decode/dflash.py"
SHARED = "vllm/v1/attention/backends/utils.py"
MODEL = "vllm/model_executor/models/diffusion_gemma.py"

SNAPSHOTS = Path(__file__).parent / "snapshots"

Edit = tuple[str, str, str]
"""A file, what stands in it once, and what comes in its place."""

FALLBACK: Edit = (
    BUILDER,
    "                seq_lens = dcp_local_seq_lens\n",
    """\
                assert seq_lens is not None
                if dcp_local_seq_lens is None:
                    dcp_local_seq_lens = get_dcp_local_seq_lens(
                        seq_lens,
                        self.dcp_world_size,
                        get_dcp_group().rank_in_group,
                        self.cp_kv_cache_interleave_size,
                    )
                seq_lens = dcp_local_seq_lens
""",
)
IMPORTS = (
    "from vllm.distributed.parallel_state import get_dcp_group\n"
    "from vllm.v1.attention.backends.utils import get_dcp_local_seq_lens\n"
)
ANEW = (
    "dcp_local_seq_lens=None if {old}.dcp_local_seq_lens is None else get_dcp_local_seq_lens(\n"
    "    {lens}, get_dcp_group().world_size, get_dcp_group().rank_in_group, 1),"
)
CARRIED: tuple[Edit, ...] = (
    (
        SHARED,
        "        seq_lens_cpu_upper_bound=common_attn_metadata.seq_lens_cpu_upper_bound,\n"
        "    )\n    return common_attn_metadata\n",
        "        dcp_local_seq_lens=common_attn_metadata.dcp_local_seq_lens,\n"
        "        seq_lens_cpu_upper_bound=common_attn_metadata.seq_lens_cpu_upper_bound,\n"
        "    )\n    return common_attn_metadata\n",
    ),
    (
        MODEL,
        "            causal=causal,\n        )\n\n    num_new_sampled_tokens_per_step",
        "            causal=causal,\n"
        "            dcp_local_seq_lens=input_batch.dcp_local_seq_lens,\n"
        "        )\n\n    num_new_sampled_tokens_per_step",
    ),
)


def remade(with_what: Callable[[str, str, str], str]) -> tuple[Edit, ...]:
    """Edits of the two functions that change the lengths. with_what: old, its slice, new lengths"""
    part = with_what("attn_metadata", "[request_slice]", "seq_lens")
    draft = with_what("cad", "", "effective_seq_lens + num_query_per_req")
    return (
        (SPLITTER, "        slot_mapping=slot_mapping,\n", f"slot_mapping=slot_mapping,\n{part}\n"),
        (SPLITTER, "\nimport torch\n", f"\nimport torch\n{IMPORTS}"),
        (DRAFTER, "            num_reqs=cad.num_reqs,\n", f"num_reqs=cad.num_reqs,\n{draft}\n"),
        (DRAFTER, "\nimport torch\n", f"\nimport torch\n{IMPORTS}"),
    )


REPAIRED = (*CARRIED, *remade(lambda old, part, lens: ANEW.format(old=old, lens=lens)))
STALE = "dcp_local_seq_lens={old}.dcp_local_seq_lens{part},"
NAIVE = (*CARRIED, *remade(lambda old, part, lens: STALE.format(old=old, part=part)))
FILLED = "        if self.dcp_world_size > 1:\n            self.dcp_local_seq_lens.cpu[:num_reqs] ="
DROPPED = {
    ("_make_metadata_with_slice", SPLITTER),
    ("make_kv_sharing_fast_prefill_common_attn_metadata", SHARED),
    ("DFlashProposer.set_inputs_first_pass", DRAFTER),
    ("DiffusionGemmaModelState.prepare_attn", MODEL),
}


@pytest.fixture
def edited(
    dcplint: Command, tree: Callable[[str], Path], tmp_path: Path
) -> Callable[..., list[dict[str, Any]]]:
    """The DCP2xx findings on a release after some edits."""

    def check(release: str, *edits: Edit) -> list[dict[str, Any]]:
        copy = tmp_path / release
        linked_copy(tree(release), copy)
        for file, old, new in edits:
            text = (copy / file).read_text(encoding="utf-8")
            assert text.count(old) == 1, f"{file} has {old!r} {text.count(old)} times"
            (copy / file).unlink()
            (copy / file).write_text(text.replace(old, new), encoding="utf-8")
        found: list[dict[str, Any]] = dcplint.json("check", copy, "--select", "DCP2", "-j", "1")[
            "findings"
        ]
        return found

    return check


def of_builder(findings: list[dict[str, Any]]) -> dict[str, Any]:
    """The one finding on the builder."""
    (found,) = (f for f in findings if f["path"] == BUILDER)
    return found


def gaps(finding: dict[str, Any]) -> set[tuple[str, str]]:
    """Who leaves the field None, and in which file."""
    told = [e for e in finding["evidence"] if "leaves dcp_local_seq_lens None" in e["message"]]
    return {(e["message"].partition(" ")[0], e["path"]) for e in told}


def places(finding: dict[str, Any]) -> dict[tuple[str, int], str]:
    """What is told of each place that fills the field in."""
    told = (e for e in finding["evidence"] if " fills in dcp_local_seq_lens " in e["message"])
    return {(e["path"], e["line"]): e["message"] for e in told}


def test_the_fallback_hides_every_way_that_drops_the_field(edited: Callable[..., Any]) -> None:
    finding = of_builder(edited("vllm-0.30.0", FALLBACK))
    assert finding["code"] == "DCP202"
    assert gaps(finding) == DROPPED
    assert all(name in finding["message"] for name, _ in DROPPED)


def test_it_is_dead_once_they_are_repaired(edited: Callable[..., Any]) -> None:
    finding = of_builder(edited("vllm-0.30.0", FALLBACK, *REPAIRED))
    assert finding["code"] == "DCP201"
    told = places(finding)
    first = told[FIRST, 2487]
    assert first.startswith("GPUModelRunner._build_attention_metadata fills in")
    assert "under `self.dcp_world_size > 1`, which holds whenever DCP is on" in first
    second = told["vllm/v1/worker/gpu/model_runner.py", 1773]
    assert second.startswith("GPUModelRunner.execute_model fills in")
    messages = [e["message"] for e in finding["evidence"]]
    assert any("gives None only under `dcp_size == 1`" in message for message in messages)


def test_carrying_the_old_lengths_along_is_no_repair(edited: Callable[..., Any]) -> None:
    stale = {f["path"] for f in edited("vllm-0.30.0", FALLBACK, *NAIVE) if f["code"] == "DCP205"}
    assert {SPLITTER, DRAFTER} <= stale and SHARED not in stale


@pytest.mark.parametrize(
    "instead",
    [
        "        if False:\n            self.dcp_local_seq_lens.cpu[:num_reqs] =",
        FILLED.replace("> 1:", "> 1 and self.use_async_scheduling:"),
    ],
    ids=["taken away", "under an unrelated condition"],
)
def test_a_producer_that_is_gone_is_named(edited: Callable[..., Any], instead: str) -> None:
    finding = of_builder(edited("vllm-0.30.0", FALLBACK, *REPAIRED, (FIRST, FILLED, instead)))
    assert finding["code"] == "DCP202"
    assert gaps(finding) == {("GPUModelRunner._build_attention_metadata", FIRST)}


def test_older_dummy_batches_lack_the_field(edited: Callable[..., Any]) -> None:
    finding = of_builder(edited("vllm-0.29.0", FALLBACK))
    assert finding["code"] == "DCP202"
    assert ("InputBatch.make_dummy", "vllm/v1/worker/gpu/input_batch.py") in gaps(finding)


# Where 0.29.0 derives lengths, or does without the field, and is right to: read by hand.
LEGITIMATE = {
    "FlashAttentionMetadataBuilder.build",
    "FullAttentionSpec.max_memory_usage_bytes",
    "DraftModelSpeculator._build_draft_attn_metadata",
    "GPUModelRunner._build_attention_metadata",
    "MLACommonMetadataBuilder.build",
    "PCPManager.partition_batch",
    "_dcp_localize_decode_seq_lens",
    "_prepare_dflash_inputs_to_capture",
    "build_mla_chunked_context_metadata",
    "build_prefill_chunk_metadata",
    "dcp_local_verify_row_lens",
    "get_dcp_local_seq_lens",
    "make_local_attention_virtual_batches",
    "prepare_inputs_to_capture",
    "split_dcp_context_queries",
}


def test_legitimate_derivations_are_left_alone() -> None:
    """Needs no release: nothing of this family is said of them."""
    lines = (SNAPSHOTS / "vllm-0.29.0.txt").read_text(encoding="utf-8").splitlines()
    found = {line.split()[3] for line in lines if line.startswith("DCP2")}
    assert found and not found & LEGITIMATE
