"""What the engine has only as a compiled op, in torch.

Ops that store rows into a cache are plumbing and count as stubs. `flash_attn_varlen_func` is an
attention kernel: where it is replaced, builder and merge around it are still the engine's, and the
run says nothing of the kernel. Each is used only where the engine has none on this machine.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable
from types import CodeType, ModuleType
from typing import Any

import torch

from dcplint.harness.ledger import Unavailable, note_stub, note_substitute
from dcplint.harness.recorder import note_read


def fill_gaps(classes: Iterable[type]) -> None:
    """Give the modules of `classes` the functions they ask for and do not have."""
    for namespace, name, function in _OPS:
        operations = getattr(torch.ops, namespace)
        if not hasattr(operations, name):
            setattr(operations, name, function)
    for name in {c.__module__ for c in classes}:
        module = sys.modules[name]
        wanted = _global_names(module)
        if _lacks_flash_attention(module, wanted):
            for wanted_name, function in _FLASH_ATTENTION.items():
                if wanted_name in wanted:
                    setattr(module, wanted_name, function)


def _lacks_flash_attention(module: ModuleType, wanted: frozenset[str]) -> bool:
    """Whether a module looks FlashAttention up, or whether there is one, and it is not there."""
    if "flash_attn_varlen_func" in wanted:
        known = getattr(module, "flash_attn_varlen_func", flash_attn_varlen_func)
        return known is flash_attn_varlen_func
    is_there = getattr(module, "is_flash_attn_varlen_func_available", None)
    return is_there is not None and not is_there()


def offer_flash_attention(modules: dict[str, ModuleType]) -> bool:
    """Let modules that import FlashAttention's functions find ours; whether that is news."""
    package = "vllm.vllm_flash_attn"
    if getattr(modules.get(package), "__file__", "") is None:
        return False
    for name in (package, f"{package}.flash_attn_interface"):
        modules[name] = ModuleType(name)
        modules[name].__dict__.update(_OFFERED, __file__=None, __path__=[])
    utilities = modules.get("vllm.v1.attention.backends.fa_utils")
    for name, function in _OFFERED.items():
        if utilities is not None and not hasattr(utilities, name):
            setattr(utilities, name, function)
    return True


def _global_names(module: ModuleType) -> frozenset[str]:
    """Names that functions and methods of a module look up."""
    found: set[str] = set()

    def visit(code: CodeType) -> None:
        found.update(code.co_names)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                visit(constant)

    for value in list(vars(module).values()):
        if getattr(value, "__module__", None) != module.__name__:
            continue
        for member in [value, *vars(value).values()] if isinstance(value, type) else [value]:
            code = getattr(getattr(member, "__func__", member), "__code__", None)
            if isinstance(code, CodeType):
                visit(code)
    return frozenset(found)


def reshape_and_cache_flash(
    key: torch.Tensor,
    value: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    slot_mapping: torch.Tensor,
    kv_cache_dtype: str = "auto",
    k_scale: Any = None,
    v_scale: Any = None,
) -> None:
    """Store key and value [T, Hkv, D] at slots [T] of caches [pages, page size, Hkv, D]."""
    note_stub("op reshape_and_cache_flash: stores rows, in torch")
    mine = slot_mapping >= 0
    page_size = key_cache.shape[1]
    pages, offsets = slot_mapping[mine] // page_size, slot_mapping[mine] % page_size
    kept = mine.nonzero()[:, 0]
    if kv_cache_dtype.startswith("fp8"):
        key_cache, value_cache = (c.view(torch.float8_e4m3fn) for c in (key_cache, value_cache))
        key, value = key / k_scale, value / v_scale
    key_cache[pages, offsets] = key[kept].to(key_cache.dtype)
    value_cache[pages, offsets] = value[kept].to(value_cache.dtype)


