"""Released wheels, pinned, fetched with pip and unpacked outside the repository.

Only their Python files are kept. `DCPLINT_CRATER_CACHE` says where; the default is below the
platform's temporary directory. A wheel of an engine has some 300 MB and is deleted once unpacked.
`python -m tests.crater.releases` fetches those that are missing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path


class OutOfReach(Exception):
    """The registry does not answer; the message says what is missing."""


@dataclass(frozen=True)
class Release:
    """A wheel. engine: what it is judged against, where it does not say so itself."""

    name: str
    version: str
    sha256: str
    engine: str = ""

    def __str__(self) -> str:
        return f"{self.name}-{self.version}"


RELEASES = (
    Release("vllm", "0.26.0", "adb1e4c9b46d0dfdb094121ae5aad670a42412dd813ed4e5db069ed6a15006de"),
    Release("vllm", "0.27.1", "98e9fc2a1ed8549a733c9d1b242e2002b82367da9e29e37801761438cb3a2670"),
    Release("vllm", "0.28.0", "addb0ffdaafd8155d75e9b3f5ddb3da28fdee9e8a7097ede91f7db2e9e1a3889"),
    Release("vllm", "0.29.0", "09d48617fc2be9c6cdcd5db480651ab0d84817b257204f2cc2e3ecbb70bbb635"),
    Release("vllm", "0.30.0", "ef52ee58c410ead0b8afb190838fa4cbcb52075596f67862a03859d984966ac4"),
    Release("vllm", "0.33.0", "4b6bdec4ab269990bf70d45a3c1e94c3760a27064513760193b26d6f0da883aa"),
    Release(
        "aphrodite-engine",
        "0.24.1",
        "66bb528c5daa96ccb5c0bbf5c942a02c5d1b67056bcf819d934ccd8730b40269",
    ),
    Release(
        "vllm-rbln", "0.12.0", "0af77bcf84421b15ffbb9625b880ce2184f6afa4cc720e91dd2c904d19ee2263"
    ),
    Release(
        "vllm-kunlun",
        "0.11.1",
        "b90e548395f4809a0b4aa592e2ba28f3871abc12938e46216524321bacfde8ab",
        "vllm==0.33.0",
    ),
    Release(
        "tpu-inference",
        "0.32.0",
        "7c25a3c76cefd383f06ef115a6ed4d7bed82c081f047046bfef55f5913ea06d4",
        "vllm==0.32.0",
    ),
    Release(
        "vllm-omni",
        "0.30.0",
        "141cb0c7b9c07970e5c92a99aab9696e81682dbfa3d2bfcde359c3c1533385f4",
        "vllm==0.30.0",
    ),
    Release(
        "vllm-ascend",
        "0.23.0",
        "536ba42ae5298cb4d313d876fa6e60cce686c41c6cf71161930e1fead0813b02",
        "vllm==0.30.0",
    ),
)

_GLIBC = ("2_28", "2_31", "2_34", "2_35", "2_17")
_TARGET = [
    *("--python-version", "3.12", "--implementation", "cp"),
    *(word for abi in ("cp312", "abi3", "cp38", "none") for word in ("--abi", abi)),
    *(word for glibc in _GLIBC for word in ("--platform", f"manylinux_{glibc}_x86_64")),
    *("--platform", "manylinux2014_x86_64", "--platform", "manylinux1_x86_64"),
    *("--platform", "any"),
]
_OUT_OF_REACH = (
    "NewConnectionError",
    "ConnectTimeoutError",
    "ReadTimeoutError",
    "ProxyError",
    "Temporary failure in name resolution",
    "Network is unreachable",
)


def cache() -> Path:
    """Where unpacked releases are kept."""
    named = os.environ.get("DCPLINT_CRATER_CACHE")
    return Path(named) if named else Path(tempfile.gettempdir()) / "dcplint-crater"


def linked_copy(release: Path, target: Path) -> None:
    """A copy whose files are links where the disk allows it: unlink what you write anew."""
    shutil.copytree(release, target, copy_function=_link)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy(source, target)


def fetch_all() -> dict[str, Path | OutOfReach]:
    """The unpacked releases by name. Downloads wait for the network, so several run at once."""
    with ThreadPoolExecutor(4) as pool:
        return dict(zip(map(str, RELEASES), pool.map(_fetched, RELEASES), strict=True))


def _fetched(release: Release) -> Path | OutOfReach:
    try:
        return unpacked(release)
    except OutOfReach as error:
        return error


def unpacked(release: Release) -> Path:
    """The folder with the Python files of a release. Raises OutOfReach."""
    target = cache() / f"{release}-{release.sha256[:12]}"
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            wheel = _download(release, Path(scratch))
            _unpack(wheel, Path(scratch) / "tree")
            try:
                (Path(scratch) / "tree").rename(target)
            except OSError:  # another process was faster
                assert target.is_dir()
    return target


def _download(release: Release, directory: Path) -> Path:
    pinned = directory / "pinned.txt"
    pinned.write_text(f"{release.name}=={release.version} --hash=sha256:{release.sha256}\n")
    options = ["--no-deps", "--only-binary=:all:", "--no-cache-dir", "--retries", "2"]
    command = [sys.executable, "-m", "pip", "download", "-q", *options, *_TARGET]
    done = subprocess.run(
        [*command, "--require-hashes", "-d", directory, "-r", pinned],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and any(sign in done.stderr for sign in _OUT_OF_REACH):
        raise OutOfReach(f"the package registry is out of reach, and {cache()} lacks {release}")
    assert done.returncode == 0, f"{release} cannot be fetched: {done.stderr.strip()}"
    (wheel,) = directory.glob("*.whl")
    return wheel


def _unpack(wheel: Path, directory: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.endswith((".py", ".dist-info/METADATA")):
                archive.extract(name, directory)


if __name__ == "__main__":
    fetch_all()
