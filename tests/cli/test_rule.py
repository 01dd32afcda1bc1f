from dataclasses import replace

import pytest

from dcplint.checks.base import DOC_SECTIONS, all_rules
from dcplint.cli.main import main
from dcplint.report.explain import explain
from dcplint.report.view import View

TOOL_RULES = [r for r in all_rules() if r.rule.code.startswith("DCP0")]


def rule(*args: str) -> int:
    with pytest.raises(SystemExit) as exit_:
        main(["rule", *args])
    assert isinstance(exit_.value.code, int)
    return exit_.value.code


@pytest.mark.parametrize("word", ["DCP002", "unused-suppression"])
def test_explains(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert rule(word) == 0
    out = capsys.readouterr().out
    assert out.startswith(
        "DCP002 unused-suppression\n"
        "warning, since 0.1.0, on by default\n"
        "\n"
        "A suppression comment that nothing needs.\n"
        "\n"
        "What it flags\n"
        "A rule named in a suppression comment although"
    )
    assert "\nBad\n    class MyImpl(AttentionImpl):\n        supports_dcp = True  # dcplint" in out
    assert "##" not in out and "```" not in out


def test_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    assert rule("unused-supression") == 2
    assert "did you mean 'unused-suppression'?" in capsys.readouterr().err


def test_lists(capsys: pytest.CaptureFixture[str]) -> None:
    assert rule() == 0
    out = capsys.readouterr().out
    assert all(f"{r.rule.code} {r.rule.name} (" in out for r in all_rules())
    assert "DCP003 suppression-without-reason (warning, off by default)\n" in out
    assert "       flags suppressions that give no reason\n" in out


def test_color(capsys: pytest.CaptureFixture[str]) -> None:
    assert rule("DCP001", "--color", "always") == 0
    assert "\x1b[31merror\x1b[0m" in capsys.readouterr().out


def test_layout() -> None:
    text = (
        "Short.\n\n## Bad\nTwo\nlines.\n- one\n  more and more\n- two\n"
        "```python\nx\n\n  - y\n```\nThe end."
    )
    lines = list(explain(replace(TOOL_RULES[0], documentation=text), View(width=12)))
    assert lines[2:] == [
        *["", "Short.", "", "Bad", "Two lines.", "- one more", "  and more", "- two"],
        *["    x", "", "      - y", "The end."],
    ]


@pytest.mark.parametrize("registered", TOOL_RULES, ids=lambda r: r.rule.code)
def test_tool_rules_are_documented(registered: object) -> None:
    assert isinstance(registered, type(TOOL_RULES[0]))
    headings = [
        line.removeprefix("## ")
        for line in registered.documentation.split("\n")
        if line.startswith("## ")
    ]
    assert tuple(headings) == DOC_SECTIONS
    assert registered.check is None
    assert max(map(len, explain(registered, View(width=60)))) <= 100
