"""The quick start, done: every command of the page in order, in an empty folder."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.integrations.test_pre_commit import ROOT, git, hooks

__all__ = ["hooks"]

PAGE = ROOT / "docs" / "quick-start.md"
IDENTITY = {
    "GIT_AUTHOR_NAME": "t",
    "GIT_AUTHOR_EMAIL": "t@t",
    "GIT_COMMITTER_NAME": "t",
    "GIT_COMMITTER_EMAIL": "t@t",
}


@pytest.mark.slow
def test_the_quick_start(hooks: tuple[Path, str], tmp_path: Path) -> None:
    repository, revision = hooks
    git(repository, "tag", "v0.1.0", revision)
    text = PAGE.read_text(encoding="utf-8")
    said = []
    folder = tmp_path
    environment = {**os.environ, **IDENTITY, "PRE_COMMIT_HOME": str(tmp_path / "home")}
    for status, script in re.findall(r"^```sh(?: status=(\d))?\n(.*?)^```$", text, re.M | re.S):
        script = script.replace("https://example.com/dcplint.git", f"file://{repository}")
        done = subprocess.run(
            ["bash", "-e", "-c", script],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
        )
        said.append(done.stdout + done.stderr)
        assert done.returncode == int(status or 0), f"{script}\n{said[-1]}"
        folder = tmp_path / "my-plugin"
    whole = "\n".join(said)
    assert "`PagedImpl` never states `supports_dcp`" in whole
    assert "DCP101 implicit-capability" in whole
    assert "supports_dcp = False" in (folder / "backend.py").read_text()
    assert "# dcplint: ignore[DCP101] only used for warm-up" in (folder / "other.py").read_text()
    assert git(folder, "log", "--format=%s").split("\n")[:2] == ["Warm up", "A backend"]
    assert git(folder, "status", "--porcelain") == ""
