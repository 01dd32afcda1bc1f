"""Backends that take the process down, one way each."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from pathlib import Path

import torch

from dcplint.harness.contract import AttentionBackendBase
from dcplint.harness.control import DecodeBuilder, GQAImpl


class _Backend(AttentionBackendBase):
    impl = GQAImpl

    @classmethod
    def supports_dcp(cls):
        return True

    @classmethod
    def get_impl_cls(cls):
        return cls.impl

    @staticmethod
    def get_builder_cls():
        return DecodeBuilder


class _SegfaultImpl(GQAImpl):
    def forward(self, query, kv_cache, metadata):
        ctypes.string_at(8)


class Segfault(_Backend):
    impl = _SegfaultImpl


class _EndlessImpl(GQAImpl):
    def forward(self, query, kv_cache, metadata):
        while True:
            time.sleep(0.01)


class Endless(_Backend):
    impl = _EndlessImpl


class _HogImpl(GQAImpl):
    def forward(self, query, kv_cache, metadata):
        hoard = []
        while True:
            hoard.append(torch.ones(1 << 26))


class Hog(_Backend):
    impl = _HogImpl


class _ChatterImpl(GQAImpl):
    def forward(self, query, kv_cache, metadata):
        sys.stdout.write('{"measurements": [], "execution": "native-cuda"}\n' * 1000)
        sys.stdout.flush()
        os.write(1, b"\xff\xfe garbage \n")
        return super().forward(query, kv_cache, metadata)


class Chatter(_Backend):
    """Right in all it computes; only its output is noise."""

    impl = _ChatterImpl


class _FloodImpl(GQAImpl):
    def forward(self, query, kv_cache, metadata):
        while True:
            os.write(1, b"x" * (1 << 20))


class Flood(_Backend):
    impl = _FloodImpl


class _QuitterImpl(GQAImpl):
    def forward(self, query, kv_cache, metadata):
        os._exit(0)


class Quitter(_Backend):
    impl = _QuitterImpl


class _LeaverImpl(GQAImpl):
    def forward(self, query, kv_cache, metadata):
        raise SystemExit(0)


class Leaver(_Backend):
    impl = _LeaverImpl


class _ForkerImpl(GQAImpl):
    """Leaves a process behind, and its id where the test finds it."""

    def forward(self, query, kv_cache, metadata):
        child = subprocess.Popen(["sleep", "600"])
        Path(os.environ["DCPLINT_TEST_PIDS"]).write_text(str(child.pid))
        return super().forward(query, kv_cache, metadata)


class Forker(_Backend):
    impl = _ForkerImpl


class _OneDiesImpl(GQAImpl):
    def forward(self, query, kv_cache, metadata):
        if self.dcp_rank == 1:
            os.kill(os.getpid(), 9)
        return super().forward(query, kv_cache, metadata)


class OneDies(_Backend):
    """Rank 1 dies; as processes, its peers would wait for it in the merge."""

    impl = _OneDiesImpl


class _OneSkipsImpl(GQAImpl):
    def merge(self, out, lse):
        if self.dcp_rank == 1:
            return out[:, : self.num_heads]
        return super().merge(out, lse)


class OneSkips(_Backend):
    """Rank 1 leaves out a collective."""

    impl = _OneSkipsImpl


class _RefusingImpl(GQAImpl):
    def __init__(self, geometry, dcp, sinks=None):
        if dcp.dcp_world_size > 1:
            raise ValueError("no DCP here")
        super().__init__(geometry, dcp, sinks)


class Refusing(_Backend):
    impl = _RefusingImpl


class _MuteImpl(GQAImpl):
    def forward(self, query, kv_cache, metadata):
        return super().forward(query, kv_cache, metadata)[0], None


class Mute(_Backend):
    impl = _MuteImpl
