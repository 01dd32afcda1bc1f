"""A division, which Triton does in single precision whatever it is given."""

from typing import Any

import torch
import triton
import triton.language as tl


@triton.jit
def _divide(x_ptr: Any, y_ptr: Any, out_ptr: Any) -> None:
    at = tl.arange(0, 16)
    tl.store(out_ptr + at, tl.load(x_ptr + at) / tl.load(y_ptr + at))


def quotient(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty(16)
    _divide[(1,)](x, y, out)
    return out
