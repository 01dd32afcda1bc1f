"""The output formats by the name users give them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from dcplint.report import concise, github, gitlab, json, junit, markdown, sarif, text
from dcplint.report.model import Report
from dcplint.report.view import View

Render = Callable[[Report, View], Iterator[str]]

FORMATS: Mapping[str, Render] = {
    "text": text.render,
    "concise": concise.render,
    "json": json.render,
    "sarif": sarif.render,
    "github": github.render,
    "gitlab": gitlab.render,
    "junit": junit.render,
    "markdown": markdown.render,
}

WITH_EDITS = frozenset({"json", "sarif"})
"""The formats that show the edits of fixes."""
