"""The corpus and the peers: fetched once, pinned, kept outside the repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ENGINES = (
    ("vllm", "0.33.0"),
    ("vllm", "0.30.0"),
    ("aphrodite-engine", "0.24.1"),
    ("sglang", "0.5.23"),
)
PEERS = {
    "ruff": "ruff==0.17.6",
    "semgrep": "semgrep",
    "ast-grep": "ast-grep-cli",
    "fixit": "fixit",
}
_PLATFORMS = tuple(f"manylinux_2_{minor}_x86_64" for minor in (35, 34, 31, 28, 17))


def cache() -> Path:
    """Where everything fetched lies."""
    default = Path.home() / ".cache" / "dcplint-bench"
    return Path(os.environ.get("DCPLINT_BENCH_CACHE", default))


def engine(name: str, release: str) -> Path:
    """The Python files of a released wheel, unpacked once."""
    target = cache() / f"{name}-{release}"
    if target.is_dir():
        return target
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", scratch]
        command += ["--only-binary=:all:", "--python-version", "3.12", "--implementation", "cp"]
        for abi in ("cp312", "abi3", "cp38", "none"):
            command += ["--abi", abi]
        for platform in (*_PLATFORMS, "manylinux2014_x86_64", "manylinux1_x86_64", "any"):
            command += ["--platform", platform]
        subprocess.run([*command, f"{name}=={release}"], check=True)
        (wheel,) = Path(scratch).glob("*.whl")
        unpacked = Path(scratch) / "unpacked"
        with zipfile.ZipFile(wheel) as archive:
            wanted = [n for n in archive.namelist() if n.endswith((".py", "/METADATA"))]
            archive.extractall(unpacked, wanted)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(unpacked, target)
    return target


def peer(name: str) -> Path:
    """The folder of a peer's executables, installed once in an environment of its own."""
    home = cache() / f"venv-{name}"
    if not home.is_dir():
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        subprocess.run([home / "bin" / "pip", "install", "-q", PEERS[name]], check=True)
    return home / "bin"
