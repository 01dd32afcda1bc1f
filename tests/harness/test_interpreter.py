"""Canaries must fail on the interpreter as it ships and pass once it is repaired."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import dcplint
from dcplint.harness import kernels
from dcplint.harness.bf16 import narrow, widen
from dcplint.harness.interpreter import Canary, healthy_dtypes

_MEASURE = """
import dataclasses, json, sys
from dcplint.harness import bf16, interpreter
interpreter.enable_interpreter()
if "repair" in sys.argv:
    bf16.repair()
    bf16.repair()
from dcplint.harness import canaries
print(json.dumps([dataclasses.asdict(c) for c in canaries.run()]))
"""


def _canaries(*arguments: str) -> tuple[Canary, ...]:
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, *arguments], capture_output=True, text=True, check=True
    )
    return tuple(Canary(**c) for c in json.loads(done.stdout))


def test_without_the_repair_bf16_is_not_healthy() -> None:
    canaries = _canaries()
    failed = {c.operation for c in canaries if c.dtype == "bfloat16" and not c.passed}
    assert {"add", "mul", "less", "maximum", "neg", "sum", "dot", "store_from_fp32"} <= failed
    assert healthy_dtypes(canaries) == {"float32", "float16", "float8_e4m3fn"}


def test_with_the_repair_every_dtype_is_healthy() -> None:
    canaries = _canaries("repair")
    assert [c for c in canaries if not c.passed] == []
    assert healthy_dtypes(canaries) == {"float32", "float16", "bfloat16", "float8_e4m3fn"}


_UNREPAIRED = """
import sys
from dcplint.harness import bf16, interpreter, worker
interpreter.enable_interpreter()
from triton.runtime import interpreter as it
*owners, name = sys.argv[1].split(".")
owner = getattr(it, owners[0]) if owners else it
kept = vars(owner)[name]
repair = bf16.repair

def repair_without():
    # Another release: it has the name no more, and what it does by itself needs it not.
    plain = dict(vars(it.InterpreterBuilder))
    delattr(owner, name)
    said = repair()
    setattr(owner, name, kept)
    assert vars(it.InterpreterBuilder) == plain
    return said

bf16.repair = repair_without
found = worker.prepare("cpu", "")
print(found["unrepaired"], found["healthy"])
"""


@pytest.mark.parametrize(
    "name",
    [
        "TensorHandle",
        "_get_np_dtype",
        "InterpreterBuilder.cast_impl",
        "InterpreterBuilder.create_clampf",
        "ReduceOps.min_max",
        "ScanOps",
    ],
)
def test_a_release_whose_bf16_cannot_be_repaired_says_so_and_does_the_rest(name: str) -> None:
    done = subprocess.run([sys.executable, "-c", _UNREPAIRED, name], capture_output=True, text=True)
    said, _, healthy = done.stdout.strip().rpartition("[")
    assert healthy == "'float16', 'float32', 'float8_e4m3fn']", done.stderr
    assert " is not one whose bf16 can be repaired: " in said
    assert f"has no attribute '{name.rpartition('.')[2]}'" in said


def test_a_release_in_which_the_repair_does_harm_is_interpreted_as_it_is() -> None:
    harmed = """
from dcplint.harness import bf16, worker
harm = bf16._replacements
bf16._replacements = lambda it: [*harm(it), (it.InterpreterBuilder, "unary_op", None)]
print(worker.prepare("cpu", "")["healthy"])
"""
    done = subprocess.run(
        [sys.executable, "-c", harmed], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "['float16', 'float32', 'float8_e4m3fn']"


def test_an_error_of_nan_is_a_failure() -> None:
    assert healthy_dtypes((Canary("float32", "add", float("nan"), 1.0),)) == frozenset()


def test_bf16_rounding_agrees_with_torch() -> None:
    """Every bf16 value survives; fp32 values round to nearest even, as torch does."""
    every = np.arange(65536, dtype=np.uint16)
    expected = torch.from_numpy(every.view(np.int16)).view(torch.bfloat16).float().numpy()
    np.testing.assert_array_equal(widen(every), expected)
    generator = torch.Generator().manual_seed(0)
    bits = torch.randint(-(2**31), 2**31, (20000,), generator=generator).to(torch.int32)
    single = bits.view(torch.float32)
    rounded = torch.from_numpy(narrow(single.numpy()).view(np.int16)).view(torch.bfloat16)
    torch.testing.assert_close(rounded, single.bfloat16(), rtol=0, atol=0, equal_nan=True)


_FASTER = """
import hashlib, sys
from dcplint.harness import bf16, faster, interpreter
interpreter.enable_interpreter()
bf16.repair()
if "faster" in sys.argv:
    faster.speed_up()
    faster.speed_up()
hidden = [a.partition("=")[2] for a in sys.argv if a.startswith("without=")]
if hidden:
    # Another release: it has the name no more, and what it does by itself needs it not.
    from triton.runtime import interpreter as it
    owner = it
    *places, name = hidden[0].split(".")
    for place in places:
        owner = type(it.interpreter_semantic) if place == "semantic" else getattr(owner, place)
    kept = vars(owner)[name]
    delattr(owner, name)
    faster.speed_up()
    assert name not in vars(owner)
    setattr(owner, name, kept)
