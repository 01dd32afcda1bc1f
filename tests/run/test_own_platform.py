"""A plugin beside the engine's source: whose batches come to whose builders."""

from pathlib import Path

import pytest

from tests.run.tree import Command, write

METADATA = "vllm-0.30.0.dist-info/METADATA"
ENGINE = {
    "vllm/__init__.py": "",
    "vllm/platforms/interface.py": """\
class Platform:
    @classmethod
    def get_attn_backend_cls(cls, selected, config):
        return "vllm.v1.attention.backends.plain.PlainBackend"
""",
    "vllm/v1/attention/backend.py": """\
from abc import ABC, abstractmethod
from dataclasses import dataclass


@dataclass
class CommonAttentionMetadata:
    seq_lens: object
    dcp_local_seq_lens: object = None


class AttentionMetadataBuilder(ABC):
    @abstractmethod
    def build(self, prefix, common: CommonAttentionMetadata): ...
""",
    "vllm/v1/attention/backends/plain.py": """\
from vllm.v1.attention.backend import AttentionMetadataBuilder, CommonAttentionMetadata


class PlainBuilder(AttentionMetadataBuilder):
    def build(self, prefix, common: CommonAttentionMetadata):
        return common.dcp_local_seq_lens[:4]
""",
    "vllm/v1/worker/gpu_model_runner.py": """\
from vllm.v1.attention.backend import AttentionMetadataBuilder, CommonAttentionMetadata


class GPUModelRunner:
    builder: AttentionMetadataBuilder

    def execute(self, lengths):
        return self.builder.build(0, self.batch(lengths))

    def batch(self, lengths):
        return CommonAttentionMetadata(seq_lens=lengths, dcp_local_seq_lens=self.local(lengths))

    def local(self, lengths):
        return lengths // 2
""",
    METADATA: "Name: vllm\nVersion: 0.30.0\n",
}
PLATFORM = """\
from vllm.platforms.interface import Platform

BY_KIND = {True: "mine.attention.OwnBackend"}


class MyPlatform(Platform):
    @classmethod
    def get_attn_backend_cls(cls, selected, config):
        names = {False: "mine.attention.OwnBackend"}
        if selected:
            found = names.get(selected)
            return found
        return "mine.attention.OwnBackend"
"""
BUILDER = """\
from vllm.v1.attention.backends.plain import PlainBuilder


class OwnBuilder(PlainBuilder):
    def build(self, prefix, common):
        return common.seq_lens
"""
RUNNER = """\
from vllm.v1.attention.backend import CommonAttentionMetadata
from vllm.v1.worker.gpu_model_runner import GPUModelRunner


class MyRunner(GPUModelRunner):
    def batch(self, lengths):
        return CommonAttentionMetadata(seq_lens=lengths)
"""
PLUGIN = {"mine/platform.py": PLATFORM, "mine/attention.py": BUILDER, "mine/runner.py": RUNNER}
LOST = [("DCP203", "mine/runner.py")]


def findings(dcplint: Command, tmp_path: Path, **changed: str) -> list[tuple[str, str]]:
    """Code and path of what is found in the plugin, or `engine`, with some files changed."""
    names = {name.split("/")[-1].removesuffix(".py"): name for name in {**ENGINE, **PLUGIN}}
    files = {names[short]: text for short, text in changed.items()}
    engine = write(
        tmp_path / "engine", dict(ENGINE | {n: t for n, t in files.items() if n in ENGINE})
    )
    plugin = write(
        tmp_path / "plugin", dict(PLUGIN | {n: t for n, t in files.items() if n in PLUGIN})
    )
    report = dcplint.json("check", plugin, "--engine-path", engine, "--select", "DCP2")
    return [(f["code"], f["path"]) for f in report["findings"]]


@pytest.mark.parametrize("release", ["0.30.0", "0.21.0"])
def test_batches_of_a_platform_of_its_own_do_not_come_to_the_engines_builders(
    dcplint: Command, tmp_path: Path, release: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ENGINE, METADATA, ENGINE[METADATA].replace("0.30.0", release))
    assert findings(dcplint, tmp_path) == []


@pytest.mark.parametrize(
    "answer",
    [
        'return "vllm.v1.attention.backends.plain.PlainBackend"',
        "return super().get_attn_backend_cls(selected, config)",
        "return registered(selected)",
    ],
)
def test_they_do_where_the_platform_may_name_them(
    dcplint: Command, tmp_path: Path, answer: str
) -> None:
    last = PLATFORM.replace('        return "mine.attention.OwnBackend"\n', f"        {answer}\n")
    assert last != PLATFORM
    assert findings(dcplint, tmp_path, platform=last) == LOST


