"""What makes an engine's backends runnable, and the words for what is missing."""

from __future__ import annotations

import runpy
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from dcplint.harness import missing
from dcplint.harness.driver import Placement
from dcplint.harness.ledger import Unavailable
from dcplint.harness.model import Batch, Claims, Geometry, Probe, Topology
from dcplint.harness.probes import core_probes
from dcplint.harness.rank_program import _Step
from dcplint.harness.shard import Shard
from dcplint.harness.vllm import driver, engine, subject, substitutes
from dcplint.harness.workload import make_workload, pages_needed, place


def test_a_circle_of_imports_is_entered_where_the_engine_enters_it(tmp_path: Path) -> None:
    """An attention module that cannot be imported first: its model imports a name of it."""
    package = tmp_path / "circle"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "attention.py").write_text("from . import model\nclass Attention: ...\n")
    (package / "model.py").write_text("from .attention import Attention\n")
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from dcplint.harness.vllm import engine\n"
        "print(engine.load('circle.attention').Attention.__name__)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout == "Attention\n", done.stderr


def _raised(function: Callable[[], Any]) -> Exception:
    try:
        function()
    except Exception as error:
        return error
    raise AssertionError("it raised nothing")


def test_what_was_none_is_named() -> None:
    config = SimpleNamespace(index_topk=None)
    said = missing.describe(_raised(lambda: 64 * config.index_topk))
    assert "`64 * config.index_topk` at test_engine.py:" in said


def test_an_assertion_without_words_and_a_missing_key_are_quoted(tmp_path: Path) -> None:
    statements = ("assert buffer is not None", "{'fp8': 1}['auto']")
    for number, statement in enumerate(statements):
        path = tmp_path / f"backend{number}.py"
        path.write_text(f"buffer = None\n{statement}\n")
        said = missing.describe(_raised(partial(runpy.run_path, str(path))))
        assert statement.removeprefix("assert ") in said
        assert said.endswith(f"at backend{number}.py:2")


def test_an_error_with_words_of_its_own_is_left_alone() -> None:
    def refuse() -> None:
        raise ValueError("only pages of 64")

    assert missing.describe(_raised(refuse)).startswith("ValueError: only pages of 64 at test_")


def test_whose_card_is_missing(tmp_path: Path) -> None:
    for name, maker in (("cutlass", "NVIDIA"), ("rocm_attn", "AMD")):
        path = tmp_path / f"{name}.py"
        path.write_text("raise AssertionError('Torch not compiled with CUDA enabled')\n")
        said = missing.lacking(_raised(partial(runpy.run_path, str(path))))
        assert said.startswith(f"needs a card of {maker} and a torch built for it, `raise ")


_ON_ANOTHER_PLATFORM = """
from platforms import is_here
if is_here:
    from kernels import store as operation
else:
    del is_here
operation()
"""


def test_what_a_module_imports_elsewhere_only_is_missing_here(tmp_path: Path) -> None:
    path = tmp_path / "paged.py"
    sys.modules["platforms"] = ModuleType("platforms")
    sys.modules["platforms"].__dict__["is_here"] = False
    try:
        path.write_text(_ON_ANOTHER_PLATFORM)
        said = missing.lacking(_raised(partial(runpy.run_path, str(path))))
        assert said == "needs `operation`, which paged.py:3 imports only if `is_here` or the like"
        path.write_text(_ON_ANOTHER_PLATFORM.replace("operation()", "misspelt()"))
        assert missing.lacking(_raised(partial(runpy.run_path, str(path)))) == ""
    finally:
        del sys.modules["platforms"]


def test_an_extension_that_was_not_built_is_named() -> None:
    said = "vllm._flash_C is not available, likely was not compiled"
    assert missing.lacking(AssertionError(said)) == (
        "needs a compiled extension of the engine: vllm._flash_C"
    )
    assert missing.lacking(RuntimeError("torch._C is there, and this has another reason")) == ""


