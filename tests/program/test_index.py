"""Which files are chosen for parsing, and what they are called as modules."""

from pathlib import Path

import pytest

from dcplint.program.index import Index, build_index
from dcplint.program.modules import module_names, package_of
from dcplint.source.roots import Root, find_roots
from dcplint.source.scan import Scanner
from tests.program.tree import ENGINE, PACK, Tree, engine_of, index_of, tree, write


def candidates(root: Path) -> list[str]:
    index = index_of(root)
    engine = engine_of(index)
    return sorted(index.candidates(engine.contract, engine.in_tree))


SILENT = "class C(Impl):\n    def forward(self): ...\n"
PLUGIN = {
    "impl.py": f"from engine.base import Impl\n{SILENT}",
    "heir.py": "from impl import C\nclass D(C): ...\n",
    "alias.py": "from heir import D as Harmless\n",
    "below.py": "from alias import Harmless\nclass E(Harmless): ...\n",
    "reads.py": "def f(x):\n    return x.flag\n",
    "other.py": "class Other(Exception): ...\nclass Impl2(object): ...\n",
    "nothing.py": "x = 1\n",
    "tests/more.py": "import engine.base as b\nclass T(b.Backend): ...\n",
}


def test_candidates_are_what_may_have_a_role_or_speak_of_a_capability(tmp_path: Path) -> None:
    write(tmp_path, PLUGIN)
    expected = ["below.py", "heir.py", "impl.py", "reads.py", "tests/more.py"]
    assert candidates(tmp_path) == expected
    write(tmp_path, ENGINE)
    assert candidates(tmp_path) == sorted([*expected, "engine/base.py"])


HIDDEN = {
    "a conditional alias elsewhere": {
        "compat.py": "import engine.base as e\nif e:\n    Base = e.Impl\nelse:\n    raise OSError\n"
    },
    "an alias in a try": {
        "compat.py": "try:\n    from engine.base import Impl\n    Base = Impl\n"
        "except ImportError:\n    Base = object\n"
    },
    "an alias over lines": {"compat.py": "from engine.base import Impl\nBase = (\n    Impl\n)\n"},
    "a chain": {"compat.py": "from engine.base import Impl as A\nB = A\nBase = C = B\n"},
    "a module by name": {
        "compat.py": "import importlib\nm = importlib.import_module('engine.base')\nBase = m.Impl\n"
    },
    "getattr": {"compat.py": "import engine.base as m\nBase = getattr(m, 'Impl')\n"},
    "a star": {
        "compat.py": "from first import *\n",
        "first.py": "from engine.base import Impl as Base\n",
    },
    "a package": {
        "compat/__init__.py": "from .deep import *\n",
        "compat/deep.py": "from engine.base import Impl\nBase = Impl\n",
    },
}


@pytest.mark.parametrize("case", HIDDEN)
def test_however_the_base_is_hidden(case: str, tmp_path: Path) -> None:
    files = {**HIDDEN[case], "p.py": "from compat import Base\nclass X(Base): ...\n"}
    assert "p.py" in candidates(write(tmp_path, files))
    made = tree(tmp_path, "")
    assert made.mro("X")[-3:] == ["engine.base.Impl", "engine.base.ImplBase", "abc.ABC"]


def test_names_decide_nothing(tmp_path: Path) -> None:
    """The same program under other names of classes, files and aliases says the same."""
    one = tree(
        tmp_path / "one",
        "from engine.base import Impl\nclass FlashImpl(Impl):\n    def forward(self): ...\n",
    )
    two = tree(
        tmp_path / "two",
        "",
        {
            "zz/q.py": "from .r import r\nclass x(r):\n    def forward(self): ...\n",
            "zz/__init__.py": "",
            "zz/r.py": "from .s import t as r\n",
            "zz/s.py": "import engine.base\nt = engine.base.Impl\n",
        },
    )
    for made, name in ((one, "FlashImpl"), (two, "x")):
        symbol = made.find(name)
        assert made.program.roles(symbol) == {"impl"}
        assert made.program.abstract_methods(symbol) == frozenset()
        assert (made.resolve(name).kind.value, made.resolve(name).value) == ("default", True)


def test_a_class_that_is_only_named_like_the_engines_has_no_role(tmp_path: Path) -> None:
    made = tree(
        tmp_path,
        "from engine.base import Impl as Real\nclass Impl:\n    flag = True\n"
        "class ImplBase(Impl): ...\nclass C(ImplBase): ...\n",
        {"mine/base.py": "class ImplBase: ...\nclass Impl(ImplBase): ...\n"},
    )
    roles = {s.dotted: made.program.roles(s) for m in made.program.checked for s in m.classes}
    assert {name for name, found in roles.items() if found} == {
        "engine.base.Impl",
        "engine.base.ImplBase",
        "engine.base.Backend",
    }


