"""Small programs: an engine of two base classes, whatever files a test adds, and Python's own view.

`Tree.program` links the files; `Tree.run` executes one of them, so that what the program says can
be compared with what Python does.
"""

import importlib
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from packaging.version import Version

from dcplint.contracts.contract import Pack
from dcplint.contracts.model import (
    Accessor,
    Capability,
    Default,
    EngineClass,
    Releases,
    Source,
    Vocabulary,
)
from dcplint.program.attributes import Resolution
from dcplint.program.build import build_program
from dcplint.program.engine import Engine, find_engine
from dcplint.program.index import Index, build_index, import_words
from dcplint.program.program import Program
from dcplint.program.symbols import ClassSymbol
from dcplint.source.location import Tree as Place
from dcplint.source.roots import find_roots
from dcplint.source.scan import Scanner

ALWAYS = Releases()
HERE = Source("engine/base.py:1@1.0", "rules/engine.yaml", 7)
NAMES = ("flag", "other")


def _capability(name: str, default: bool) -> Capability:
    return Capability(
        name=name,
        role="impl",
        owner="engine.base.ImplBase",
        summary="",
        opt_in=True,
        methods=("forward",),
        implies=(),
        encoding="attribute",
        delegates=None,
        defaults=(Default(default, ALWAYS, HERE),),
        releases=ALWAYS,
        source=HERE,
    )


PACK = Pack(
    engine="engine",
    package="engine",
    distribution="engine",
    path="rules/engine.yaml",
    known=(Version("1.0"), Version("2.0")),
    classes=(
        EngineClass("engine.base.ImplBase", "impl", (), (), ALWAYS, HERE),
        EngineClass(
            "engine.base.Impl", "impl", ("engine.base.ImplBase",), ("forward",), ALWAYS, HERE
        ),
        EngineClass("engine.base.Backend", "backend", (), ("get_impl_cls",), ALWAYS, HERE),
    ),
    moved=(),
    capabilities=(_capability("flag", True), _capability("other", False)),
    gates=(),
    accessors=(Accessor("get_impl_cls", "backend", "impl", ALWAYS, HERE, "engine.base.Backend"),),
    vocabulary=Vocabulary(neutral=("torch",)),
)

ENGINE = {
    "engine/__init__.py": "",
    "engine/base.py": """\
from abc import ABC, abstractmethod


class ImplBase(ABC):
    flag: bool = True
    other = False


class Impl(ImplBase):
    @abstractmethod
    def forward(self): ...


class Backend(ABC):
    @staticmethod
    @abstractmethod
    def get_impl_cls(): ...
""",
}


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def index_of(root: Path, pack: Pack = PACK) -> Index:
    (found,) = find_roots((root,))
    words = {*import_words(pack), *(c.name.encode() for c in pack.capabilities)}
    return build_index(found, Scanner.of(sorted(words), [a.name.encode() for a in pack.accessors]))


def engine_of(index: Index, engine_path: Path | None = None) -> Engine:
    engine = find_engine(index, PACK, None, engine_path)
    assert engine is not None
    return engine


@dataclass(slots=True)
class Tree:
    """Files in a directory. The engine is among them unless `engine_path` says where it is."""

    root: Path
    engine_path: Path | None = None
    _program: Program | None = field(default=None, init=False)

    @property
    def program(self) -> Program:
        if self._program is None:
            index = index_of(self.root)
            self._program = build_program(index, engine_of(index, self.engine_path))
        return self._program

    def find(self, name: str) -> ClassSymbol:
        """The one class of that qualified name; `path:name` where several files have one."""
        path, _, qualname = name.rpartition(":")
        modules = self.program.modules.loaded(Place.PROJECT)
        found = [
            symbol
            for module in modules
            for symbol in module.classes
            if symbol.facts.qualname == qualname and path in ("", symbol.path)
        ]
        assert len(found) == 1, f"{name}: {[s.dotted for s in found]}"
        return found[0]

    def resolve(self, name: str, attribute: str = "flag") -> Resolution:
        return self.program.resolve(self.find(name), attribute)

    def mro(self, name: str) -> list[str]:
        return [
            getattr(e, "dotted", None) or e.base for e in self.program.mro(self.find(name)).entries
        ]

    @contextmanager
    def run(self, module: str = "plugin") -> Iterator[ModuleType]:
        """Import a module of the tree for real."""
        paths: Sequence[Path] = [p for p in (self.root, self.root / "src", self.engine_path) if p]
        tops = {entry.stem for path in paths if path.is_dir() for entry in path.iterdir()}
        sys.path[:0] = map(str, paths)
        importlib.invalidate_caches()
        try:
            yield importlib.import_module(module)
        finally:
            del sys.path[: len(paths)]
            for name in [name for name in sys.modules if name.partition(".")[0] in tops]:
                del sys.modules[name]


def tree(root: Path, plugin: str = "", files: dict[str, str] | None = None) -> Tree:
    """The engine, `plugin.py`, and other files."""
    write(root, {**ENGINE, "plugin.py": plugin, **(files or {})})
    return Tree(root)


def sections(name: str) -> dict[str, str]:
    """Small texts from a file beside this one, by the title that stands above each."""
    text = (Path(__file__).parent / name).read_text(encoding="utf-8")
    parts = re.split(r"^## (.*)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))
