"""Turning the engine's default on again is caught: at the base, and at whoever falls through."""

from pathlib import Path

from tests.run.tree import Command, write_engine


def test_the_flip(dcplint: Command, tmp_path: Path) -> None:
    write_engine(tmp_path, "0.30.0", default=False)
    assert dcplint.check(tmp_path).verdicts == []
    assert dcplint.status == 0


def test_reverting_the_flip_is_caught(dcplint: Command, tmp_path: Path) -> None:
    write_engine(tmp_path, "0.30.0", default=True)
    assert dcplint.check(tmp_path).verdicts == [
        ("DCP101", "BelowSilentImpl"),
        ("DCP101", "SilentImpl"),
        ("DCP102", "AttentionImplBase"),
    ]
    assert dcplint.status == 1
