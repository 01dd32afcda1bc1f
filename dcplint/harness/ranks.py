"""Ranks: threads that take turns in one process, or one process each.

Emulated ranks run one at a time and change over only inside a collective, so that nothing needs
to be thread-safe, least of all Triton's interpreter, and every run is the same. Ranks that do not
meet in the same collective are found at once, not by a time-out.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import torch
import torch.distributed as dist

from dcplint.harness.ledger import Unavailable

T = TypeVar("T")


class Divergence(Exception):
    """Some ranks wait in a collective that others never enter: a hang on a real machine."""


class LoneRank:
    """A rank that never meets the others, for what takes no collective."""

    def __init__(self, rank: int, world_size: int) -> None:
        self.rank, self.world_size = rank, world_size

    def all_gather(self, tensor: torch.Tensor) -> torch.Tensor:
        """Raises Unavailable."""
        raise Unavailable("needs a collective where nothing is computed")

    reduce_scatter = all_reduce = all_gather


class _Lockstep:
    """The baton: who runs, who waits in which collective."""

    def __init__(self, world_size: int) -> None:
        self.world_size = world_size
        self._turn = threading.Condition()
        self._running = 0
        self._waiting: dict[int, tuple[str, torch.Tensor]] = {}
        self._finished: set[int] = set()
        self._round: dict[int, torch.Tensor] | None = None
        self._failure: Divergence | None = None

    def await_turn(self, rank: int) -> None:
        with self._turn:
            self._turn.wait_for(lambda: self._running == rank)

    def finish(self, rank: int) -> None:
        with self._turn:
            self._finished.add(rank)
            self._pass_on()

    def exchange(self, rank: int, kind: str, tensor: torch.Tensor) -> list[torch.Tensor]:
        with self._turn:
            if self._failure is None:
                self._waiting[rank] = (kind, tensor.detach().clone())
                self._pass_on()
                self._turn.wait_for(lambda: self._running == rank)
            if self._failure is not None:
                raise self._failure
            assert self._round is not None
            return [self._round[r] for r in range(self.world_size)]

    def _pass_on(self) -> None:
        """Let the next rank run; complete the round once all have arrived."""
        everyone = range(self.world_size)
        runnable = [r for r in everyone if r not in self._waiting and r not in self._finished]
        if not runnable and self._waiting:
            self._complete()
            runnable = [r for r in everyone if r not in self._finished]
        if runnable:
            self._running = runnable[0]
        self._turn.notify_all()

    def _complete(self) -> None:
        calls = {(kind, tuple(t.shape), t.dtype) for kind, t in self._waiting.values()}
        if self._finished:
            absent = sorted(self._finished)
            self._failure = Divergence(
                f"ranks {sorted(self._waiting)} wait in a collective that {absent} never enter"
            )
        elif len(calls) > 1:
            self._failure = Divergence(
                f"ranks meet in different collectives: {sorted(map(str, calls))}"
            )
        self._round = {rank: tensor for rank, (_, tensor) in self._waiting.items()}
        self._waiting = {}


class EmulatedGroup:
    """One rank's view of the emulated ranks."""

    def __init__(self, lockstep: _Lockstep, rank: int) -> None:
        self._lockstep = lockstep
        self.rank = rank
        self.world_size = lockstep.world_size

    def all_gather(self, tensor: torch.Tensor) -> torch.Tensor:
        """Stack of every rank's tensor along a new first dimension."""
        return torch.stack(self._lockstep.exchange(self.rank, "all_gather", tensor))

    def reduce_scatter(self, tensor: torch.Tensor) -> torch.Tensor:
        """This rank's part, along the first dimension, of the sum over ranks."""
        parts = self._lockstep.exchange(self.rank, "reduce_scatter", tensor)
        return torch.stack(parts).sum(0).chunk(self.world_size)[self.rank]

    def all_reduce(self, tensor: torch.Tensor) -> torch.Tensor:
        """The sum over ranks."""
        return torch.stack(self._lockstep.exchange(self.rank, "all_reduce", tensor)).sum(0)


class ProcessGroup:
    """This process's view of `torch.distributed`'s default group."""

    def __init__(self) -> None:
        self.rank = dist.get_rank()
        self.world_size = dist.get_world_size()

    def all_gather(self, tensor: torch.Tensor) -> torch.Tensor:
        """Stack of every rank's tensor along a new first dimension."""
        tensor = tensor.contiguous()
        parts = [torch.empty_like(tensor) for _ in range(self.world_size)]
        dist.all_gather(parts, tensor)
        return torch.stack(parts)

    def reduce_scatter(self, tensor: torch.Tensor) -> torch.Tensor:
        """This rank's part, along the first dimension, of the sum over ranks."""
        tensor = tensor.contiguous()
        part = tensor.new_empty((tensor.shape[0] // self.world_size, *tensor.shape[1:]))
        dist.reduce_scatter_tensor(part, tensor)
        return part

    def all_reduce(self, tensor: torch.Tensor) -> torch.Tensor:
        """The sum over ranks."""
        result = tensor.clone()
        dist.all_reduce(result)
        return result


def emulate(world_size: int, program: Callable[[EmulatedGroup], T]) -> list[T | BaseException]:
    """Run `program` once per rank; each rank's result, or what it raised."""
    lockstep = _Lockstep(world_size)
    results: list[Any] = [None] * world_size

    def run(rank: int) -> None:
        lockstep.await_turn(rank)
        try:
            results[rank] = program(EmulatedGroup(lockstep, rank))
        except BaseException as error:
            results[rank] = error
        finally:
            lockstep.finish(rank)

    threads = [threading.Thread(target=run, args=(r,), daemon=True) for r in range(world_size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
