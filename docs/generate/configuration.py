"""The table of keys in the page on configuration."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_type_hints

from dcplint.config import Config, Key
from dcplint.report.markup import table

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"
_TABLE = re.compile(r"(?<=<!-- keys -->\n).*(?=<!-- /keys -->)", re.DOTALL)


def keys() -> dict[str, Key]:
    """What is said of each key, beside its field."""
    hints = get_type_hints(Config, include_extras=True)
    return {
        name.replace("_", "-"): told
        for name, hint in hints.items()
        for told in getattr(hint, "__metadata__", ())
        if isinstance(told, Key)
    }


def pages() -> dict[Path, str]:
    """The page with its table."""
    rows = ((f"`{name}`", key.type, key.default, key.meaning) for name, key in keys().items())
    lines = "\n".join(table(("key", "type", "default", "meaning"), rows)) + "\n"
    return {PAGE: _TABLE.sub(lambda _: lines, PAGE.read_text(encoding="utf-8"))}
