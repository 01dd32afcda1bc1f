"""Whole releases: each finding as a committed fact, and each fact judged in the field notes.

After a wanted change: `pytest tests/crater -m crater --update-snapshots`, then read every new line
in the release's source and judge it in docs/field-notes.md.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.crater.judged import judged
from tests.crater.releases import RELEASES, Release
from tests.run.conftest import dcplint as dcplint
from tests.run.test_plugin import AGAINST
from tests.run.tree import Command, write_plugin

pytestmark = pytest.mark.crater

HERE = Path(__file__).parent
SNAPSHOTS = HERE / "snapshots"
Tree = Callable[[str], Path]

# The rules that have been judged on whole releases.
SELECT = "DCP001,DCP002,DCP101,DCP102,DCP103,DCP104,DCP105,DCP106,DCP107,DCP108,DCP109,DCP2"


def findings(dcplint: Command, directory: Path, engine: str = "") -> list[str]:
    """`code severity path:line symbol` of each finding."""
    options = ["--engine", engine] if engine else []
    report = dcplint.json("check", directory, "--select", SELECT, *options)
    return [
        f"{f['code']} {f['severity']} {f['path']}:{f['line']} {f['symbol'] or '-'}"
        for f in report["findings"]
    ]


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_findings(
    dcplint: Command, tree: Tree, release: Release, request: pytest.FixtureRequest
) -> None:
    found = findings(dcplint, tree(str(release)), release.engine)
    path = SNAPSHOTS / f"{release}.txt"
    if request.config.getoption("--update-snapshots"):
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in found))
    assert found == path.read_text().splitlines()


def test_two_releases_at_once_do_not_mix(dcplint: Command, tree: Tree) -> None:
    old, new = tree("vllm-0.29.0"), tree("vllm-0.30.0")
    alone = {str(d): len(findings(dcplint, d)) for d in (old, new)}
    report = dcplint.json("check", old, new, "--select", SELECT)
    together = [f["path"].partition("/")[0] for f in report["findings"]]
    assert {d: together.count(Path(d).name) for d in alone} == alone


def test_reverting_the_flip_is_caught(dcplint: Command, tree: Tree, tmp_path: Path) -> None:
    """With the base's default on again, exactly the concrete classes that say nothing are found."""
    release = tmp_path / "release"
    shutil.copytree(tree("vllm-0.30.0"), release)
    before = set(findings(dcplint, release))
    silent = {
        f"{row['path']}:{row['line']} {row['class']}"
        for row in concrete(dcplint, release)
        if row["capabilities"]["supports_dcp"]["origin"] == "default"
    }
    base = release / "vllm" / "v1" / "attention" / "backend.py"
    text = base.read_text(encoding="utf-8")
    assert text.count("    supports_dcp: bool = False\n") == 1
    base.write_text(
        text.replace("    supports_dcp: bool = False\n", "    supports_dcp: bool = True\n")
    )
    added = [line.split(" ", 2) for line in findings(dcplint, release) if line not in before]
    assert {place for code, _, place in added if code == "DCP101"} == silent
    assert [place for code, _, place in added if code != "DCP101"] == [
        "vllm/v1/attention/backend.py:805 AttentionImplBase.supports_dcp"
    ]
    assert len(silent) == 21


def concrete(dcplint: Command, directory: Path) -> list[dict[str, Any]]:
    shown = dcplint.json("capabilities", directory)
    return [row for m in shown["matrices"] for row in m["classes"] if row["level"] == "concrete"]


def test_capabilities_are_the_facts(dcplint: Command, tree: Tree) -> None:
    """Every class of 0.29.0, as it was read by hand: what it says, who says it, and where."""
    shown = dcplint.json("capabilities", tree("vllm-0.29.0"))
    found = {
        f"{row['path']}:{row['line']}": row
        for matrix in shown["matrices"]
        for row in matrix["classes"]
    }
    lines = (HERE / "capabilities-vllm-0.29.0.tsv").read_text(encoding="utf-8").splitlines()
    header, *facts = [line.split("\t") for line in lines]
    assert found.keys() == {fact[1] for fact in facts}
    for fact in facts:
        known = dict(zip(header, fact, strict=True))
        row = found[known["place"]]
        assert row["class"] == known["class"]
        for name, said in row["capabilities"].items():
            at = said["at"]
            told = {
                name: "unknown" if said["value"] is None else str(said["value"]),
                f"{name} kind": said["origin"],
                f"{name} at": f"{at['class']}@{at['path']}:{at['line']}" if at else "-",
            }
            assert told.items() <= {**told, **known}.items(), f"{known['class']}: {told}"


@pytest.mark.parametrize("engine", AGAINST)
def test_a_plugin_is_judged_alike_with_and_without_source(
    dcplint: Command, tree: Tree, engine: str, tmp_path: Path
) -> None:
    plugin = write_plugin(tmp_path / "plugin")
    if engine == "vllm==0.25.1":
        pytest.skip("that release is not among the pinned ones")
    from_pack = findings(dcplint, plugin, engine)
    source = tree(engine.replace("==", "-"))
    report = dcplint.json("check", plugin, "--select", SELECT, "--engine-path", source)
    from_source = [
        f"{f['code']} {f['severity']} {f['path']}:{f['line']} {f['symbol']}"
        for f in report["findings"]
    ]
    assert from_pack == from_source
    assert [line.split(" ", 1)[0] for line in from_pack] == [c for c, _, _ in AGAINST[engine]]


def test_every_finding_is_judged() -> None:
    """Needs no release: the snapshots and the notes must speak of the same findings."""
    found = {
        (path.stem, code, place.rpartition(":")[0], int(place.rpartition(":")[2]), symbol)
        for path in SNAPSHOTS.glob("*.txt")
        for code, _, place, symbol in (line.split() for line in path.read_text().splitlines())
    }
    notes = {(j.release, j.code, j.path, j.line, j.symbol) for j in judged()}
    assert sorted(found - notes) == [], "findings without a judged line"
    assert sorted(notes - found) == [], "lines about findings that are no more"


def test_verdicts_are_given() -> None:
    assert all(j.verdict.startswith(("right", "wrong")) for j in judged())
    assert not [j for j in judged() if j.verdict.startswith("wrong")]
