"""The pages about other tools say what these tools and our own options are like."""

import json
import re
import shlex
from collections.abc import Iterator
from typing import Any

import click
import pytest
import yaml

from dcplint.cli.commands import cli
from dcplint.report.escape import printable
from dcplint.report.formats import FORMATS
from dcplint.report.view import View
from tests.docs.pages import ROOT, Block, blocks
from tests.report.sample import REPORT

_COMMAND = re.compile(r"^(?:\s*-(?: run:)?|\$)?\s*(?:\.venv/bin/)?dcplint (\S.*)$", re.MULTILINE)


def shown_commands() -> Iterator[str]:
    """Every call of dcplint in a block, without what a shell makes of it."""
    for kind in ("sh", "console", "yaml"):
        for block in blocks(kind):
            for match in _COMMAND.finditer(block.text):
                yield re.split(r" [<>|&]", match[1])[0]


@pytest.mark.parametrize("line", sorted({*shown_commands()}))
def test_options_that_are_shown_exist(line: str) -> None:
    name, *args = shlex.split(line, comments=True)
    command = cli.get_command(click.Context(cli), name)
    assert command is not None, name
    command.make_context(name, args)


def test_the_inputs_of_the_action() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "integrations" / "github.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w-]+)` \| (.*?) \|", page, re.MULTILINE)
    defaults = {name: given["default"] or None for name, given in action["inputs"].items()}
    words = {"found by itself": None, "none": None}
    assert {name: words.get(text, text.strip("`")) for name, text in rows} == defaults
    assert set(action["outputs"]) == set(re.findall(r"output `([\w-]+)`", page))
    used = [s for b in blocks("yaml") if "jobs:" in b.text for s in _steps(yaml.safe_load(b.text))]
    ours = [step["with"] for step in used if "dcplint" in step.get("uses", "")]
    assert ours and all(given.keys() <= action["inputs"].keys() for given in ours)


class _EachKeyOnce(yaml.SafeLoader):
    """YAML as GitHub and GitLab read it: PyYAML alone lets the last of two keys win."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        assert len(keys) == len(set(keys)), f"a key twice: {keys}"
        return super().construct_mapping(node, deep)


@pytest.mark.parametrize("block", [*blocks("yaml")], ids=str)
def test_yaml_is_valid(block: Block) -> None:
    yaml.load(block.text, _EachKeyOnce)


@pytest.mark.parametrize("block", [b for b in blocks("yaml") if "steps:" in b.text], ids=str)
def test_a_workflow_fetches_the_submodule_that_it_uses(block: Block) -> None:
    if "./.github/dcplint" in block.text:
        (checkout,) = (s for s in _steps(yaml.safe_load(block.text)) if "checkout" in str(s))
        assert checkout["with"]["submodules"] is True


def _steps(workflow: Any) -> Iterator[dict[str, Any]]:
    for job in workflow["jobs"].values() if "jobs" in workflow else [workflow]:
        yield from job["steps"]


def test_the_task_of_vs_code_reads_concise() -> None:
    (task,) = (b for b in blocks("json") if "problemMatcher" in b.text)
    pattern = json.loads(task.text)["tasks"][0]["problemMatcher"]["pattern"]
    lines = list(FORMATS["concise"](REPORT, View(summary=False)))
    groups = [pattern[name] for name in ("file", "line", "column", "code", "message")]
    assert len(lines) == len(REPORT.findings)
    for finding, line in zip(REPORT.findings, lines, strict=True):
        match = re.fullmatch(pattern["regexp"], line)
        assert match, line
        place = finding.location
        wanted = (printable(place.path), str(place.line), str(place.column), finding.code)
        assert match.group(*groups) == (*wanted, printable(finding.message))
