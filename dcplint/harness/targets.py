"""From a reference to a class and its driver: loading foreign files, asking who can run them.

Drivers are named in the configuration's table `harness`, or found through the entry point group
`dcplint.drivers`; then come our own.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import itertools
import sys
from collections.abc import Iterable
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

from dcplint.harness.driver import ContractDriver, Driver
from dcplint.harness.vllm import engine
from dcplint.harness.vllm.driver import VllmDriver


def import_target(name: str) -> ModuleType:
    """A module by name; where vLLM is at hand, with stand-ins for the libraries it lacks."""
    if "vllm" not in sys.modules:
        return importlib.import_module(name)
    module = engine.load(name)
    if module is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return module


def configure(references: Iterable[str]) -> None:
    """Ask these drivers before all others. Raises what loading them raises."""
    _configured[:] = [load_target(reference)() for reference in references]


_configured: list[Driver] = []


class NoDriver(LookupError):
    """Nobody knows how to run it."""


def find_driver(target: type) -> Driver:
    """The driver that runs `target`. Raises NoDriver, and what a driver raises.

    Configured ones are asked first, then installed ones, then our own.
    """
    installed = (entry.load()() for entry in entry_points(group="dcplint.drivers"))
    drivers = itertools.chain(_configured, installed, (ContractDriver(), VllmDriver()))
    found = next((d for d in drivers if d.detect(target)), None)
    if found is None:
        raise NoDriver(f"no driver runs {target.__module__}.{target.__qualname__}")
    return found


def load_target(reference: str) -> type:
    """The class that `module:Class` or `path/to/file.py:Class` names."""
    place, _, name = reference.rpartition(":")
    module = load_file(Path(place)) if place.endswith(".py") else import_target(place)
    target = getattr(module, name)
    if not inspect.isclass(target):
        raise TypeError(f"{reference} is not a class")
    return target


def backends_in(path: Path) -> tuple[dict[str, tuple[type, ...]], list[str]]:
    """References to what a file defines that some driver runs, each with the classes that run.

    In file order; and, in words, which backends cannot name their classes and why.
    """
    module = load_file(path)
    found: dict[str, tuple[type, ...]] = {}
    failed: list[str] = []
    for name, value in vars(module).items():
        if not inspect.isclass(value) or value.__module__ != module.__name__:
            continue
        try:
            found[f"{path}:{name}"] = find_driver(value).parts(value)
        except NoDriver:
            continue
        except Exception as error:  # foreign code, of a backend or a driver, may raise anything
            failed.append(f"`{name}` cannot name what it runs: {type(error).__name__}: {error}")
    return found, failed


def load_file(path: Path) -> ModuleType:
    """Execute a file as what it is: a module of its package, or one of its own.

    Siblings are importable as usual.
    """
    folders = list(itertools.takewhile(lambda p: (p / "__init__.py").exists(), path.parents))
    if folders:
        root = str(folders[-1].parent)
        if root not in sys.path:
            sys.path.insert(0, root)
        parts = [folder.name for folder in reversed(folders)]
        own = [] if path.stem == "__init__" else [path.stem]
        return import_target(".".join([*parts, *own]))
    name = f"dcplint_target_{path.stem}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
