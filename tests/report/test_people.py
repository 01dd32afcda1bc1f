"""What the snapshots of the formats for people do not show."""

from dataclasses import replace

import pytest

from dcplint.findings.model import Location
from dcplint.report.formats import FORMATS
from dcplint.report.model import Engine
from dcplint.report.summary import summary
from dcplint.report.view import View
from tests.report.sample import EMPTY, IMPLICIT, KERNEL, REPORT


def test_engine_evidence_of_several_engines_is_not_attributed_to_one() -> None:
    engines = (Engine("vllm", "0.29.0", "x"), Engine("vllm", "0.30.0", "y"))
    text = "\n".join(FORMATS["text"](replace(REPORT, engines=engines), View()))
    assert "backend.py:642:2 (engine)" in text


@pytest.mark.parametrize("style", ["text", "concise"])
def test_paths_are_shown_from_the_working_directory(style: str) -> None:
    report = replace(REPORT, findings=(IMPLICIT,), prefix="../")
    text = "\n".join(FORMATS[style](report, View()))
    assert "../src/plugin/impl.py:8:7" in text
    assert "../vllm" not in text


@pytest.mark.parametrize("style", sorted(FORMATS))
@pytest.mark.parametrize("width", [40, 100])
def test_an_empty_file_and_a_narrow_screen_suit_every_format(style: str, width: int) -> None:
    empty = replace(IMPLICIT, location=Location("empty.py", 1), evidence=(), fix=None)
    report = replace(REPORT, findings=(empty,), lines=lambda place: [""])
    text = "\n".join(FORMATS[style](report, View(width=width)))
    assert "DCP101" in text and "empty.py" in text


@pytest.mark.parametrize("style", sorted(FORMATS))
def test_ten_thousand_findings_suit_every_format(style: str) -> None:
    many = tuple(
        replace(IMPLICIT, location=Location(f"m{n}.py", n), evidence=()) for n in range(1, 10_001)
    )
    text = "\n".join(FORMATS[style](replace(REPORT, findings=many), View()))
    assert all(f"m{n}.py" in text for n in (1, 5_000, 10_000))


def test_first_line_of_an_empty_file() -> None:
    report = replace(REPORT, findings=(replace(KERNEL, location=Location("empty.py", 1)),))
    lines = list(FORMATS["text"](report, View(summary=False)))
    assert lines[1:] == [" --> empty.py:1:1 in PagedDecodeImpl.forward", ""]


def test_a_message_may_be_empty() -> None:
    report = replace(REPORT, findings=(replace(KERNEL, message=""),))
    first = next(FORMATS["text"](report, View()))
    assert first == "error[DCP303 open-coded-length]: "


def test_summary_counts_in_words() -> None:
    assert summary(replace(EMPTY, files=2)) == (
        "No findings in 2 files: nothing in them takes part in the attention of an engine that "
        "dcplint knows."
    )
    assert summary(replace(EMPTY, engines=(Engine("e", "1", "here"),))) == (
        "No findings in 1 file, checked against e 1 (here)."
    )
    two = replace(EMPTY, findings=(IMPLICIT, IMPLICIT), engines=(Engine("e", "1", "here"),) * 2)
    assert summary(two) == (
        "Found 2 warnings in 1 file, checked against e 1 (here) and e 1 (here)."
    )


def test_ten_thousand_findings() -> None:
    report = replace(REPORT, findings=(IMPLICIT,) * 10_000)
    assert sum(line.startswith("warning[") for line in FORMATS["text"](report, View())) == 10_000


def test_a_screen_too_narrow_for_a_frame_still_shows_the_span() -> None:
    report = replace(REPORT, findings=(KERNEL,))
    assert "attn_meta" in "\n".join(FORMATS["text"](report, View(width=10)))
