"""SARIF: what code scanning and viewers rely on. The multitool's verdict is in test_multitool."""

import json
from dataclasses import replace
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dcplint.checks.base import all_rules
from dcplint.findings.changes import CloneValue
from dcplint.findings.model import Applicability, Edit, Finding, Fix, Location
from dcplint.harness.model import Confirmation, Execution, Verdict
from dcplint.report.formats import FORMATS
from dcplint.report.model import Report
from dcplint.report.view import View
from tests.report.sample import EMPTY, FALLBACK, IMPLICIT, KERNEL, REPORT


def run(report: Report) -> Any:
    text = "\n".join(FORMATS["sarif"](report, View()))
    assert text.isascii()
    (only,) = json.loads(text)["runs"]
    return only


def result(finding: Finding) -> Any:
    (only,) = run(replace(REPORT, findings=(finding,)))["results"]
    return only


def uri_of(location: Any) -> str:
    found = location["physicalLocation"]["artifactLocation"]["uri"]
    assert isinstance(found, str)
    return found


def test_rules_come_with_their_help() -> None:
    rules = run(EMPTY)["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [r.rule.code for r in all_rules()]
    (one,) = (rule for rule in rules if rule["id"] == "DCP101")
    assert one["name"] == "ImplicitCapability"
    assert "## Why it breaks" in one["help"]["markdown"]
    assert one["help"]["markdown"].startswith("# DCP101 implicit-capability\n")
    (off,) = (rule for rule in rules if rule["id"] == "DCP003")
    assert off["defaultConfiguration"] == {"level": "warning", "enabled": False}


@pytest.mark.parametrize("finding", REPORT.findings, ids=lambda f: f.code)
def test_results_point_at_their_rule(finding: Finding) -> None:
    found = result(finding)
    rules = run(EMPTY)["tool"]["driver"]["rules"]
    assert rules[found["ruleIndex"]]["id"] == found["ruleId"] == finding.code
    assert found["level"] == finding.severity.value
    assert found["partialFingerprints"] == {"dcplint/v1": finding.fingerprint}


def test_evidence_becomes_related_places_and_an_ordered_flow() -> None:
    found = result(IMPLICIT)
    related = found["relatedLocations"]
    assert [place["id"] for place in related] == [1, 2, 3, 4]
    assert related[0]["message"]["text"].startswith("origin: `supports_dcp` is true here")
    ((flow,),) = (f["threadFlows"] for f in found["codeFlows"])
    steps = [step["location"] for step in flow["locations"]]
    assert [s["message"] for s in steps[:-1]] == [place["message"] for place in related]
    assert uri_of(steps[-1]) == uri_of(found["locations"][0])
    assert steps[-1]["message"] == found["message"]


def test_a_finding_without_evidence_has_no_flow() -> None:
    assert not {"codeFlows", "relatedLocations", "fixes"} & result(KERNEL).keys()


def test_every_tree_has_its_base() -> None:
    sarif = run(REPORT)
    found = result(FALLBACK)["relatedLocations"] + result(IMPLICIT)["relatedLocations"]
    bases = {p["physicalLocation"]["artifactLocation"]["uriBaseId"] for p in found}
    assert bases == {"REPOSITORY", "ENGINE", "PACKS"} == sarif["originalUriBaseIds"].keys()
    assert found[0]["physicalLocation"]["region"]["snippet"]["text"] == "attn_metadata"


def test_a_region_of_several_lines_carries_their_text() -> None:
    text = result(FALLBACK)["locations"][0]["physicalLocation"]["region"]["snippet"]["text"]
    assert text.startswith("attn_metadata.dcp_local_seq_lens = get_dcp")
    assert text.endswith(",\n            )") and text.count("\n") == 7


CHANGE = CloneValue(Location("a b.py", 1), Location("a b.py", 1))


def test_fixes_replace_spans_of_their_files() -> None:
    edits = (
        Edit(Location("a b.py", 1, 2, 1, 4), "x"),
        Edit(Location("c.py", 3), "new\n"),
        Edit(Location("a b.py", 9, 1, 10, 1), ""),
    )
    (fix,) = result(replace(KERNEL, fix=Fix("do it", Applicability.UNSAFE, CHANGE, edits)))["fixes"]
    assert fix["description"]["text"] == "do it."
    assert fix["properties"] == {"applicability": "unsafe"}
    first, second = fix["artifactChanges"]
    assert first["artifactLocation"] == {"uri": "a%20b.py", "uriBaseId": "REPOSITORY"}
    assert [r["insertedContent"]["text"] for r in first["replacements"]] == ["x", ""]
    assert second["replacements"][0]["deletedRegion"] == {
        "startLine": 3,
        "startColumn": 1,
        "endLine": 3,
        "endColumn": 1,
    }


def test_a_fix_whose_edits_nobody_worked_out_is_left_out() -> None:
    assert IMPLICIT.fix is not None
    assert "fixes" not in result(replace(IMPLICIT, fix=replace(IMPLICIT.fix, edits=())))


def confirmation(verdict: Verdict) -> Confirmation:
    return Confirmation(
        verdict=verdict,
        reason="the merged output differs",
        execution=Execution.INTERPRETED,
        ranks="emulated",
        environment={"torch": "2.13.0"},
        signal=None,
        measured=float("inf"),
        tolerance=1e-6,
        control="passed",
        seed=0,
        repro="",
    )


CONFIRMED = replace(REPORT, confirmations={KERNEL.fingerprint: confirmation(Verdict.CONFIRMED)})


def test_what_the_harness_said_is_in_the_properties() -> None:
    results = run(CONFIRMED)["results"]
    shown = {r["partialFingerprints"]["dcplint/v1"]: r for r in results}
    mine = shown.pop(KERNEL.fingerprint)
    assert mine["properties"]["confirmation"]["verdict"] == "confirmed"
    assert mine["properties"]["confirmation"]["measured"] is None
    assert mine["message"]["text"].endswith(" [confirmed, interpreted: the merged output differs].")
    assert not any(r["properties"]["confirmation"] for r in shown.values())


@given(st.text(st.sampled_from("a %:?#\\;&=\n\r,ä\udc80") | st.characters(), min_size=1))
def test_uris_lead_back_to_the_path(path: str) -> None:
    try:
        path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return  # no path on disk
    uri = uri_of(result(replace(KERNEL, location=Location(path, 1)))["locations"][0])
    split = urlsplit(uri)
    assert (split.scheme, split.netloc, split.query, split.fragment) == ("", "", "", "")
    assert unquote(uri, errors="surrogateescape") == path


def test_paths_are_those_of_the_repository() -> None:
    found = run(replace(REPORT, findings=(KERNEL,), repository="sub/", prefix="../"))
    assert uri_of(found["results"][0]["locations"][0]) == "sub/src/plugin/impl.py"
