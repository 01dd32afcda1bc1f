"""The pages for people, and what stands in their fenced blocks."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted((*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")))

_FENCE = re.compile(r"^( *)```(\w+)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(kind: str) -> Iterator[Block]:
    """The fenced blocks of one kind, on all pages."""
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        for match in _FENCE.finditer(text):
            if match[2] == kind:
                line = text.count("\n", 0, match.start()) + 1
                yield Block(path.relative_to(ROOT).as_posix(), line, kind, match[3])
