"""What this machine lacks, in words, from what a run raised."""

from __future__ import annotations

import ast
import importlib.util
import linecache
import re
import traceback
from pathlib import Path
from typing import Any

from dcplint.harness.ledger import Unavailable

COMPILED_OP = "needs a compiled op of the engine:"

_EXTENSION = re.compile(r"\b\w+(?:\.\w+)*\._\w*C\b")  # of an engine, by its name
_ENGINE_SIDE = Path(__file__).parent / "vllm"  # what the harness puts in an engine's place
_NO_CARD = ("Torch not compiled with CUDA", "No CUDA GPUs", "Cannot access accelerator device")
_LONGEST = 120  # characters of a quoted statement


def lacking(error: Any) -> str:
    """What this machine lacks, where that is why a run failed; empty where it is not."""
    from dcplint.harness.driver import Refused

    while isinstance(error, BaseException) and not isinstance(error, Refused):
        said = str(error)
        if isinstance(error, Unavailable):
            return said
        if isinstance(error, ImportError):
            return f"needs what cannot be imported here: {said}"
        if _is_ours(error):
            return f"what stands in for the engine does not do: {type(error).__name__}: {said}"
        if "_OpNamespace" in said:
            return f"{COMPILED_OP} {said.rpartition(' ')[2]}"
        unbuilt = _EXTENSION.search(said)
        if unbuilt is not None and not _is_there(unbuilt[0]):
            return f"needs a compiled extension of the engine: {unbuilt[0]}"
        if isinstance(error, NameError):
            elsewhere = _imported_elsewhere(error)
            if elsewhere:
                return elsewhere
        if any(words in said for words in _NO_CARD):
            frames = traceback.extract_tb(error.__traceback__)
            maker = "AMD" if any("rocm" in Path(f.filename).stem for f in frames) else "NVIDIA"
            return f"needs a card of {maker} and a torch built for it, {_quote(_foreign(frames))}"
        error = error.__cause__
    return ""


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        return False


def _imported_elsewhere(error: NameError) -> str:
    """What a module imports on another platform only; empty for a name that it never has."""
    frames = traceback.extract_tb(error.__traceback__)
    path = frames[-1].filename if frames else ""
    try:
        tree = ast.parse("".join(linecache.getlines(path)))
    except (SyntaxError, ValueError):
        return ""
    for branch in (node for node in tree.body if isinstance(node, ast.If)):
        for node in ast.walk(branch):
            names = node.names if isinstance(node, ast.Import | ast.ImportFrom) else ()
            if error.name in {alias.asname or alias.name for alias in names}:
                place = f"{Path(path).name}:{branch.lineno}"
                test = ast.unparse(branch.test)
                return f"needs `{error.name}`, which {place} imports only if `{test}` or the like"
    return ""


def describe(error: BaseException) -> str:
    """Type and words of an exception, and the statement that raised it where those say little."""
    frames = traceback.extract_tb(error.__traceback__)
    said = f"{type(error).__name__}: {error}".removesuffix(": ")
    if not frames:
        return said
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}"
    if str(error) and "NoneType" not in str(error) and not isinstance(error, KeyError):
        return f"{said}{where}"
    return f"{said}, {_quote(_foreign(frames))}"


def _foreign(frames: traceback.StackSummary) -> traceback.FrameSummary:
    """The innermost frame that is not of torch."""
    return next((f for f in reversed(frames) if "torch" not in Path(f.filename).parts), frames[-1])


def _quote(frame: traceback.FrameSummary) -> str:
    """The expression that a frame was in, and its place."""
    lines = linecache.getlines(frame.filename)
    first, last = (frame.lineno or 1) - 1, getattr(frame, "end_lineno", None) or frame.lineno or 1
    start, end = getattr(frame, "colno", None), getattr(frame, "end_colno", None)
    text = [line.rstrip("\n") for line in lines[first:last]]
    if text and start is not None and end is not None:  # from Python 3.11 on; in bytes of UTF-8
        text[-1] = text[-1].encode()[:end].decode(errors="replace")
        text[0] = text[0].encode()[start:].decode(errors="replace")
    quoted = " ".join(part.strip() for part in text)
    if len(quoted) > _LONGEST:
        quoted = f"{quoted[:_LONGEST]}..."
    return f"`{quoted}` at {Path(frame.filename).name}:{frame.lineno}"


def _is_ours(error: BaseException) -> bool:
    """Whether it was raised in what the harness puts in an engine's place.

    An assertion there speaks of what it was given, which the original would not take either.
    """
    if isinstance(error, AssertionError):
        return False
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and Path(_foreign(frames).filename).parent == _ENGINE_SIDE
