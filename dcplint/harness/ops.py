"""Our own kernels, for backends that are written against the harness contract.

Importing this decides whether they are compiled or interpreted (`TRITON_INTERPRET`). They are
looked up at run time, because where their files lie differs between a checkout and a wheel.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from dcplint.harness import kernels


def _operation(module: str, name: str) -> Callable[..., Any]:
    function: Callable[..., Any] = getattr(import_module(f"{kernels.__name__}.{module}"), name)
    return function


gqa_decode = _operation("gqa_decode", "gqa_decode")
mla_decode = _operation("mla_decode", "mla_decode")
merge_shards = _operation("lse_merge", "merge_shards")
correct_shard = _operation("lse_merge", "correct_shard")
local_seq_lens = _operation("local_lens", "local_seq_lens")
