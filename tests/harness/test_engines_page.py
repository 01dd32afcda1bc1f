"""What is kept of `bench.engines`, and what is run again."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench import engines


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
