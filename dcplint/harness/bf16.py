"""Making bf16 right in Triton's interpreter.

It keeps bf16 values as uint16 and does arithmetic on the bits, without an exception (triton 3.6.0
and 3.9.0); it also truncates fp32 to bf16 where a GPU rounds to nearest even. The patches compute
in fp32 and round back.

The names are private ones of triton. In a release without one of them nothing is patched, and no
verdict is given in bf16: canaries tell whether it is right, not this module.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = "npt.NDArray[Any]"

# What was in the place of which attribute of what.
_originals: list[tuple[Any, str, Any]] = []

# Operations of the builder, and how many of their arguments are values.
_ARITHMETIC = {
    "binary_op": 2,
    "unary_op": 1,
    "create_idiv": 2,
    "create_fma": 3,
    "create_clampf": 3,
    "create_rsqrt": 1,
    "create_erf": 1,
}


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


def repair() -> str:
    """Do bf16 arithmetic on values. Why not, where it cannot be done; else empty."""
    import triton
    from triton.runtime import interpreter as it

    if _originals:
        return ""
    try:
        replacements = [(o, n, getattr(o, n), v) for o, n, v in _replacements(it)]
    except AttributeError as error:
        return f"triton {triton.__version__} is not one whose bf16 can be repaired: {error}"
    for owner, name, original, value in replacements:
        _originals.append((owner, name, original))
        setattr(owner, name, value)
    return ""


def restore() -> None:
    """Interpret as triton does by itself."""
    while _originals:
        setattr(*_originals.pop())


def _replacements(it: Any) -> list[tuple[Any, str, Any]]:
    """What to put in place of which attribute of what. Raises AttributeError."""
    builder, handle, to_numpy = it.InterpreterBuilder, it.TensorHandle, it._get_np_dtype
    core, bf16, fp32 = it.tl.core, it.tl.bfloat16, it.tl.float32
    dot, cast = builder.create_dot, builder.cast_impl

    def value(item: Any) -> Any:
        if item.dtype.scalar != bf16 or item.data.dtype != np.uint16:
            return item
        return handle(widen(item.data), fp32)

    def back(item: Any) -> Any:
        # A comparison leaves booleans behind; only numbers are turned back into bits.
        is_bool = item.data.dtype == np.bool_
        return handle(item.data if is_bool else narrow(item.data), bf16)

    def on_values(operation: Callable[..., Any], operands: int) -> Callable[..., Any]:
        def repaired(self: Any, *arguments: Any) -> Any:
            handles, rest = arguments[:operands], arguments[operands:]
            for item in handles:
                if item.dtype.scalar.name == bf16.name:
                    break
            else:
                return operation(self, *arguments)
            return back(operation(self, *(value(item) for item in handles), *rest))

        return repaired

    def create_dot(self: Any, a: Any, b: Any, d: Any, *rest: Any) -> Any:
        result = dot(self, value(a), value(b), value(d), *rest)
        return back(result) if d.dtype.scalar == bf16 else result

    def cast_impl(self: Any, src: Any, dst_type: Any) -> Any:
        to_bf16 = dst_type.scalar == bf16
        if src.dtype.scalar != bf16 and not to_bf16:
            return cast(self, src, dst_type)
        single = value(src)
        if to_bf16:
            return handle(narrow(single.data.astype(np.float32)), bf16)
        return handle(single.data.astype(to_numpy(dst_type)), dst_type.scalar)

    def over_values(method: Callable[..., Any]) -> Callable[..., Any]:
        def reduce(self: Any, input: Any, *arguments: Any, **options: Any) -> Any:
            tensor = input[0] if isinstance(input, tuple) else input
            if tensor.dtype.scalar != bf16:
                return method(self, input, *arguments, **options)
            block = it.tl.block_type(fp32, list(tensor.handle.data.shape))
            wide = core.tensor(value(tensor.handle), block)
            result = method(self, wide, *arguments, **options)
            first = result[0] if isinstance(result, tuple | list) else result
            narrowed = self.to_tensor(narrow(first.handle.data), bf16)
            if isinstance(result, tuple | list):
                return type(result)((narrowed, *result[1:]))
            return narrowed

        return reduce

    arithmetic = [(n, on_values(getattr(builder, n), k)) for n, k in _ARITHMETIC.items()]
    return [
        *((builder, name, repaired) for name, repaired in arithmetic),
        (builder, "create_dot", create_dot),
        (builder, "cast_impl", cast_impl),
        (it.ReduceOps, "sum", over_values(it.ReduceOps.sum)),
        (it.ReduceOps, "min_max", over_values(it.ReduceOps.min_max)),
        (it.ScanOps, "cumsum", over_values(it.ScanOps.cumsum)),
    ]
