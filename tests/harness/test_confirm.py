"""`dcplint confirm`, end to end on runnable fixtures."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest

import dcplint
from dcplint.cli.main import main
from dcplint.data import data_dir
from dcplint.findings.model import Tree
from dcplint.harness import confirm
from dcplint.harness.job import Job
from dcplint.harness.model import Signal
from dcplint.harness.pool import Pool

FIXTURES = data_dir("fixtures")
BAD = FIXTURES / "dcp401_lse_not_returned" / "bad_none_under_dcp.py"
IMPLICIT = FIXTURES / "dcp101_implicit_capability"
UNSTATED = (
    (IMPLICIT / "good_stated_and_right.py").read_text().replace("    supports_dcp = True\n", "")
)
UNSTATED_AND_WRONG = (IMPLICIT / "bad_silent_and_wrong.py").read_text()
GOOD = FIXTURES / "dcp401_lse_not_returned" / "good_always.py"


# Alone in a folder: in the checkout all of it would be linted.
ENGINE = ("--engine", "dcplint==0.1.0")
DCP101 = ("--fix", "-q", "--select", "DCP101", *ENGINE)


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    return Path(shutil.copy(BAD, tmp_path))


@pytest.fixture
def started(shared_pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting takes seconds, and is tested elsewhere: here the process is the other tests'."""

    def pool(
        device: str, *, engine: Path | None, **options: object
    ) -> AbstractContextManager[Pool]:
        assert (device, engine) == ("cpu", None)
        return nullcontext(shared_pool)

    monkeypatch.setattr("dcplint.harness.pool.Pool", pool)


def _run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        main(["confirm", *arguments])
    assert isinstance(stopped.value.code, int)
    return stopped.value.code


