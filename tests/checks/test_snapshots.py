"""The full text of each rule's first fault, evidence included.

After a wanted change: `pytest tests/checks --update-snapshots`, and read the diff as the maintainer
of the engine would.
"""

import re
from dataclasses import replace
from pathlib import Path

import pytest

import dcplint
from dcplint.checks.base import Registered
from dcplint.report.formats import FORMATS
from dcplint.report.view import View
from tests.checks.fixture import CODED, Fixture, fixtures

SNAPSHOTS = Path(__file__).parent / "snapshots"
# Where in the pack a fact stands is no part of the argument.
_PACK_LINE = re.compile(r"(vllm\.yaml:)\d+((?::1 \(pack\)\n +\|\n)?)(?:\d+(?= \|))?")


def _first_fault(registered: Registered) -> Fixture:
    folder = registered.module.rpartition(".")[2]
    return next(f for f in fixtures() if f.path.parent.name == folder and f.is_bad)


@pytest.mark.parametrize("registered", CODED, ids=lambda r: r.rule.code)
def test_text_is_the_snapshot(
    registered: Registered, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    report = _first_fault(registered).lint(tmp_path)
    lines = FORMATS["text"](replace(report, seconds=0.0), View())
    text = _PACK_LINE.sub(r"\1N\2", "".join(f"{line}\n" for line in lines))
    text = text.replace(str(Path(dcplint.__file__).parent), "DIR")
    path = SNAPSHOTS / f"{registered.rule.code}.txt"
    if request.config.getoption("--update-snapshots"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_no_snapshot_is_left_over() -> None:
    assert {path.stem for path in SNAPSHOTS.iterdir()} == {r.rule.code for r in CODED}
