from dataclasses import replace

import pytest

from dcplint.findings.catalogue import UnknownRule
from dcplint.findings.model import Finding, Severity
from dcplint.findings.policy import Policy, selected
from dcplint.findings.settle import settle
from tests.findings.rules import CATALOGUE, EVERY_CODE, LENGTH, at

POLICY = Policy(codes=EVERY_CODE)
ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE


def settled(policy: Policy, *found: Finding) -> tuple[Finding, ...]:
    return settle(
        found, catalogue=CATALOGUE, policy=policy, sources=(), lines=lambda place: ["x = 1"]
    ).findings


def test_order_is_by_place_then_code() -> None:
    a, b, c, d = at(1, 2), at(1, 2, rule=LENGTH), at(2), at(1, path="b.py")
    places = [(f.location.path, f.location.line, f.code) for f in settled(POLICY, d, c, b, a)]
    assert places == [
        ("a.py", 1, "DCP101"),
        ("a.py", 1, "DCP303"),
        ("a.py", 2, "DCP101"),
        ("b.py", 1, "DCP101"),
    ]


@pytest.mark.parametrize(
    ("pattern", "path", "off"),
    [
        ("tests/", "tests/a.py", True),
        ("tests/*", "tests/a.py", True),
        ("/a.py", "sub/a.py", False),
        ("*_test.py", "sub/a_test.py", True),
        ("sub/**/a.py", "sub/x/y/a.py", True),
        ("tests/", "src/a.py", False),
        ("nä\udc80", "nä\udc80/a.py", True),
    ],
)
def test_per_file_ignores(pattern: str, path: str, off: bool) -> None:
    policy = replace(POLICY, per_file_ignores=((pattern, frozenset({"DCP101"})),))
    found = settled(policy, at(1, path=path), at(1, path=path, rule=LENGTH))
    assert [f.code for f in found] == (["DCP303"] if off else ["DCP101", "DCP303"])


def test_unselected_rules_are_dropped() -> None:
    assert not settled(replace(POLICY, codes=frozenset({"DCP303"})), at(1))


@pytest.mark.parametrize(
    ("own", "wish", "result"),
    [
        (WARNING, ERROR, ERROR),  # the default is replaced
        (WARNING, NOTE, NOTE),
        (ERROR, NOTE, NOTE),  # and what the rule made graver
        (NOTE, ERROR, NOTE),  # what it made milder stays so
    ],
)
def test_severities(own: Severity, wish: Severity, result: Severity) -> None:
    (finding,) = settled(replace(POLICY, severities={"DCP101": wish}), replace(at(1), severity=own))
    assert finding.severity is result


def test_threshold_comes_after_severities() -> None:
    policy = replace(POLICY, severities={"DCP101": ERROR}, min_severity=WARNING)
    assert settled(policy, at(1)) and not settled(policy, replace(at(1), severity=NOTE))


@pytest.mark.parametrize(
    ("select", "extend", "ignore", "expected"),
    [
        (None, [], [], EVERY_CODE - {"DCP003"}),
        (None, ["DCP003"], [], EVERY_CODE),
        (None, [], ["DCP0"], {"DCP101", "DCP303"}),
        (None, [], ["implicit-capability"], EVERY_CODE - {"DCP003", "DCP101"}),
        (["DCP1"], [], [], {"DCP101"}),
        (["DCP1"], ["DCP303"], [], {"DCP101", "DCP303"}),
        (["DCP101"], [], ["DCP1"], {"DCP101"}),
        (["DCP1"], [], ["DCP101"], set()),
        (["DCP101"], [], ["DCP101"], set()),
        (["DCP101"], [], ["implicit-capability"], set()),
        (["DCP"], [], ["DCP0"], {"DCP101", "DCP303"}),
        ([], [], [], set()),
    ],
)
def test_selection(
    select: list[str] | None, extend: list[str], ignore: list[str], expected: set[str]
) -> None:
    assert selected(CATALOGUE, select=select, extend_select=extend, ignore=ignore) == expected


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("DCP110", "did you mean 'DCP101'"),
        ("dcp101", "did you mean 'DCP101'"),
        ("Implicit_Capability", "did you mean 'implicit-capability'"),
        ("E501", "`dcplint rule` lists all"),
        ("", "`dcplint rule` lists all"),
    ],
)
def test_unknown_rules_are_refused_with_a_hint(word: str, text: str) -> None:
    with pytest.raises(UnknownRule, match=text):
        selected(CATALOGUE, select=[word])
