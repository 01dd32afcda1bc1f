"""Stand-ins for libraries that an engine imports and that are not installed.

An engine's attention code imports half of the engine, which imports parsers, web servers and
tokenizers. What it imports *unconditionally* and cannot find gets a module whose every name is an
empty class; what it tries to import and can do without stays absent, so that its own fallbacks are
taken. Stand-ins serve while modules are loaded: once `seal`ed, calling one raises `Unavailable`,
so nothing is ever computed by them.
"""

from __future__ import annotations

import abc
import ast
import dataclasses
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from dcplint.harness.ledger import Unavailable

_NEWEST = "999.0"  # of a distribution that is stood in for: whatever is asked for, it has


class _StandInType(abc.ABCMeta):
    """Classes that can be called, subscripted, joined, iterated and asked for any attribute."""

    sealed = False

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_") or not vars(cls).get("is_stand_in"):
            raise AttributeError(name)
        value = _stand_in(f"{cls.__qualname__}.{name}")
        setattr(cls, name, value)
        return value

    def __call__(cls, *arguments: Any, **options: Any) -> Any:
        if not vars(cls).get("is_stand_in"):
            return super().__call__(*arguments, **options)
        if _StandInType.sealed:
            raise Unavailable(f"needs {cls.__qualname__}, which is not installed")
        # A decorator gives back what it decorates; a class makes an instance.
        decorates = cls.__qualname__.rpartition(".")[2][:1].islower()
        if decorates and len(arguments) == 1 and callable(arguments[0]):
            return arguments[0]
        return super().__call__(*arguments, **options)

    def __or__(cls, other: Any) -> Any:
        return cls

    def __ror__(cls, other: Any) -> Any:
        return cls

    def __getitem__(cls, key: Any) -> Any:
        return cls

    def __iter__(cls) -> Iterator[Any]:
        return iter(())


class _StandIn:
    def __init__(self, *arguments: Any, **options: Any) -> None: ...

    def __init_subclass__(cls, **options: Any) -> None: ...

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _stand_in(f"{type(self).__qualname__}.{name}")

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        if _StandInType.sealed:
            raise Unavailable(f"needs {type(self).__qualname__}, which is not installed")
        return arguments[0] if len(arguments) == 1 else self


def _stand_in(name: str) -> type:
    return _StandInType(name, (_StandIn,), {"is_stand_in": True, "__module__": __name__})


class _StandInModule(ModuleType):
    """A module that has every name."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = _stand_in(f"{self.__name__}.{name}")
        setattr(self, name, value)
        return value


class _NamedDistribution(Distribution):
    """A distribution that has a name and a version and no files."""

    def __init__(self, name: str, version: str) -> None:
        self._name, self._version = name, version

    def read_text(self, filename: str) -> str | None:
        if filename != "METADATA":
            return None
        return f"Metadata-Version: 2.1\nName: {self._name}\nVersion: {self._version}\n"

    def locate_file(self, path: Any) -> Any:
        return Path("/nonexistent") / str(path)


class StandIns(Loader, MetaPathFinder):
    """Finds nothing but what it was told to stand in for."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._own: set[str] = set()
        self._versions: dict[str, str] = {}

    def install(self) -> None:
        """Be asked after every other finder for modules, and before them for versions."""
        sys.meta_path.append(self)
        sys.meta_path.insert(0, _Versions(self))

    def state_version(self, distribution: str, version: str) -> None:
        """Answer `version` for an installed distribution too."""
        self._versions[distribution] = version

    def version_of(self, distribution: str) -> str | None:
        """What `importlib.metadata` is to say, None where that is not our business."""
        if distribution in self._versions:
            return self._versions[distribution]
        return _NEWEST if distribution.replace("-", "_").lower() in self.names else None

    def import_module(self, name: str) -> ModuleType:
        """Import an engine's module, standing in for whatever library it cannot do without.

        A library whose absence the engine handles stays absent. Raises what the import raises.
        """
        self._own.add(name.partition(".")[0])
        return importlib.import_module(name)

    def seal(self) -> None:
        """From now on nothing may be computed by a stand-in."""
        _StandInType.sealed = True

    def unseal(self) -> None:
        """More modules are to be loaded."""
        _StandInType.sealed = False

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """See `MetaPathFinder`."""
        top = fullname.partition(".")[0]
        if top not in self.names:
            if _StandInType.sealed or top in self._own or not _is_needed(self._own):
                return None
            self.names.append(top)
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """See `Loader`."""
        return _StandInModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """See `Loader`."""
        for name, value in _KNOWN.get(module.__name__, {}).items():
            setattr(module, name, value)


