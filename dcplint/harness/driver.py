"""Making a backend runnable: the driver protocol, and the driver of the harness contract.

A driver for another engine is a class with the four methods of `Driver`; what it makes is a
`Subject`. How it is found: `targets.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from dcplint.harness.contract import (
    AttentionBackendBase,
    CommonAttentionMetadata,
    DCPConfig,
    Group,
    check_layer,
    select_backend,
)
from dcplint.harness.model import Claims, Geometry


class Refused(Exception):
    """The backend would not be built: it says itself that it cannot do this."""


class RefusedLate(Refused):
    """A selector has accepted the backend, and it is refused once the model is being loaded."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a subject runs. `dcp_world_size` is 1 for a layer that is not sharded.

    max_query_len: new tokens of a request in any step.
    """

    dcp_rank: int
    dcp_world_size: int
    interleave: int
    group: Group
    dtype: torch.dtype
    device: str
    num_pages: int
    sinks: torch.Tensor | None
    max_query_len: int = 1


class Subject(Protocol):
    """A backend on one rank, with its cache.

    lse_base: "e" or "2", as the backend itself declares it. self_merging: whether `local` already
    returns merged heads and no LSE. caches: the tensors that hold keys and values, for poisoning
    and for watching, dense; slot_sizes: how many elements of each belong to one token.
    merges_new_tokens: whether `local` takes the new tokens from its arguments, so that it need not
    read them from the cache. owes_empty: whether it owes output 0 and LSE -inf where its shard is
    empty; False where the merge masks such rows, whatever they hold, and is judged by its result.
    builder: the object whose `build` makes the metadata, for probes that take a field away from
    what it is given.
    poison: what lies in slots that nobody wrote.
    """

    lse_base: str
    self_merging: bool
    merges_new_tokens: bool
    owes_empty: bool
    builder: Any
    poison: float
    caches: tuple[torch.Tensor, ...]
    slot_sizes: tuple[int, ...]

    def write(self, key: torch.Tensor, value: torch.Tensor, slots: torch.Tensor) -> None:
        """Store tokens [T, Hkv, D] at slots [T], -1 for another rank's."""

    def slots(self, common: CommonAttentionMetadata) -> torch.Tensor | None:
        """Where the backend itself would write the new tokens; None if that is not its business."""

    def metadata(self, common: CommonAttentionMetadata) -> Any:
        """What its builder makes of the runner's metadata."""

    def local(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, metadata: Any
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Out [T, H, Dv] and lse [T, H] over this rank's tokens.

        key, value: [T, Hkv, D] of the new tokens, which are in the cache too.
        """

    def merge(self, out: torch.Tensor, lse: torch.Tensor) -> torch.Tensor:
        """This rank's heads [T, H / N, Dv]; a collective."""


class Driver(Protocol):
    """Knows how to run the backends of one engine."""

    def detect(self, target: type) -> bool:
        """Whether this driver runs `target`."""

    def claims(self, target: type) -> Claims:
        """What `target` says it can do."""

    def make(self, target: type, geometry: Geometry, placement: Placement) -> Subject:
        """Build it on one rank. Raises Refused."""

    def parts(self, target: type) -> tuple[type, ...]:
        """The classes that run when `target` does, itself first."""


class ContractSubject:
    """A backend of the harness contract."""

    merges_new_tokens = False
    owes_empty = True
    poison = math.nan

    def __init__(
        self, backend: type[AttentionBackendBase], geometry: Geometry, placement: Placement
    ) -> None:
        dcp = DCPConfig(
            placement.dcp_rank, placement.dcp_world_size, placement.interleave, placement.group
        )
        try:
            select_backend(backend, placement.dcp_world_size)
            self._impl = backend.get_impl_cls()(geometry, dcp, placement.sinks)
        except ValueError as error:
            raise Refused(str(error)) from error
        try:
            check_layer(self._impl)
        except ValueError as error:
            raise RefusedLate(str(error)) from error
        self.builder = backend.get_builder_cls()(geometry, dcp)
        self._runner = backend.get_runner_cls()(self.builder, dcp)
        self.lse_base = "e" if self._impl.lse_base_on_e else "2"
        self.self_merging = self._impl.merges_in_forward
        dtype = torch.float8_e4m3fn if geometry.fp8 else placement.dtype
        self.caches = tuple(
            torch.empty(shape, dtype=dtype, device=placement.device)
            for shape in backend.get_kv_cache_shapes(geometry, placement.num_pages)
        )
        self.slot_sizes = tuple(cache[0, 0].numel() for cache in self.caches)

    def write(self, key: torch.Tensor, value: torch.Tensor, slots: torch.Tensor) -> None:
        """See `Subject`."""
        self._impl.write(self.caches, key, value, slots)

    def slots(self, common: CommonAttentionMetadata) -> torch.Tensor | None:
        """See `Subject`."""
        return self.builder.slot_mapping(common)

    def metadata(self, common: CommonAttentionMetadata) -> Any:
        """See `Subject`."""
        return self._runner.execute(common)

    def local(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, metadata: Any
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """See `Subject`."""
        result = self._impl.forward(query, self.caches, metadata)
        return result if isinstance(result, tuple) else (result, None)

    def merge(self, out: torch.Tensor, lse: torch.Tensor) -> torch.Tensor:
        """See `Subject`."""
        return self._impl.merge(out, lse)


class ContractDriver:
    """Runs backends of the harness contract."""

    def detect(self, target: type) -> bool:
        """Backends; an impl alone says nothing about its metadata."""
        return issubclass(target, AttentionBackendBase)

    def claims(self, target: type) -> Claims:
        """Read off the impl's class attributes."""
        assert issubclass(target, AttentionBackendBase)
        impl = target.get_impl_cls()
        return Claims(
            is_mla=impl.is_mla,
            self_merging=impl.merges_in_forward,
            max_query_len=impl.max_query_len,
            window=impl.supports_window,
            soft_cap=impl.supports_soft_cap,
            sinks=impl.supports_sinks,
            fp8=impl.supports_fp8_cache,
        )

    def make(self, target: type, geometry: Geometry, placement: Placement) -> Subject:
        """See `Driver`."""
        return ContractSubject(target, geometry, placement)

    def parts(self, target: type) -> tuple[type, ...]:
        """See `Driver`."""
        backend: type[AttentionBackendBase] = target
        made = (backend.get_impl_cls(), backend.get_builder_cls(), backend.get_runner_cls())
        return backend, *made
