"""Full output of each format over one sample report.

After a wanted change: `pytest tests/report --update-snapshots`, and read the diff.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

import dcplint
from dcplint.report.formats import FORMATS
from dcplint.report.summary import statistics
from dcplint.report.view import View
from tests.report.sample import EMPTY, REPORT

SNAPSHOTS = Path(__file__).parent / "snapshots"

CASES = {
    "text": partial(FORMATS["text"], REPORT, View()),
    "text-narrow": partial(FORMATS["text"], REPORT, View(width=40)),
    "text-color": partial(FORMATS["text"], REPORT, View(color=True)),
    "text-quiet": partial(FORMATS["text"], REPORT, View(summary=False)),
    "text-empty": partial(FORMATS["text"], EMPTY, View()),
    "concise": partial(FORMATS["concise"], REPORT, View()),
    "concise-color": partial(FORMATS["concise"], REPORT, View(color=True)),
    "github": partial(FORMATS["github"], REPORT, View()),
    "gitlab": partial(FORMATS["gitlab"], REPORT, View()),
    "json": partial(FORMATS["json"], REPORT, View()),
    "junit": partial(FORMATS["junit"], REPORT, View()),
    "junit-empty": partial(FORMATS["junit"], EMPTY, View()),
    "markdown": partial(FORMATS["markdown"], REPORT, View()),
    "statistics": partial(statistics, REPORT, View()),
    "statistics-color": partial(statistics, REPORT, View(color=True)),
}


@pytest.mark.parametrize("name", CASES)
def test_output_is_the_snapshot(name: str, request: pytest.FixtureRequest) -> None:
    lines: Iterator[str] = CASES[name]()
    text = "".join(f"{line}\n" for line in lines).replace(f'"{dcplint.__version__}"', '"VERSION"')
    path = SNAPSHOTS / f"{name}.txt"
    if request.config.getoption("--update-snapshots"):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode("utf-8", "backslashreplace"))
    assert text.encode("utf-8", "backslashreplace") == path.read_bytes()


def test_no_snapshot_is_left_over() -> None:
    assert {path.stem for path in SNAPSHOTS.iterdir()} == CASES.keys()
