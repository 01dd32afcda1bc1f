"""Making Triton interpret without a GPU, and finding out where it may not be trusted.

The interpreter's arithmetic is not taken for right, repaired or not: `run_canaries` runs small
kernels in every dtype, and a dtype with a failing canary gives no verdict.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


def enable_interpreter() -> None:
    """Ask Triton to interpret. Only kernels decorated afterwards are interpreted."""
    os.environ["TRITON_INTERPRET"] = "1"


def complete_interface() -> None:
    """Give interpreted kernels the attribute of compiled ones that launchers read."""
    from triton.runtime import interpreter as it

    def constexprs(self: Any) -> list[int]:
        parameters = inspect.signature(self.fn).parameters.values()
        return [i for i, p in enumerate(parameters) if "constexpr" in str(p.annotation)]

    kernel: Any = it.InterpretedFunction
    if not hasattr(kernel, "constexprs"):
        kernel.constexprs = property(constexprs)


def repair_scalar_masks() -> None:
    """Let the comparison of a scalar stay one when it is spread over a block.

    The interpreter (triton 3.9.0) makes integers of it, which no load or store takes for a mask.
    """
    import triton.language as tl
    from triton.runtime import interpreter as it

    builder: Any = it.InterpreterBuilder
    splat = getattr(builder, "create_splat", None)
    if splat is None:
        return

    def create_splat(self: Any, block_type: Any, item: Any) -> Any:
        if item.data.dtype == bool and item.dtype != tl.int1:
            item = it.TensorHandle(item.data, tl.int1)
        return splat(self, block_type, item)

    builder.create_splat = create_splat


def stub_autotuning() -> None:
    """Let `@triton.autotune` run without a driver: every configuration is equally fast.

    Without a GPU the autotuner fails with `0 active drivers`. The stub's benchmarker returns a
    constant without running the kernel, so the first configuration is taken.
    """
    from triton.runtime import driver

    class StubDriver:
        def get_benchmarker(self) -> Callable[..., list[float]]:
            return lambda kernel_call, quantiles=(0.5,), **_: [1.0] * len(quantiles)

        def get_current_device(self) -> int:
            return 0

        def get_current_target(self) -> None:
            return None

    try:
        _ = driver.active.get_current_device
    except RuntimeError:
        driver.set_active(StubDriver())


@dataclass(frozen=True, slots=True)
class Canary:
    """What one small kernel measured. `error` is the largest deviation from numpy's answer."""

    dtype: str
    operation: str
    error: float
    tolerance: float

    @property
    def passed(self) -> bool:
        """Whether the interpreter got this operation right; NaN is a failure."""
        return self.error <= self.tolerance


def healthy_dtypes(canaries: tuple[Canary, ...]) -> frozenset[str]:
    """The dtypes all of whose canaries passed."""
    failed = {c.dtype for c in canaries if not c.passed}
    return frozenset(c.dtype for c in canaries) - failed


def run_canaries() -> tuple[Canary, ...]:
    """One canary per dtype and operation, in this process, with the interpreter as it now is."""
    from dcplint.harness import canaries

    return canaries.run()
