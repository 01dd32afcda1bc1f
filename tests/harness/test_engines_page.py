"""What is kept of `bench.engines`, and what is run again."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench import engines
from dcplint.harness.job import Job, failed, make_run
from dcplint.harness.model import Confirmation, Execution, Signal, Verdict


def _class(module: str) -> dict[str, Any]:
    claim = {"value": True, "origin": "default"}
    return {"class": "Impl", "module": module, "capabilities": {"supports_dcp": claim}}


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The modules whose class was run; two have one of the same name."""
    matrix = {"matrices": [{"classes": [_class("amd"), _class("nvidia"), _class("cpu")]}]}
    said = SimpleNamespace(stdout=json.dumps(matrix))
    monkeypatch.setattr(engines.subprocess, "run", lambda *arguments, **options: said)
    monkeypatch.setattr(engines, "_Groups", lambda folder, stack: folder)
    monkeypatch.setattr(engines, "_row", lambda cls, found: ("Impl", found))
    done: list[str] = []

    def settle(groups: list[Any], cls: dict[str, Any]) -> str:
        done.append(cls["module"])
        return f"by {cls['module']}"

    monkeypatch.setattr(engines, "_settled_by_any", settle)
    return done


def test_a_class_whose_line_is_taken_out_is_run_again(tmp_path: Path, ran: list[str]) -> None:
    kept = tmp_path / "kept.jsonl"
    first = list(engines.rows(tmp_path, kept))
    assert first == [("Impl", "by amd"), ("Impl", "by nvidia"), ("Impl", "by cpu")]
    assert list(engines.rows(tmp_path, kept)) == first
    assert ran == ["amd", "nvidia", "cpu"]
    lines = kept.read_text().splitlines()
    kept.write_text("\n".join([lines[2], lines[0]]) + "\n")
    assert list(engines.rows(tmp_path, kept)) == first
    assert ran == ["amd", "nvidia", "cpu", "nvidia"]


@pytest.mark.parametrize(("claims", "says"), [(False, "does not, as it says"), (True, "open")])
def test_a_refusal_bears_out_a_class_that_says_no(claims: bool, says: str) -> None:
    refused = failed(Signal.REFUSED, 0, "no DCP here")
    run = make_run(Job("m:Impl", "short-i1", 2), (refused,), Execution.NATIVE_CPU, 0.1)
    found = Confirmation(
        verdict=Verdict.INCONCLUSIVE,
        reason="it refuses to run under DCP: no DCP here",
        execution=Execution.NATIVE_CPU,
        ranks="emulated",
        environment={},
        signal=Signal.REFUSED,
        measured=1.0,
        tolerance=0.0,
        control="passed",
        seed=1,
        repro=run.repro,
        runs=(run,),
    )
    cls = _class("m")
    cls["capabilities"]["supports_dcp"]["value"] = claims
    assert engines._row(cls, [found, found])[3] == says
