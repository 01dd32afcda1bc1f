"""The composite action: its scripts run here as the runner runs them, for want of a runner.

What the runner itself adds (expressions, environment files, skipped steps) is played below, after
its rules; the steps of other actions are only looked at.
"""

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integrations.test_pre_commit import git
from tests.report.test_github import parsed
from tests.run.tree import SILENT, write

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]

ENGINE = {"engine": "vllm==0.29.0"}


@dataclass
class Runner:
    """One job: what the action is given, and what its steps leave behind."""

    workspace: Path
    temp: Path
    inputs: dict[str, str]
    event: str = "push"
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    log: str = ""
    failed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        defaults = {name: given.get("default", "") for name, given in ACTION["inputs"].items()}
        assert self.inputs.keys() <= defaults.keys()
        self.inputs = {**defaults, **self.inputs}
        self.temp.mkdir()
        self.outputs["python"] = {"python-path": sys.executable}

    def value(self, text: str) -> str:
        return re.sub(r"\$\{\{ (.*?) \}\}", lambda m: self.expression(m[1]), text)

    def expression(self, text: str) -> str:
        if text == "github.action_path":
            return str(ROOT)
        if text == "github.event_name":
            return self.event
        choice = re.fullmatch(r"(.*) == '(.*)' && '(.*)' \|\| ''", text)
        if choice:
            return choice[3] if self.expression(choice[1]) == choice[2] else ""
        context, *names = text.split(".")
        if context == "inputs":
            return self.inputs[names[0]]
        assert context == "steps" and names[1] == "outputs", text
        return self.outputs.get(names[0], {}).get(names[2], "")

    def wanted(self, step: dict[str, Any]) -> bool:
        """Without a condition a step runs after successes only."""
        condition = step.get("if")
        if condition is None:
            return not self.failed
        match = re.fullmatch(r"\$\{\{ !cancelled\(\) && (\S+) (==|!=) '(.*)' \}\}", condition)
        assert match, condition
        return (self.expression(match[1]) == match[3]) is (match[2] == "==")

    def run(self) -> "Runner":
        for step in STEPS:
            if "run" in step and self.wanted(step):
                self.script(step)
        return self

    def script(self, step: dict[str, Any]) -> None:
        output = self.temp / "output"
        output.write_text("")
        environment = {
            **os.environ,
            "GITHUB_ACTIONS": "true",
            "GITHUB_STEP_SUMMARY": str(self.temp / f"{step['name']}.md"),
            "GITHUB_OUTPUT": str(output),
            "RUNNER_TEMP": str(self.temp),
            **{name: self.value(value) for name, value in step["env"].items()},
        }
        script = self.temp / "script.sh"
        script.write_text(step["run"])
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", script],
            cwd=self.workspace,
            env=environment,
            capture_output=True,
            text=True,
        )
        self.log += done.stdout + done.stderr
        if done.returncode:
            self.failed.append(step["name"])
        pairs = (line.split("=", 1) for line in output.read_text().splitlines())
        self.outputs[step.get("id", step["name"])] = dict(pairs)

    @property
    def annotations(self) -> list[tuple[str, dict[str, str], str]]:
        return [parsed(line) for line in self.log.splitlines() if line.startswith("::")]


def job(folder: Path, files: dict[str, str | bytes], **inputs: str) -> Runner:
    workspace = folder / "work space"
    write(workspace, {name.replace("__", "/"): text for name, text in files.items()})
    subprocess.run(["git", "init", "-q", workspace], check=True)
    return Runner(workspace, folder / "temp", {**ENGINE, **inputs}).run()


@pytest.mark.slow
def test_a_finding_annotates_the_change(tmp_path: Path) -> None:
    done = job(tmp_path, {"src/a.py": SILENT, "other/b.py": SILENT}, paths="src\n")
    assert done.failed == ["Check"], done.log
    ((kind, properties, text),) = done.annotations
    assert (kind, properties["file"], properties["line"]) == ("error", "src/a.py", "4")
    assert "`SilentImpl` never states `supports_dcp`" in text
    assert "| `src/a.py:4` |" in (done.temp / "Check.md").read_text()
    assert not done.outputs.get("sarif")


@pytest.mark.slow
def test_inputs_are_arguments_and_nothing_else(tmp_path: Path) -> None:
    """Several paths and options, odd names, and what a shell would take for its own."""
    odd = "a b/$(touch owned) *.py"
    done = job(
        tmp_path,
        {odd: SILENT, "c.py": SILENT, "d.py": SILENT},
        paths=f"{odd}\n\nc.py\n",
        options="--ignore\nDCP106, DCP107\n--exit-zero\n",
    )
    assert done.failed == [], done.log
    assert [properties["file"] for _, properties, _ in done.annotations] == [odd, "c.py"]
    assert not list(tmp_path.rglob("owned"))


@pytest.mark.slow
def test_sarif_is_written_though_the_check_failed(tmp_path: Path) -> None:
    options = "--output-file\nthe log.txt"  # of the check, and not of the SARIF file
    done = job(
        tmp_path, {"a.py": SILENT}, sarif="true", options=options, **{"output-format": "concise"}
    )
    assert (done.workspace / "the log.txt").read_text().startswith("a.py:4:1: DCP101")
    assert done.failed == ["Check"], done.log
    file = Path(done.value(ACTION["outputs"]["sarif-file"]["value"]))
    assert '"uri": "a.py"' in file.read_text()
    (upload,) = (s for s in STEPS if "upload-sarif" in s.get("uses", ""))
    assert done.wanted(upload)


@pytest.mark.slow
def test_a_pull_request_is_told_what_it_does_to_capabilities(tmp_path: Path) -> None:
    workspace = tmp_path / "work space"
    workspace.mkdir()
    git(workspace, "init", "-q")
    for text in (
        SILENT,
        SILENT.replace("    def __init__", "    supports_dcp = False\n\n    def __init__"),
    ):
        alone = Runner(workspace, tmp_path / f"temp{len(text)}", dict(ENGINE), "pull_request")
        write(workspace, {"a.py": text})
        git(workspace, "add", "a.py")
        git(workspace, "commit", "-qm", "x")
        alone.run()
        told = alone.temp / "Compare.md"
        if text == SILENT:
            assert "fetch-depth: 2" in alone.log and not told.exists()
    assert alone.failed == [], alone.log
    assert "| **lost** | `SilentImpl`<br>a.py:4 |" in told.read_text()


def test_other_actions_are_pinned_to_a_commit() -> None:
    used = re.findall(r"uses: (.*)", (ROOT / "action.yml").read_text())
    assert len(used) == 2
    assert all(re.fullmatch(r"[\w-]+(/[\w-]+)+@[0-9a-f]{40} # v[\d.]+", line) for line in used)


def test_no_input_is_part_of_a_script() -> None:
    assert not any("${{" in step["run"] for step in STEPS if "run" in step)
