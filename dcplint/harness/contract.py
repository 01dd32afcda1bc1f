"""The harness contract: a small attention engine of its own, which fixtures implement.

It has the roles an engine has (impl, backend, builder, runner) and nothing else, so that a backend
of a few lines is complete: the linter reads it through `rules/dcplint.yaml`, the harness runs it.

The runner owes every builder all of `CommonAttentionMetadata`; under DCP that includes
`dcp_local_seq_lens`. Queries arrive gathered over the heads of all ranks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from dcplint.harness.model import Geometry

if TYPE_CHECKING:
    import torch


class Group(Protocol):
    """The process group of the DCP ranks. Collectives must be entered by all of them."""

    world_size: int
    rank: int

    def all_gather(self, tensor: torch.Tensor) -> torch.Tensor:
        """Stack of every rank's tensor along a new first dimension."""

    def reduce_scatter(self, tensor: torch.Tensor) -> torch.Tensor:
        """This rank's part, along the first dimension, of the sum over ranks."""

    def all_reduce(self, tensor: torch.Tensor) -> torch.Tensor:
        """The sum over ranks."""


@dataclass(frozen=True, slots=True)
class DCPConfig:
    """A layer's place in the DCP group. `dcp_world_size` is 1 for a layer that is not sharded."""

    dcp_rank: int
    dcp_world_size: int
    interleave: int
    group: Group


@dataclass(slots=True)
class CommonAttentionMetadata:
    """What the runner owes every builder, shared between layers: nobody may write to it.

    query_start_loc: [B+1] int32. seq_lens: [B] int32, global tokens, new ones included.
    block_table: [B, max_pages] int32, this rank's pages. positions: [T] int64, global.
    request_ids: [T] int64, the row of each token. num_reqs: rows that are real; later ones are
    padding with a length of 0. dcp_local_seq_lens: [B] int32, tokens on this rank, new ones
    included; None without DCP.
    """

    query_start_loc: torch.Tensor
    seq_lens: torch.Tensor
    block_table: torch.Tensor
    positions: torch.Tensor
    request_ids: torch.Tensor
    num_reqs: int
    max_query_len: int
    dcp_local_seq_lens: torch.Tensor | None = None


class Step(Protocol):
    """What a runner knows of one step, as `CommonAttentionMetadata` describes it."""

    query_start_loc: torch.Tensor
    seq_lens: torch.Tensor
    block_table: torch.Tensor
    positions: torch.Tensor
    request_ids: torch.Tensor
    num_reqs: int
    max_query_len: int
    dcp_local_seq_lens: torch.Tensor | None


