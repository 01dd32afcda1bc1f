"""GitLab's report, JUnit and Markdown, read back."""

import json
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dcplint.findings.model import Finding, Location
from dcplint.report.escape import printable
from dcplint.report.formats import FORMATS
from dcplint.report.markdown import within
from dcplint.report.view import View
from tests.report.sample import EMPTY, IMPLICIT, KERNEL, ODD, REPORT, WINDOW

ODD_TEXT = st.text(st.sampled_from("a`|<>&\"'\\_*[]#\r\n\x1b\ufffe") | st.characters(), min_size=1)


def lines(style: str, *findings: Finding) -> list[str]:
    report = replace(REPORT, findings=findings, repository="sub/", prefix="../")
    return list(FORMATS[style](report, View()))


def test_gitlab_asks_for_these_keys() -> None:
    issues = json.loads("\n".join(FORMATS["gitlab"](REPORT, View())))
    assert [issue["fingerprint"] for issue in issues] == [f.fingerprint for f in REPORT.findings]
    severities = ["critical", "major", "critical", "critical", "info"]
    assert [issue["severity"] for issue in issues] == severities
    (issue,) = json.loads("\n".join(lines("gitlab", IMPLICIT)))
    assert issue["location"] == {"path": "sub/src/plugin/impl.py", "lines": {"begin": 8, "end": 8}}
    assert issue["description"].startswith("DCP101 `PagedDecodeImpl` supports")


def test_gitlab_without_findings_is_an_empty_list() -> None:
    assert list(FORMATS["gitlab"](EMPTY, View())) == ["[]"]


@given(path=ODD_TEXT, message=ODD_TEXT)
def test_junit_is_xml_whatever_it_holds(path: str, message: str) -> None:
    finding = replace(KERNEL, location=Location(path, 3), message=message)
    root = ElementTree.fromstring("\n".join(lines("junit", finding)).encode())
    (case,) = root.iter("testcase")
    (failure,) = root.iter("failure")
    assert case.get("file") == printable("sub/" + path)
    assert failure.get("message") == failure.text == printable(message)


def test_junit_counts_failures_and_lets_notes_pass() -> None:
    root = ElementTree.fromstring("\n".join(FORMATS["junit"](REPORT, View())).encode())
    assert (root.get("tests"), root.get("failures")) == ("5", "4")
    suites = {suite.get("name"): suite for suite in root}
    assert suites["src/plugin/impl.py"].get("failures") == "3"
    (note,) = (case for case in root.iter("testcase") if case.find("failure") is None)
    assert WINDOW.code in str(note.get("name"))
    assert "100% of it" in str(note.findtext("system-out"))


def test_junit_without_findings_is_one_test_that_passed() -> None:
    root = ElementTree.fromstring("\n".join(FORMATS["junit"](EMPTY, View())).encode())
    assert (root.get("tests"), len(list(root.iter("testcase")))) == ("1", 1)
    assert not list(root.iter("failure"))


def cells(row: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]]


@given(path=ODD_TEXT, message=ODD_TEXT)
def test_a_finding_is_one_row_of_three_cells(path: str, message: str) -> None:
    path, message = path.replace("\\", "/"), message.replace("\\", "/")
    finding = replace(KERNEL, location=Location(path, 3), message=message)
    row = lines("markdown", finding)[-1]
    assert len(row.splitlines()) == 1 and len(cells(row)) == 3


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("plain words, supports_dcp", "plain words, supports_dcp"),
        ("`a_b|c` <b>", r"`a_b\|c` \<b\>"),
        ("__init__ *x* #1 [y](z)", r"\_\_init\_\_ \*x\* \#1 \[y\](z)"),
        ("one ` tick", r"one \` tick"),
        ("\x1b[2J", r"\\x1b\[2J"),
    ],
)
def test_prose_is_text(message: str, shown: str) -> None:
    assert cells(lines("markdown", replace(KERNEL, message=message))[-1])[2].endswith(
        f"<br>{shown}"
    )


def test_code_spans_hold_ticks() -> None:
    row = lines("markdown", replace(KERNEL, location=Location("`a``", 1)))[-1]
    assert cells(row)[1] == "`sub/`a``:1`" or cells(row)[1] == "```sub/`a``:1```"


def test_gravest_first_and_evidence_folded() -> None:
    rows = lines("markdown", IMPLICIT, KERNEL)[4:]
    assert [row.split()[2] for row in rows] == ["error", "warning"]
    assert "<details><summary>evidence</summary><ul><li>origin: `supports_dcp`" in rows[1]
    assert not lines("markdown")[2:]


def test_no_more_than_fits() -> None:
    rows = [str(n) * 9 for n in range(10)] + ["ä" * 5, "\udc80"]
    assert list(within(iter(rows), 10_000)) == rows
    cut = list(within(iter(rows), 100))
    assert cut[0] == rows[0] and "the log has all of it" in cut[-1]
    assert sum(len(line.encode()) + 1 for line in cut) <= 100


def test_odd_paths_stay_in_their_place() -> None:
    row = lines("markdown", ODD)[-1]
    assert "\x1b" not in row and "\u202e" not in row