def _is_needed(own: set[str]) -> bool:
    """Whether a module of `own` packages asks for the import now under way and cannot do without.

    It can where some frame has the import in a place where it may fail. `importlib.util.find_spec`
    asks without importing. What an installed library tries to import is its own affair.
    """
    frame: FrameType | None = sys._getframe(2)
    asking = True
    while frame is not None:
        name, code = frame.f_code.co_filename, frame.f_code
        if name == __file__ and code.co_name == StandIns.import_module.__name__:
            return True
        if name == importlib.util.__file__ and code.co_name == "find_spec":
            return False
        if asking and not name.startswith(_IMPORT_MACHINERY):
            asking = False
            if frame.f_globals.get("__name__", "").partition(".")[0] not in own:
                return False
        if any(first <= frame.f_lineno <= last for first, last in _guarded_lines(name)):
            return False
        frame = frame.f_back
    return False


@cache
def _guarded_lines(filename: str) -> tuple[tuple[int, int], ...]:
    """Line ranges in which a failing import is caught and not raised again."""
    try:
        tree = ast.parse(Path(filename).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return ()
    return tuple(
        (node.body[0].lineno, node.body[-1].end_lineno or 0)
        for node in ast.walk(tree)
        if (isinstance(node, ast.Try) and any(map(_catches, node.handlers)))
        or (isinstance(node, ast.With) and any("suppress" in ast.unparse(i) for i in node.items))
    )


def _catches(handler: ast.ExceptHandler) -> bool:
    if any(isinstance(node, ast.Raise) for node in ast.walk(handler)):
        return False
    caught = "" if handler.type is None else ast.unparse(handler.type)
    return not caught or any(name in caught for name in _IMPORT_FAILURES)


_IMPORT_MACHINERY = ("<frozen importlib", importlib.__file__)
# What a handler may name to catch a failing import.
_IMPORT_FAILURES = ("ImportError", "ModuleNotFoundError", "Exception")


class _Versions(MetaPathFinder):
    """Distributions for `importlib.metadata`."""

    def __init__(self, standins: StandIns) -> None:
        self._standins = standins

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        return None

    def find_distributions(
        self, context: DistributionFinder.Context | None = None
    ) -> Iterator[Distribution]:
        name = None if context is None else context.name
        version = None if name is None else self._standins.version_of(name)
        if name is not None and version is not None:
            yield _NamedDistribution(name, version)


def _dataclass(cls: type | None = None, *, config: Any = None, **options: Any) -> Any:
    """`pydantic.dataclasses.dataclass` without the validation."""
    if cls is None:
        return lambda c: dataclasses.dataclass(c, **options)
    return dataclasses.dataclass(cls, **options)


def _field(
    default: Any = dataclasses.MISSING,
    *,
    default_factory: Any = dataclasses.MISSING,
    init: bool = True,
    **_: Any,
) -> Any:
    """`pydantic.Field`, in a dataclass."""
    if default is ...:
        default = dataclasses.MISSING
    if default is dataclasses.MISSING and default_factory is dataclasses.MISSING:
        return dataclasses.field(init=init)
    if default_factory is not dataclasses.MISSING:
        return dataclasses.field(default_factory=default_factory, init=init)
    return dataclasses.field(default=default, init=init)


# Engines declare their configuration as pydantic dataclasses, whose defaults are worth having.
_KNOWN: dict[str, dict[str, Callable[..., Any]]] = {
    "pydantic": {"Field": _field},
    "pydantic.dataclasses": {"dataclass": _dataclass},
}
