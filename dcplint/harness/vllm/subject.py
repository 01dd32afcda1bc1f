"""A vLLM backend on one rank: the engine's impl, builder and merge over the harness's cache."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import torch

from dcplint.harness.contract import CommonAttentionMetadata
from dcplint.harness.driver import Placement, Refused
from dcplint.harness.ledger import Unavailable, note_stub
from dcplint.harness.missing import describe
from dcplint.harness.model import Geometry
from dcplint.harness.vllm import engine
from dcplint.harness.vllm.config import LONGEST, MAX_TOKENS, make_config
from dcplint.harness.vllm.group import EngineGroup
from dcplint.harness.vllm.layer import NAME, make_layer, make_merge
from dcplint.harness.vllm.metadata import engine_metadata
from dcplint.harness.vllm.substitutes import fill_gaps

# Kinds of cache, by whether it is latent and whether it is of a window.
_SPECS = {
    (False, False): "FullAttentionSpec",
    (True, False): "MLAAttentionSpec",
    (False, True): "SlidingWindowSpec",
    (True, True): "SlidingWindowMLASpec",
}


class EngineSubject:
    """What the impls of both kinds have in common."""

    owes_empty = False
    # Finite: the engine zeroes its caches, so that a backend may read what it then weighs with 0.
    poison: float = 16384.0
    # How the engine's layer calls an impl: its methods, and what they are given.
    _calls: ClassVar[Mapping[str, tuple[str, ...]]]

    def __init__(
        self, backend: Any, geometry: Geometry, placement: Placement, cache_dtype: str
    ) -> None:
        self.geometry = geometry
        self.placement = placement
        self.cache_dtype = cache_dtype
        if geometry.fp8:
            engine.offer_fp8()
        impl_class = backend.get_impl_cls()
        builder_class = backend.get_builder_cls()
        fill_gaps([*impl_class.__mro__, *builder_class.__mro__, backend])
        engine.note_standins()
        self._layer = make_layer(geometry, placement, cache_dtype)
        self._config = make_config(geometry, placement, {NAME: self._layer}, cache_dtype)
        self._group = EngineGroup(
            placement.group, placement.dcp_rank, self._group_size(), self._enter
        )
        self._workspace = _make_workspace(placement.device)
        # What a sparse layer's indexer selects: every token that a query may see.
        is_sparse = getattr(backend, "is_sparse", bool)()
        self._selected = _no_tokens(placement.device) if is_sparse else None
        _require_calls(impl_class, self._calls)
        self._window = geometry.window
        if hasattr(backend, "set_head_size_v"):  # as the layer does before it makes an impl
            backend.set_head_size_v(geometry.v_head_dim)
        self._enter()
        self._impl = self._make_impl(impl_class)
        self._layer.impl = self._impl
        group = getattr(self._impl, "index_group", None)
        if group is not None and self._selected is not None and placement.device == "cpu":
            # Without room for what layers share each converts by itself, not in a stream of a card.
            note_stub("impl.index_group without room for shared indices")
            group.physical_topk_indices = self._selected[:0]
        spec = self._spec(backend)
        if not self._stored_dtype().is_floating_point:
            self.poison = 85  # a byte
        self._cache, self._base = _make_cache(
            backend, spec, geometry, placement, self._stored_dtype(), cache_dtype
        )
        self._layer.kv_cache = self._cache
        self.caches: tuple[torch.Tensor, ...] = (self._base,)
        self.slot_sizes: tuple[int, ...] = (
            self._base.numel() // (placement.num_pages * geometry.page_size),
        )
        self.lse_base = "e" if getattr(self._impl, "lse_base_on_e", True) else "2"
        self._prepare_merge()
        with _refusing():
            self.builder = builder_class(spec, [NAME], self._config, torch.device(placement.device))

    def _group_size(self) -> int:
        """From 0.31 a layer may be unsharded inside a larger group."""
        if engine.find("vllm.distributed.parallel_state:get_dcp_world_size_and_rank"):
            return self.placement.group.world_size
        return self.placement.dcp_world_size

    def _enter(self) -> None:
        """Point the engine's module globals at this rank."""
        state = engine.load("vllm.distributed.parallel_state")
        config = engine.load("vllm.config.vllm") or engine.load("vllm.config")
        workspace = engine.load("vllm.v1.worker.workspace")
        for module, name, value in (
            (state, "_DCP", self._group),
            (state, "_TP", self._group),  # heads are split over the same ranks
            (config, "_current_vllm_config", self._config),
            (workspace, "_manager", self._workspace),
        ):
            if module is not None:
                setattr(module, name, value)

    def _prepare_merge(self) -> None:
        """Before the builder is made, which may ask the layer for it."""

    def _make_impl(self, cls: Any) -> Any:
        local_heads = self.geometry.num_heads // self.placement.dcp_world_size
        offered: dict[str, Any] = {
            "num_heads": local_heads,
            "head_size": self.geometry.head_dim,
            "scale": self.geometry.sm_scale,
            "num_kv_heads": self.geometry.num_kv_heads,
            "alibi_slopes": None,
            "sliding_window": self._window or None,
            "kv_cache_dtype": self.cache_dtype,
            "logits_soft_cap": self.geometry.soft_cap or None,
            "attn_type": "decoder",
            "kv_sharing_target_layer_name": None,
            **self._impl_options(),
        }
        given = inspect.signature(cls.__init__).parameters
        takes_any = any(p.kind is p.VAR_KEYWORD for p in given.values())
        options = {k: v for k, v in offered.items() if takes_any or k in given}
        variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        wanted = [
            name
            for name, p in given.items()
            if name != "self" and p.default is p.empty and p.kind not in variadic
        ]
        unknown = [name for name in wanted if name not in options]
        if unknown:
            raise Unavailable(
                f"its constructor wants {', '.join(unknown)}, which a layer of its model gives"
            )
        with _refusing():
            try:
                return cls(**options)
            except AssertionError as error:
                if "sliding_window" not in describe(error) or self.geometry.window:
                    raise
                # Of window layers only: one that no probe fills.
                self._window = LONGEST
                return cls(**{**options, "sliding_window": self._window})

    def _impl_options(self) -> dict[str, Any]:
        sinks = self.placement.sinks
        if sinks is None:
            return {}
        heads = self.geometry.num_heads // self.placement.dcp_world_size
        start = self.placement.dcp_rank * heads
        return {"sinks": sinks[start : start + heads].to(self.placement.dtype)}

    def _spec(self, backend: Any) -> Any:
        geometry, mla = self.geometry, self.geometry.is_mla
        name = _SPECS[mla, self._window > 0]
        cls = engine.find(f"vllm.v1.kv_cache_interface:{name}")
        offered = {
            "block_size": geometry.page_size,
            "num_kv_heads": 1 if mla else geometry.num_kv_heads,
            "head_size": geometry.head_dim,
            "dtype": self._stored_dtype(),
            "cache_dtype_str": self.cache_dtype,
            "dcp_sharded": self.placement.dcp_world_size > 1,
            "sliding_window": self._window or None,
        }
        given = inspect.signature(cls).parameters
        spec = cls(**{name: value for name, value in offered.items() if name in given})
        customize = getattr(backend, "customize_spec", None)
        return spec if customize is None else customize(spec)

    def _stored_dtype(self) -> torch.dtype:
        """Of what the cache is made."""
        known = engine.find("vllm.utils.torch_utils:STR_DTYPE_TO_TORCH_DTYPE") or {}
        stored: torch.dtype = known.get(self.cache_dtype, self.placement.dtype)
        return stored

    def slots(self, common: CommonAttentionMetadata) -> None:
        """Slots are the runner's business."""

    def metadata(self, common: CommonAttentionMetadata) -> Any:
        """See `Subject`."""
        self._enter()
        given = engine_metadata(common, self.placement, self.geometry.page_size)
        return self.builder.build(0, given)


