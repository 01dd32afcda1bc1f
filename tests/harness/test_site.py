"""Whether a run comes to a statement."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from dcplint.harness.loading import load_file
from dcplint.harness.site import watch

CODE = '''\
class Impl:
    supports_dcp = True

    def forward(self, flag):
        """What it does."""
        scale = 2
        def inner(x):
            return x * scale
        if flag:
            return inner(
                3
            )
        elif flag is None:
            return 0
        try:
            raise ValueError
        except ValueError:
            return super().__hash__() and 1
'''


def _load(folder: Path, code: str) -> tuple[Path, ModuleType]:
    """A module of its own in this process; a watch outlives its test and is asked no more."""
    path = folder / f"watched_{folder.name}.py"
    path.write_text(code)
    return path, load_file(path)


@pytest.mark.parametrize(
    ("line", "flag", "reached"),
    [
        (8, True, True),
        (8, False, False),
        (11, True, True),
        (11, False, False),
        (12, True, True),
        (13, None, True),
        (13, True, False),
        (17, False, True),
        (17, True, False),
        (4, False, True),
        (9, False, True),
    ],
)
def test_a_statement(tmp_path: Path, line: int, flag: object, reached: bool) -> None:
    path, module = _load(tmp_path, CODE)
    watched = watch(path, line)
    assert watched.reached is False
    module.Impl().forward(flag)
    assert watched.reached is reached


def test_what_it_returns_stays_and_lines_stay(tmp_path: Path) -> None:
    path, module = _load(tmp_path, CODE)
    before = module.Impl.forward.__code__
    watch(path, 10)
    after = module.Impl.forward.__code__
    assert after is not before
    assert module.Impl().forward(True) == 6
    lines = [{line for *_, line in code.co_lines()} for code in (before, after)]
    assert lines[0] - {None} == lines[1] - {None}


@pytest.mark.parametrize("line", [1, 2])
def test_outside_functions_nothing_can_be_told(tmp_path: Path, line: int) -> None:
    path, module = _load(tmp_path, CODE)
    watched = watch(path, line)
    module.Impl().forward(True)
    assert watched.reached is None


KERNEL = """\
import triton
import triton.language as tl

@triton.jit
def share(length, world_size):
    per_rank = length // world_size
    return per_rank

@triton.jit
def kernel(out, length, world_size):
    if length > 8:
        tl.store(out, share(length, world_size))
    else:
        tl.store(out, 0)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="Triton runs on Linux")
@pytest.mark.parametrize(("line", "length", "reached"), [(6, 9, True), (6, 3, False)])
def test_kernels(tmp_path: Path, line: int, length: int, reached: bool) -> None:
    path, module = _load(tmp_path, KERNEL)
    out = torch.zeros(1, dtype=torch.int32)
    module.kernel[(1,)](out, 3, 2)  # interpreted once before it is watched
    watched = watch(path, line)
    module.kernel[(1,)](out, length, 2)
    assert watched.reached is reached
