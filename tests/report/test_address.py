"""The address of a rule's page comes from the distribution's metadata, or there is none."""

import json
from collections.abc import Iterator
from email.message import Message
from importlib import metadata

import pytest

from dcplint.report import address
from dcplint.report.formats import FORMATS
from dcplint.report.view import View
from tests.report.sample import REPORT


@pytest.fixture(autouse=True)
def _afresh() -> Iterator[None]:
    address.documentation.cache_clear()
    yield
    address.documentation.cache_clear()


def addresses(monkeypatch: pytest.MonkeyPatch, *listed: str) -> tuple[set[object], set[object]]:
    """What SARIF and JSON give for a distribution with these addresses."""
    found = Message()
    for line in listed:
        found["Project-URL"] = line
    monkeypatch.setattr(metadata, "metadata", lambda name: {"dcplint": found}[name])
    sarif, plain = (
        json.loads("\n".join(FORMATS[name](REPORT, View()))) for name in ("sarif", "json")
    )
    rules = {rule.get("helpUri") for rule in sarif["runs"][0]["tool"]["driver"]["rules"]}
    return rules, {finding["help_uri"] for finding in plain["findings"]}


def test_a_known_address(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = ("Source, https://host.invalid/x", "Documentation, https://host.invalid/docs/")
    rules, findings = addresses(monkeypatch, *listed)
    assert "https://host.invalid/docs/rules/DCP101.md" in rules and None not in rules
    assert findings == {f"https://host.invalid/docs/rules/{f.code}.md" for f in REPORT.findings}


def test_none_is_made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    rules, findings = addresses(monkeypatch, "Source, https://host.invalid/x")
    assert rules == findings == {None}
