"""No fault survives, none is caught by another signal than named, nothing right is confirmed."""

from __future__ import annotations

from pathlib import Path

import pytest

from dcplint.harness.pool import Pool
from tests.harness.mutants import MUTANTS, VARIANTS, Mutant, Variant
from tests.harness.mutation import PAGE, judge, materialise

# A kernel's, a builder's and a merge's fault.
SAMPLE = (
    "kernel stores log2 instead of ln",
    "ceil(L / N), interleave ignored",
    "merged in base 2, LSE in base e",
)


def test_there_are_enough() -> None:
    names = [s.name for s in (*MUTANTS, *VARIANTS)]
    assert len(set(names)) == len(names)
    assert len(MUTANTS) >= 30
    assert len(VARIANTS) >= 10


@pytest.mark.parametrize("subject", [*MUTANTS, *VARIANTS], ids=lambda s: s.name)
def test_every_edit_fits_the_source(subject: Mutant | Variant, tmp_path: Path) -> None:
    materialise(subject.edits, tmp_path / "it")
    for path in (tmp_path / "it").rglob("*.py"):
        compile(path.read_text(), str(path), "exec")


def test_the_page_is_complete_and_clean() -> None:
    text = PAGE.read_text()
    assert [s.name for s in (*MUTANTS, *VARIANTS) if f"| {s.name} |" not in text] == []
    assert "**" not in text


def test_a_sample_is_judged_as_predicted(shared_pool: Pool) -> None:
    chosen = [m for m in MUTANTS if m.name in SAMPLE]
    assert len(chosen) == len(SAMPLE)
    wrong = [r.subject.name for r in judge(shared_pool, chosen) if not r.as_predicted]
    assert wrong == []


# A kernel's, a merge's, a builder's and MLA's; `python -m tests.harness.mutation` runs them all.
RIGHT = (
    "other block sizes",
    "weights in float64",
    "slots token by token",
    "MLA: the formula instead of the runner's lengths",
)


@pytest.mark.slow
def test_no_fault_survives() -> None:
    with Pool() as pool:
        wrong = [r.subject.name for r in judge(pool, MUTANTS) if not r.as_predicted]
    assert wrong == []


@pytest.mark.slow
def test_what_is_right_is_not_confirmed(shared_pool: Pool) -> None:
    chosen = [v for v in VARIANTS if v.name in RIGHT]
    assert len(chosen) == len(RIGHT)
    wrong = [r.subject.name for r in judge(shared_pool, chosen) if not r.as_predicted]
    assert wrong == []
