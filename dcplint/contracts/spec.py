"""The engine release that a user names."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from packaging.version import Version


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """An engine release named by the user (`vllm==0.29.0`). where: in words, the end of "named"."""

    name: str
    version: Version
    where: str = field(default="on the command line", compare=False)


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
