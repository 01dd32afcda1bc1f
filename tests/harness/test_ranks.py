"""Emulated ranks: collectives, turns, and ranks that do not meet."""

from __future__ import annotations

import pytest
import torch

from dcplint.harness.ranks import Divergence, EmulatedGroup, emulate


@pytest.mark.parametrize("world_size", [1, 2, 5])
def test_collectives(world_size: int) -> None:
    def program(group: EmulatedGroup) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        mine = torch.arange(world_size * 2.0) + 10 * group.rank
        return group.all_gather(mine), group.reduce_scatter(mine), group.all_reduce(mine)

    tensors = [torch.arange(world_size * 2.0) + 10 * r for r in range(world_size)]
    for rank, result in enumerate(emulate(world_size, program)):
        assert isinstance(result, tuple)
        gathered, scattered, reduced = result
        assert torch.equal(gathered, torch.stack(tensors))
        assert torch.equal(reduced, torch.stack(tensors).sum(0))
        assert torch.equal(scattered, reduced[2 * rank : 2 * rank + 2])


def test_only_one_rank_runs_at_a_time() -> None:
    order: list[tuple[int, int]] = []

    def program(group: EmulatedGroup) -> None:
        for step in range(3):
            order.append((step, group.rank))
            group.all_reduce(torch.zeros(1))

    emulate(3, program)
    assert order == sorted(order)


def test_what_is_gathered_is_a_copy() -> None:
    def program(group: EmulatedGroup) -> float:
        mine = torch.full((1,), float(group.rank))
        gathered = group.all_gather(mine)
        mine.fill_(99.0)
        group.all_reduce(torch.zeros(1))
        return float(gathered.sum())

    assert emulate(2, program) == [1.0, 1.0]


def test_a_rank_that_stays_away_is_named() -> None:
    def program(group: EmulatedGroup) -> None:
        if group.rank != 1:
            group.all_reduce(torch.zeros(1))

    first, second, third = emulate(3, program)
    assert second is None
    for result in (first, third):
        assert isinstance(result, Divergence)
        assert str(result) == "ranks [0, 2] wait in a collective that [1] never enter"


def test_different_collectives_do_not_match() -> None:
    def program(group: EmulatedGroup) -> None:
        (group.all_reduce if group.rank else group.all_gather)(torch.zeros(2))

    for result in emulate(2, program):
        assert isinstance(result, Divergence)
        assert "different collectives" in str(result)


def test_an_error_on_one_rank_reaches_the_others_as_divergence() -> None:
    def program(group: EmulatedGroup) -> None:
        if group.rank == 0:
            raise KeyError("mine")
        group.all_reduce(torch.zeros(1))

    first, second = emulate(2, program)
    assert isinstance(first, KeyError)
    assert isinstance(second, Divergence)
