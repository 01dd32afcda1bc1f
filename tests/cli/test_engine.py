"""The engine that a user names, on the command line or in the configuration."""

from pathlib import Path

import pytest

from dcplint.cli.main import main

PLUGIN = """\
from vllm.v1.attention.backend import AttentionImpl


class MyImpl(AttentionImpl):
    supports_dcp = False
"""


def _run(*args: str) -> int:
    with pytest.raises(SystemExit) as exit_:
        main(args)
    assert isinstance(exit_.value.code, int)
    return exit_.value.code


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "backend.py").write_text(PLUGIN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "hint"), [("vlm", "did you mean 'vllm'?"), ("torch", "they describe aphrodite,")]
)
@pytest.mark.parametrize("command", ["check", "capabilities"])
def test_an_engine_that_no_pack_describes(
    plugin: Path, capsys: pytest.CaptureFixture[str], command: str, name: str, hint: str
) -> None:
    (plugin / "dcplint.toml").write_text('engine = "vllm==0.29.0"\n')
    assert _run(command, "--engine", f"{name}==0.30.0") == 2
    said = capsys.readouterr()
    assert f"error: no contract pack describes an engine '{name}'; {hint}" in said.err
    assert not said.out


@pytest.mark.parametrize(
    ("args", "where"),
    [((), "named in dcplint.toml"), (("--engine", "vllm==0.30.0"), "named on the command line")],
)
def test_who_named_it(
    plugin: Path, capsys: pytest.CaptureFixture[str], args: tuple[str, ...], where: str
) -> None:
    (plugin / "dcplint.toml").write_text('engine = "vllm==0.29.0"\n')
    assert _run("check", "--no-cache", *args) == 0
    release = "0.30.0" if args else "0.29.0"
    assert f"checked against vllm {release} ({where})" in capsys.readouterr().out


def test_a_contract_that_nothing_here_touches(
    plugin: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run("capabilities", "--contract", "--engine", "vllm==0.30.0") == 0
    assert "nothing here fills it in or reads it" in capsys.readouterr().out


def test_a_class_whose_base_is_gone_is_shown_as_unknown(
    plugin: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (plugin / "backend.py").write_text(
        "from vllm.v1.attention.backend import SparseMLAAttentionImpl\n"
        "class Gone(SparseMLAAttentionImpl): ...\n"
        "class Heir(Gone):\n    supports_dcp = True\n"
        "from vllm.v1.worker.gpu_model_runner import GPUModelRunner\n"
        "class Other(GPUModelRunner): ...\n"
    )
    assert _run("capabilities", "--engine", "vllm==0.33.0") == 0
    said = capsys.readouterr().out
    assert "Gone  backend.py:2  (unknown)" in said
    assert "Heir  backend.py:3  (unknown)" in said
    assert "2 classes, 0 of them concrete" in said


def test_packs_are_checked_against_a_folder_that_is_there(
    plugin: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run("packs", "check", "--engine-path", "nowhere") == 2
    assert "error: nowhere: no such file or directory" in capsys.readouterr().err
    assert _run("packs", "check", "--engine-path", str(plugin)) == 2
    assert "holds no package of a known engine" in capsys.readouterr().err
