"""TOML, with the standard library's parser or its backport."""

from __future__ import annotations

import sys
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def load_toml(text: str) -> dict[str, Any]:
    """The document. Raises ValueError, with line and column, where it is not TOML."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