def test_they_do_without_a_platform(dcplint: Command, tmp_path: Path) -> None:
    assert findings(dcplint, tmp_path, platform="") == LOST


@pytest.mark.parametrize(
    "body",
    [
        "    pass\n",
        "    def build(self, prefix, common):\n        return super().build(0, common)\n",
    ],
)
def test_they_do_where_a_builder_of_its_own_runs_the_engines_code(
    dcplint: Command, tmp_path: Path, body: str
) -> None:
    builder = BUILDER.partition("    def build")[0] + body
    assert findings(dcplint, tmp_path, attention=builder) == LOST


@pytest.mark.parametrize(("store", "found"), [("sub_(1)", "DCP206"), ("sub(1)", None)])
def test_a_builder_may_leave_to_the_engine_what_it_is_given(
    dcplint: Command, tmp_path: Path, store: str, found: str | None
) -> None:
    """Its file names no record: the method that it overrides says what comes in."""
    builder = BUILDER.replace("common.seq_lens", f"common.seq_lens.{store}")
    expected = [(found, "mine/attention.py")] if found else []
    assert findings(dcplint, tmp_path, attention=builder) == expected


READING = BUILDER.replace("common.seq_lens", "common.dcp_local_seq_lens")
LOSING = ENGINE["vllm/v1/worker/gpu_model_runner.py"].replace(
    ", dcp_local_seq_lens=self.local(lengths)", ""
)


def test_what_the_engine_does_wrong_for_its_own_readers_is_no_finding_of_the_plugin(
    dcplint: Command, tmp_path: Path
) -> None:
    found = findings(dcplint, tmp_path, attention=READING, runner="", gpu_model_runner=LOSING)
    assert found == []
    alone = (
        ENGINE["vllm/v1/attention/backends/plain.py"]
        .replace("[:4]", "")
        .replace("common.dcp_local_seq_lens", "common.seq_lens")
    )
    found = findings(
        dcplint, tmp_path, attention=READING, runner="", gpu_model_runner=LOSING, plain=alone
    )
    assert found == [("DCP203", "vllm/v1/worker/gpu_model_runner.py")]


DERIVING = """\
from vllm.v1.attention.backend import AttentionMetadataBuilder, CommonAttentionMetadata


class OwnBuilder(AttentionMetadataBuilder):
    def build(self, prefix, common: CommonAttentionMetadata):
        local = common.dcp_local_seq_lens
        if local is None:
            local = common.seq_lens // 2
        return local
"""


@pytest.mark.parametrize("replaced", [True, False])
def test_what_a_runner_replaces_fills_nothing_in(
    dcplint: Command, tmp_path: Path, replaced: bool
) -> None:
    """Where it runs, the fallback hides the runner that leaves the field out; else it serves it."""
    added = "    def run(self, lengths):\n        self.builder.build(0, self.other(lengths))\n"
    runner = RUNNER if replaced else RUNNER.replace("def batch", "def other") + "\n" + added
    found = findings(dcplint, tmp_path, attention=DERIVING, runner=runner)
    assert found == ([] if replaced else [("DCP202", "mine/attention.py")])


CAPTURE = """\
from vllm.v1.attention.backend import AttentionMetadataBuilder, CommonAttentionMetadata


class Capture:
    def capture(self, builder: AttentionMetadataBuilder, lengths):
        batch = CommonAttentionMetadata(seq_lens=lengths, dcp_local_seq_lens=lengths // 2)
        return builder.build(0, batch)
"""


@pytest.mark.parametrize("inherited", [False, True])
def test_what_no_class_of_the_plugin_inherits_fills_nothing_in(
    dcplint: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inherited: bool
) -> None:
    """Else a fallback for a runner that never fills the field in would be said to hide that."""
    monkeypatch.setitem(ENGINE, "vllm/v1/worker/capture.py", CAPTURE)
    capture = (
        "from vllm.v1.worker.capture import Capture\n\n\nclass MyCapture(Capture):\n    pass\n"
    )
    monkeypatch.setitem(PLUGIN, "mine/graphs.py", capture if inherited else "")
    found = findings(dcplint, tmp_path, attention=DERIVING)
    assert found == ([("DCP202", "mine/attention.py")] if inherited else [])
