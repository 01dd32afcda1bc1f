"""The layer around an impl: scales, sizes, and the engine's own merge."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch

from dcplint.harness.driver import Placement
from dcplint.harness.ledger import note_stub
from dcplint.harness.model import Geometry
from dcplint.harness.vllm import engine

NAME = "model.layers.0.self_attn.attn"


def make_layer(geometry: Geometry, placement: Placement, cache_dtype: str) -> Any:
    """A layer as backends see it: of the engine's layer class, with what they ask of it.

    Builders pick their layers by class. The constructor, which wants a model, does not run.
    """
    name = "mla_attention:MLAAttention" if geometry.is_mla else "attention:Attention"
    base = engine.find(
        f"vllm.model_executor.layers.attention.{name}",
        "vllm.model_executor.layers.attention_layer_base:AttentionLayerBase",
    )
    cls = type("ProbeLayer", (_Asked,) if base is None else (_Asked, base), _complete(base))
    layer: Any = object.__new__(cls)
    one = torch.ones((), dtype=torch.float32, device=placement.device)
    layer.__dict__.update(
        layer_name=NAME,
        num_heads=geometry.num_heads // placement.dcp_world_size,
        num_kv_heads=geometry.num_kv_heads,
        head_size=geometry.head_dim,
        head_size_v=geometry.v_head_dim,
        kv_lora_rank=geometry.kv_lora_rank,
        q_lora_rank=None,
        qk_nope_head_dim=geometry.v_head_dim,
        qk_rope_head_dim=geometry.head_dim - geometry.kv_lora_rank,
        v_head_dim=geometry.v_head_dim,
        kv_cache_dtype=cache_dtype,
        prefill_backend=_Prefill(),
        attn_type="decoder",
        sliding_window=geometry.window or None,
    )
    for scale in ("_q_scale", "_k_scale", "_v_scale", "_prob_scale"):
        layer.__dict__.update({scale: one, f"{scale}_float": 1.0, f"{scale}_cpu": one})
    return layer


class _Asked:
    """Notes what it is asked for and does not have."""

    __setattr__ = object.__setattr__

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        note_stub(f"layer.{name} = None")
        return None


class _Prefill:
    """The prefill path of an MLA layer, which decode probes never take."""

    def clone(self) -> _Prefill:
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        note_stub(f"layer.prefill_backend.{name}")
        return lambda *arguments, **options: None


def _complete(base: type | None) -> dict[str, Any]:
    """The abstract methods of the engine's layer base, doing nothing."""
    names = getattr(base, "__abstractmethods__", ())
    return {name: lambda self, *arguments, **options: None for name in names}


Merge = Callable[[torch.Tensor, torch.Tensor, Any], torch.Tensor]


def make_merge(
    config: Any, geometry: Geometry, placement: Placement, impl: Any, group: Any
) -> tuple[Any, Merge]:
    """The engine's merge of an MLA layer's shards, and the manager that owns it, None before 0.28.

    The merge takes out [T, H, C], lse [T, H] and the step's metadata, as the layer calls it.
    """
    manager_class = engine.find(
        "vllm.v1.attention.ops.dcp:MLADCPManager", "vllm.v1.attention.ops.dcp_utils:MLADCPManager"
    )
    if manager_class is None:
        reduce = engine.find(
            "vllm.v1.attention.ops.dcp:cp_lse_ag_out_rs",
            "vllm.v1.attention.ops.common:cp_lse_ag_out_rs",
        )

        def merge_by_function(out: torch.Tensor, lse: torch.Tensor, metadata: Any) -> torch.Tensor:
            given = inspect.signature(reduce).parameters
            options = (
                {"is_lse_base_on_e": impl.lse_base_on_e} if "is_lse_base_on_e" in given else {}
            )
            return reduce(out, lse, group, **options)

        return None, merge_by_function
    offered = {
        "vllm_config": config,
        "device": torch.device(placement.device),
        "num_heads": geometry.num_heads // placement.dcp_world_size,
        "query_head_dim": geometry.head_dim,
        "output_head_dim": geometry.kv_lora_rank,
        "query_dtype": placement.dtype,
        "output_dtype": placement.dtype,
        "padded_num_heads": None,
        "is_lse_base_on_e": getattr(impl, "lse_base_on_e", True),
        "use_pcp": False,
    }
    manager = manager_class(
        **{k: v for k, v in offered.items() if k in inspect.signature(manager_class).parameters}
    )

    def merge_by_manager(out: torch.Tensor, lse: torch.Tensor, metadata: Any) -> torch.Tensor:
        decode = getattr(metadata, "decode", None)
        offered = {
            "seq_lens": getattr(decode, "seq_lens", None),
            "query_start_loc": metadata.query_start_loc[: metadata.num_decodes + 1],
            "is_lse_base_on_e": getattr(impl, "lse_base_on_e", True),
        }
        target = getattr(manager.combine, "func", manager.combine)
        given = inspect.signature(target).parameters
        bound = getattr(manager.combine, "keywords", {})
        options = {k: v for k, v in offered.items() if k in given and k not in bound}
        return manager.combine(out, lse, **options)

    return manager, merge_by_manager
