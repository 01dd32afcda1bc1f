"""The hooks, run by pre-commit itself, from a scratch repository as users have it."""

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.docs.pages import blocks
from tests.run.tree import SILENT, write

ROOT = Path(__file__).parents[2]
PRE_COMMIT = "pre-commit==4.7.0"

CLEAN = SILENT.replace("    def __init__", "    supports_dcp = False\n\n    def __init__")
BASE = """\
from vllm.v1.attention.backend import AttentionImpl


class SharedBase(AttentionImpl):
    supports_dcp = False
"""
HEIR = """\
from .base import SharedBase


class HeirImpl(SharedBase):
    def __init__(self, *args): ...

    def forward(self, *args): ...
"""

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("pre-commit")]


def git(folder: Path, *args: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *identity, *args], cwd=folder, check=True, capture_output=True)
    return done.stdout.decode("utf-8", "surrogateescape")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """pre-commit in an environment of its own."""
    folder = tmp_path_factory.mktemp("pre-commit")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([folder / "bin" / "pip", "install", "-q", PRE_COMMIT], check=True)
    return folder / "bin" / "pre-commit"


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """This work tree as a repository, and the commit that holds it."""
    folder = tmp_path_factory.mktemp("dcplint")
    listed = git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            write(folder, {name: (ROOT / name).read_bytes()})
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "all of it")
    return folder, git(folder, "rev-parse", "HEAD").strip()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pre-commit keeps what it installed: once for all tests."""
    return tmp_path_factory.mktemp("home")


@dataclass
class Project:
    folder: Path
    environment: dict[str, str]

    def commit(self, files: dict[str, str | bytes]) -> tuple[int, str]:
        """Commit files the way people do; the status, and what pre-commit printed."""
        write(self.folder, files)
        git(self.folder, "add", "-A")
        done = subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-m", "x"],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
        )
        return done.returncode, (done.stdout + done.stderr).decode()

    def run(self, *args: str) -> tuple[int, str]:
        program = self.environment["PRE_COMMIT"]
        done = subprocess.run(
            [program, "run", *args], cwd=self.folder, env=self.environment, capture_output=True
        )
        return done.returncode, done.stdout.decode()


@pytest.fixture
def project(tmp_path: Path, installed: Path, hooks: tuple[Path, str], home: Path) -> Project:
    repository, revision = hooks
    config = f"""\
repos:
  - repo: {repository}
    rev: {revision}
    hooks:
      - id: dcplint
        args: [--engine, vllm==0.29.0]
      - id: dcplint-all
        args: [--engine, vllm==0.29.0]
        stages: [manual]