class AttentionImplBase(ABC):
    """Computes attention over this rank's shard, and merges the shards."""

    supports_dcp: ClassVar[bool] = False
    can_return_lse_for_decode: ClassVar[bool] = False
    lse_base_on_e: ClassVar[bool] = True
    merges_in_forward: ClassVar[bool] = False
    is_mla: ClassVar[bool] = False
    max_query_len: ClassVar[int] = 1
    supports_window: ClassVar[bool] = False
    supports_soft_cap: ClassVar[bool] = False
    supports_sinks: ClassVar[bool] = False
    supports_fp8_cache: ClassVar[bool] = False

    def __init__(
        self, geometry: Geometry, dcp: DCPConfig, sinks: torch.Tensor | None = None
    ) -> None:
        self.geometry = geometry
        self.dcp_rank = dcp.dcp_rank
        self.dcp_world_size = dcp.dcp_world_size
        self.interleave = dcp.interleave
        self.group = dcp.group
        self.sinks = sinks
        self.num_heads = geometry.num_heads // dcp.dcp_world_size

    @abstractmethod
    def write(
        self,
        kv_cache: tuple[torch.Tensor, ...],
        key: torch.Tensor,
        value: torch.Tensor,
        slot_mapping: torch.Tensor,
    ) -> None:
        """Store new tokens. slot_mapping: [T] int64, -1 for a token of another rank."""

    @abstractmethod
    def forward(
        self, query: torch.Tensor, kv_cache: tuple[torch.Tensor, ...], metadata: Any
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Out [T, H, Dv] and lse [T, H] over this rank's shard, for queries [T, H, D].

        An impl that merges in here returns [T, H / N, Dv], merged, and None.
        """

    @abstractmethod
    def merge(self, out: torch.Tensor, lse: torch.Tensor) -> torch.Tensor:
        """This rank's heads [T, H / N, Dv] of the merged output; a collective."""


class MLAImplBase(AttentionImplBase):
    """Attention over latent rows. Says of every subclass that it can do DCP."""

    supports_dcp: ClassVar[bool] = True
    is_mla: ClassVar[bool] = True


class MetadataBuilderBase(ABC):
    """Turns the runner's metadata into what one backend's kernel wants."""

    def __init__(self, geometry: Geometry, dcp: DCPConfig) -> None:
        self.geometry = geometry
        self.dcp_rank = dcp.dcp_rank
        self.dcp_world_size = dcp.dcp_world_size
        self.interleave = dcp.interleave

    @abstractmethod
    def build(self, common: CommonAttentionMetadata) -> Any:
        """The impl's metadata for one step."""

    @abstractmethod
    def slot_mapping(self, common: CommonAttentionMetadata) -> torch.Tensor:
        """Where each new token goes on this rank: [T] int64, -1 for another rank's token."""


class ModelRunner:
    """Makes each step's metadata for one layer, and has its builder build from it.

    A backend that needs its metadata made in another way brings a runner of its own.
    """

    def __init__(self, builder: MetadataBuilderBase, dcp: DCPConfig) -> None:
        self.builder = builder
        self.dcp_rank = dcp.dcp_rank
        self.dcp_world_size = dcp.dcp_world_size
        self.interleave = dcp.interleave

    def execute(self, step: Step) -> Any:
        """The impl's metadata for one step; shares the step's tensors."""
        common = CommonAttentionMetadata(
            query_start_loc=step.query_start_loc,
            seq_lens=step.seq_lens,
            block_table=step.block_table,
            positions=step.positions,
            request_ids=step.request_ids,
            num_reqs=step.num_reqs,
            max_query_len=step.max_query_len,
        )
        if self.dcp_world_size > 1:
            assert step.dcp_local_seq_lens is not None
            common.dcp_local_seq_lens = step.dcp_local_seq_lens
        return self.builder.build(common)


class AttentionBackendBase(ABC):
    """What a selector sees of a backend."""

    @classmethod
    def supports_dcp(cls) -> bool:
        """Whether the selector may choose this backend under DCP."""
        return cls.get_impl_cls().supports_dcp

    @staticmethod
    @abstractmethod
    def get_impl_cls() -> type[AttentionImplBase]:
        """The class that computes."""

    @staticmethod
    @abstractmethod
    def get_builder_cls() -> type[MetadataBuilderBase]:
        """The class that builds metadata."""

    @staticmethod
    def get_runner_cls() -> type[ModelRunner]:
        """The class that makes the builder's input."""
        return ModelRunner

    @staticmethod
    def get_kv_cache_shapes(geometry: Geometry, num_pages: int) -> tuple[tuple[int, ...], ...]:
        """Shapes of the cache tensors, pages first."""
        if geometry.is_mla:
            return ((num_pages, geometry.page_size, geometry.head_dim),)
        rows = (num_pages, geometry.page_size, geometry.num_kv_heads)
        return ((*rows, geometry.head_dim), (*rows, geometry.v_head_dim))


def merge_over_ranks(
    group: Group, out: torch.Tensor, lse: torch.Tensor, *, base: str = "e"
) -> torch.Tensor:
    """Merge the ranks' outputs [T, H, Dv] by their LSEs [T, H]; a collective.

    Gathers the LSEs, weighs this rank's output, and reduces and scatters over the heads. Returns
    this rank's heads [T, H / N, Dv].
    """
    from dcplint.harness.kernels.lse_merge import correct_shard

    corrected, _ = correct_shard(out, group.all_gather(lse), group.rank, base=base)
    by_head = corrected.transpose(0, 1).contiguous()
    return group.reduce_scatter(by_head).transpose(0, 1).to(out.dtype)


def select_backend(backend: type[AttentionBackendBase], dcp_world_size: int) -> None:
    """The selection gate: refuses a backend that does not claim DCP. Raises ValueError."""
    if dcp_world_size > 1 and not backend.supports_dcp():
        raise ValueError(f"{backend.__name__} does not support decode context parallelism")


def check_layer(impl: AttentionImplBase) -> None:
    """The load gate: refuses an impl that denies it can return its LSE. Raises ValueError.

    Like vLLM's, it asks impls that merge in `forward` too.
    """
    if impl.dcp_world_size > 1 and not impl.can_return_lse_for_decode:
        raise ValueError(f"{type(impl).__name__} returns no LSE, which DCP needs")
