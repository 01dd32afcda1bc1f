"""Compile what the launchers launch, for cards that are not here, and print what it costs.

Run as a script in a process of its own (interpretation must be off). The launchers are called on
fake CUDA tensors; the launch is caught, not run, so block sizes, warps and stages are the ones a
GPU would get. One JSON line per compiled kernel.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import types
from pathlib import Path

import torch
import triton
from dcplint.harness.kernels.gqa_decode import gqa_decode
from dcplint.harness.kernels.local_lens import local_seq_lens
from dcplint.harness.kernels.lse_merge import correct_shard, merge_shards
from dcplint.harness.kernels.mla_decode import mla_decode
from torch._subclasses.fake_tensor import FakeTensorMode
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.jit import JITFunction, mangle_type

TARGETS = {
    "sm_80": GPUTarget("cuda", 80, 32),
    "sm_90": GPUTarget("cuda", 90, 32),
    "sm_100": GPUTarget("cuda", 100, 32),
    "gfx942": GPUTarget("hip", "gfx942", 64),
}
_OPTIONS = ("num_warps", "num_stages")


class _Launches:
    """Collects what would have been launched."""

    def __init__(self) -> None:
        self.caught: list[tuple[JITFunction, dict, dict]] = []

    def run(self, function: JITFunction, *args, grid, warmup, **kwargs):
        options = {k: kwargs.pop(k) for k in _OPTIONS if k in kwargs}
        bound = dict(zip(function.arg_names, args, strict=False), **kwargs)
        self.caught.append((function, bound, options))


def _source(function: JITFunction, bound: dict) -> ASTSource:
    signature, constexprs, attrs = {}, {}, {}
    for index, parameter in enumerate(function.params):
        value = bound[parameter.name]
        constant = parameter.is_constexpr or value is None or (type(value) is int and value == 1)
        signature[parameter.name] = "constexpr" if constant else mangle_type(value)
        if constant:
            constexprs[(index,)] = value
        elif hasattr(value, "data_ptr") or (type(value) is int and value % 16 == 0):
            attrs[(index,)] = [["tt.divisibility", 16]]
    return ASTSource(function, signature, constexprs, attrs)


def _cuda_usage(cubin: bytes) -> dict[str, int]:
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        Path(file.name).write_bytes(cubin)
        text = subprocess.run(
            [tool, "--dump-resource-usage", file.name], capture_output=True, text=True, check=True
        ).stdout
    found = {k: int(v) for k, v in re.findall(r"(REG|STACK|LOCAL):(\d+)", text)}
    return {"registers": found["REG"], "spilled": found["STACK"] + found["LOCAL"]}


def _hip_usage(assembly: str) -> dict[str, int]:
    # SGPRs spill into lanes of a VGPR, which costs no memory traffic; scratch memory does.
    found = {k: int(v) for k, v in re.findall(r"\.(\w+): +(\d+)", assembly)}
    return {
        "registers": found["vgpr_count"],
        "spilled": found["vgpr_spill_count"] + found["private_segment_fixed_size"],
    }


def launches(hip: bool) -> dict[str, list[tuple[JITFunction, dict, dict]]]:
    """What each case launches, by case name, on NVIDIA or AMD."""
    torch.version.hip = "6.4" if hip else None
    torch.cuda.get_device_properties = lambda device: types.SimpleNamespace(
        multi_processor_count=132
    )
    result = {}
    collector = _Launches()
    JITFunction.run = lambda self, *args, **kwargs: collector.run(self, *args, **kwargs)

    def case(name: str, call, *args, **kwargs) -> None:
        collector.caught = []
        call(*args, **kwargs)
        result[name] = collector.caught

    def zeros(*shape: int, dtype: torch.dtype) -> torch.Tensor:
        return torch.empty(shape, dtype=dtype, device="cuda")

    with FakeTensorMode():
        requests, pages, page = 32, 4096, 16
        table = zeros(requests, 512, dtype=torch.int32)
        lens = zeros(requests, dtype=torch.int32)
        starts = zeros(requests + 1, dtype=torch.int32)
        case("lens", local_seq_lens, lens, dcp_rank=1, dcp_world_size=8, interleave=16)
        shard = {"dcp_rank": 2, "dcp_world_size": 8, "interleave": 16, "sm_scale": 0.1}
        everything = {"window": 4096, "soft_cap": 30.0, "sinks": zeros(64, dtype=torch.float32)}
        for dtype in (torch.bfloat16, torch.float16, torch.float32):
            label = str(dtype).removeprefix("torch.")
            for cache_dtype in (dtype, torch.float8_e4m3fn):
                fp8 = "+fp8" if cache_dtype != dtype else ""
                for variant, query_len, extra in (("", 1, {}), ("+all", 4, everything)):
                    q = zeros(requests * query_len, 64, 128, dtype=dtype)
                    cache = zeros(pages, page, 8, 128, dtype=cache_dtype)
                    case(
                        f"gqa128-{label}{fp8}{variant}", gqa_decode, q, cache, cache, table, lens,
                        lens, starts, max_query_len=query_len, **shard, **extra,
                    )  # fmt: skip
                    q = zeros(requests * query_len, 64, 576, dtype=dtype)
                    cache = zeros(pages, page, 576, dtype=cache_dtype)
                    case(
                        f"mla576-{label}{fp8}{variant}", mla_decode, q, cache, table, lens, lens,
                        starts, kv_lora_rank=512, max_query_len=query_len, **shard, **extra,
                    )  # fmt: skip
            for v_dim in (128, 512):
                outs = zeros(8, requests, 128, v_dim, dtype=dtype)
                out = zeros(requests, 128, v_dim, dtype=dtype)
                lses = zeros(8, requests, 128, dtype=torch.float32)
                for base in ("e", "2") if dtype == torch.bfloat16 else ("e",):
                    case(f"merge{v_dim}-{label}-{base}", merge_shards, outs, lses, base=base)
                    case(f"correct{v_dim}-{label}-{base}", correct_shard, out, lses, 1, base=base)
    return result


def _measure(function: JITFunction, source: ASTSource, target: str, options: dict) -> dict:
    compiled = triton.compile(source, target=TARGETS[target], options=options)
    cuda = target.startswith("sm_")
    usage = _cuda_usage(compiled.asm["cubin"]) if cuda else _hip_usage(compiled.asm["amdgcn"])
    return {"kernel": function.__name__, "shared": compiled.metadata.shared, **usage}


def main(target: str, pattern: str = "") -> None:
    """Compile the cases that match for one target."""
    done = set()
    for case, caught in launches(hip=target.startswith("gfx")).items():
        for function, bound, options in caught if re.search(pattern, case) else ():
            source = _source(function, bound)
            key = (source.hash(), tuple(options.items()))
            if key not in done:
                done.add(key)
                record = _measure(function, source, target, options)
                print(json.dumps({"case": case, "target": target, **record}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
