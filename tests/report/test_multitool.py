"""Microsoft's SARIF multitool, from the npm registry, on what the format gives."""

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from dcplint.findings.model import Location
from dcplint.report.formats import FORMATS
from dcplint.report.model import Report
from dcplint.report.view import View
from tests.report.sample import EMPTY, KERNEL, REPORT
from tests.report.test_sarif import CONFIRMED

PACKAGE = "@microsoft/sarif-multitool-linux"
VERSION = "5.7.0"

MANY = replace(
    REPORT,
    findings=tuple(
        replace(KERNEL, fingerprint=f"{n:016x}", location=Location(f"pkg/m{n % 90}.py", n))
        for n in range(1, 2_001)  # ten thousand suit every format: test_people.py
    ),
)

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("multitool")]


@pytest.fixture(scope="module")
def multitool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("npm")
    install = ["npm", "install", "--no-audit", "--no-fund", f"{PACKAGE}@{VERSION}"]
    subprocess.run(install, cwd=folder, check=True, capture_output=True)
    program = folder / "node_modules" / PACKAGE / "Sarif.Multitool"
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    "report",
    [REPORT, EMPTY, CONFIRMED, MANY],
    ids=["sample", "empty", "confirmed", "many findings"],
)
def test_the_multitool_has_no_complaint(report: Report, multitool: Path, tmp_path: Path) -> None:
    log, output = tmp_path / "dcplint.sarif", tmp_path / "verdict.sarif"
    log.write_text("\n".join(FORMATS["sarif"](report, View())))
    schema = json.loads((multitool.parent / "sarif-2.1.0.json").read_text())
    jsonschema.Draft7Validator(schema).validate(json.loads(log.read_text()))
    rules = ["--rule-kind", "Sarif;Ghas", "--level", "Error;Warning", "--kind", "Fail"]
    rules += ["--max-file-size-in-kb", "100000"]
    done = subprocess.run(
        [multitool, "validate", log, *rules, "--output", output],
        env={**os.environ, "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (verdict,) = json.loads(output.read_text())["runs"]
    assert _complaints(verdict) == []


def _complaints(run: Any) -> list[str]:
    return [f"{r['ruleId']}: {r['message']}" for r in run["results"] if r["level"] != "note"]
