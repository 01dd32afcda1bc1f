"""The engine's process group over the harness's ranks."""

from __future__ import annotations

from collections.abc import Callable

import torch

from dcplint.harness.contract import Group


class EngineGroup:
    """What backends ask of vLLM's `GroupCoordinator`.

    resume: called when a collective is left. Emulated ranks share the engine's module globals, and
    another rank may have run meanwhile.
    """

    def __init__(
        self, group: Group, rank: int, world_size: int, resume: Callable[[], None]
    ) -> None:
        self._group = group
        self._resume = resume
        self.world_size = world_size
        self.rank_in_group = rank
        self.rank = rank
        self.local_rank = rank
        self.ranks = list(range(world_size))
        self.device_group = None
        self.cpu_group = None
        self.unique_name = "dcplint_dcp"

    def all_gather(self, input_: torch.Tensor, dim: int = -1) -> torch.Tensor:
        """Every rank's tensor, concatenated along `dim`."""
        if self.world_size == 1:
            return input_
        parts = self._group.all_gather(input_)
        self._resume()
        return torch.cat(list(parts), dim=dim)

    def reduce_scatter(self, input_: torch.Tensor, dim: int = -1) -> torch.Tensor:
        """This rank's part along `dim` of the sum over ranks."""
        if self.world_size == 1:
            return input_
        part = self._group.reduce_scatter(input_.movedim(dim, 0).contiguous())
        self._resume()
        return part.movedim(0, dim).contiguous().to(input_.dtype)

    def all_reduce(self, input_: torch.Tensor) -> torch.Tensor:
        """The sum over ranks."""
        if self.world_size == 1:
            return input_
        total = self._group.all_reduce(input_)
        self._resume()
        return total.to(input_.dtype)
