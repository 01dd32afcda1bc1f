"""Finding and describing what of vLLM, or of a plugin, can be run."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import torch

from dcplint.harness.driver import Placement, Refused, Subject
from dcplint.harness.ledger import Unavailable
from dcplint.harness.model import Claims, Geometry
from dcplint.harness.probes import INTERLEAVES
from dcplint.harness.ranks import LoneRank
from dcplint.harness.vllm import engine
from dcplint.harness.vllm.subject import GQASubject, MLASubject

_ANY_LENGTH = 64
_SEVERAL = 5  # new tokens of a request, as many as probes have
_ROPE = 64  # of every MLA model the engine serves

# Ranks of a DCP group hold the same KV head, and the gathered queries share it.
_GQA_GEOMETRY = Geometry(num_heads=8, num_kv_heads=1, head_dim=32, v_head_dim=32)


# Compute capabilities that data centres and desks have, see NVIDIA's list of CUDA GPUs.
_GENERATIONS = ((8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (10, 3), (12, 0), (12, 1))


class VllmDriver:
    """Runs `AttentionBackend`s and `AttentionImpl`s of vLLM, in-tree or out of it."""

    def detect(self, target: type) -> bool:
        """Backends, and impls that some loaded backend selects."""
        if "vllm" not in sys.modules:
            return False
        return _is_a(target, "AttentionBackend") or _is_a(target, "AttentionImplBase")

    def claims(self, target: type) -> Claims:
        """Read off the backend's classes."""
        backend = _backend_of(target)
        impl = backend.get_impl_cls()
        is_mla = _is_a(impl, "MLAAttentionImpl")
        # What the constructor takes: one that cannot serve it raises, and so refuses.
        taken = () if is_mla else inspect.signature(impl.__init__).parameters
        geometry = _in_pages(_mla_geometry(backend) if is_mla else _GQA_GEOMETRY, backend)
        support = getattr(backend.get_builder_cls(), "query_len_support", None)
        return Claims(
            is_mla=is_mla,
            self_merging=not is_mla,
            max_query_len=_ANY_LENGTH,
            interleaves=self._decoding_several(target, geometry) if is_mla else None,
            uniform=is_mla and getattr(support, "name", "") != "VARLEN",
            window=False,  # the engine's caches refuse one under DCP
            soft_cap="logits_soft_cap" in taken,
            sinks="sinks" in taken,
            geometry=geometry,
            fp8={"auto", "fp8"} <= set(getattr(backend, "supported_kv_cache_dtypes", ())),
            card=_card(backend),
            dtypes=tuple(str(d).removeprefix("torch.") for d in backend.supported_dtypes),
        )

    def _decoding_several(self, target: type, geometry: Geometry) -> tuple[int, ...]:
        """The interleaves with which several new tokens of a latent layer's request are a decode.

        As a prefill they take a path that is the layer's. It is for the builder to say, once it is
        made for such a step.
        """
        found = []
        for interleave in INTERLEAVES:
            placement = Placement(
                dcp_rank=0,
                dcp_world_size=2,
                interleave=interleave,
                group=LoneRank(0, 2),
                dtype=next(iter(_backend_of(target).supported_dtypes), torch.float32),
                device="cuda" if torch.cuda.is_available() else "cpu",
                num_pages=1,
                sinks=None,
                max_query_len=_SEVERAL,
            )
            with suppress(Exception):  # foreign code: what cannot be made here is told by its run
                builder = self.make(target, geometry, placement).builder
                if (builder.reorder_batch_threshold or 1) >= _SEVERAL:
                    found.append(interleave)
        return tuple(found)

    def make(self, target: type, geometry: Geometry, placement: Placement) -> Subject:
        """See `Driver`."""
        backend = _backend_of(target)
        is_mla = _is_a(backend.get_impl_cls(), "MLAAttentionImpl")
        subject = MLASubject if is_mla else GQASubject
        first, *others = ("fp8",) if geometry.fp8 else cache_dtypes(backend)
        try:
            return subject(backend, geometry, placement, first)
        except Refused:
            # A refusal may be of the cache's dtype alone; the first one tells why otherwise.
            for name in others:
                with suppress(Refused):
                    return subject(backend, geometry, placement, name)
            raise

    def parts(self, target: type) -> tuple[type, ...]:
        """The classes that run when `target` does."""
        backend = _backend_of(target)
        return backend, backend.get_impl_cls(), backend.get_builder_cls()


