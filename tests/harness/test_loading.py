"""Foreign files are the modules that their project takes them for, wherever dcplint runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_LOAD = (
    "import sys; from pathlib import Path\n"
    "from dcplint.harness.loading import load_file\n"
    "module = load_file(Path(sys.argv[1]))\n"
    "print(module.__name__, module.ANSWER)\n"
)


def _project(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def _load(file: Path) -> str:
    command = [sys.executable, "-c", _LOAD, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", check=False)
    return done.stdout.strip() or done.stderr


@pytest.mark.parametrize(
    ("imported", "name"),
    [
        ("from org.tide.kernels import ANSWER", "org.tide.backend"),
        ("from org.tide import kernels\nANSWER = kernels.ANSWER", "org.tide.backend"),
        ("import org.tide.kernels\nANSWER = org.tide.kernels.ANSWER", "org.tide.backend"),
        ("def later():\n    import org.tide\nANSWER = 42", "org.tide.backend"),
        ("from .kernels import ANSWER", "tide.backend"),
        ("from . import kernels\nANSWER = kernels.ANSWER", "tide.backend"),
        ("from ..tide.kernels import ANSWER", "org.tide.backend"),
    ],
)
@pytest.mark.parametrize("layout", ["", "src/"])
def test_a_namespace_package_bears_the_name_it_is_imported_by(
    tmp_path: Path, layout: str, imported: str, name: str
) -> None:
    home = f"{layout}org/tide/"
    _project(tmp_path, {f"{home}kernels.py": "ANSWER = 42\n", f"{home}backend.py": imported})
    assert _load(tmp_path / home / "backend.py") == f"{name} 42"


def test_a_package_lies_in_the_namespace_that_a_neighbour_names(tmp_path: Path) -> None:
    _project(
        tmp_path,
        {
            "org/tide/__init__.py": "",
            "org/tide/backend.py": "from .kernels import ANSWER\n",
            "org/tide/kernels.py": "from org.tide.sizes import ANSWER\n",
            "org/tide/sizes.py": "ANSWER = 42\n",
        },
    )
    assert _load(tmp_path / "org/tide/backend.py") == "org.tide.backend 42"


def test_a_folder_named_as_a_library_is_not_taken_for_it(tmp_path: Path) -> None:
    """A checkout of `json`, say, in which a plugin of it lies: the library is meant."""
    _project(tmp_path, {"json/plugin/backend.py": "import json\nANSWER = json.loads('42')\n"})
    said = _load(tmp_path / "json/plugin/backend.py")
    assert said.endswith(" 42"), said


def test_lone_files_of_one_name_are_two_modules_with_neighbours_of_their_own(
    tmp_path: Path,
) -> None:
    _project(
        tmp_path,
        {
            "one/backend.py": "from sizes import ANSWER\n",
            "one/sizes.py": "ANSWER = 1\n",
            "one/json.py": "raise AssertionError('found before the library')\n",
            "two/backend.py": "import json\nANSWER = 2\n",
        },
    )
    program = (
        "import sys; from pathlib import Path\n"
        "from dcplint.harness.loading import load_file\n"
        "print(*(load_file(Path(p)).ANSWER for p in sys.argv[1:]))\n"
    )
    files = [str(tmp_path / place / "backend.py") for place in ("one", "two")]
    command = [sys.executable, "-c", program, *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "1 2\n", done.stderr
