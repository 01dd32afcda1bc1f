"""Places in source, as everything from linking to reports speaks of them."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field


class Tree(enum.Enum):
    """Which tree a location's path is relative to."""

    PROJECT = "project"  # the checked tree
    ENGINE = "engine"  # engine source outside the checked tree, read and never imported
    PACK = "pack"  # a contract pack, standing in for engine source that is not at hand


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A span of source. Lines and columns are 1-based; columns count code points.

    `path` is relative to the root of its tree and uses `/`. `end_column` is exclusive.
    """

    path: str
    line: int
    column: int = 1
    end_line: int = 0
    end_column: int = 0
    tree: Tree = field(default=Tree.PROJECT, compare=False)

    def __post_init__(self) -> None:
        if not self.end_line:
            object.__setattr__(self, "end_line", self.line)
        if not self.end_column:
            object.__setattr__(self, "end_column", self.column)
