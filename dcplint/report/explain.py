"""A rule's documentation, as a page for the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from dcplint.checks.base import Registered
from dcplint.report.view import SEVERITY_COLORS, View


def explain(registered: Registered, view: View) -> Iterator[str]:
    """The lines of one rule's page: its declaration, then its docstring."""
    rule = registered.rule
    yield view.paint(f"{rule.code} {rule.name}", bold=True)
    severity = view.paint(rule.severity.value, SEVERITY_COLORS[rule.severity])
    yield f"{severity}, since {rule.since}, {'on' if rule.default else 'off'} by default"
    yield ""
    yield from _page(registered.documentation.strip().split("\n"), view)


def listing(rules: Iterable[Registered], view: View) -> Iterator[str]:
    """One entry a rule; those that are off by default say so."""
    for registered in rules:
        rule = registered.rule
        severity = view.paint(rule.severity.value, SEVERITY_COLORS[rule.severity])
        off = "" if rule.default else ", off by default"
        yield f"{view.paint(rule.code, bold=True)} {rule.name} ({severity}{off})"
        yield from _wrapped(rule.summary, view, indent="       ")


def _page(lines: list[str], view: View) -> Iterator[str]:
    """Markdown as the rules use it: headings, paragraphs, lists and fenced code."""
    paragraph: list[str] = []
    in_code = False
    for line in lines:
        is_fence = line.startswith("```")
        is_text = bool(line) and not line.startswith(("## ", "- ")) and not is_fence
        if not is_text:
            yield from _wrapped(" ".join(paragraph), view)
            paragraph = []
        if is_fence:
            in_code = not in_code
        elif in_code:
            yield f"    {line}".rstrip()
        elif line.startswith("## "):
            yield view.paint(line.removeprefix("## "), "cyan", bold=True)
        elif line:
            paragraph.append(line.strip())
        else:
            yield ""
    yield from _wrapped(" ".join(paragraph), view)


def _wrapped(text: str, view: View, indent: str = "") -> Iterator[str]:
    hanging = indent + ("  " if text.startswith("- ") else "")
    yield from textwrap.wrap(
        text,
        view.width,
        initial_indent=indent,
        subsequent_indent=hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )
