"""Workflow commands, read back the way the runner reads them."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dcplint.findings.model import Evidence, Finding, Location, Role, Severity, Tree
from dcplint.report.escape import printable
from dcplint.report.formats import FORMATS
from dcplint.report.model import Report
from dcplint.report.view import View
from tests.report.sample import FALLBACK, KERNEL, REPORT

ODD_TEXT = st.text(st.sampled_from("a %:,;=\r\nä25ADC\u2028") | st.characters(), min_size=1)


def unescaped(text: str, table: dict[str, str]) -> str:
    for code, char in table.items():  # the percent sign last, as the runner does
        text = text.replace(code, char)
    return text


DATA = {"%0D": "\r", "%0A": "\n", "%25": "%"}
PROPERTY = {"%0D": "\r", "%0A": "\n", "%3A": ":", "%2C": ",", "%25": "%"}


def parsed(line: str) -> tuple[str, dict[str, str], str]:
    assert line.startswith("::")
    end = line.index("::", 2)
    name, _, listed = line[2:end].partition(" ")
    pairs = (item.split("=", 1) for item in listed.split(","))
    properties = {key: unescaped(value, PROPERTY) for key, value in pairs}
    return name, properties, unescaped(line[end + 2 :], DATA)


def commands(*findings: Finding, repository: str = "") -> list[str]:
    report: Report = replace(REPORT, findings=findings, repository=repository, prefix="../")
    return list(FORMATS["github"](report, View(summary=False)))


@given(path=ODD_TEXT, message=ODD_TEXT)
def test_whatever_is_written_is_read_back(path: str, message: str) -> None:
    (line,) = commands(replace(KERNEL, location=Location(path, 3, 2, 3, 9), message=message))
    assert "\n" not in line and "\r" not in line
    name, properties, text = parsed(line)
    assert name == "error"
    assert properties == {
        "file": path,
        "line": "3",
        "endLine": "3",
        "col": "2",
        "endColumn": "9",
        "title": "DCP303 open-coded-length",
    }
    assert text == printable(message)


def test_columns_are_dropped_over_several_lines() -> None:
    _, properties, _ = parsed(commands(FALLBACK)[0])
    assert (properties["line"], properties["endLine"]) == ("11", "18")
    assert not {"col", "endColumn"} & properties.keys()


def test_gravest_first() -> None:
    findings = [replace(KERNEL, severity=s) for s in (Severity.NOTE, Severity.ERROR)]
    assert [parsed(line)[0] for line in commands(*findings)] == ["error", "notice"]


def test_no_more_commands_than_github_keeps() -> None:
    """Of 10,000 findings those beyond the limit are plain lines, none is lost."""
    kinds = [Severity.NOTE, Severity.WARNING, Severity.ERROR, Severity.WARNING]
    many = [
        replace(KERNEL, severity=kinds[n % 4], location=Location("::error::x ##[error]y.py", n + 1))
        for n in range(10_000)
    ]
    lines = commands(*many)
    group = next(n for n, line in enumerate(lines) if line.startswith("::group::9,970 more"))
    assert [parsed(line)[0] for line in lines[:group]] == (
        ["error"] * 10 + ["warning"] * 10 + ["notice"] * 10
    )
    assert lines[-1] == "::endgroup::"
    plain = lines[group + 1 : -1]
    assert len(plain) == 9_970
    assert not any(line.lstrip().startswith("::") or "##[" in line for line in plain)
    shown = {int(parsed(line)[1]["line"]) for line in lines[:group]}
    shown |= {int(re.findall(r"\.py:(\d+): ", line)[0]) for line in plain}
    assert shown == set(range(1, 10_001))


def test_evidence_is_summarised() -> None:
    text = parsed(commands(FALLBACK)[0])[2]
    assert text.split("\n")[1] == "guard: holds where it is None (src/plugin/impl.py:10)"


def test_files_are_named_from_the_repository() -> None:
    step = Evidence("there", Location("vllm/x.py", 1, tree=Tree.ENGINE), Role.GATE)
    _, properties, text = parsed(commands(replace(KERNEL, evidence=(step,)), repository="sub/")[0])
    assert properties["file"] == "sub/src/plugin/impl.py"
    assert "(vllm/x.py:1)" in text


@pytest.mark.parametrize("filler", ["x" * 5000, "%" * 5000, "ab%" * 2000])
def test_long_messages_are_cut_between_escapes(filler: str) -> None:
    message = commands(replace(KERNEL, message=filler))[0].split("::", 2)[2]
    assert 4000 < len(message) <= 4096
    assert message.endswith("%0A...")
    assert not re.search(r"%(?!25|0A)", message)


def test_evidence_that_does_not_fit_is_dropped_whole() -> None:
    steps = tuple(Evidence(f"step {n} " + "y" * 500, Location("a.py", n)) for n in range(1, 20))
    text = parsed(commands(replace(KERNEL, evidence=steps))[0])[2]
    assert text.endswith("\n...")
    assert "(a.py:7)\n..." in text and "step 8" not in text


def test_terminal_escapes_are_spelt_out() -> None:
    assert "\x1b" not in parsed(commands(replace(KERNEL, message="\x1b[31m"))[0])[2]