class _LayerOfItsModel:
    """An impl that the layer of one model calls in a way of its own."""

    def forward(self, layer: Any, query: Any, kv_cache: Any, output: Any) -> Any: ...


class _Usual:
    def forward(
        self, layer: Any, q: Any, k: Any, v: Any, cache: Any, md: Any, output: Any = None
    ) -> Any: ...

    def do_kv_cache_update(self, *arguments: Any) -> None: ...


def test_an_impl_that_only_its_models_layer_can_call_is_not_called() -> None:
    calls = subject.GQASubject._calls
    subject._require_calls(_Usual, calls)
    with pytest.raises(Unavailable, match=r"`forward` takes \(layer, query, kv_cache, output\)"):
        subject._require_calls(_LayerOfItsModel, calls)
    without = type("WithoutUpdate", (), {"forward": _Usual.forward})
    with pytest.raises(Unavailable, match="it has no `do_kv_cache_update`"):
        subject._require_calls(without, calls)


def test_rows_of_a_packed_format_are_not_stored_in_torch() -> None:
    cache = torch.zeros(2, 16, 656, dtype=torch.uint8)
    rows = torch.zeros(3, 512), torch.zeros(3, 64)
    with pytest.raises(Unavailable, match="packs 576 values into rows of 656 as fp8_ds_mla"):
        substitutes.concat_and_cache_mla(*rows, cache, torch.arange(3), "fp8_ds_mla")


def test_a_module_that_asks_whether_flash_attention_is_there_is_told_of_the_reference() -> None:
    asking = ModuleType("asking")
    asking.__dict__["is_flash_attn_varlen_func_available"] = lambda: False
    there = ModuleType("there")
    there.__dict__["is_flash_attn_varlen_func_available"] = lambda: True
    asked = frozenset({"is_flash_attn_varlen_func_available"})
    found = [substitutes._lacks_flash_attention(m, asked) for m in (asking, there)]
    assert found == [True, False]
    assert not substitutes._lacks_flash_attention(ModuleType("other"), frozenset())


def _backend(**attributes: Any) -> Any:
    return type("Backend", (), attributes)


def test_pages_are_of_a_size_that_the_kernels_take() -> None:
    usual = Geometry()
    any_of_16 = SimpleNamespace(base=16)
    for sizes, expected in (([any_of_16], 16), ([SimpleNamespace(base=64)], 64), ([64, 128], 64),
                            ([1], 1), ([16, 32], 16), ([], 16)):  # fmt: skip
        backend = _backend(get_supported_kernel_block_sizes=staticmethod(lambda s=sizes: s))
        assert driver._in_pages(usual, backend).page_size == expected, sizes
    assert driver._in_pages(usual, _backend()) == usual


def test_a_quantized_cache_is_offered_where_no_other_will_do() -> None:
    listed = ["auto", "bfloat16", "fp8"]
    assert driver.cache_dtypes(_backend(supported_kv_cache_dtypes=listed)) == ("auto", "fp8")
    assert driver.cache_dtypes(_backend(supported_kv_cache_dtypes=["fp8"])) == ("fp8",)
    assert driver.cache_dtypes(_backend()) == ("auto",)
    assert driver.cache_dtypes(_backend(supported_kv_cache_dtypes=["bfloat16"])) == ("auto",)


def test_the_card_that_a_backend_is_made_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def capability(major: int, minor: int) -> Any:
        return SimpleNamespace(major=major, minor=minor)

    monkeypatch.setattr(engine, "find", lambda *places: capability)
    hopper = _backend(supports_compute_capability=staticmethod(lambda c: c.major == 9))
    every = _backend(supports_compute_capability=staticmethod(lambda c: True))
    assert [driver._card(b) for b in (hopper, every, _backend())] == ["9.0", "", ""]


class _Base:
    """An impl that a backend selects."""


class _MadeByItsLayer(_Base):
    """One that no backend selects."""


class _Backends:
    @staticmethod
    def get_impl_cls() -> type:
        raise NotImplementedError


