"""What one run is asked to do: the merged command line and configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dcplint.contracts.spec import EngineSpec
from dcplint.findings.policy import Policy


@dataclass(frozen=True, slots=True)
class Stdin:
    """Unsaved contents of one file, as an editor sends them. They stand in for the file."""

    path: Path
    source: bytes


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Everything a run needs to know; nothing of how it is shown.

    paths: as given, relative to the working directory; with `stdin` they are its path alone.
    config_path: the configuration in force; its folder is what patterns are relative to.
    exclude: gitignore-style patterns, applied on top of .gitignore.
    engine: None means auto. jobs: how many processes may work at a time.
    edits: whether the edits of fixes are wanted. replaced: contents that stand in for files.
    may_be_empty: whether paths without a Python file are an answer, not a mistake.
    """

    paths: tuple[Path, ...]
    policy: Policy
    config_path: Path | None = None
    exclude: tuple[str, ...] = ()
    engine: EngineSpec | None = None
    engine_path: Path | None = None
    packs: tuple[Path, ...] = ()
    stdin: Stdin | None = None
    baseline: Path | None = None
    jobs: int = 1
    edits: bool = False
    replaced: Mapping[Path, bytes] = field(default_factory=dict)
    may_be_empty: bool = False