import torch
from dcplint.harness.kernels.gqa_decode import gqa_decode
from tests.harness.quotient import quotient
import triton.language as tl
torch.manual_seed(0)
starts, lens = torch.tensor([0, 2, 3]), torch.tensor([37, 5])
table = torch.tensor([[2, 0, 1], [3, 3, 3]], dtype=torch.int32)
digest = hashlib.sha256()
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    q = torch.randn(3, 8, 24).to(dtype)
    k, v = (torch.randn(4, 16, 2, d).to(dtype) for d in (24, 40))
    sharded = dict(dcp_rank=1, dcp_world_size=2, interleave=4)
    for tensor in gqa_decode(
        q, k, v, table, lens.int(), (2 * lens).int(), starts.int(), max_query_len=2, sm_scale=0.2,
        window=30, soft_cap=5.0, sinks=torch.randn(8), **sharded,
    ):
        digest.update(tensor.float().numpy().tobytes())
    x, y = torch.randn(2, 16).to(dtype)
    digest.update(quotient(x, y).numpy().tobytes())
tl.block_type(tl.float32, [16])
try:
    tl.block_type(tl.float32, [16.0])
except TypeError as error:
    print(error)
print(digest.hexdigest())
"""


def _answers(*options: str) -> str:
    command = [sys.executable, "-c", _FASTER, *options]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def plain_answers() -> str:
    return _answers()


def test_faster_is_the_same_to_the_bit(plain_answers: str) -> None:
    """Answers, and what is refused: a size of 16.0, after one of 16."""
    assert _answers("faster") == plain_answers
    assert plain_answers.startswith("Shape element 0 must have type")


@pytest.mark.parametrize(
    "name",
    [
        "_patch_lang",
        "InterpreterOptions",
        "interpreter_builder",
        "_get_np_dtype",
        "tl.core.block_type",
        "tl.core._unwrap_if_constexpr",
        "semantic.broadcast_impl_value",
        "semantic.binary_op_type_checking_impl",
    ],
)
def test_a_release_without_a_private_name_is_interpreted_all_the_same(
    name: str, plain_answers: str
) -> None:
    assert _answers(f"without={name}") == plain_answers


def test_a_release_in_which_a_patch_does_harm_is_interpreted_as_it_is() -> None:
    harmed = """
from dcplint.harness import faster, worker
faster._leave_alone_what_fits = lambda it: [(it.interpreter_semantic, "cast", None)]
print(worker.prepare("cpu", "")["healthy"])
"""
    done = subprocess.run(
        [sys.executable, "-c", harmed], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "['bfloat16', 'float16', 'float32', 'float8_e4m3fn']"


def test_what_was_made_faster_can_be_taken_back() -> None:
    undone = """
from triton.runtime import interpreter as it
from dcplint.harness import faster, interpreter
interpreter.enable_interpreter()
places = (it, it.tl.core, it.tl.core.block_type, it.tl.core.tensor, type(it.interpreter_semantic))
before = [dict(vars(p)) for p in places]
options = it.interpreter_builder.options
faster.speed_up()
print([dict(vars(p)) != b for p, b in zip(places, before)])
faster.slow_down()
left = [{k for k in vars(p) if vars(p)[k] is not b.get(k)} for p, b in zip(places, before)]
print(left, it.interpreter_builder.options is options)
"""
    done = subprocess.run(
        [sys.executable, "-c", undone], capture_output=True, text=True, check=True
    )
    made, left = done.stdout.splitlines()
    assert made == str([True] * 5)
    assert left == f"{[set()] * 5} True"


_MASKED = """
import sys
from dcplint.harness import interpreter
interpreter.enable_interpreter()
if "repair" in sys.argv:
    interpreter.repair_scalar_masks()
from tests.harness.masked import store_once
print(store_once().tolist())
"""


def test_a_scalars_comparison_is_a_mask() -> None:
    done = [
        subprocess.run([sys.executable, "-c", _MASKED, *arguments], capture_output=True, text=True)
        for arguments in ([], ["repair"])
    ]
    assert "mask has unsupported dtype" in done[0].stderr  # else it need not be repaired
    assert done[1].stdout == f"{[True] * 4 + [False] * 4}\n", done[1].stderr


_AUTOTUNE = """
import os, sys
os.environ["TRITON_INTERPRET"] = "1"
import torch, triton, triton.language as tl
from dcplint.harness.interpreter import stub_autotuning
if "stub" in sys.argv:
    stub_autotuning()
from tests.harness.autotuned import double
x = torch.arange(8.0)
print(double(x).tolist())
"""


@pytest.mark.parametrize("stub", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_autotuned_kernels_need_the_stub_driver(stub: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _AUTOTUNE, *(["stub"] if stub else [])],
        capture_output=True,
        text=True,
        check=False,
    )
    if stub:
        assert done.stdout.strip() == str([2.0 * i for i in range(8)]), done.stderr
    elif not torch.cuda.is_available():
        assert "0 active drivers" in done.stderr


_IMPORT = """
import sys
import dcplint.harness.kernels as kernels
print("torch" in sys.modules)
from dcplint.harness.kernels.lse_merge import merge_shards
print(sys.modules[merge_shards.__module__].__file__)
"""


@pytest.mark.parametrize("layout", ["wheel", pytest.param("checkout", marks=pytest.mark.slow)])
def test_kernels_are_importable_under_one_name(layout: str, tmp_path: Path) -> None:
    root = Path(dcplint.__file__).parent.parent
    source = kernels.__path__[0]
    if layout == "wheel":
        shutil.copytree(root / "dcplint", tmp_path / "dcplint")
        shutil.copytree(source, tmp_path / "dcplint" / "_kernels", dirs_exist_ok=True)
        root, source = tmp_path, str(tmp_path / "dcplint" / "_kernels")
    done = subprocess.run(
        [sys.executable, "-c", _IMPORT],
        capture_output=True,
        text=True,
        check=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    needs_torch, where = done.stdout.split()
    assert needs_torch == "False"
    assert where == str(Path(source) / "lse_merge.py")
