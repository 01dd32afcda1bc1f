"""Small trees on disk and the command run over them in this process."""

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dcplint.cli.main import main
from dcplint.data import data_dir

PLUGIN = data_dir("fixtures") / "plugin_project"

SILENT = """\
from vllm.v1.attention.backend import AttentionImpl


class SilentImpl(AttentionImpl):
    def __init__(self, *args): ...

    def forward(self, *args): ...
"""

# As much of an engine as its contract speaks of. {default} is what the base says of supports_dcp.
ENGINE = {
    "vllm/__init__.py": "",
    "vllm/v1/__init__.py": "",
    "vllm/v1/attention/__init__.py": "",
    "vllm/v1/attention/backend.py": """\
from abc import ABC, abstractmethod


class AttentionImplBase(ABC):
    can_return_lse_for_decode: bool = False
    supports_dcp: bool = {default}

    def __new__(cls, *args, **kwargs):
        self = super().__new__(cls)
        self.need_to_return_lse_for_decode = self.can_return_lse_for_decode
        return self


class AttentionImpl(AttentionImplBase):
    @abstractmethod
    def forward(self, *args): ...


class AttentionBackend(ABC):
    @classmethod
    def supports_dcp(cls) -> bool:
        return cls.get_impl_cls().supports_dcp

    @staticmethod
    @abstractmethod
    def get_impl_cls(): ...
""",
    "vllm/v1/attention/backends/__init__.py": "",
    "vllm/v1/attention/backends/stated.py": """\
from vllm.v1.attention.backend import AttentionImpl


class StatedImpl(AttentionImpl):
    supports_dcp = True
    can_return_lse_for_decode = True

    def forward(self, *args): ...
""",
    "vllm/v1/attention/backends/silent.py": """\
from vllm.v1.attention.backend import AttentionImpl


class SilentImpl(AttentionImpl):
    def forward(self, *args): ...


class StillAbstractImpl(AttentionImpl):
    num_splits = 8
""",
    "vllm/v1/attention/backends/below.py": """\
from vllm.v1.attention.backends.silent import SilentImpl
from vllm.v1.attention.backends.stated import StatedImpl


class BelowSilentImpl(SilentImpl):
    num_splits = 4


class BelowStatedImpl(StatedImpl):
    num_splits = 4
""",
}


def write(directory: Path, files: dict[str, str | bytes]) -> Path:
    """Write a tree."""
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return directory


def write_engine(directory: Path, release: str, default: bool) -> Path:
    """An unpacked release of the small engine, as a wheel leaves it."""
    files = {name: text.replace("{default}", str(default)) for name, text in ENGINE.items()}
    files[f"vllm-{release}.dist-info/METADATA"] = f"Name: vllm\nVersion: {release}\n"
    return write(directory, dict(files))


def write_plugin(directory: Path) -> Path:
    """A copy of the plugin project, where nothing around it says anything."""
    shutil.copytree(PLUGIN, directory, ignore=shutil.ignore_patterns("__pycache__"))
    return directory


@dataclass
class Command:
    """Runs dcplint and keeps what it said."""

    capsys: pytest.CaptureFixture[str]
    status: int = 0
    out: str = ""
    err: str = ""

    def __call__(self, *args: str | Path) -> "Command":
        with pytest.raises(SystemExit) as exit_:
            main([str(argument) for argument in args])
        shown = self.capsys.readouterr()
        assert isinstance(exit_.value.code, int)
        self.status, self.out, self.err = exit_.value.code, shown.out, shown.err
        return self

    def check(self, *args: str | Path) -> "Command":
        """`dcplint check`, one line a finding."""
        return self("check", *args, "--output-format", "concise", "-q")

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def verdicts(self) -> list[tuple[str, str]]:
        """(code, class) of each finding, whatever its file is called."""
        return sorted(
            (code, name.partition(".")[0])
            for line in self.lines
            for code, name in re.findall(r"(DCP\d+) .*?`(\w+)`", line)[:1]
        )

    def json(self, *args: str | Path) -> dict[str, Any]:
        """The JSON of a command."""
        found = json.loads(self(*args, "--output-format", "json").out)
        assert isinstance(found, dict)
        return found
