"""Who may refuse another interleave size for a class, in whatever module that is."""

from pathlib import Path

import pytest

from tests.checks.fixture import lint

BUILDER = """\
from vllm.v1.attention.backend import AttentionMetadataBuilder
from my.checks import refuse_interleave

class Builder(AttentionMetadataBuilder):
    def __init__(self, spec, layers, config, device):
        {first}

    def local(self, seq_lens):
        return seq_lens // self.dcp_world_size + (self.dcp_rank < seq_lens % self.dcp_world_size)

    def mine(self, positions):
        return positions % self.dcp_world_size == self.dcp_rank
"""
CHECKS = """\
def refuse_interleave(config):
    if config.parallel_config.cp_kv_cache_interleave_size != 1:
        raise NotImplementedError("interleave")

def log_interleave(config):
    print(config.parallel_config.cp_kv_cache_interleave_size)

"""
PLATFORM = """\
from vllm.platforms.interface import Platform

class {name}(Platform):
    @classmethod
    def check_and_update_config(cls, vllm_config):
        if vllm_config.parallel_config.{attribute} != 1:
            raise ValueError("one by one")
"""
BACKEND = """\
from vllm.v1.attention.backend import AttentionBackend
from my.builder import {builder}

class Backend(AttentionBackend):
    @classmethod
    def validate_configuration(cls, config, **kwargs):
        reasons = super().validate_configuration(config, **kwargs)
        if config.parallel_config.cp_kv_cache_interleave_size > 1:
            reasons.append("interleave")
        return reasons

    @staticmethod
    def get_builder_cls():
        return {builder}
"""
PLUGIN = {
    "my/__init__.py": "",
    "my/builder.py": BUILDER.format(first="self.spec = spec"),
    "my/checks.py": CHECKS,
}


def _helped(name: str) -> dict[str, str]:
    text = BUILDER.replace("refuse_interleave", name).format(first=f"{name}(config)")
    return {"my/builder.py": text}


def _platform(name: str, attribute: str = "cp_kv_cache_interleave_size") -> dict[str, str]:
    return {f"my/{name.lower()}.py": PLATFORM.format(name=name, attribute=attribute)}


QUIET = {
    "its platform": _platform("Mine"),
    "its backend": {"my/backend.py": BACKEND.format(builder="Builder")},
    "a helper": _helped("refuse_interleave"),
}
TOLD = {
    "nobody": {},
    "a platform, of something else": _platform("Mine", "tensor_parallel_size"),
    "one of two platforms": _platform("Mine") | _platform("Yours", "tensor_parallel_size"),
    "another's backend": {
        "my/builder.py": PLUGIN["my/builder.py"]
        + "\nclass Another(AttentionMetadataBuilder): ...\n",
        "my/backend.py": BACKEND.format(builder="Another"),
    },
    "a helper that says it": _helped("log_interleave"),
}


def _codes(tree: dict[str, str], tmp_path: Path) -> list[str]:
    found = lint(PLUGIN | tree, tmp_path, "vllm==0.33.0").findings
    return [finding.code for finding in found]


@pytest.mark.parametrize("who", QUIET)
def test_refused_elsewhere(who: str, tmp_path: Path) -> None:
    assert _codes(QUIET[who], tmp_path) == []


@pytest.mark.parametrize("who", TOLD)
def test_not_refused(who: str, tmp_path: Path) -> None:
    codes = _codes(TOLD[who], tmp_path)
    assert {"DCP303", "DCP308"} <= set(codes)