def test_names_of_an_import_that_no_class_derives_from_cost_nothing(tmp_path: Path) -> None:
    files = {f"m{n}.py": "import torch\nclass A(torch.nn.Module): ...\n" for n in range(50)}
    write(tmp_path, {**files, "p.py": "import engine\nfrom engine import logger as log\n"})
    assert candidates(tmp_path) == []


# Broken and explicit files


def test_unreadable_files_are_kept_apart(tmp_path: Path) -> None:
    write(tmp_path, PLUGIN)
    (tmp_path / "nul.py").write_bytes(b"a\0")
    (tmp_path / "latin.py").write_bytes(b"# \xe9\n")
    (tmp_path / "cookie.py").write_bytes(b"# coding: latin-1\nclass A(Impl): '\xe9'\n")
    (tmp_path / "utf8.py").write_text("# é\n")
    index = index_of(tmp_path)
    assert sorted(b.path for b in index.broken) == ["latin.py", "nul.py"]
    assert {"cookie.py", "utf8.py"} <= index.scans.keys()


def test_unsaved_contents_stand_in_for_files(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "x = 1\n"})
    (root,) = find_roots((tmp_path,))
    unsaved = {"a.py": b"import engine\n", "new.py": b"from engine import base\n"}
    index = build_index(root, Scanner.of((b"engine",), ()), (), unsaved)
    assert sorted(index.scans) == ["a.py", "new.py"]
    assert sorted(index.importing("engine")) == ["a.py", "new.py"]


def test_a_file_that_is_named_is_indexed_though_ignored(tmp_path: Path) -> None:
    write(tmp_path, {".hidden/a.py": "x = 1\n", "b.py": ""})
    root = Root(tmp_path, (tmp_path / ".hidden" / "a.py",))
    assert sorted(build_index(root, Scanner.of((), ())).scans) == [".hidden/a.py", "b.py"]


def test_exclusions(tmp_path: Path) -> None:
    write(tmp_path, PLUGIN)
    (root,) = find_roots((tmp_path,))
    found = build_index(root, Scanner.of((), ()), ("tests/", "n*.py"))
    assert not {"tests/more.py", "nothing.py"} & found.scans.keys()


def test_files_by_what_they_mention(tmp_path: Path) -> None:
    write(tmp_path, PLUGIN)
    assert index_of(tmp_path).mentioning(b"flag") == ("reads.py",)


# Module names


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (["a.py"], {"a.py": "a"}),
        (["p/__init__.py", "p/a.py"], {"p/__init__.py": "p", "p/a.py": "p.a"}),
        (["src/p/__init__.py", "src/p/a.py"], {"src/p/__init__.py": "p", "src/p/a.py": "p.a"}),
        (["src/a.py"], {"src/a.py": "a"}),
        (["src/ns/a.py"], {"src/ns/a.py": "ns.a"}),
        (["ns/deep/a.py"], {"ns/deep/a.py": "ns.deep.a"}),
        (["lib/p/__init__.py"], {"lib/p/__init__.py": "p"}),
        (
            ["p/__init__.py", "lib/p/__init__.py"],
            {"p/__init__.py": "p", "lib/p/__init__.py": "lib.p"},
        ),
        (["__init__.py", "a.py"], {"__init__.py": "", "a.py": "a"}),
    ],
)
def test_module_names(files: list[str], names: dict[str, str]) -> None:
    by_name, found = module_names(files)
    assert found == names
    assert all(by_name[name] == path for path, name in names.items())


def test_the_plain_path_is_a_second_name() -> None:
    by_name, _ = module_names(["lib/p/__init__.py", "lib/p/a.py"])
    assert by_name["lib.p.a"] == by_name["p.a"] == "lib/p/a.py"


def test_a_root_inside_a_package_bears_its_name(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "top/__init__.py": "",
            "top/sub/__init__.py": "",
            "top/sub/a.py": "from .b import X\n",
            "top/sub/b.py": "from engine.base import Impl as X\n",
            "top/sub/c.py": "from top.sub.a import X\nclass C(X): ...\n",
        },
    )
    assert package_of(tmp_path / "top" / "sub") == "top.sub"
    assert package_of(tmp_path) == ""
    index: Index = index_of(tmp_path / "top" / "sub")
    assert index.names["a.py"] == "top.sub.a" and index.names["__init__.py"] == "top.sub"
    engine = write(tmp_path / "e", ENGINE)
    made = Tree(tmp_path / "top" / "sub", engine)
    assert made.mro("C")[1] == "engine.base.Impl"


def test_an_index_holds_an_engine_only_with_a_module_of_its_contract(tmp_path: Path) -> None:
    write(tmp_path, {"engine/__init__.py": "", "engine/else.py": ""})
    assert not index_of(tmp_path).holds(PACK)
    write(tmp_path, ENGINE)
    assert index_of(tmp_path).holds(PACK)
