"""A plugin's runner that replaces a step of the engine's is followed, though it names no field."""

import shutil
from pathlib import Path

import pytest

from dcplint.checks import dcp203_missing_producer
from tests.flow.program import contexts

_ENGINE = Path(__file__).parent / "engine"
_BUILDER = "vllm/v1/attention/backends/latent.py"
_FALLBACK = """\
            if local is None:
                local = get_dcp_local_seq_lens(
                    seq_lens, self.dcp_world_size, get_dcp_group().rank_in_group
                )
"""
_RUNNER = """
{imported}


class Own({base}):
    def execute_model(self, scheduled, is_dummy=False):
        batch = self.prepare_inputs(scheduled)
        return self.prepare_attn(batch)
"""
_BETWEEN = """
from vllm.v1.worker.gpu.model_runner import GPUModelRunner as Theirs


class Between(Theirs):
    pass
"""


@pytest.mark.parametrize(
    ("imported", "base", "is_told"),
    [
        ("from vllm.v1.worker.gpu.model_runner import GPUModelRunner", "GPUModelRunner", True),
        ("from vllm.v1.worker.gpu.model_runner import GPUModelRunner as R", "R", True),
        ("from vllm.v1.worker.gpu import model_runner as m", "m.GPUModelRunner", True),
        ("from .between import Between", "Between", True),
        ("from .elsewhere import GPUModelRunner", "GPUModelRunner", False),
    ],
)
def test_runner_that_names_no_field(
    tmp_path: Path, imported: str, base: str, is_told: bool
) -> None:
    engine, plugin = tmp_path / "engine", tmp_path / "plugin"
    shutil.copytree(_ENGINE, engine)
    for folder in [engine / "vllm", *(p for p in (engine / "vllm").rglob("*") if p.is_dir())]:
        (folder / "__init__.py").touch()
    builder = (engine / _BUILDER).read_text()
    assert _FALLBACK in builder
    (engine / _BUILDER).write_text(builder.replace(_FALLBACK, ""))
    (plugin / "own").mkdir(parents=True)
    for name, text in {
        "__init__": "",
        "between": _BETWEEN,
        "elsewhere": "class GPUModelRunner:\n    prepare_attn = prepare_inputs = print\n",
        "runner": _RUNNER.format(imported=imported, base=base),
    }.items():
        (plugin / f"own/{name}.py").write_text(text)
    (context,) = contexts(plugin, "vllm==0.30.0", engine)
    told = ["GPUModelRunner.prepare_inputs"] if is_told else []
    assert [f.symbol for f in dcp203_missing_producer.check(context)] == told
