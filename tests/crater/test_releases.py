"""Whole releases: each finding as a committed fact, and each fact judged in the field notes.

After a wanted change: `pytest tests/crater -m crater --update-snapshots`, then read every new line
in the release's source and judge it in docs/field-notes.md.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.crater.judged import judged
from tests.crater.releases import RELEASES, Release, linked_copy
from tests.run.conftest import dcplint as dcplint
from tests.run.test_plugin import AGAINST
from tests.run.tree import Command, write_plugin

pytestmark = pytest.mark.crater

HERE = Path(__file__).parent
SNAPSHOTS = HERE / "snapshots"
Tree = Callable[[str], Path]

# The rules that have been judged on whole releases.
SELECT = "DCP001,DCP002,DCP1,DCP2,DCP3,DCP4"


def findings(dcplint: Command, *arguments: str | Path) -> list[str]:
    """`code severity path:line symbol` of each finding."""
    # One process: the others are busy with other tests.
    report = dcplint.json("check", *arguments, "--select", SELECT, "-j", "1")
    return [
        f"{f['code']} {f['severity']} {f['path']}:{f['line']} {f['symbol'] or '-'}"
        for f in report["findings"]
    ]


def committed(release: str) -> list[str]:
    """What `test_findings` holds the release to."""
    return (SNAPSHOTS / f"{release}.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_findings(
    dcplint: Command, tree: Tree, release: Release, request: pytest.FixtureRequest
) -> None:
    engine = ["--engine", release.engine] if release.engine else []
    found = findings(dcplint, tree(str(release)), *engine)
    if request.config.getoption("--update-snapshots"):
        SNAPSHOTS.mkdir(exist_ok=True)
        (SNAPSHOTS / f"{release}.txt").write_text("".join(f"{line}\n" for line in found))
    assert found == committed(str(release))


def test_two_releases_at_once_do_not_mix(dcplint: Command, tree: Tree) -> None:
    """Each has the findings that it has alone."""
    names = ("vllm-0.29.0", "vllm-0.30.0")
    together = findings(dcplint, *map(tree, names))
    for name in names:
        folder = f" {tree(name).name}/"
        of_it = [line.replace(folder, " ") for line in together if folder in line]
        assert sorted(of_it) == sorted(committed(name))
    assert len(together) == sum(len(committed(name)) for name in names)


def test_reverting_the_flip_is_caught(dcplint: Command, tree: Tree, tmp_path: Path) -> None:
    """With the base's default on again, exactly the concrete classes that say nothing are found."""
    release = tmp_path / "release"
    linked_copy(tree("vllm-0.30.0"), release)
    before = committed("vllm-0.30.0")
    silent = {
        f"{row['path']}:{row['line']} {row['class']}"
        for row in concrete(dcplint, release)
        if row["capabilities"]["supports_dcp"]["origin"] == "default"
    }
    base = release / "vllm" / "v1" / "attention" / "backend.py"
    text = base.read_text(encoding="utf-8")
    assert text.count("    supports_dcp: bool = False\n") == 1
    base.unlink()
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
    from_pack = findings(dcplint, plugin, "--engine", engine)
    from_source = findings(dcplint, plugin, "--engine-path", tree(engine.replace("==", "-")))
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
