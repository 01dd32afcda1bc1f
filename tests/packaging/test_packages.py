"""Wheel, sdist and editable install carry the same things, and work from any directory."""

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from collections.abc import Iterable
from email.parser import HeaderParser
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from dcplint import __version__

ROOT = Path(__file__).parents[2]
DATA = ("rules", "kernels", "fixtures")

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("packages")]


def run(*args: str | Path, cwd: Path) -> "subprocess.CompletedProcess[str]":
    env = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PIP_"))
    }
    return subprocess.run(
        [*map(str, args)], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )


def build(kind: str, source: Path, target: Path) -> Path:
    result = run(sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", target, cwd=source)
    assert result.returncode == 0, result.stderr
    (package,) = target.iterdir()
    return package


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked sdist."""
    sdist = build("sdist", ROOT, tmp_path_factory.mktemp("sdist"))
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (root,) = folder.iterdir()
    return root


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def tracked(folders: Iterable[str]) -> set[str]:
    """The files that git tracks or would track, in these folders."""
    command = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *folders)
    listed = run(*command, cwd=ROOT).stdout.split("\0")
    return {name for name in listed if name and (ROOT / name).exists()}


def test_the_wheel_holds_the_package_and_its_data_only(wheel: Path) -> None:
    expected = tracked(["dcplint"]) | {f"dcplint/_{name}" for name in tracked(DATA)}
    info = f"dcplint-{__version__}.dist-info"
    found = names(wheel)
    assert {name for name in found if not name.startswith(f"{info}/")} == expected
    assert f"{info}/licenses/LICENSE" in found
    assert {"dcplint/_rules/finding.schema.json", "dcplint/_rules/pack.schema.json"} <= found


def test_torch_is_no_dependency(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read(f"dcplint-{__version__}.dist-info/METADATA").decode()
    metadata = HeaderParser().parsestr(text)
    needed = [Requirement(line) for line in metadata.get_all("Requires-Dist", [])]
    always = {r.name for r in needed if "extra" not in str(r.marker or "")}
    assert always == {"click", "libcst", "packaging", "pathspec", "pyyaml", "tomli"}
    light = {r.name for r in needed if "extra == 'test'" in str(r.marker).replace('"', "'")}
    assert light and not light & {"torch", "triton", "numpy"}


def test_a_wheel_from_the_sdist_is_the_same(wheel: Path, unpacked: Path, tmp_path: Path) -> None:
    assert names(build("wheel", unpacked, tmp_path / "again")) == names(wheel)


@pytest.fixture(params=["wheel", "sdist", "editable"])
def python(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The interpreter of a new environment with dcplint installed, and the test's own libraries."""
    what = {
        "wheel": lambda: [request.getfixturevalue("wheel")],
        "sdist": lambda: [request.getfixturevalue("unpacked")],
        "editable": lambda: ["-e", ROOT],
    }[request.param]()
    venv.create(tmp_path / "env", symlinks=True)
    python = tmp_path / "env" / "bin" / "python"
    site = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path)
    # A path in a .pth file comes after the environment's own folder, so its dcplint is found first.
    libraries = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    Path(site.stdout.strip(), "libraries.pth").write_text("\n".join(libraries) + "\n")
    options = ("--no-deps", "--no-index", "--no-build-isolation", "--ignore-installed", "-q")
    result = run(python, "-m", "pip", "install", *options, *what, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    return python


def test_it_works_from_any_directory(python: Path, tmp_path: Path) -> None:
    dcplint = python.parent / "dcplint"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert run(dcplint, "--version", cwd=elsewhere).stdout == f"dcplint, version {__version__}\n"
    assert "rules/vllm.yaml" in run(dcplint, "packs", cwd=elsewhere).stdout
    assert "What it flags" in run(dcplint, "rule", "DCP101", cwd=elsewhere).stdout
    find = "from dcplint.data import data_dir; print(*map(data_dir, %r), sep='\\n')"
    found = run(python, "-c", find % (DATA,), cwd=elsewhere).stdout.split("\n")
    rules, kernels, fixtures, _ = map(Path, found)
    assert (rules / "finding.schema.json").is_file()
    assert (kernels / "lse_merge.py").is_file()
    plugin = fixtures / "plugin_project"
    result = run(dcplint, "check", plugin, "--output-format", "json", cwd=elsewhere)
    assert result.returncode == 1, result.stderr
    report = json.loads(result.stdout)
    assert [f["code"] for f in report["findings"]] == ["DCP104", "DCP104", "DCP108"]
