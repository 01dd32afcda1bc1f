"""Executing a foreign file as the module that its project takes it for.

A file of a package works only under the package's name and from the folder above it. Packages with
an `__init__.py` tell both. Namespace packages do not: there, the names tell by which the files of
the folder import each other. The working directory decides nothing, so that what ran once runs
again from any place.
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import re
import sys
from pathlib import Path
from types import ModuleType

from dcplint.harness.vllm import engine

# Dots, the module, and the first name. Prose that looks like it names no file nearby.
_IMPORT = re.compile(rb"^[ \t]*(?:from[ \t]+(\.*)([\w.]*)[ \t]+)?import\b[ \t(]*([\w.]*)", re.M)


def import_target(name: str) -> ModuleType:
    """A module by name; where vLLM is at hand, with stand-ins for the libraries it lacks."""
    if "vllm" not in sys.modules:
        return importlib.import_module(name)
    module = engine.load(name)
    if module is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return module


def load_file(path: Path) -> ModuleType:
    """Execute a file as what it is: a module of its package, or one of its own.

    What lies beside the package, or beside a file of none, is importable too.
    """
    path = path.absolute()
    root = _import_root(path)
    is_alone = root == path.parent
    if str(root) not in sys.path:
        # A lone file's neighbours are no packages that were made to be found before others.
        sys.path.insert(len(sys.path) if is_alone else 0, str(root))
    if not is_alone:
        parts = path.relative_to(root).with_suffix("").parts
        return import_target(".".join(parts[:-1] if path.stem == "__init__" else parts))
    name = "dcplint_target" + re.sub(r"\W", "_", str(path))
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _import_root(path: Path) -> Path:
    """The folder that the file's project has on its path: the one above its outermost package."""
    packages = list(itertools.takewhile(lambda p: (p / "__init__.py").exists(), path.parents))
    depth = len(packages)
    for source in path.parent.glob("*.py"):
        for dots, *named in _IMPORT.findall(source.read_bytes()):
            imported = b".".join(filter(None, named)).decode(errors="replace").split(".")
            depth = max(depth, len(dots) or _depth(path, *imported[:2]))
    return path.parents[min(depth, len(path.parents) - 1)]


def _depth(path: Path, package: str, module: str = "") -> int:
    """How many packages a file lies in, if it lies in the one that a module is taken from; or 0."""
    for depth, folder in enumerate(path.parents, 1):
        places = (folder / module, folder / f"{module}.py")
        if folder.name == package and module and any(place.exists() for place in places):
            return depth
    return 0
