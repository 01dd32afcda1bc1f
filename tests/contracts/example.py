"""A small invented engine: its pack, complete, and a source tree that the pack is true of."""

from __future__ import annotations

from pathlib import Path

from dcplint.contracts.contract import Pack
from dcplint.contracts.load import load_pack

PACK = """\
engine: toy
package: toy
distribution: toy-engine
known: [1.0.0, 1.1.0, 2.0.0]
classes:
  - name: toy.backend.Impl
    role: impl
    abstract: [forward]
    releases: "<2"
    source: toy/backend.py:4@1.1.0
  - name: toy.backend.Impl
    role: impl
    abstract: [forward, prefill]
    releases: ">=2"
    source: toy/backend.py:4@2.0.0
  - name: toy.backend.MlaImpl
    role: impl
    bases: [toy.backend.Impl, toy.backend.Mixin]
    defines: [forward]
    aliases: [toy.MlaImpl]
    source: toy/backend.py:24@2.0.0
  - name: toy.backend.Backend
    role: backend
    abstract: [get_impl_cls]
    source: toy/backend.py:32@2.0.0
implementations:
  - name: toy.fast.FastImpl
    role: impl
    bases: [toy.backend.Impl]
    defines: [forward, prefill]
    releases: ">=2"
    source: toy/fast.py:4@2.0.0
moved:
  - name: toy.old
    kind: module
    successor: toy.backend
    releases: "<1.1"
    source: toy/old.py@1.0.0
  - name: toy.backend.OldImpl
    successor: toy.backend.Impl
    releases: "<1"
    source: toy#7
  - {name: toy.gone, kind: module, releases: "<1", source: toy#8}
capabilities:
  - name: supports_dcp
    role: impl
    owner: toy.backend.Impl
    summary: computes over a shard
    opt-in: true
    methods: [forward]
    implies: [returns_lse]
    source: toy/backend.py:5@2.0.0
    defaults:
      - {value: true, releases: "<2", source: toy/backend.py:5@1.1.0}
      - {value: false, releases: ">=2", source: [toy/backend.py:5@2.0.0, toy#12]}
    overrides:
      - {owner: toy.fast.FastImpl, value: true, releases: ">=2", source: toy/fast.py:5@2.0.0}
    readers:
      - {function: toy.backend.Backend.supports_dcp, source: toy/backend.py:40@2.0.0}
  - name: returns_lse
    role: impl
    owner: toy.backend.Impl
    summary: returns its LSE
    opt-in: true
    encoding: attribute
    source: toy/backend.py:6@2.0.0
    defaults:
      - {value: false, source: toy/backend.py:6@2.0.0}
  - name: supports_dcp
    role: backend
    owner: toy.backend.Backend
    summary: what the selector asks
    opt-in: true
    encoding: method
    delegates: get_impl_cls
    source: toy/backend.py:38@2.0.0
    readers:
      - {function: toy.select.choose, source: toy/select.py:2@2.0.0}
derived:
  - name: needs_lse
    role: impl
    capability: returns_lse
    function: toy.backend.Impl.__new__
    condition: the DCP size is above 1
    source: toy/backend.py:10@2.0.0
gates:
  - function: toy.select.choose
    stage: selection
    callers:
      - {function: toy.select.main, releases: ">=1.1", source: toy/select.py:12@2.0.0}
    asks:
      - capability: supports_dcp
        role: backend
        argument: use_dcp
        outcome: ValueError
        source: toy/select.py:2@2.0.0
      - capability: returns_lse
        role: impl
        reads: needs_lse
        outcome: an assertion fails
        source: toy/select.py:4@2.0.0
accessors:
  - name: get_impl_cls
    role: backend
    owner: toy.backend.Backend
    returns: impl
    source: toy/backend.py:34@2.0.0
lengths:
  - {name: seq_lens, record: toy.backend.Batch, unit: global, place: device, source: toy#9}
localizers:
  - function: toy.select.local
    parameters: [lens, rank]
    length: lens
    rank: rank
    out: buffer
    releases: ">=2"
    source: toy#9
arguments:
  - function: toy.fast.kernel
    argument: lens
    unit: local
    position: 1
    given: table
    releases: ">=2"
    source: toy#9
blocks:
  - record: toy.backend.Batch
    name: block_size
    counts: rank-block
    kinds: [toy.backend.Part, toy.backend.Whole]
    whole: [toy.backend.Whole]
    unless: [apart]
    source: toy#9
  - record: toy.backend.Plan
    aliases: [toy.Plan]
    name: batch
    holds: toy.backend.Batch
    source: toy#9
  - {record: toy.backend.Plan, method: start, argument: tokens, counts: sequence, source: toy#9}
  - {record: toy.backend.Plan, method: ids, counts: block-ids, releases: ">=2", source: toy#9}
vocabulary:
  sizes:
    - {name: dcp_size, source: toy/backend.py:9@2.0.0}
  ranks:
    - {name: dcp_rank, source: toy#1}
  interleaves:
    - {name: interleave_size, source: toy#1}
  groups:
    - {name: toy.select.group, source: toy/select.py:7@2.0.0}
  group-ranks:
    - {name: rank_in_group, source: toy#1}
  group-sizes:
    - {name: world_size, source: toy#1}
  merges:
    - {name: toy.fast.merge, releases: ">=2", source: toy/fast.py:14@2.0.0}
  collectives:
    - {name: all_gather, source: toy#1}
  syncs:
    - {name: toy.select.syncing, releases: ">=2", source: toy#1}
  neutral: [torch, abc]
"""

