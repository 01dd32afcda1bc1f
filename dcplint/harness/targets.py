"""From a reference to a class and its driver: who can run what a file defines.

Drivers are named in the configuration's table `harness`, or found through the entry point group
`dcplint.drivers`; then come our own.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterable
from importlib.metadata import entry_points
from pathlib import Path

from dcplint.harness.driver import ContractDriver, Driver
from dcplint.harness.loading import import_target, load_file
from dcplint.harness.vllm.driver import VllmDriver


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