def _mla_geometry(backend: Any) -> Geometry:
    """The smallest size that the backend accepts; the usual ones where it takes any."""
    common = engine.find("vllm.model_executor.layers.attention.mla_attention:MLACommonBackend")
    head_dim = min(backend.get_supported_head_sizes() or common.get_supported_head_sizes())
    rank = head_dim - _ROPE
    return Geometry(
        num_heads=8, num_kv_heads=1, head_dim=head_dim, v_head_dim=rank, kv_lora_rank=rank
    )


def _in_pages(geometry: Geometry, backend: Any) -> Geometry:
    """With pages of the usual size, or of the smallest that the backend's kernels take."""
    sizes: list[Any] = getattr(backend, "get_supported_kernel_block_sizes", list)()
    # An int, or a `MultipleOf` one.
    bases = [getattr(size, "base", size) for size in sizes]
    usual = geometry.page_size
    if any(usual % b == 0 if b is not s else usual == s for b, s in zip(bases, sizes, strict=True)):
        return geometry
    return replace(geometry, page_size=min(bases, default=usual))


def cache_dtypes(backend: Any) -> tuple[str, ...]:
    """Names of dtypes to try for its cache: that of the layer, else the quantized ones it lists."""
    known = tuple(getattr(backend, "supported_kv_cache_dtypes", ()))
    usual = ("auto",) if "auto" in known or not known else ()
    others = tuple(name for name in known if name not in ("auto", "float16", "bfloat16"))
    return usual + others or ("auto",)


def _card(backend: Any) -> str:
    """The generations of NVIDIA's cards that it is made for, in words; empty for any."""
    capability = engine.find("vllm.platforms.interface:DeviceCapability")
    asked = getattr(backend, "supports_compute_capability", None)
    if asked is None or capability is None:
        return ""
    taken = [f"{major}.{minor}" for major, minor in _GENERATIONS if asked(capability(major, minor))]
    return "" if len(taken) in (0, len(_GENERATIONS)) else ", ".join(taken)


def _role(name: str) -> Any:
    return engine.find(f"vllm.v1.attention.backend:{name}")


def _is_a(cls: type, role: str) -> bool:
    base = _role(role)
    return base is not None and issubclass(cls, base)


def _backend_of(target: type) -> Any:
    """The backend that selects `target`: itself, or the first loaded one with this impl.

    An impl that its layer makes by itself runs with the backend that selects the nearest of its
    bases. Raises Unavailable where there is none.
    """
    if _is_a(target, "AttentionBackend"):
        return target
    silent: list[str] = []
    selected: dict[type, Any] = {}
    for backend in _descendants(_role("AttentionBackend")):
        impl, said = _impl_of(backend)
        selected.setdefault(impl, backend)
        silent.extend([said] if said else [])
    if target in selected:
        return selected[target]
    for backend in (selected[base] for base in target.__mro__ if base in selected):
        return type(backend.__name__, (backend,), {"get_impl_cls": staticmethod(lambda: target)})
    children: list[type] = target.__subclasses__()
    heirs = sorted({heir.__qualname__ for heir in children})
    if heirs:
        raise Unavailable(f"a base that no backend selects; its heirs: {', '.join(heirs)}")
    said = f"; these do not tell what they select: {', '.join(silent)}" if silent else ""
    raise Unavailable(f"no backend selects it: it is a base, or its layer makes it{said}")


def _impl_of(backend: Any) -> tuple[Any, str]:
    """The impl that a backend selects, or None and why it does not tell."""
    try:
        return backend.get_impl_cls(), ""
    except NotImplementedError:
        return None, ""  # abstract
    except Exception as error:  # the engine's code, which may raise anything
        return None, f"{backend.__qualname__} ({type(error).__name__}: {error})"


def _descendants(cls: Any) -> Iterator[Any]:
    for child in cls.__subclasses__():
        yield child
        yield from _descendants(child)