SOURCE = {
    "toy/__init__.py": "from .backend import MlaImpl, Plan\n",
    "toy/backend.py": """\
from abc import ABC, abstractmethod


class Impl(ABC):
    supports_dcp: bool = False
    returns_lse = False

    def __new__(cls):
        self = object.__new__(cls); self.dcp_size = 2
        self.needs_lse = self.dcp_size > 1 and self.returns_lse
        return self

    @abstractmethod
    def forward(self): ...
    @abstractmethod
    def prefill(self): ...


class Mixin:
    helper = True


# a comment
class MlaImpl(Impl, Mixin):
    extra = 1

    def forward(self):
        return None



class Backend(ABC):
    @abstractmethod
    def get_impl_cls(): ...


    @classmethod
    def supports_dcp(cls):
        # asks the impl
        return cls.get_impl_cls().supports_dcp


class Batch:
    seq_lens: list
    block_size: int


class Part(Batch): ...
class Whole(Batch): ...


class Plan:
    batch: Batch

    def start(self, tokens): ...
    def ids(self): ...
""",
    "toy/fast.py": """\
from toy.backend import Impl


class FastImpl(Impl):
    supports_dcp = True

    def forward(self):
        return None

    def prefill(self):
        return None


def merge(parts): ...
def kernel(lens, table): ...
""",
    "toy/select.py": """\
def choose(backend, impl, use_dcp=False):
    if use_dcp and not backend.supports_dcp():
        raise ValueError
    assert impl.needs_lse


def group(): ...



def main():
    choose(None, None)


def local(buffer, lens, rank): ...
def syncing(): ...
""",
}


def write_pack(folder: Path, text: str = PACK, name: str = "toy.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def toy(folder: Path, text: str = PACK) -> Pack:
    return load_pack(write_pack(folder, text), shown="toy.yaml")


def write_source(folder: Path, changes: dict[str, tuple[str, str]] | None = None) -> Path:
    """The source tree under `folder`, with one replacement in each of the files named."""
    for name, text in SOURCE.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        old, new = (changes or {}).get(name, ("", ""))
        assert old in text
        path.write_text(text.replace(old, new) if old else text, encoding="utf-8")
    return folder
