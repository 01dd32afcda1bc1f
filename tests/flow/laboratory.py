"""Small programs that are both traced and executed: what the trace says must be what happens.

A program is the text of one or more modules of a tiny engine under vLLM's names. Its `main(choose)`
makes metadata and gives it to a builder, which reads `dcp_local_seq_lens`. `choose()` is a decision
that nobody can foresee; execution tries every sequence of them, with a DCP world size of 2.
"""

import importlib
import itertools
import sys
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

from dcplint.checks.base import Context
from dcplint.flow.trace import State
from tests.flow.program import contexts

BACKEND = """
from __future__ import annotations
import dataclasses

SEEN = []


@dataclasses.dataclass
class CommonAttentionMetadata:
    seq_lens: list
    num_reqs: int = 1
    dcp_local_seq_lens: list | None = None
    max_seq_len: int = 8

    def replace(self, **changes):
        return dataclasses.replace(self, **changes)


class AttentionMetadataBuilder:
    pass


class Builder(AttentionMetadataBuilder):
    def build(self, common: CommonAttentionMetadata):
        local = common.dcp_local_seq_lens
        SEEN.append(local)
"""
PARALLEL = """
class Group:
    world_size = 2
    rank_in_group = 0


def get_dcp_group():
    return Group()
"""
PRELUDE = """
import copy
import dataclasses
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Optional

from vllm.distributed.parallel_state import get_dcp_group
from vllm.v1.attention.backend import Builder, CommonAttentionMetadata


def localize(seq_lens):
    return [n // 2 for n in seq_lens]


"""
_PLACES = {
    "vllm/v1/attention/backend.py": BACKEND,
    "vllm/distributed/parallel_state.py": PARALLEL,
}
_DECISIONS = 5


@dataclass(frozen=True)
class Laboratory:
    """One program laid out in `directory`."""

    directory: Path

    @classmethod
    def of(cls, directory: Path, main: str, **others: str) -> "Laboratory":
        """`main` becomes `vllm/v1/worker/case.py`, `name=text` a module beside it."""
        files = dict(_PLACES)
        files["vllm/v1/worker/case.py"] = PRELUDE + dedent(main)
        files |= {f"vllm/v1/worker/{n}.py": PRELUDE + dedent(text) for n, text in others.items()}
        for name, text in files.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            for parent in path.relative_to(directory).parents[:-1]:
                (directory / parent / "__init__.py").touch()
        return cls(directory)

    def context(self) -> Context:
        """The linked program with its contract."""
        (context,) = contexts(self.directory, "vllm==0.30.0")
        return context

    def traced(self) -> set[str]:
        """The states that reach the builder, as the trace has it: `set`, `None`, `unknown`."""
        flow = self.context().fields
        (field,) = flow.fields
        (read,) = (r for r in flow.reads(field) if r.function.qualname == "Builder.build")
        outcomes = flow.outcomes(read.function, read.statement, read.path)
        assert State.ENTRY not in {outcome.state for outcome in outcomes}
        return {outcome.state.value for outcome in outcomes}

    def executed(self) -> set[str]:
        """What the builder gets when the program runs, over every sequence of decisions."""
        sys.path.insert(0, str(self.directory))
        try:
            main = importlib.import_module("vllm.v1.worker.case").main
            seen = sys.modules["vllm.v1.attention.backend"].SEEN
            for decisions in itertools.product((False, True), repeat=_DECISIONS):
                later = iter(decisions)
                try:
                    main(later.__next__)
                except (
                    RuntimeError,
                    AssertionError,
                    AttributeError,
                    TypeError,
                    ValueError,
                    StopIteration,
                ):
                    continue
            return {"None" if value is None else "set" for value in seen}
        finally:
            sys.path.remove(str(self.directory))
            for name in [n for n in sys.modules if n.partition(".")[0] == "vllm"]:
                del sys.modules[name]
