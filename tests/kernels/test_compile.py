"""What the kernels cost on cards that are not here: registers, spills, shared memory.

Compiled for real, never run: this says nothing about speed or about answers on a GPU.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("compile_all.py")
ROOT = SCRIPT.parent.parent.parent

REGISTERS = {"sm_80": 255, "sm_90": 255, "sm_100": 255, "gfx942": 512}
# Half of what a multiprocessor has, so that two programs fit (164, 228, 228 and 64 KiB); an
# MI300 compute unit runs one.
SHARED = {"sm_80": 82 * 1024, "sm_90": 112 * 1024, "sm_100": 112 * 1024, "gfx942": 64 * 1024}


def _compile(target: str, pattern: str, tmp_path: Path) -> list[dict]:
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    environment |= {"PYTHONPATH": str(ROOT), "TRITON_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(SCRIPT), target, pattern],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def _assert_within_limits(target: str, records: list[dict]) -> None:
    for record in records:
        assert record["spilled"] == 0, record
        assert 0 < record["registers"] <= REGISTERS[target], record
        assert record["shared"] <= SHARED[target], record


def test_the_usual_kernels_fit_sm_90(tmp_path: Path) -> None:
    records = _compile("sm_90", r"^lens$|bfloat16(-e)?$", tmp_path)
    kernels = {r["kernel"] for r in records}
    assert kernels == {
        "_local_lens_kernel", "_gqa_split_kernel", "_mla_split_kernel", "_merge_kernel",
        "_correct_kernel",
    }  # fmt: skip
    _assert_within_limits("sm_90", records)


# Every kernel, in the dtypes and variants that ask most of a card. `compile_all.py TARGET` has all.
_DEMANDING = r"^lens$|^(gqa128|mla576)-(bfloat16(\+fp8\+all)?|float32\+all)$|512-float32-e$"


@pytest.mark.slow
@pytest.mark.parametrize("target", list(REGISTERS))
def test_every_kernel_fits(target: str, tmp_path: Path) -> None:
    records = _compile(target, _DEMANDING, tmp_path)
    assert len({r["kernel"] for r in records}) == 5
    cases = {r["case"] for r in records}
    assert {f"{kind}-float32+all" for kind in ("gqa128", "mla576")} <= cases
    _assert_within_limits(target, records)
