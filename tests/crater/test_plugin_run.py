"""A plugin of vLLM: linted, and its flagged backend executed, from its own checkout."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("torch")

from dcplint.cli.main import main
from dcplint.data import data_dir

pytestmark = pytest.mark.crater

WRONG = "(seq_lens + self.dcp_world_size - 1 - self.dcp_rank) // self.dcp_world_size"
RIGHT = "common_attn_metadata.dcp_local_seq_lens if self.dcp_world_size > 1 else seq_lens"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tideway"
    shutil.copytree(data_dir("fixtures") / "plugin_runnable", folder)
    monkeypatch.chdir(folder)
    return folder


def _confirm(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        main(["confirm", "-q", *arguments])
    assert isinstance(stopped.value.code, int)
    return stopped.value.code


def test_one_command(
    checkout: Path, tree: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert _confirm("--engine-path", str(tree("vllm-0.30.0"))) == 1
    _, *rows, confirmed, refuted, inconclusive, again = capsys.readouterr().out.splitlines()
    for row, code in zip(rows, ("DCP301", "DCP303"), strict=True):
        assert row.split()[:4] == ["confirmed", "interpreted", code, "src/tideway/backend.py:39"]
        assert "read.unowned 12, tolerance 0; control passed" in row
    assert (confirmed, refuted, inconclusive) == ("2 confirmed", "0 refuted", "0 inconclusive")
    assert again.endswith(f":{checkout}/src/tideway/backend.py:TidewayBackend")


def test_without_its_fault_it_is_right(
    checkout: Path, tree: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    source = checkout / "src/tideway/backend.py"
    assert source.read_text().count(WRONG) == 1
    source.write_text(source.read_text().replace(WRONG, RIGHT))
    engine = ("--engine-path", str(tree("vllm-0.30.0")))
    assert _confirm(*engine) == 0
    assert "nothing to confirm" in capsys.readouterr().err
    backend = ("--backend", "src/tideway/backend.py:TidewayBackend")
    assert _confirm(*engine, *backend, "--probe", "ragged-i16") == 0
    assert capsys.readouterr().out.split() == ["ragged-i16", "interpreted", "right"]