class MLASubject(EngineSubject):
    """An `MLAAttentionImpl`: returns out and LSE, which the layer merges."""

    self_merging = False
    merges_new_tokens = False
    _calls: ClassVar = {
        "forward_mqa": ("q", "kv_cache", "attn_metadata", "layer"),
        "do_kv_cache_update": ("kv_c", "k_pe", "kv_cache", "slot_mapping", "dtype", "k_scale"),
    }

    def _impl_options(self) -> dict[str, Any]:
        geometry = self.geometry
        return {
            "q_lora_rank": None,
            "kv_lora_rank": geometry.kv_lora_rank,
            "qk_nope_head_dim": geometry.v_head_dim,
            "qk_rope_head_dim": geometry.head_dim - geometry.kv_lora_rank,
            "qk_head_dim": geometry.v_head_dim + geometry.head_dim - geometry.kv_lora_rank,
            "v_head_dim": geometry.v_head_dim,
            "kv_b_proj": None,
            "indexer": None,
            "q_pad_num_heads": None,
            **({} if self._selected is None else {"topk_indices_buffer": self._selected}),
        }

    def _prepare_merge(self) -> None:
        manager, self._merge = make_merge(
            self._config, self.geometry, self.placement, self._impl, self._group
        )
        self._layer.dcp_manager = manager

    def metadata(self, common: CommonAttentionMetadata) -> Any:
        """See `Subject`."""
        if self._selected is not None:
            for token, position in enumerate(common.positions.tolist()):
                seen = torch.arange(position + 1, dtype=torch.int32)
                self._selected[token].fill_(-1)[: position + 1] = seen
        metadata = super().metadata(common)
        tokens = int(common.query_start_loc[common.num_reqs])
        decoded = getattr(metadata, "num_decode_tokens", tokens)
        if decoded < tokens:
            raise Unavailable(f"{tokens - decoded} new tokens are for the prefill of its layer")
        return metadata

    def write(self, key: torch.Tensor, value: torch.Tensor, slots: torch.Tensor) -> None:
        """See `Subject`. key: [T, 1, C + R], the latent row and the rotary one."""
        self._enter()
        rank = self.geometry.kv_lora_rank
        self._impl.do_kv_cache_update(
            key[:, 0, :rank].contiguous(),
            key[:, :, rank:].contiguous(),
            self._cache,
            slots,
            self.cache_dtype,
            self._layer._k_scale,
        )

    def local(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, metadata: Any
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """See `Subject`."""
        self._enter()
        self._metadata = metadata
        given: Any = query
        if self.placement.dcp_world_size == 1:  # as the layer gives it where nothing is gathered
            rank = self.geometry.kv_lora_rank
            given = query[..., :rank], query[..., rank:]
        cache = self._cache
        if self.geometry.fp8:  # as the layer gives it
            cache = cache.view(torch.float8_e4m3fn)
        out, lse = self._impl.forward_mqa(given, cache, metadata, self._layer)
        return out, lse

    def merge(self, out: torch.Tensor, lse: torch.Tensor) -> torch.Tensor:
        """See `Subject`."""
        self._enter()
        if self.placement.dcp_world_size == 1:
            return out
        return self._merge(out, lse, self._metadata)


class GQASubject(EngineSubject):
    """An `AttentionImpl`: its `forward` does its own collectives and returns merged heads."""

    self_merging = True
    merges_new_tokens = True
    _calls: ClassVar = {
        "forward": ("layer", "query", "key", "value", "kv_cache", "attn_metadata", "output"),
        "do_kv_cache_update": ("layer", "key", "value", "kv_cache", "slot_mapping"),
    }

    def write(self, key: torch.Tensor, value: torch.Tensor, slots: torch.Tensor) -> None:
        """See `Subject`."""
        self._enter()
        self._impl.do_kv_cache_update(self._layer, key, value, self._cache, slots)

    def local(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, metadata: Any
    ) -> tuple[torch.Tensor, None]:
        """See `Subject`."""
        self._enter()
        heads = self.geometry.num_heads // self.placement.dcp_world_size
        start = self.placement.dcp_rank * heads
        mine = query[:, start : start + heads].contiguous()
        output = torch.zeros(
            *mine.shape[:2], value.shape[-1], dtype=query.dtype, device=query.device
        )
        returned = self._impl.forward(
            self._layer, mine, key, value, self._cache, metadata, output=output
        )
        out = output if returned is None else returned
        return out.view(*mine.shape[:2], -1), None

    def merge(self, out: torch.Tensor, lse: torch.Tensor) -> torch.Tensor:
        """See `Subject`."""
        raise AssertionError("a self-merging backend has nothing to merge")


def _require_calls(impl: Any, calls: Mapping[str, tuple[str, ...]]) -> None:
    """Raises Unavailable for an impl that another layer than the engine's calls."""
    for name, given in calls.items():
        method = getattr(impl, name, None)
        if method is None:
            raise Unavailable(f"it has no `{name}`: a layer of its model would have to be run")
        signature = inspect.signature(method)
        try:
            signature.bind(impl, *given)
        except TypeError:
            taken = ", ".join(p.name for p in list(signature.parameters.values())[1:])
            raise Unavailable(
                f"its `{name}` takes ({taken}), which is not what the engine's layer gives: "
                "a layer of its model would have to be run"
            ) from None


@contextmanager
def _refusing() -> Iterator[None]:
    """What a constructor objects to, the backend refuses; it has computed nothing yet."""
    try:
        yield
    except (NotImplementedError, ValueError) as error:
        raise Refused(str(error)) from error


def _no_tokens(device: str) -> torch.Tensor:
    return torch.full((MAX_TOKENS, LONGEST), -1, dtype=torch.int32, device=device)


def _make_workspace(device: str) -> Any:
    manager = engine.find("vllm.v1.worker.workspace:WorkspaceManager")
    return None if manager is None else manager(torch.device(device), 1)


def _make_cache(
    backend: Any,
    spec: Any,
    geometry: Geometry,
    placement: Placement,
    dtype: torch.dtype,
    cache_dtype: str,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The layer's cache as the engine lays it out, and its storage as one flat run of elements."""
    shape_of = getattr(backend, "get_kv_cache_shape", None)
    if shape_of is not None:
        sizes = (placement.num_pages, geometry.page_size, spec.num_kv_heads, spec.head_size)
        shape = shape_of(*sizes, cache_dtype)
        try:
            order = backend.get_kv_cache_stride_order()
        except (AttributeError, NotImplementedError):
            order = tuple(range(len(shape)))
    else:
        in_bytes = engine.find("vllm.v1.kv_cache_interface:compute_layer_kv_cache_shape_bytes")
        *outer, content = in_bytes(spec, placement.num_pages)
        shape = (*outer, content // dtype.itemsize)
        order = tuple(range(len(shape)))
    base = torch.empty(tuple(shape[i] for i in order), dtype=dtype, device=placement.device)
    cache = base.permute(*(order.index(i) for i in range(len(order))))
    if geometry.is_mla and cache.dim() == 4:
        cache = cache.squeeze(1)  # as the layer binds it
    return cache, base
