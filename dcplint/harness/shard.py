"""Who owns which token, by walking over all of them: the harness's own truth."""

from __future__ import annotations

from dataclasses import dataclass

from dcplint.harness.model import Topology


@dataclass(frozen=True, slots=True)
class Shard:
    """One rank's part of every sequence."""

    rank: int
    topology: Topology

    def positions(self, length: int) -> list[int]:
        """Global positions of the tokens held here, in local order."""
        world_size, interleave = self.topology.world_size, self.topology.interleave
        return [i for i in range(length) if (i // interleave) % world_size == self.rank]

    def local_length(self, length: int) -> int:
        """How many of the first `length` (global) tokens are held here."""
        return len(self.positions(length))
