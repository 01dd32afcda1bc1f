"""Small kernels with known answers: one per dtype and operation.

Import only after the choice between interpreting and compiling has been made.
"""

from __future__ import annotations

import torch

from dcplint.harness.interpreter import Canary
from dcplint.harness.kernels.canary import dot_kernel, elementwise_kernel, reduce_kernel

_SIDE = 16

# Half a unit in the last place, relative to the largest result: what one correct rounding leaves.
# Truncating where the hardware rounds is twice that and fails. Reductions round more than once.
_ROUNDING = {
    "float32": 2.0**-24,
    "float16": 2.0**-11,
    "bfloat16": 2.0**-9,
    "float8_e4m3fn": 2.0**-11,
}
_ELEMENTWISE = ("add", "mul", "less", "maximum", "neg", "exp", "store_from_fp32")
_REDUCTIONS = ("sum", "max")


def _tolerance(dtype: str, operation: str) -> float:
    slack = 16.0 if operation in ("dot", "exp", *_REDUCTIONS) else 1.05
    return _ROUNDING[dtype] * slack


def _expected(operation: str, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x, y = x.double(), y.double()
    if operation in ("add", "store_from_fp32"):
        return x + y
    if operation == "mul":
        return x * y
    if operation == "less":
        return torch.where(x < y, x, y)
    if operation == "maximum":
        return torch.maximum(x, y)
    if operation == "neg":
        return -x
    if operation == "exp":
        return x.exp()
    if operation == "sum":
        return x.sum(1)
    if operation == "max":
        return x.amax(1)
    return x @ y


def _measure(dtype_name: str, operation: str, device: str) -> Canary:
    generator = torch.Generator().manual_seed(0)
    dtype = getattr(torch, dtype_name)
    x, y = (torch.randn(_SIDE, _SIDE, generator=generator).to(dtype).to(device) for _ in range(2))
    if operation == "dot":
        out = torch.empty(_SIDE, _SIDE, dtype=torch.float32, device=device)
        dot_kernel[(1,)](x, y, out, SIDE=_SIDE)
    elif operation in _REDUCTIONS:
        out = torch.empty(_SIDE, dtype=dtype, device=device)
        reduce_kernel[(1,)](x, out, OP=operation, SIDE=_SIDE)
    else:
        out = torch.empty(_SIDE, _SIDE, dtype=dtype, device=device)
        elementwise_kernel[(1,)](x, y, out, OP=operation, SIDE=_SIDE)
    expected = _expected(operation, x, y)
    scale = expected.abs().max().clamp(min=1.0)
    tolerance = _tolerance(dtype_name, operation)
    error = ((out.double() - expected).abs().max() / scale).item()
    return Canary(dtype_name, operation, error, tolerance)


def run(device: str = "cpu") -> tuple[Canary, ...]:
    """Measure every dtype and operation on `device`; an exception counts as infinite error.

    float8_e4m3fn is measured by its dot product alone: nothing else is done in that dtype.
    """
    canaries: list[Canary] = []
    for dtype in _ROUNDING:
        fp8 = dtype.startswith("float8")
        operations = ("dot",) if fp8 else (*_ELEMENTWISE, *_REDUCTIONS, "dot")
        canaries.extend(_attempt(dtype, operation, device) for operation in operations)
    return tuple(canaries)


def _attempt(dtype: str, operation: str, device: str) -> Canary:
    try:
        return _measure(dtype, operation, device)
    except Exception:  # whatever the interpreter raises, the dtype is not usable
        return Canary(dtype, operation, float("inf"), _tolerance(dtype, operation))