def concat_and_cache_mla(
    kv_c: torch.Tensor,
    k_pe: torch.Tensor,
    kv_cache: torch.Tensor,
    slot_mapping: torch.Tensor,
    kv_cache_dtype: str = "auto",
    scale: Any = None,
    skip_scale: bool = False,
) -> None:
    """Store kv_c [T, C] beside k_pe [T, R] at slots [T] of a cache [pages, page size, C + R]."""
    note_stub("op concat_and_cache_mla: stores rows, in torch")
    size = kv_c.shape[-1] + k_pe.shape[-1]
    if kv_cache.shape[-1] != size:
        raise Unavailable(
            f"needs a compiled op of the engine, concat_and_cache_mla, which packs {size} values "
            f"into rows of {kv_cache.shape[-1]} as {kv_cache_dtype}"
        )
    mine = slot_mapping >= 0
    page_size = kv_cache.shape[1]
    slots = slot_mapping[mine]
    rows = torch.cat([kv_c, k_pe], dim=-1)[mine.nonzero()[:, 0]]
    if kv_cache_dtype.startswith("fp8"):
        kv_cache, rows = kv_cache.view(torch.float8_e4m3fn), rows / scale
    kv_cache[slots // page_size, slots % page_size] = rows.to(kv_cache.dtype)


def flash_attn_varlen_func(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    max_seqlen_q: int,
    cu_seqlens_q: torch.Tensor,
    max_seqlen_k: int,
    cu_seqlens_k: torch.Tensor | None = None,
    seqused_k: torch.Tensor | None = None,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: list[int] | None = None,
    softcap: float = 0.0,
    block_table: torch.Tensor | None = None,
    return_softmax_lse: bool = False,
    out: torch.Tensor | None = None,
    s_aux: torch.Tensor | None = None,
    q_v: torch.Tensor | None = None,
    cp_world_size: int = 1,
    cp_rank: int = 0,
    cp_tot_seqused_k: torch.Tensor | None = None,
    **others: Any,
) -> Any:
    """FlashAttention's variable-length attention: out [T, H, Dv] and lse [H, T] in natural log.

    q: [T, H, D]. k, v: [S, Hkv, D] by `cu_seqlens_k`, or pages [pages, page size, Hkv, D] with a
    block table [B, pages] and `seqused_k` [B] tokens. As the kernel does, it takes a request's
    queries for the last ones of its keys, and at most `max_seqlen_k` keys. Pages read are recorded.

    q_v: [T, H, Dv], queries that are scored against the values, as MLA has them. cp_*: the keys are
    every `cp_world_size`-th of `cp_tot_seqused_k` [B], from `cp_rank` on. Raises Unavailable for an
    option that would change the result and is not known here.
    """
    unknown = [k for k, v in others.items() if v is not None and k not in _SAME_RESULT]
    if unknown:
        raise Unavailable(f"needs FlashAttention's kernel, of which {unknown[0]} is asked")
    note_substitute("flash_attn_varlen_func")
    tokens, heads, size = q.shape
    scale = size**-0.5 if softmax_scale is None else softmax_scale
    result = torch.zeros(tokens, heads, v.shape[-1], dtype=torch.float32, device=q.device)
    lses = torch.full((heads, tokens), -torch.inf, dtype=torch.float32, device=q.device)
    bounds = cu_seqlens_q.tolist()
    for row, (start, end) in enumerate(itertools.pairwise(bounds)):
        if start == end:
            continue
        keys, values = _row(k, v, row, block_table, seqused_k, cu_seqlens_k, max_seqlen_k)
        group = heads // keys.shape[1]
        keys = keys.float().repeat_interleave(group, dim=1)
        values = values.float().repeat_interleave(group, dim=1)
        scores = torch.einsum("qhd,khd->hqk", q[start:end].float(), keys)
        if q_v is not None:
            scores = scores + torch.einsum("qhd,khd->hqk", q_v[start:end].float(), values)
        scores = scores * scale
        if softcap:
            scores = softcap * torch.tanh(scores / softcap)
        total = keys.shape[0]
        if cp_world_size > 1 and cp_tot_seqused_k is not None:
            total = int(cp_tot_seqused_k[row])
        at = torch.arange(keys.shape[0]) * cp_world_size + cp_rank - (total - (end - start))
        distance = torch.arange(end - start)[:, None] - at[None, :]
        # A step of one query has no later key: the kernel takes causality as given.
        masked = causal and (max_seqlen_q > 1 or cp_world_size == 1)
        seen = distance >= 0 if masked else torch.ones_like(distance, dtype=torch.bool)
        left, right = window_size or (-1, -1)
        if left >= 0:
            seen &= distance <= left
        if right >= 0:
            seen &= -distance <= right
        scores = scores.masked_fill(~seen, -torch.inf)
        logits = scores
        if s_aux is not None:
            sinks = s_aux.float()[:, None, None].expand(-1, end - start, 1)
            logits = torch.cat([scores, sinks], dim=-1)
        lse = torch.logsumexp(logits, dim=-1)
        weights = torch.exp(scores - torch.where(lse.isfinite(), lse, 0.0)[..., None])
        result[start:end] = torch.einsum("hqk,khd->qhd", weights, values)
        lses[:, start:end] = lse
    result = result.to(q.dtype)
    if out is not None:
        result = out.copy_(result.view_as(out))
    return (result, lses) if return_softmax_lse else result


def _row(
    k: torch.Tensor,
    v: torch.Tensor,
    row: int,
    block_table: torch.Tensor | None,
    seqused_k: torch.Tensor | None,
    cu_seqlens_k: torch.Tensor | None,
    max_seqlen_k: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """One request's keys and values."""
    if block_table is None:
        assert cu_seqlens_k is not None, "without a block table, cu_seqlens_k is needed"
        start, end = int(cu_seqlens_k[row]), int(cu_seqlens_k[row + 1])
        return k[start:end], v[start:end]
    assert seqused_k is not None, "with a block table, seqused_k is needed"
    tokens = torch.arange(min(int(seqused_k[row]), max_seqlen_k))
    page_size = k.shape[1]
    pages, offsets = block_table[row].long()[tokens // page_size], tokens % page_size
    for cache in (k, v):
        note_read(cache, pages, offsets)
    return k[pages, offsets], v[pages, offsets]


def _no_schedule(*arguments: Any, **options: Any) -> None:
    """FlashAttention 3 plans ahead; FlashAttention 2 does not."""
    note_stub("get_scheduler_metadata() = None")


def _flash_attention_version(*arguments: Any, **options: Any) -> int:
    """The version whose conduct the reference has."""
    note_stub("get_flash_attn_version() = 2")
    return 2


def _flash_attention_is_there(*arguments: Any, **options: Any) -> bool:
    """In the shape of the reference."""
    note_stub("is_flash_attn_varlen_func_available(), flash_attn_supports_mla() = True")
    return True


def _flash_attention_takes_sinks(*arguments: Any, **options: Any) -> bool:
    """So does the reference."""
    note_stub("flash_attn_supports_sinks() = True")
    return True


def _compiled(*arguments: Any, **options: Any) -> None:
    """What only a compiled FlashAttention can do."""
    raise Unavailable("needs FlashAttention, compiled")


def _is_version_2(version: int, *arguments: Any) -> bool:
    """See `_flash_attention_version`."""
    return version == _flash_attention_version()


# Options of FlashAttention that say how it is computed, or that probes leave at 1.
_SAME_RESULT = frozenset(
    {
        "deterministic",
        "fa_version",
        "k_descale",
        "num_splits",
        "q_descale",
        "scheduler_metadata",
        "v_descale",
    }
)
_FLASH_ATTENTION: dict[str, Callable[..., Any]] = {
    "flash_attn_varlen_func": flash_attn_varlen_func,
    "get_scheduler_metadata": _no_schedule,
    "get_flash_attn_version": _flash_attention_version,
    "flash_attn_supports_sinks": _flash_attention_takes_sinks,
    "flash_attn_supports_mla": _flash_attention_is_there,
    "is_flash_attn_varlen_func_available": _flash_attention_is_there,
    "reshape_and_cache_flash": reshape_and_cache_flash,
}
_OFFERED: dict[str, Callable[..., Any]] = {
    **_FLASH_ATTENTION,
    "compile_flash_attn_varlen_func_from_specs": _compiled,
    "is_fa_version_supported": _is_version_2,
    "fa_version_unsupported_reason": lambda version: f"no FlashAttention {version} here",
}
_OPS: tuple[tuple[str, str, Callable[..., Any]], ...] = (
    ("_C_cache_ops", "reshape_and_cache_flash", reshape_and_cache_flash),
    ("_C_cache_ops", "concat_and_cache_mla", concat_and_cache_mla),
)
