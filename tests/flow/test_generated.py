"""Whatever can reach the builder when a random program runs, the trace has it."""

from pathlib import Path

import pytest

from tests.flow.generated import program
from tests.flow.laboratory import Laboratory


@pytest.mark.parametrize("seed", range(60))
def test_nothing_is_missed(seed: int, tmp_path: Path) -> None:
    laboratory = Laboratory.of(tmp_path, program(seed))
    traced = laboratory.traced()
    assert "unknown" in traced or laboratory.executed() <= traced


def test_a_seed_says_what_the_program_is() -> None:
    assert program(7) == program(7) != program(8)
