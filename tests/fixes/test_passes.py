"""Which fixes are made, in which order, and which files are left alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from dcplint.findings.changes import CloneValue
from dcplint.findings.model import (
    Applicability,
    Confidence,
    Edit,
    Finding,
    Fix,
    Location,
    Severity,
)
from dcplint.fixes.passes import Fixed, fix
from dcplint.source.text import decode

PLACE = Location("a.py", 1)


@dataclass
class Word:
    """A rule that wants one word for another, wherever it stands first."""

    old: str
    new: str
    applicability: Applicability = Applicability.SAFE

    def find(self, lines: Sequence[str], path: str) -> Finding | None:
        for number, line in enumerate(lines, 1):
            column = line.find(self.old) + 1
            if column:
                at = Location(path, number, column, number, column + len(self.old))
                change = Fix(f"say {self.new}", self.applicability, CloneValue(at, at),
                             (Edit(at, self.new),))  # fmt: skip
                return Finding(
                    "DCP101", "word", Severity.WARNING, Confidence.HIGH, self.old, at, fix=change,
                    fingerprint=f"{path}{number}{self.old}",
                )  # fmt: skip
        return None


@dataclass
class Linter:
    """Lints the files of a folder with some words."""

    root: Path
    words: tuple[Word, ...]
    runs: int = 0
    stale: bool = False

    def __call__(self, contents: Mapping[Path, bytes]) -> "Linter":
        self.runs += 1
        self.texts = {
            path.name: decode(contents.get(path, path.read_bytes()))
            for path in sorted(self.root.glob("*.py"))
        }
        return self

    @property
    def findings(self) -> tuple[Finding, ...]:
        found = (
            word.find(text.split("\n"), name)
            for name, text in self.texts.items()
            for word in self.words
        )
        return tuple(finding for finding in found if finding)

    def lines(self, location: Location) -> Sequence[str]:
        return [] if self.stale else self.texts[location.path].split("\n")


def run(root: Path, *words: Word, unsafe: bool = False) -> Fixed:
    return fix(Linter(root, words), lambda path: True, unsafe=unsafe)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "a.py").write_text("one = two\n")
    return tmp_path


def contents(outcome: Fixed) -> list[bytes]:
    return list(outcome.after.values())


def test_fixes_apart_are_made_in_one_pass(root: Path) -> None:
    linter = Linter(root, (Word("one", "uno"), Word("two", "due")))
    outcome = fix(linter, lambda path: True, unsafe=False)
    assert contents(outcome) == [b"uno = due\n"]
    assert linter.runs == 2
    assert (root / "a.py").read_text() == "one = two\n"


def test_of_two_that_touch_the_first_is_made_and_then_the_other(root: Path) -> None:
    assert contents(run(root, Word("one =", "uno ="), Word("= two", "= due"))) == [b"uno = due\n"]
    # Where the first takes away what the second was about, it is not made any more.
    assert contents(run(root, Word("one =", "uno +="), Word("ne = two", "x"))) == [b"uno += two\n"]


def test_the_same_edit_for_two_findings_is_made_once(root: Path) -> None:
    outcome = run(root, Word("one", "uno"), Word("one", "uno"))
    assert contents(outcome) == [b"uno = two\n"]
    assert [len(found) for found in outcome.findings.values()] == [2]


def test_unsafe_ones_have_to_be_asked_for(root: Path) -> None:
    word = Word("one", "uno", Applicability.UNSAFE)
    assert contents(run(root, word)) == []
    assert contents(run(root, word, unsafe=True)) == [b"uno = two\n"]


def test_it_ends_though_the_finding_stays(root: Path) -> None:
    outcome = run(root, Word("two", "two + two"))
    assert contents(outcome) == [b"one = two + two\n"]


def test_a_file_that_may_not_be_edited(root: Path) -> None:
    outcome = fix(Linter(root, (Word("one", "uno"),)), lambda path: False, unsafe=True)
    assert (outcome.after, outcome.findings, outcome.problems) == ({}, {}, [])


def test_what_would_not_parse_is_left_alone(root: Path) -> None:
    (root / "b.py").write_text("two = one\n")
    outcome = run(root, Word("one =", "if"), Word("= one", "= uno"))
    assert contents(outcome) == [b"two = uno\n"]
    (problem,) = outcome.problems
    assert "a.py is left alone: it would be broken by the fix" in problem


def test_a_file_that_changed_under_the_linter_is_left_alone(root: Path) -> None:
    linter = Linter(root, (Word("one", "uno"),), stale=True)
    outcome = fix(linter, lambda path: True, unsafe=False)
    assert (contents(outcome), outcome.findings) == ([], {})
    (problem,) = outcome.problems
    assert problem.endswith("a.py is left alone: it has changed since it was linted")


def test_a_file_that_changes_before_it_is_written_is_left_alone(root: Path) -> None:
    (root / "b.py").write_text("one = 1\n")
    outcome = run(root, Word("one", "uno"))
    (root / "a.py").write_text("one = 2\n")
    outcome.write()
    assert (root / "a.py").read_text() == "one = 2\n"
    assert (root / "b.py").read_text() == "uno = 1\n"
    (problem,) = outcome.problems
    assert problem.endswith("a.py is left alone: it has changed since it was linted")
    assert [path.name for path in outcome.findings] == ["b.py"]


def test_a_file_that_cannot_be_written(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = run(root, Word("one", "uno"))

    def refuse(self: Path, data: bytes) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "write_bytes", refuse)
    outcome.write()
    (problem,) = outcome.problems
    assert problem.endswith("a.py is left alone: it cannot be written: Permission denied")
    assert outcome.findings == {}


def test_a_diff(root: Path) -> None:
    (root / "a.py").write_bytes(b"one = 1\r\nx = 2")
    outcome = run(root, Word("one", "uno"))
    assert list(outcome.diff(lambda path: path.name)) == [
        "--- a/a.py",
        "+++ b/a.py",
        "@@ -1,2 +1,2 @@",
        "-one = 1\r",
        "+uno = 1\r",
        " x = 2",
        "\\ No newline at end of file",
    ]