def test_a_finding_is_confirmed(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(str(bad), *ENGINE) == 1
    shown = capsys.readouterr()
    (row,) = [line for line in shown.out.splitlines() if "DCP401" in line]
    assert row.startswith("confirmed")
    assert "interpreted" in row
    assert "lse.missing 1, tolerance 0; control passed" in row
    assert "[1/1, about 0 s left] DCP401" in shown.err
    repro = shown.out.rpartition("--repro ")[2].strip()
    assert Job.from_repro(repro).target == f"{bad}:PagedBackend"


@pytest.mark.slow
@pytest.mark.usefixtures("started")
def test_a_verdict_can_be_had_again(capsys: pytest.CaptureFixture[str]) -> None:
    job = Job(f"{BAD}:PagedBackend", "ragged-i16", world_size=4)
    assert _run("--repro", job.repro) == 1
    assert Signal.LSE_MISSING.value in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.usefixtures("started")
def test_what_is_allowed_and_was_found_is_said_again(capsys: pytest.CaptureFixture[str]) -> None:
    kept = FIXTURES / "dcp403_lse_low_precision" / "bad_stored_in_bf16.py"
    job = Job(f"{kept}:PagedBackend", "ragged-i16", world_size=4, dtype="bfloat16")
    assert _run("--repro", job.repro) == 0
    assert f"right; {Signal.LSE_PRECISION.value}: " in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.usefixtures("started")
def test_json_says_all_of_it(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(str(bad), *ENGINE, "-q", "--output-format", "json") == 1
    document = json.loads(capsys.readouterr().out)
    schema = json.loads((data_dir("rules") / "finding.schema.json").read_text())
    jsonschema.validate(document, schema)
    (finding,) = document["findings"]
    said = finding["confirmation"]
    assert said["verdict"] == "confirmed"
    assert said["execution"] == "interpreted"
    assert said["control"] == "passed"
    assert said["environment"]["device"] == "cpu"


@pytest.mark.usefixtures("started")
def test_nothing_is_stated_that_was_not_refuted(tmp_path: Path) -> None:
    for fixture, status in ((UNSTATED, 0), (UNSTATED_AND_WRONG, 1)):
        impl = tmp_path / "impl.py"
        impl.write_text(fixture)
        # One probe refutes nothing.
        probe = ("--probe", "single-rank") if status == 0 else ()
        assert _run(str(impl), *DCP101, *probe) == status
        assert impl.read_text() == fixture


@pytest.mark.slow
@pytest.mark.usefixtures("started")
def test_what_is_refuted_is_stated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    impl = tmp_path / "impl.py"
    impl.write_text(UNSTATED)
    assert _run(str(impl), *DCP101, "--output-format", "json") == 0
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert (finding["severity"], finding["confirmation"]["verdict"]) == ("note", "refuted")
    assert finding["fix"]["description"] == "state `supports_dcp = True` in LatentImpl"
    changed = impl.read_text()
    assert changed.replace("    supports_dcp = True\n", "") == UNSTATED != changed
    assert _run(str(impl), *DCP101) == 0
    assert "nothing to confirm" in capsys.readouterr().err


@pytest.mark.slow
def test_without_findings_nothing_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(shutil.copy(GOOD, tmp_path), *ENGINE) == 0
    assert "nothing to confirm" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.usefixtures("started")
def test_fewer_probes_refute_nothing(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(str(bad), *ENGINE, "-q", "--probe", "single-rank") == 0
    assert "inconclusive" in capsys.readouterr().out
    assert _run(str(bad), *ENGINE, "-q", "--probe", "single-rank", "--strict") == 1


@pytest.mark.slow
@pytest.mark.usefixtures("started")
def test_a_backend_can_be_probed_without_a_finding(capsys: pytest.CaptureFixture[str]) -> None:
    target = "dcplint.harness.control:GQABackend"
    assert _run("--backend", target, "-q", "--probe", "single-rank") == 0
    assert capsys.readouterr().out.split() == ["single-rank", "interpreted", "right"]
    assert _run("--backend", target, "-q", "--probe", "no-such") == 2
    said = capsys.readouterr().err
    assert said.startswith("error: no probe is left to run; there are ragged-")


@pytest.mark.slow
@pytest.mark.usefixtures("started")
def test_what_keeps_a_backend_from_being_probed_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.py"
    file.write_text("raise ImportError('no foo')\n")
    assert _run("--backend", f"{file}:Mine", "-q") == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: {file}:Mine cannot be run") and "no foo" in said
    file.write_text(
        "from dcplint.harness.control import GQABackend\n\n\n"
        "class Mine(GQABackend):\n    @staticmethod\n    def get_builder_cls():\n"
        "        raise RuntimeError('two\\nlines')\n"
    )
    assert _run("--backend", f"{file}:Mine", "-q", "--probe", "single-rank") == 1
    said = capsys.readouterr().out
    assert said.count("\n") == 1 and "two\\nlines" in said


@pytest.mark.parametrize("repro", ["nonsense", "a:b:c", "p:4:float32:cpu:emulated:1:m:C"])
def test_a_wrong_id_is_a_usage_error(repro: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("--repro", repro) == 2
    assert "is not a repro id" in capsys.readouterr().err


@pytest.mark.parametrize("layout", ["checkout", "wheel"])
def test_without_torch_one_sentence_names_the_extra(
    layout: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    place = str(Path(dcplint.__file__).parent.parent)
    if layout == "wheel":
        monkeypatch.setattr(dcplint, "__file__", str(tmp_path / "dcplint" / "__init__.py"))
        place = "dcplint"
    assert _run(str(Path("anywhere"))) == 2
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert shown.endswith(f"{sys.executable} -m pip install '{place}[harness]'\n")


@pytest.mark.slow
@pytest.mark.usefixtures("started")
def test_a_file_that_does_not_load_is_inconclusive(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text(BAD.read_text() + "\nraise RuntimeError('at import')\n")
    assert _run(str(broken), "-q", *ENGINE) == 0
    shown = capsys.readouterr().out
    assert "inconclusive" in shown
    assert "at import" in shown


@pytest.mark.parametrize(
    ("backend", "message"),
    [
        ("nowhere.py:Paged", "no such file: nowhere.py"),
        ("paged", "'paged' is no backend: say FILE.py:Class or module:Class"),
        ("paged.py:", "'paged.py:' is no backend: say FILE.py:Class or module:Class"),
    ],
)
def test_a_backend_that_is_none_is_a_usage_error(
    capsys: pytest.CaptureFixture[str], backend: str, message: str
) -> None:
    assert _run("--backend", backend) == 2
    assert capsys.readouterr().err == f"error: {message}\n"


def test_a_helper_is_judged_by_a_backend_whose_file_names_its_module(tmp_path: Path) -> None:
    package = tmp_path / "plugin" / "ops"
    package.mkdir(parents=True)
    helper = package / "lengths.py"
    helper.write_text("def shard(seq_lens): ...\n")
    (package / "other.py").write_text("class OtherBackend: ...\n")
    user = package.parent / "backend.py"
    user.write_text("from plugin.ops.lengths import shard\nclass Backend: ...\n")
    asked: list[Path] = []

    def backends(path: Path, home: Path, symbol: str) -> tuple[list[str], list[str]]:
        asked.append(path)
        return ([f"{path}:Backend"] if path == user else []), []

    location = SimpleNamespace(path="plugin/ops/lengths.py", tree=Tree.PROJECT)
    finding: Any = SimpleNamespace(location=location, evidence=(), symbol="shard")
    verifier: Any = SimpleNamespace(backends=backends)
    target, _ = confirm._target(finding, helper, (tmp_path,), verifier)
    assert target == f"{user}:Backend"
    assert asked == [helper, user]
