import copy
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dcplint.data import data_dir
from dcplint.findings.model import Location
from dcplint.report.formats import FORMATS
from dcplint.report.model import Engine, Report
from dcplint.report.view import View
from tests.report.sample import EMPTY, KERNEL, REPORT

SCHEMA = json.loads((data_dir("rules") / "finding.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def document(report: Report) -> Any:
    text = "\n".join(FORMATS["json"](report, View()))
    assert text.isascii()
    return json.loads(text)


def test_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("report", [REPORT, EMPTY, replace(REPORT, engines=REPORT.engines * 2)])
def test_documents_are_valid(report: Report) -> None:
    VALIDATOR.validate(document(report))


def test_confirmation_is_described() -> None:
    found = document(REPORT)
    found["findings"][0]["confirmation"] = {
        "verdict": "confirmed",
        "reason": "the merged output differs",
        "execution": "interpreted",
        "ranks": "emulated",
        "environment": {"torch": "2.13.0"},
        "substituted": [],
        "stubbed": ["layer"],
        "measured": 0.08,
        "tolerance": 2.7e-7,
        "control": "passed",
        "seed": 0,
        "repro": None,
    }
    VALIDATOR.validate(found)


BREAKS: dict[str, Callable[[Any], object]] = {
    "other version": lambda d: d.update(schema_version=2),
    "no tool": lambda d: d.pop("tool"),
    "engine without release": lambda d: d["engine"].pop("release"),
    "unknown top key": lambda d: d.update(extra=1),
    "unknown finding key": lambda d: d["findings"][0].update(extra=1),
    "finding without path": lambda d: d["findings"][0].pop("path"),
    "odd severity": lambda d: d["findings"][0].update(severity="fatal"),
    "odd confidence": lambda d: d["findings"][0].update(confidence="sure"),
    "line zero": lambda d: d["findings"][0].update(line=0),
    "column as text": lambda d: d["findings"][0].update(column="1"),
    "short fingerprint": lambda d: d["findings"][0].update(fingerprint="abc"),
    "odd code": lambda d: d["findings"][0].update(code="X1"),
    "odd name": lambda d: d["findings"][0].update(name="Implicit Capability"),
    "evidence without role": lambda d: d["findings"][1]["evidence"][0].pop("role"),
    "evidence of an odd tree": lambda d: d["findings"][1]["evidence"][0].update(tree="here"),
    "fix without edits": lambda d: d["findings"][1]["fix"].pop("edits"),
    "edit without replacement": lambda d: d["findings"][1]["fix"]["edits"][0].pop("replacement"),
    "half a confirmation": lambda d: d["findings"][0].update(confirmation={"verdict": "confirmed"}),
    "negative files": lambda d: d["summary"].update(files=-1),
    "severity not counted": lambda d: d["summary"]["by_severity"].pop("note"),
}


@pytest.mark.parametrize("name", BREAKS)
def test_schema_refuses_a_broken_document(name: str) -> None:
    broken = copy.deepcopy(document(REPORT))
    BREAKS[name](broken)
    assert not VALIDATOR.is_valid(broken)


def test_counts_and_engines() -> None:
    found = document(replace(REPORT, engines=(Engine("a", "1", "x"), Engine("b", "2", "y"))))
    assert found["summary"]["by_severity"] == {"error": 3, "warning": 1, "note": 1}
    assert found["summary"]["findings"] == len(found["findings"]) == 5
    assert (found["engine"]["name"], found["other_engines"][0]["name"]) == ("a", "b")
    assert document(EMPTY)["engine"] is None


def test_machines_get_paths_from_the_root() -> None:
    found = document(replace(REPORT, prefix="sub/"))
    assert found["findings"][1]["path"] == "src/plugin/impl.py"


@given(st.text(st.characters(), min_size=1))
def test_any_path_survives(path: str) -> None:
    odd = replace(KERNEL, location=Location(path, 1))
    found = document(replace(REPORT, findings=(odd,)))
    assert found["findings"][0]["path"] == path


def test_undecodable_paths_survive() -> None:
    path = bytes(Path("ä\udcff.py")).decode("utf-8", "surrogateescape")
    odd = replace(KERNEL, location=Location(path, 1))
    assert document(replace(REPORT, findings=(odd,)))["findings"][0]["path"] == path
