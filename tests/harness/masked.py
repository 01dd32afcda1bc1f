"""A kernel whose masks are made of a scalar's comparison."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def _store_once(out_ptr, SIZE: tl.constexpr):
    offsets = tl.arange(0, SIZE)
    is_first = tl.program_id(0) == 0
    inside = offsets < SIZE // 2
    tl.store(out_ptr + offsets, inside, mask=is_first & (offsets < SIZE - 1))
    known = tl.load(out_ptr + offsets, mask=is_first & inside, other=0)
    tl.store(out_ptr + offsets, known, mask=is_first & inside)


def store_once() -> torch.Tensor:
    """[8] bool: the first half true, by the first of two programs."""
    out = torch.zeros(8, dtype=torch.bool)
    _store_once[(2,)](out, SIZE=8)
    return out
