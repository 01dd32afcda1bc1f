"""What counts of files that are only skimmed: what was asked of them, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dcplint import disk
from dcplint.program.index import Index, build_index
from dcplint.source.roots import Root
from dcplint.source.scan import Scanner, closure
from dcplint.source.skim import ask

TEXT = "from somewhere import Base as B\n\nMine = B\n\n\nclass Impl(Mine):\n    size = 1\n"


def _scan(index: Index) -> None:
    assert index.scans


def _follow(index: Index) -> None:
    assert b"Impl" in closure(index.scans, [b"Base"], index.aliases)


def _search(index: Index) -> None:
    assert list(index.containing([b"carry(", b"size"])) == ["impl.py"]
    assert not list(index.containing([b"carry("]))


@pytest.mark.parametrize(
    ("use", "text", "same"),
    [
        (_scan, TEXT.replace("size = 1", "size = 2"), True),
        (_scan, TEXT.replace("\n", "\r\n"), True),
        (_scan, TEXT.replace("Base as", "Basis as"), False),
        (_scan, TEXT.replace("Impl", "Other"), False),
        (_scan, TEXT + "# marked\n", False),
        (_scan, TEXT + "import *\n", False),
        (_scan, TEXT + "\0", False),
        (_scan, TEXT.replace("Mine = B", "Mine = C"), True),
        (_follow, TEXT.replace("Mine = B", "Mine = C"), False),
        (_follow, TEXT.replace("size = 1", "carry()"), True),
        (_search, TEXT.replace("size = 1", "size = 2"), True),
        (_search, TEXT.replace("size = 1", "carry()"), False),
        (_search, TEXT.replace("size = 1", "other = 1"), False),
    ],
)
def test_only_what_was_asked_counts(
    use: Callable[[Index], None], text: str, same: bool, tmp_path: Path
) -> None:
    path = tmp_path / "impl.py"
    path.write_text(TEXT, newline="")
    with disk.remembering() as seen:
        scanner = Scanner.of([b"marked"], [b"get_class"])
        use(build_index(Root(tmp_path, (tmp_path,)), scanner))
    path.write_text(text, newline="")
    assert disk.holds(seen.plain(), ask) is same
