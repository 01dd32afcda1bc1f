"""Reading e4m3 bytes without hardware support for the format.

sm_80 has no e4m3 conversion and gfx942 has another e4m3 (fnuz), so the bits are moved into an fp16
by hand: the exponent lands 8 too low, and multiplying by 2**8 is exact.
"""

import triton
import triton.language as tl


@triton.jit
def e4m3_to_fp16(bits):
    """Decode `bits` (uint8, OCP e4m3fn) to fp16, exactly; 0x7f and 0xff become NaN."""
    wide = bits.to(tl.uint16)
    moved = ((wide & 0x80) << 8) | ((wide & 0x7F) << 7)
    value = moved.to(tl.float16, bitcast=True) * 256.0
    return tl.where((wide & 0x7F) == 0x7F, float("nan"), value)
