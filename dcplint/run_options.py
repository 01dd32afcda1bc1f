"""What one run is asked to do: the merged command line and configuration."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dcplint.findings.policy import Policy

if TYPE_CHECKING:
    from packaging.version import Version


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """An engine release named by the user (`vllm==0.29.0`)."""

    name: str
    version: Version


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
    engine: None means auto.
    """

    paths: tuple[Path, ...]
    policy: Policy
    config_path: Path | None = None
    exclude: tuple[str, ...] = ()
    engine: EngineSpec | None = None
    engine_path: Path | None = None
    packs: tuple[Path, ...] = ()
    stdin: Stdin | None = None


def parse_engine(text: str) -> EngineSpec | None:
    """The engine named by `vllm==0.29.0`; None for `auto`. Raises ValueError with a sentence."""
    from packaging.version import InvalidVersion, Version

    if text == "auto":
        return None
    name, equals, release = text.partition("==")
    if name and equals:
        with suppress(InvalidVersion):
            return EngineSpec(name.strip(), Version(release))
    raise ValueError(f"{text!r} is no engine release: write `auto` or something like vllm==0.29.0")