class _Backend(_Backends):
    @staticmethod
    def get_impl_cls() -> type:
        return _Base


def test_an_impl_of_its_layer_runs_with_the_backend_of_its_base(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    roles = {"AttentionBackend": _Backends, "AttentionImplBase": _Base}
    monkeypatch.setattr(engine, "find", lambda place: roles.get(place.rpartition(":")[2]))
    assert driver._backend_of(_Base) is _Backend
    made = driver._backend_of(_MadeByItsLayer)
    assert issubclass(made, _Backend)
    assert made.get_impl_cls() is _MadeByItsLayer
    with pytest.raises(Unavailable, match="a base that no backend selects; its heirs: _Heir"):
        driver._backend_of(_Root)


class _MLAImpl(_Base):
    """Of an MLA backend whose builder says that it takes several new tokens."""


class _MLABackend(_Backends):
    supported_dtypes = (torch.bfloat16,)

    @staticmethod
    def get_impl_cls() -> type:
        return _MLAImpl

    @staticmethod
    def get_builder_cls() -> type:
        return type("Builder", (), {"query_len_support": SimpleNamespace(name="VARLEN")})

    @staticmethod
    def get_supported_head_sizes() -> list[int]:
        return [576]


class _Making(driver.VllmDriver):
    """Builders as engines have them: with drafts, and where tokens are dealt out one by one."""

    def make(self, target: type, geometry: Geometry, placement: Placement) -> Any:
        if placement.interleave == self.broken:
            raise ValueError("no interleave")
        decoded = placement.max_query_len if placement.interleave == 1 else 1
        return SimpleNamespace(builder=SimpleNamespace(reorder_batch_threshold=decoded))

    broken = 0


def test_an_mla_impl_is_given_as_many_new_tokens_as_its_builder_takes_for_a_decode(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A builder makes a prefill of several where tokens go round in runs, which no impl sees."""
    roles = {
        "AttentionBackend": _Backends,
        "AttentionImplBase": _Base,
        "MLAAttentionImpl": _MLAImpl,
        "MLACommonBackend": _MLABackend,
    }
    monkeypatch.setattr(engine, "find", lambda place: roles.get(place.rpartition(":")[2]))
    claims = _Making().claims(_MLABackend)
    assert [claims.query_len(Topology(4, i)) > 1 for i in (1, 16)] == [True, False]
    assert (claims.uniform, claims.dtypes) == (False, ("bfloat16",))
    names = [probe.name for probe in core_probes(claims, 4)]
    assert "multi-query-i1" in names
    assert "multi-query-i16" not in names
    making = _Making()
    making.broken = 1
    assert making.claims(_MLABackend).interleaves == ()


def test_requests_of_a_uniform_step_have_as_many_new_tokens() -> None:
    claims = Claims(True, False, 64, False, False, False, uniform=True)
    found = [p for p in core_probes(claims, 2) if p.name.startswith("multi-query")]
    assert [p.batches[0].query_lens for p in found] == [(5, 5, 5, 5)] * 2


class _Root:
    """A base of impls."""


class _Heir(_Root):
    """An heir."""


def _attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **options: Any) -> Any:
    given = {
        "max_seqlen_q": q.shape[0],
        "cu_seqlens_q": torch.tensor([0, q.shape[0]]),
        "max_seqlen_k": k.shape[0],
        "cu_seqlens_k": torch.tensor([0, k.shape[0]]),
        "return_softmax_lse": True,
    }
    return substitutes.flash_attn_varlen_func(q, k, v, **{**given, **options})


def test_queries_of_values_score_as_if_joined_to_the_others() -> None:
    generator = torch.Generator().manual_seed(3)
    q, q_v = (torch.randn(2, 4, d, generator=generator) for d in (8, 16))
    k, v = (torch.randn(11, 1, d, generator=generator) for d in (8, 16))
    got = _attend(q, k, v, q_v=q_v, softmax_scale=0.2, causal=True)
    joined = _attend(torch.cat([q, q_v], -1), torch.cat([k, v], -1), v, softmax_scale=0.2,
                     causal=True)  # fmt: skip
    torch.testing.assert_close(got, joined)


def test_shards_of_several_causal_queries_add_up_to_the_whole() -> None:
    generator = torch.Generator().manual_seed(4)
    q = torch.randn(3, 2, 8, generator=generator)
    k, v = (torch.randn(10, 1, 8, generator=generator) for _ in range(2))
    whole, _ = _attend(q, k, v, causal=True)
    parts = [
        _attend(
            q,
            k[rank::2],
            v[rank::2],
            causal=True,
            cp_world_size=2,
            cp_rank=rank,
            cp_tot_seqused_k=torch.tensor([10]),
        )
        for rank in range(2)
    ]
    lses = torch.stack([lse for _, lse in parts])
    weights = torch.softmax(lses, dim=0).permute(0, 2, 1)[..., None]
    torch.testing.assert_close((torch.stack([out for out, _ in parts]) * weights).sum(0), whole)


def test_one_query_sees_every_key_of_its_shard_however_they_are_interleaved() -> None:
    """As FlashAttention does: a last query has no later key, wherever its rank's keys lie."""
    generator = torch.Generator().manual_seed(5)
    q = torch.randn(1, 2, 8, generator=generator)
    k, v = (torch.randn(9, 1, 8, generator=generator) for _ in range(2))
    of_rank = {"cp_world_size": 2, "cp_rank": 1, "cp_tot_seqused_k": torch.tensor([10])}
    torch.testing.assert_close(_attend(q, k, v, causal=True, **of_rank), _attend(q, k, v))


def test_the_reference_refuses_what_it_does_not_know() -> None:
    q = torch.randn(1, 1, 8)
    with pytest.raises(Unavailable, match="gather_kv_indices"):
        _attend(q, q, q, gather_kv_indices=torch.zeros(1))
    _attend(q, q, q, num_splits=4, fa_version=3, alibi_slopes=None)


def test_flash_attention_is_offered_to_modules_that_import_it_once() -> None:
    utilities = "vllm.v1.attention.backends.fa_utils"
    modules = {utilities: ModuleType(utilities)}
    assert substitutes.offer_flash_attention(modules)
    assert not substitutes.offer_flash_attention(modules)
    interface: Any = modules["vllm.vllm_flash_attn.flash_attn_interface"]
    offered: Any = modules[utilities]
    assert interface.flash_attn_varlen_func is offered.flash_attn_varlen_func
    with pytest.raises(Unavailable):
        interface.compile_flash_attn_varlen_func_from_specs()


class _Bytes:
    """A subject whose cache holds a byte a token, which may well be what lies there already."""

    poison = 85
    merges_new_tokens = False

    def __init__(self, slots: int) -> None:
        self.caches = (torch.empty(slots, dtype=torch.uint8),)

    def write(self, key: torch.Tensor, value: torch.Tensor, slots: torch.Tensor) -> None:
        for slot in slots[slots >= 0].tolist():
            self.caches[0][slot] = self.poison if slot % 2 else 255 - self.poison


def test_bytes_written_as_what_they_were_count_as_written() -> None:
    batch, geometry, shard = Batch((7, 3), (1, 1)), Geometry(), Shard(0, Topology(2, 1))
    probe = Probe("", "", (batch,), shard.topology, geometry)
    workload = make_workload(batch, geometry, torch.float32, "cpu", 1)
    layout = place(batch, geometry, shard, pages_needed((batch,), geometry, shard), 1)
    subject: Any = _Bytes(layout.num_pages * geometry.page_size)
    step = _Step(subject, probe, workload, layout, shard, 0, "float32")
    needed, owned = step._fill_cache()
    held = torch.cat(layout.slots)
    assert owned[0].nonzero()[:, 0].tolist() == sorted(held[held >= 0].tolist())
    assert torch.equal(needed[0], owned[0])