"""
    environment = {**os.environ, "PRE_COMMIT_HOME": str(home), "PRE_COMMIT": str(installed)}
    folder = tmp_path / "plugin of mine"
    folder.mkdir()
    git(folder, "init", "-q")
    found = Project(folder, environment)
    write(folder, {".pre-commit-config.yaml": config, "src/mine/__init__.py": ""})
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "0")
    subprocess.run([installed, "install"], cwd=folder, env=environment, check=True)
    return found


@pytest.mark.parametrize("page", ["README.md", "docs/integrations/pre-commit.md"])
def test_the_configuration_that_the_pages_write(
    project: Project, hooks: tuple[Path, str], page: str
) -> None:
    (script,) = (b.text for b in blocks("sh") if b.page == page and "hooks:" in b.text)
    first, _, rest = script.partition("\n")
    assert first.startswith("plugin=")
    (project.folder / ".pre-commit-config.yaml").unlink()
    script = f"plugin={shlex.quote(str(project.folder))}\n{rest}"
    subprocess.run(["bash", "-e", "-c", script], cwd=hooks[0], check=True)
    status, out = project.commit({"src/mine/impl.py": SILENT.replace("args):", "args, x=1):")})
    assert status == 0 and re.search(r"dcplint\.+Passed", out), out  # 0.30.0 claims nothing for it


def test_a_clean_commit_goes_through(project: Project) -> None:
    status, out = project.commit({"src/mine/impl.py": CLEAN})
    assert status == 0, out
    assert re.search(r"dcplint\.+Passed", out)
    assert git(project.folder, "log", "--oneline").count("\n") == 2


def test_a_failing_commit_is_stopped_and_told_why(project: Project) -> None:
    status, out = project.commit({"src/mine/impl.py": SILENT})
    assert status == 1
    assert "error[DCP101 implicit-capability]: `SilentImpl` never states `supports_dcp`" in out
    assert "--> src/mine/impl.py:4:1 in SilentImpl" in out
    assert git(project.folder, "log", "--oneline").count("\n") == 1
    assert project.commit({"src/mine/impl.py": CLEAN})[0] == 0


def test_fixes_are_left_in_the_work_tree_for_review(project: Project) -> None:
    config = project.folder / ".pre-commit-config.yaml"
    text = config.read_text()
    config.write_text(
        text.replace("[--engine, vllm==0.29.0]", "[--fix, --engine, vllm==0.29.0]", 1)
    )
    status, out = project.commit({"src/mine/impl.py": SILENT})
    assert status == 1 and "files were modified by this hook" in out, out
    assert git(project.folder, "log", "--oneline").count("\n") == 1
    assert git(project.folder, "show", ":src/mine/impl.py") == SILENT  # what was to be committed
    assert "+    supports_dcp = False\n" in git(project.folder, "diff")
    assert project.commit({})[0] == 0
    assert git(project.folder, "status", "--porcelain") == ""


def test_what_a_change_does_to_other_files_is_its_own(project: Project) -> None:
    """The base loses its word; the finding is on a subclass in a file that was not touched."""
    files = {"src/mine/base.py": BASE, "src/mine/heir.py": HEIR, "src/mine/other.py": CLEAN}
    assert project.commit(files)[0] == 0
    silent = BASE.replace("supports_dcp = False", "num_splits = 4")
    status, out = project.commit({"src/mine/base.py": silent})
    assert status == 1, out
    assert "--> src/mine/heir.py:4:1 in HeirImpl" in out
    assert out.count("DCP101 implicit-capability") == 1


def test_what_a_change_has_no_part_in_is_not_shown(project: Project) -> None:
    write(project.folder, {"src/mine/old.py": SILENT})
    git(project.folder, "add", "-A")
    git(project.folder, "commit", "-qm", "before dcplint", "--no-verify")
    status, out = project.commit({"src/mine/impl.py": CLEAN})
    assert status == 0, out
    status, out = project.run("--all-files", "--hook-stage", "manual", "dcplint-all")
    assert status == 1 and "src/mine/old.py:4:1" in out


def test_three_thousand_files(project: Project) -> None:
    """More than one command line holds: pre-commit calls the hook several times."""
    name = "a_module_whose_name_takes_its_share_of_the_command_line"
    files = {
        f"src/mine/part{n % 30}/{name}_{n}.py": f"x = {n}\n" if n % 100 else SILENT
        for n in range(3_000)
    }
    assert sum(map(len, files)) > 2**17
    status, out = project.commit(files)
    assert status == 1
    shown = re.findall(r"--> (src/\S+):4:1 in SilentImpl", out)
    assert sorted(shown) == sorted(path for path, text in files.items() if text == SILENT)


@pytest.mark.parametrize("name", ["a b,c:%20.py", "-n.py", "nä\u2028me.py", "line\nend.py"])
def test_odd_names(project: Project, name: str) -> None:
    status, out = project.commit({f"src/mine/{name}": SILENT})
    assert status == 1
    assert "SilentImpl" in out and "Traceback" not in out


def test_what_the_configuration_excludes_is_left_out(project: Project) -> None:
    settings = '[tool.dcplint]\nexclude = ["third_party/"]\n'
    files = {"pyproject.toml": settings, "third_party/theirs.py": SILENT}
    status, out = project.commit(dict(files))
    assert status == 0, out


def test_nothing_heavy_is_installed(project: Project, home: Path) -> None:
    project.commit({"src/mine/impl.py": CLEAN})
    packages = {path.name for path in home.glob("repo*/py_env*/lib/python*/site-packages/*")}
    assert "dcplint" in packages
    assert not packages & {"torch", "numpy", "triton", "vllm"}
