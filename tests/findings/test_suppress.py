from collections.abc import Iterable
from dataclasses import replace

import pytest

from dcplint.findings.model import Finding, Severity
from dcplint.findings.policy import Policy
from dcplint.findings.settle import settle
from tests.findings.rules import CATALOGUE, EVERY_CODE, LENGTH, at

POLICY = Policy(codes=EVERY_CODE - {"DCP003"})


def left(
    source: str, *found: Finding, policy: Policy = POLICY, path: str = "a.py", focus: bool = True
) -> list[Finding]:
    return list(
        settle(
            found,
            catalogue=CATALOGUE,
            policy=policy,
            sources=[(path, source)],
            lines=lambda place: source.split("\n"),
            in_focus=lambda _: focus,
        ).findings
    )


def codes(found: Iterable[Finding]) -> list[str]:
    return [finding.code for finding in found]


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("class A(B):  # dcplint: ignore[DCP101] why\n  pass\n", 1),
        ("# dcplint: ignore[DCP101] why\nclass A(B):\n  pass\n", 2),
        ("# dcplint: ignore[DCP101] why\n@deco\nclass A(\n  B):\n  pass\n", 3),
        ("x = f(\n  a,\n)  # dcplint: ignore[DCP101] why\n", 1),
        ("x = f(\n  a,  # dcplint: ignore[DCP101] why\n  b)\n", 3),
        ("x = 1  # type: ignore # dcplint: ignore[implicit-capability] why\n", 1),
        ("x = 1  # dcplint: ignore[DCP303, DCP101 ] why\n", 1),
        ("x = 1  #dcplint:ignore [DCP101]: why\n", 1),
        ("x = 1\n\n# dcplint: ignore-file[DCP101] why\n", 1),
        ("# -*- dcplint: x\nx = 1  # dcplint: ignore[DCP101] a # dcplint: ignore[DCP303] b\n", 2),
    ],
)
def test_suppressed(source: str, line: int) -> None:
    assert "DCP101" in codes(left("", at(line)))
    assert "DCP101" not in codes(left(source, at(line)))
    assert codes(left(source, at(line), at(line, rule=LENGTH))) in ([], ["DCP303"])


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("# dcplint: ignore[DCP101] why\nx = 1\ny = 2\n", 3),
        ("class A(B):  # dcplint: ignore[DCP101] why\n  x = 1\n", 2),
        ("x = '# dcplint: ignore[DCP101] why'\n", 1),
        ('"""\n# dcplint: ignore[DCP101] why\n"""\nx = 1\n', 4),
        ("x = 1  # see dcplint: ignore[DCP101] for more\n", 1),
        ("x = 1  # dcplint: ignore[DCP303] why\n", 1),
        ("x = 1\n# dcplint: ignore[DCP101] nothing follows\n", 1),
    ],
)
def test_not_suppressed(source: str, line: int) -> None:
    assert "DCP101" in codes(left(source, at(line)))


def test_other_files_are_not_covered() -> None:
    source = "# dcplint: ignore-file[DCP101] why\n"
    assert codes(left(source, at(1, path="b.py"), path="a.py")) == ["DCP002", "DCP101"]


def test_broken_files_keep_their_suppressions() -> None:
    source = "# dcplint: ignore-file[DCP101] why\nclass A(:\n  x = '\n  ) @\n"
    assert codes(left(source, at(4))) == []


def test_unused_says_which() -> None:
    (finding,) = left("x = 1  # dcplint: ignore[DCP101,DCP303] why\n", at(1))
    assert finding.code == "DCP002" and finding.severity is Severity.WARNING
    assert "DCP303 (open-coded-length)" in finding.message
    assert (finding.location.column, finding.location.end_column) == (33, 39)
    assert finding.fingerprint


def test_the_narrower_suppression_is_the_one_that_is_needed() -> None:
    source = "# dcplint: ignore-file[DCP101] a\nx = 1  # dcplint: ignore[DCP101] b\n"
    (finding,) = left(source, at(2))
    assert (finding.code, finding.location.line) == ("DCP002", 1)


@pytest.mark.parametrize(
    "policy",
    [
        replace(POLICY, codes=POLICY.codes - {"DCP101"}),
        replace(POLICY, per_file_ignores=(("*.py", frozenset({"DCP101"})),)),
    ],
)
def test_rules_that_are_off_do_not_call_anything_unused(policy: Policy) -> None:
    assert not left("x = 1  # dcplint: ignore[DCP101] why\n", at(1), policy=policy)


def test_out_of_focus_suppressions_work_but_are_not_judged() -> None:
    source = "x = 1  # dcplint: ignore[DCP101] why\ny = 2  # dcplint: ignore[DCP303] why, what\n"
    assert not left(source + "z = 1  # dcplint: ignore\n", at(1), focus=False)


@pytest.mark.parametrize(
    ("comment", "reported"),
    [
        ("# dcplint: ignore[DCP101]", True),
        ("# dcplint: ignore[DCP101]  -- ", True),
        ("# dcplint: ignore[DCP101] # noqa", True),
        ("# dcplint: ignore-file[DCP101]:", True),
        ("# dcplint: ignore[DCP101] see #12", False),
        ("# dcplint: ignore[DCP101]: 名", False),
    ],
)
def test_reasons(comment: str, reported: bool) -> None:
    source = f"x = 1  {comment}\n"
    assert not left(source, at(1))
    wanted = replace(POLICY, codes=EVERY_CODE)
    assert codes(left(source, at(1), policy=wanted)) == (["DCP003"] if reported else [])


@pytest.mark.parametrize(
    ("comment", "text"),
    [
        ("# dcplint: ignore", "`ignore` must name the rules"),
        ("# dcplint: ignore DCP101 why", "`ignore` must name the rules"),
        ("# dcplint: ignore[] why", "`ignore` must name the rules"),
        ("# dcplint: ignore[ , ] why", "`ignore` must name the rules"),
        ("# dcplint: ignore-file", "`ignore-file` must name the rules"),
        ("# dcplint: ignore-next[DCP101]", "'ignore-next[DCP101]' is not understood"),
        ("# dcplint: disable=DCP101", "'disable=DCP101' is not understood"),
        ("# dcplint:", "'' is not understood"),
        ("# dcplint: ignore[DCP110] why", "'DCP110'; did you mean 'DCP101'?"),
        ("# dcplint: ignore[implicit-capabilty] why", "did you mean 'implicit-capability'?"),
        ("# dcplint: ignore[DCP1] why", "no rule is called 'DCP1'"),
        ("# dcplint: ignore[DCP002] why", "cannot be suppressed"),
        ("# dcplint: ignore[unused-suppression] why", "cannot be suppressed"),
    ],
)
def test_what_cannot_be_followed_is_an_error(comment: str, text: str) -> None:
    found = left(f"x = 1  {comment}\n", at(1))
    assert codes(found) == ["DCP101", "DCP004"]
    assert text in found[1].message and found[1].severity is Severity.ERROR


def test_known_rules_beside_unknown_ones_are_followed() -> None:
    found = left("x = 1  # dcplint: ignore[DCP9,DCP101] why\n", at(1))
    assert codes(found) == ["DCP004"]
    assert (found[0].location.column, found[0].location.end_column) == (26, 30)
