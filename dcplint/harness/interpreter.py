"""Making Triton's interpreter trustworthy, and finding out where it is not.

The interpreter keeps bf16 values as uint16 and does arithmetic on the bits, without an exception
(triton 3.6.0 and 3.9.0); it also truncates fp32 to bf16 where a GPU rounds to nearest even.
`repair_bf16` computes in fp32 and rounds back. Whether it worked is not assumed: `run_canaries`
runs small kernels in every dtype, and a dtype with a failing canary gives no verdict.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = "npt.NDArray[Any]"


def widen(bits: Array) -> Array:
    """The fp32 values of bf16 bit patterns (uint16)."""
    values: Array = (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return values


def narrow(values: Array) -> Array:
    """bf16 bit patterns (uint16) of fp32 values, rounded to nearest even; NaN stays NaN."""
    single = np.asarray(values, dtype=np.float32)
    bits = single.view(np.uint32)
    rounded = (bits + ((bits >> np.uint32(16)) & np.uint32(1)) + np.uint32(0x7FFF)) >> np.uint32(16)
    kept: Array = np.where(np.isnan(single), np.uint32(0x7FC0), rounded).astype(np.uint16)
    return kept


def enable_interpreter() -> None:
    """Ask Triton to interpret. Only kernels decorated afterwards are interpreted."""
    os.environ["TRITON_INTERPRET"] = "1"


def repair_bf16() -> None:
    """Patch the interpreter so that bf16 arithmetic is done on values. Safe to call twice."""
    import triton.language as tl
    from triton.runtime import interpreter as it

    builder: Any = it.InterpreterBuilder
    if getattr(builder, "bf16_repaired", False):
        return
    builder.bf16_repaired = True
    bf16 = tl.bfloat16

    def value(handle: Any) -> Any:
        if handle.dtype.scalar != bf16 or handle.data.dtype != np.uint16:
            return handle
        return it.TensorHandle(widen(handle.data), tl.float32)

    def back(handle: Any) -> Any:
        # A comparison leaves booleans behind; only numbers are turned back into bits.
        if handle.data.dtype == np.bool_:
            return it.TensorHandle(handle.data, bf16)
        return it.TensorHandle(narrow(handle.data), bf16)

    def wrap(name: str, operands: int) -> None:
        original = getattr(builder, name)

        def repaired(self: Any, *args: Any) -> Any:
            handles, rest = args[:operands], args[operands:]
            for handle in handles:
                if handle.dtype.scalar.name == bf16.name:
                    break
            else:
                return original(self, *args)
            return back(original(self, *(value(h) for h in handles), *rest))

        setattr(builder, name, repaired)

    wrap("binary_op", 2)
    wrap("unary_op", 1)
    wrap("create_idiv", 2)
    wrap("create_fma", 3)
    wrap("create_clampf", 3)
    wrap("create_rsqrt", 1)
    wrap("create_erf", 1)

    dot = builder.create_dot

    def create_dot(self: Any, a: Any, b: Any, d: Any, *rest: Any) -> Any:
        result = dot(self, value(a), value(b), value(d), *rest)
        return back(result) if d.dtype.scalar == bf16 else result

    builder.create_dot = create_dot

    cast = builder.cast_impl

    def cast_impl(self: Any, src: Any, dst_type: Any) -> Any:
        to_bf16 = dst_type.scalar == bf16
        if src.dtype.scalar != bf16 and not to_bf16:
            return cast(self, src, dst_type)
        single = value(src)
        if to_bf16:
            return it.TensorHandle(narrow(single.data.astype(np.float32)), bf16)
        return it.TensorHandle(single.data.astype(it._get_np_dtype(dst_type)), dst_type.scalar)

    builder.cast_impl = cast_impl

    def over_values(method: Callable[..., Any]) -> Callable[..., Any]:
        def reduce(self: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
            tensor = input[0] if isinstance(input, tuple) else input
            if tensor.dtype.scalar != bf16:
                return method(self, input, *args, **kwargs)
            block = tl.block_type(tl.float32, list(tensor.handle.data.shape))
            wide = tl.core.tensor(value(tensor.handle), block)
            result = method(self, wide, *args, **kwargs)
            first = result[0] if isinstance(result, tuple | list) else result
            narrowed = self.to_tensor(narrow(first.handle.data), bf16)
            if isinstance(result, tuple | list):
                return type(result)((narrowed, *result[1:]))
            return narrowed

        return reduce

    it.ReduceOps.sum = over_values(it.ReduceOps.sum)
    it.ReduceOps.min_max = over_values(it.ReduceOps.min_max)
    it.ScanOps.cumsum = over_values(it.ScanOps.cumsum)


def complete_interface() -> None:
    """Give interpreted kernels the attribute of compiled ones that launchers read."""
    from triton.runtime import interpreter as it

    def constexprs(self: Any) -> list[int]:
        parameters = inspect.signature(self.fn).parameters.values()
        return [i for i, p in enumerate(parameters) if "constexpr" in str(p.annotation)]

    kernel: Any = it.InterpretedFunction
    if not hasattr(kernel, "constexprs"):
        kernel.constexprs = property(constexprs)


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
