"""Kernels with known answers, by which the harness judges the machine it runs on.

Each does one operation in the dtype it is given, without widening first: where a dtype's
arithmetic is broken, it shows.
"""

import triton
import triton.language as tl


@triton.jit
def elementwise_kernel(x_ptr, y_ptr, out_ptr, OP: tl.constexpr, SIDE: tl.constexpr):
    """`OP` on two [SIDE, SIDE] tiles, in their own dtype except for `store_from_fp32`."""
    at = tl.arange(0, SIDE)[:, None] * SIDE + tl.arange(0, SIDE)[None, :]
    x = tl.load(x_ptr + at)
    y = tl.load(y_ptr + at)
    if OP == "add":
        result = x + y
    elif OP == "mul":
        result = x * y
    elif OP == "less":
        result = tl.where(x < y, x, y)
    elif OP == "maximum":
        result = tl.maximum(x, y)
    elif OP == "neg":
        result = -x
    elif OP == "exp":
        result = tl.exp(x.to(tl.float32)).to(x.dtype)
    else:
        result = x.to(tl.float32) + y.to(tl.float32)
    tl.store(out_ptr + at, result.to(out_ptr.dtype.element_ty))


@triton.jit
def reduce_kernel(x_ptr, out_ptr, OP: tl.constexpr, SIDE: tl.constexpr):
    """Row sums or row maxima of a [SIDE, SIDE] tile, in its own dtype."""
    at = tl.arange(0, SIDE)
    x = tl.load(x_ptr + at[:, None] * SIDE + at[None, :])
    result = tl.sum(x, axis=1) if OP == "sum" else tl.max(x, axis=1)
    tl.store(out_ptr + at, result.to(out_ptr.dtype.element_ty))


@triton.jit
def dot_kernel(x_ptr, y_ptr, out_ptr, SIDE: tl.constexpr):
    """The fp32 product of two [SIDE, SIDE] tiles."""
    at = tl.arange(0, SIDE)[:, None] * SIDE + tl.arange(0, SIDE)[None, :]
    product = tl.dot(tl.load(x_ptr + at), tl.load(y_ptr + at), input_precision="ieee")
    tl.store(out_ptr + at, product)
