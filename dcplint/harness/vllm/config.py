"""The engine's configuration: what a probe sets, else the engine's own default, else a stub.

A real `VllmConfig` wants a model. Backends ask it for a few dozen values; this answers them, and
notes whatever it had to make up.
"""

from __future__ import annotations

import dataclasses
import types
from typing import Any

from dcplint.harness.driver import Placement
from dcplint.harness.ledger import note_stub
from dcplint.harness.model import Geometry
from dcplint.harness.vllm import engine

MAX_REQS = 64
MAX_TOKENS = 512
MAX_MODEL_LEN = 4096
LONGEST = 512  # more tokens than a request of any probe has


class Settings:
    """One part of the configuration, such as `parallel_config`.

    A name that was not set is looked for in the engine's own class of the part: a default of the
    dataclass, or a method, which then runs on this object. Anything else is None, or another
    `Settings` where the name says that it is a configuration.
    """

    def __init__(self, name: str, **known: Any) -> None:
        self.__dict__.update(known)
        self.__dict__["_name"] = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = self._default(name)
        self.__dict__[name] = value
        return value

    def _default(self, name: str) -> Any:
        part = self.__dict__["_name"]
        cls = engine.find(f"vllm.config:{_class_name(part)}")
        if cls is not None:
            declared = getattr(cls, "__dataclass_fields__", {}).get(name)
            if declared is not None and declared.default is not dataclasses.MISSING:
                return declared.default
            method = getattr(cls, name, None)
            if isinstance(method, types.FunctionType):
                return types.MethodType(method, self)
        if name.endswith("_config"):
            return Settings(name)
        note_stub(f"{part}.{name} = None")
        return None


def make_config(
    geometry: Geometry, placement: Placement, layers: dict[str, Any], cache_dtype: str
) -> Settings:
    """The configuration of one rank. layers: by name, as `static_forward_context` has them."""
    world_size = placement.dcp_world_size
    # Several tokens of a latent layer's request are a decode where they verify a draft.
    drafted = placement.max_query_len - 1 if geometry.is_mla else 0
    local_heads = geometry.num_heads // world_size
    model = Settings(
        "model_config",
        dtype=placement.dtype,
        max_model_len=MAX_MODEL_LEN,
        use_mla=geometry.is_mla,
        is_deepseek_mla=geometry.is_mla,
        is_mm_prefix_lm=False,
        is_hybrid=False,
        is_encoder_decoder=False,
        enforce_eager=True,
        get_num_attention_heads=lambda parallel: local_heads,
        get_num_kv_heads=lambda parallel: geometry.num_kv_heads,
        get_total_num_kv_heads=lambda: geometry.num_kv_heads,
        get_head_size=lambda: _model_head_size(geometry),
        get_sliding_window=lambda: geometry.window or None,
        get_vocab_size=lambda: 128,
        hf_text_config=_hf_config(geometry),
        hf_config=_hf_config(geometry),
    )
    parallel = Settings(
        "parallel_config",
        tensor_parallel_size=world_size,
        pipeline_parallel_size=1,
        prefill_context_parallel_size=1,
        decode_context_parallel_size=world_size,
        cp_kv_cache_interleave_size=placement.interleave,
        dcp_kv_cache_interleave_size=placement.interleave,
        world_size=world_size,
        world_size_across_dp=world_size,
        rank=placement.dcp_rank,
        num_ubatches=1,
    )
    modes = engine.find("vllm.config:CUDAGraphMode")
    compilation = Settings(
        "compilation_config",
        static_forward_context=layers,
        cudagraph_mode=None if modes is None else modes.NONE,
        max_cudagraph_capture_size=0,
        cudagraph_capture_sizes=[],
        custom_ops=["none"],
        fast_moe_cold_start=False,
    )
    return Settings(
        "vllm_config",
        model_config=model,
        parallel_config=parallel,
        compilation_config=compilation,
        cache_config=Settings(
            "cache_config",
            cache_dtype=cache_dtype,
            block_size=geometry.page_size,
            num_gpu_blocks=placement.num_pages,
            kv_cache_layout="LBHNC",  # as the harness lays it out, from 0.29 on
        ),
        scheduler_config=Settings(
            "scheduler_config", max_num_seqs=MAX_REQS, max_num_batched_tokens=MAX_TOKENS
        ),
        kernel_config=Settings("kernel_config", enable_jit_warmup=False),
        speculative_config=Settings("speculative_config", num_speculative_tokens=drafted)
        if drafted
        else None,
        kv_transfer_config=None,
        lora_config=None,
        quant_config=None,
        num_speculative_tokens=drafted,
    )


def _model_head_size(geometry: Geometry) -> int:
    """Of a model's usual layers: a layer may be of another size, which its metadata refuses."""
    common = engine.find("vllm.model_executor.layers.attention.mla_attention:MLACommonBackend")
    sizes = common.get_supported_head_sizes() if geometry.is_mla and common is not None else []
    return geometry.head_dim if not sizes or geometry.head_dim in sizes else min(sizes)


def _hf_config(geometry: Geometry) -> Settings:
    return Settings(
        "hf_config",
        model_type="dcplint-probe",
        num_attention_heads=geometry.num_heads,
        num_key_value_heads=geometry.num_kv_heads,
        head_dim=geometry.head_dim,
        kv_lora_rank=geometry.kv_lora_rank,
        q_lora_rank=None,
        qk_rope_head_dim=geometry.head_dim - geometry.kv_lora_rank,
        qk_nope_head_dim=geometry.v_head_dim,
        v_head_dim=geometry.v_head_dim,
        index_topk=LONGEST,
    )


def _class_name(part: str) -> str:
    """`parallel_config` is of `ParallelConfig`."""
    return "".join(word.capitalize() for word in part.split("_"))
