"""Finding and describing what of vLLM, or of a plugin, can be run."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from typing import Any

from dcplint.harness.driver import Placement, Subject
from dcplint.harness.model import Claims, Geometry
from dcplint.harness.vllm import engine
from dcplint.harness.vllm.subject import GQASubject, MLASubject

_ANY_LENGTH = 64
_ROPE = 64  # of every MLA model the engine serves

# Ranks of a DCP group hold the same KV head, and the gathered queries share it.
_GQA_GEOMETRY = Geometry(num_heads=8, num_kv_heads=1, head_dim=32, v_head_dim=32)


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
        builder = backend.get_builder_cls()
        support = getattr(builder, "query_len_support", None)
        varlen = getattr(support, "name", "") == "VARLEN"
        return Claims(
            is_mla=is_mla,
            self_merging=not is_mla,
            max_query_len=1 if is_mla and not varlen else _ANY_LENGTH,
            window=False,  # the engine's caches refuse one under DCP
            soft_cap="logits_soft_cap" in taken,
            sinks="sinks" in taken,
            geometry=_mla_geometry(backend) if is_mla else _GQA_GEOMETRY,
        )

    def make(self, target: type, geometry: Geometry, placement: Placement) -> Subject:
        """See `Driver`."""
        backend = _backend_of(target)
        is_mla = _is_a(backend.get_impl_cls(), "MLAAttentionImpl")
        return (MLASubject if is_mla else GQASubject)(backend, geometry, placement)

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


def _role(name: str) -> Any:
    return engine.find(f"vllm.v1.attention.backend:{name}")


def _is_a(cls: type, role: str) -> bool:
    base = _role(role)
    return base is not None and issubclass(cls, base)


def _backend_of(target: type) -> Any:
    """The backend that selects `target`: itself, or the first loaded one with this impl.

    Raises LookupError.
    """
    if _is_a(target, "AttentionBackend"):
        return target
    silent: list[str] = []
    for backend in _descendants(_role("AttentionBackend")):
        impl, said = _impl_of(backend)
        if impl is target:
            return backend
        silent.extend([said] if said else [])
    said = f"; these do not tell what they select: {', '.join(silent)}" if silent else ""
    raise LookupError(f"no backend selects {target.__qualname__}{said}")


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
