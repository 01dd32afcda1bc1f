"""The quick start, done: every command of the page as it stands, in order, from a clean clone."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integrations.test_pre_commit import ROOT, git, hooks

__all__ = ["hooks"]

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("pre-commit")]

PAGE = ROOT / "docs" / "quick-start.md"
IDENTITY = {
    "GIT_AUTHOR_NAME": "t",
    "GIT_AUTHOR_EMAIL": "t@t",
    "GIT_COMMITTER_NAME": "t",
    "GIT_COMMITTER_EMAIL": "t@t",
}


def commands() -> Iterator[str]:
    """The page's blocks for one shell. One that says `status=1` must exit so."""
    text = PAGE.read_text(encoding="utf-8")
    for status, script in re.findall(r"^```sh(?: status=(\d))?\n(.*?)^```$", text, re.M | re.S):
        if status:
            yield f"status=0\n{script.rstrip()} || status=$?\ntest $status = {status}\n"
        else:
            yield script


def test_the_quick_start(hooks: tuple[Path, str], tmp_path: Path) -> None:
    repository, _ = hooks
    git(tmp_path, "clone", "-q", str(repository), "a clone")
    done = subprocess.run(
        ["bash", "-e", "-x", "-c", "\n".join(commands())],
        cwd=tmp_path / "a clone",
        env={**os.environ, **IDENTITY, "PRE_COMMIT_HOME": str(tmp_path / "home")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    folder = tmp_path / "my-plugin"
    assert "error[DCP101 implicit-capability]: `PagedImpl` never states" in done.stdout
    assert "What it flags" in done.stdout
    assert re.search(r"^dcplint\.+Failed$", done.stdout, re.MULTILINE)
    assert "supports_dcp = False" in (folder / "backend.py").read_text()
    assert "# dcplint: ignore[DCP101] only used for warm-up" in (folder / "other.py").read_text()
    assert git(folder, "log", "--format=%s").split("\n")[:2] == ["Warm up", "A backend"]
    assert git(folder, "status", "--porcelain") == ""
