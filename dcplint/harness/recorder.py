"""Which bytes an interpreted kernel touches: the most sensitive channel there is.

A rank that reads one slot too many, or one too few, may still compute a plausible output; the
addresses tell. Hooked into the interpreter's loads, stores and atomics; each thread has its own
recorder, since emulated ranks are threads.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

_active = threading.local()
_launched = 0


def interpreted_launches() -> int:
    """How many kernels were interpreted under any recorder, since they were last forgotten."""
    return _launched


def forget_launches() -> None:
    """Start counting anew, in a process that is to say how somebody else's code ran."""
    global _launched
    _launched = 0


class WildAccess(Exception):
    """An interpreted kernel reached outside every buffer it was given."""


class Recorder:
    """Which elements of `tensors` were read while it was active.

    `read[i]` is a boolean mask over the elements of the i-th tensor's storage range, in storage
    order. `launches` counts interpreted kernels; where it stays 0 nothing was interpreted and the
    masks say nothing.
    """

    def __init__(self, tensors: tuple[torch.Tensor, ...]) -> None:
        self.tensors = tensors
        self.read = [torch.zeros(t.numel(), dtype=torch.bool) for t in tensors]
        self.launches = 0
        self._views = [mask.numpy() for mask in self.read]
        self._spans: list[tuple[int, int]] = []

    @contextmanager
    def active(self) -> Iterator[Recorder]:
        """Record in this thread."""
        _install()
        _active.recorder = self
        try:
            yield self
        finally:
            _active.recorder = None

    def begin_launch(self, arguments: tuple[Any, ...]) -> None:
        """Note the buffers a kernel may touch: its tensor arguments, and the watched ones."""
        global _launched
        _launched += 1
        self.launches += 1
        tensors = [a for a in arguments if isinstance(a, torch.Tensor)]
        storages = [t.untyped_storage() for t in (*tensors, *self.tensors)]
        self._spans = sorted({(s.data_ptr(), s.data_ptr() + s.nbytes()) for s in storages})

    def touch(self, addresses: npt.NDArray[np.uint64], itemsize: int, is_read: bool) -> None:
        """Account for accesses of `itemsize` bytes; raises WildAccess before a wild one happens."""
        if not addresses.size:
            return
        inside = np.zeros(addresses.shape, dtype=bool)
        for start, end in self._spans:
            inside |= (addresses >= start) & (addresses + np.uint64(itemsize) <= end)
        if not inside.all():
            what = "read" if is_read else "write"
            raise WildAccess(f"{int((~inside).sum())} element(s) {what} outside every buffer")
        if not is_read:
            return
        for tensor, mask in zip(self.tensors, self._views, strict=True):
            start = tensor.data_ptr()
            end = start + mask.size * tensor.element_size()
            hits = addresses[(addresses >= start) & (addresses < end)]
            mask[(hits - np.uint64(start)) // np.uint64(tensor.element_size())] = True


def note_read(tensor: torch.Tensor, *indices: torch.Tensor) -> None:
    """Account for `tensor[indices]` read by something that is not interpreted.

    For a reference that stands in for a kernel; `tensor` may be any view of a watched one.
    """
    recorder: Recorder | None = getattr(_active, "recorder", None)
    if recorder is None:
        return
    recorder.launches += 1
    for watched, mask in zip(recorder.tensors, recorder.read, strict=True):
        if watched.untyped_storage().data_ptr() != tensor.untyped_storage().data_ptr():
            continue
        offset = tensor.storage_offset() - watched.storage_offset()
        elements = torch.arange(watched.numel()).as_strided(tensor.shape, tensor.stride(), offset)
        mask[elements[indices].flatten()] = True


def _install() -> None:
    """Hook the interpreter, once per process."""
    from triton.runtime import interpreter as it

    builder: Any = it.InterpreterBuilder
    if getattr(builder, "records_addresses", False):
        return
    builder.records_addresses = True
    load, store, atomic = (
        builder.create_masked_load,
        builder.create_masked_store,
        builder.create_atomic_rmw,
    )

    def touch(pointers: Any, mask: Any, is_read: bool) -> None:
        recorder = getattr(_active, "recorder", None)
        if recorder is not None:
            itemsize = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
            lanes = np.broadcast_to(mask.data.astype(bool), pointers.data.shape)
            recorder.touch(pointers.data[lanes], itemsize, is_read)

    def create_masked_load(self: Any, pointers: Any, mask: Any, *rest: Any) -> Any:
        touch(pointers, mask, True)
        return load(self, pointers, mask, *rest)

    def create_masked_store(self: Any, pointers: Any, value: Any, mask: Any, *rest: Any) -> Any:
        touch(pointers, mask, False)
        return store(self, pointers, value, mask, *rest)

    def create_atomic_rmw(
        self: Any, operation: Any, pointers: Any, value: Any, mask: Any, *rest: Any
    ) -> Any:
        touch(pointers, mask, True)
        return atomic(self, operation, pointers, value, mask, *rest)

    builder.create_masked_load = create_masked_load
    builder.create_masked_store = create_masked_store
    builder.create_atomic_rmw = create_atomic_rmw

    executor: Any = it.GridExecutor
    call = executor.__call__

    def __call__(self: Any, *arguments: Any, **options: Any) -> Any:
        recorder = getattr(_active, "recorder", None)
        if recorder is not None:
            recorder.begin_launch((*arguments, *options.values()))
        return call(self, *arguments, **options)

    executor.__call__ = __call__
