"""Stand-ins for libraries that are not installed."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import textwrap
from pathlib import Path

_PRELUDE = """
import sys
from dcplint.harness.ledger import Unavailable
from dcplint.harness.standins import StandIns
sys.path.insert(0, {folder!r})
standins = StandIns()
standins.install()
"""


def _run(folder: Path, code: str) -> str:
    """Standard output of `code` in a process of its own: import hooks outlive a test."""
    program = _PRELUDE.format(folder=str(folder)) + textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_an_engine_needs_is_stood_in_for_and_what_it_can_do_without_is_not(
    tmp_path: Path,
) -> None:
    (tmp_path / "engine.py").write_text(
        "import absent_library.parts\n"
        "from absent_library import Base, decorate\n"
        "try:\n    import optional_library\nexcept ImportError:\n    optional_library = None\n"
        "class Mine(Base):\n    limit: Base | None = None\n"
        "@decorate\ndef function():\n    return 7\n"
    )
    said = _run(
        tmp_path,
        """
        engine = standins.import_module("engine")
        print(standins.names, engine.optional_library, engine.function(), engine.Mine.__name__)
        """,
    )
    assert said.split("\n")[0] == "['absent_library'] None 7 Mine"


def test_nothing_is_computed_by_a_stand_in_once_sealed(tmp_path: Path) -> None:
    (tmp_path / "engine.py").write_text(
        "import absent_library\ndef attend():\n    return absent_library.fast_attention()\n"
    )
    said = _run(
        tmp_path,
        """
        engine = standins.import_module("engine")
        standins.seal()
        try:
            engine.attend()
        except Unavailable as error:
            print(error)
        """,
    )
    assert said.strip() == "needs absent_library.fast_attention, which is not installed"


def test_configuration_keeps_its_defaults(tmp_path: Path) -> None:
    (tmp_path / "engine.py").write_text(
        "from pydantic import Field\nfrom pydantic.dataclasses import dataclass\n"
        "@dataclass(config=None)\nclass Config:\n"
        "    size: int = Field(default=3, ge=1)\n    names: list = Field(default_factory=list)\n"
    )
    said = _run(
        tmp_path,
        """
        standins.names.append("pydantic")
        print(standins.import_module("engine").Config())
        """,
    )
    assert said.strip() == "Config(size=3, names=[])"


def test_a_module_of_the_engine_that_is_missing_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "engine.py").write_text("")
    said = _run(
        tmp_path,
        """
        try:
            standins.import_module("engine.gone")
        except ModuleNotFoundError as error:
            print(error.name)
        """,
    )
    assert said.strip() == "engine.gone"


def test_versions_are_answered_for_what_is_stood_in_for(tmp_path: Path) -> None:
    said = _run(
        tmp_path,
        """
        from importlib.metadata import PackageNotFoundError, version
        standins.names.append("absent_library")
        standins.state_version("click", "0.0+cpu")
        print(version("absent-library"), version("click"), version("packaging"))
        """,
    )
    assert said.split() == ["999.0", "0.0+cpu", importlib.metadata.version("packaging")]
