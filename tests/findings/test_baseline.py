"""What a baseline holds back, and how its file reads, ages and merges."""

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dcplint.errors import UserError
from dcplint.findings.baseline import (
    Baseline,
    Entry,
    entry_of,
    read_entries,
    written,
)
from dcplint.findings.model import Evidence, Finding, Location
from dcplint.findings.policy import Policy
from dcplint.findings.settle import Outcome, settle
from tests.findings.rules import CATALOGUE, EVERY_CODE, LENGTH, at

POLICY = Policy(codes=EVERY_CODE)
A, B, OTHER = at(1, path="a.py"), at(1, path="b.py"), at(2, rule=LENGTH, path="a.py")


def settled(
    *found: Finding,
    accepted: tuple[Finding, ...] = (),
    focus: str = "",
    policy: Policy = POLICY,
    complete: bool = True,
    source: str = "",
) -> Outcome:
    before = settle(
        accepted, catalogue=CATALOGUE, policy=POLICY, sources=(), lines=lambda place: ["x = 1"]
    )
    return settle(
        found,
        catalogue=CATALOGUE,
        policy=policy,
        sources=[("a.py", source)] if source else (),
        lines=lambda place: ["x = 1"],
        in_focus=lambda path: path.startswith(focus),
        baseline=Baseline("base.jsonl", file_of(before.findings)),
        complete=complete,
    )


def file_of(findings: tuple[Finding, ...]) -> tuple[Entry, ...]:
    return read_entries("\n".join(written(map(entry_of, findings))), "base.jsonl")


def places(outcome: Outcome) -> list[tuple[str, str]]:
    return [(f.code, f.location.path) for f in outcome.findings]


def test_what_is_accepted_is_not_reported() -> None:
    outcome = settled(A, B, OTHER, accepted=(A, B))
    assert places(outcome) == [("DCP303", "a.py")]
    assert outcome.accepted == 2
    assert [entry.path for entry in outcome.known] == ["a.py", "b.py"]


def test_equal_findings_are_counted() -> None:
    one = replace(A, symbol="Impl")
    more = [replace(one, location=Location(f"{n}.py", 1)) for n in "bcd"]
    assert len(settled(one, *more, accepted=(one, *more[:2])).findings) == 1


def test_a_fingerprint_does_not_depend_on_the_focus() -> None:
    """A copy of an accepted class is new, also where only its file is asked about."""
    one, copy = (replace(f, symbol="Impl") for f in (A, B))
    assert places(settled(one, copy, accepted=(one,), focus="b")) == [("DCP101", "b.py")]
    assert places(settled(one, copy, accepted=(one,), focus="a")) == []


def test_gone_findings_leave_stale_entries() -> None:
    outcome = settled(A, accepted=(A, B))
    (stale,) = outcome.findings
    assert (stale.code, stale.location) == ("DCP005", Location("base.jsonl", 3))
    assert "DCP101 in the module of b.py" in stale.message and stale.fingerprint
    assert [entry.path for entry in outcome.known] == ["a.py"]


def test_a_suppressed_finding_needs_no_entry() -> None:
    outcome = settled(A, accepted=(A,), source="x = 1  # dcplint: ignore[DCP101] why\n")
    assert [f.code for f in outcome.findings] == ["DCP005"]


@pytest.mark.parametrize(
    "options",
    [
        {"focus": "a"},
        {"complete": False},
        {"policy": replace(POLICY, codes=POLICY.codes - {"DCP101"})},
        {"policy": replace(POLICY, per_file_ignores=(("b.py", frozenset({"DCP101"})),))},
    ],
    ids=["out of focus", "incomplete", "off", "off in the file"],
)
def test_what_was_not_looked_for_is_not_stale(options: dict[str, object]) -> None:
    outcome = settled(accepted=(B,), **options)
    assert outcome.findings == ()
    assert [entry.path for entry in outcome.known] == ["b.py"]


def test_a_threshold_makes_nothing_stale() -> None:
    from dcplint.findings.model import Severity

    policy = replace(POLICY, min_severity=Severity.ERROR)
    assert settled(A, accepted=(A,), policy=policy).findings == ()


def test_only_findings_in_question_count_as_accepted() -> None:
    step = Evidence("there", Location("b.py", 1))
    caused = replace(A, evidence=(step,))
    assert settled(caused, accepted=(caused,), focus="b").accepted == 1
    assert settled(A, accepted=(A,), focus="b").accepted == 0


def entries() -> Iterator[Entry]:
    for path in ("a b/c,:%.py", "n\nl.py", "nä\udc80.py", "z.py"):
        yield Entry("DCP101", path, "Outer.<locals>.Impl", f"{sum(map(ord, path)):016x}")


def test_files_are_read_back() -> None:
    lines = list(written(entries()))
    assert all(line.isascii() and "\n" not in line for line in lines)
    back = read_entries("\n".join(lines), "f")
    assert {replace(entry, line=0) for entry in back} == set(entries())
    assert [entry.line for entry in back] == [2, 3, 4, 5]
    assert list(written(reversed(list(entries())))) == lines


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n<<<<<<< ours\n", "f, line 2: a merge conflict; lines of both sides may stay"),
        ("=======\n", "a merge conflict"),
        ("{", "not a line of a baseline"),
        ("[]", "not a line of a baseline"),
        ("3", "not a line of a baseline"),
        ('{"code": "DCP101"}', "not a line of a baseline"),
        ('{"code": 1, "path": "", "symbol": "", "fingerprint": "0"}', "not a line"),
        ('{"code": "", "path": "", "symbol": "", "fingerprint": "xyz"}', "not a line"),
        ('{"code": "", "path": "", "symbol": "", "fingerprint": 3}', "not a line"),
        ('{"dcplint-baseline": 2}', "written by a newer dcplint"),
    ],
)
def test_what_is_no_baseline(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_entries(text, "f")


def test_a_baseline_without_header_or_with_blank_lines_is_one() -> None:
    _, *lines = written(entries())
    assert len(read_entries("\n\n".join(lines), "f")) == 4


def git(folder: Path, *args: str, status: int = 0) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@t"]
    done = subprocess.run(["git", *identity, *args], cwd=folder, capture_output=True)
    assert done.returncode == status, done.stderr


def test_a_merge_conflict_resolves_line_by_line(tmp_path: Path) -> None:
    """Two branches accept something in neighbouring lines: both sides' lines are the answer."""
    file = tmp_path / "base.jsonl"

    def write(*names: str) -> None:
        found = (Entry("DCP101", name, "", f"{ord(name[0]):016x}") for name in names)
        file.write_text("".join(f"{line}\n" for line in written(found)))

    git(tmp_path, "init", "-q", "-b", "main")
    write("a.py", "z.py")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "0")
    git(tmp_path, "checkout", "-qb", "other")
    write("a.py", "n.py", "z.py")
    git(tmp_path, "commit", "-qam", "1")
    git(tmp_path, "checkout", "-q", "main")
    write("a.py", "m.py", "z.py")
    git(tmp_path, "commit", "-qam", "2")
    git(tmp_path, "merge", "other", status=1)
    text = file.read_text()
    with pytest.raises(UserError, match="merge conflict"):
        read_entries(text, "f")
    kept = [line for line in text.splitlines() if line.startswith("{")]
    assert [e.path for e in read_entries("\n".join(kept), "f")] == ["a.py", "m.py", "n.py", "z.py"]
