"""What the trace says of small programs is what happens when they run."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flow.laboratory import Laboratory

_PROGRAMS = Path(__file__).parent / "programs"


def _programs() -> Iterator[object]:
    """`=== name` starts a program, `--- name` another module of it. Names are unique in a file."""
    for path in sorted(_PROGRAMS.glob("*.txt")):
        for part in path.read_text(encoding="utf-8").split("=== ")[1:]:
            name, _, text = part.partition("\n")
            main, *others = text.split("--- ")
            modules = {h.partition("\n")[0]: h.partition("\n")[2] for h in others}
            yield pytest.param(name, main, modules, id=f"{path.stem}: {name}")


@pytest.mark.parametrize(("name", "main", "modules"), list(_programs()))
def test_trace_is_what_happens(
    name: str, main: str, modules: dict[str, str], tmp_path: Path
) -> None:
    laboratory = Laboratory.of(tmp_path, main, **modules)
    traced = laboratory.traced()
    if name.endswith(", unknown"):
        assert traced & {"unknown"}
    else:
        assert traced == laboratory.executed()
