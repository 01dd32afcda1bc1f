"""The real command in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parents[2]
MAIN = "from dcplint.cli.main import main; main()"


def dcplint(
    *args: str | Path | bytes,
    cwd: Path,
    env: dict[str, str] | None = None,
    stdin: bytes = b"",
    stdout: IO[bytes] | int = subprocess.PIPE,
    code: str = MAIN,
    options: tuple[str, ...] = (),
) -> "subprocess.CompletedProcess[Any]":
    return subprocess.run(
        [sys.executable, *options, "-c", code, *args],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", **(env or {})},
        input=stdin,
        stdout=stdout,
        stderr=subprocess.PIPE,
        check=False,
    )
