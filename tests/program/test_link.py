"""What a name stands for. The bases that linking finds are compared with Python's own."""

import re
from pathlib import Path

import pytest

from dcplint.program.symbols import ClassSymbol, External, Literal, Module, Unknown, Vanished
from tests.program.tree import ENGINE, Tree, sections, tree, write

# A tree of files whose module `plugin` defines class `C` on a base it reaches by some detour.
FILES = re.compile(r"^--- (\S+)\n", re.MULTILINE)
LINKS = sections("links.txt")


def files_of(text: str) -> dict[str, str]:
    parts = FILES.split(text)
    return {"plugin.py": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


@pytest.mark.parametrize("case", LINKS)
def test_bases_are_those_of_python(case: str, tmp_path: Path) -> None:
    made = Tree(write(tmp_path, {**ENGINE, **files_of(LINKS[case])}))
    with made.run() as plugin:
        cls = plugin.C
        name = f"{cls.__module__}.{cls.__qualname__}"
        real = [f"{c.__module__}.{c.__qualname__}" for c in cls.__mro__]
    (symbol,) = [
        s
        for module in made.program.checked
        for s in module.classes
        if s.dotted == name and s.facts.position[0] == _line(made.root, cls)
    ]
    found = [getattr(e, "dotted", None) or e.base for e in made.program.mro(symbol).entries]
    assert found == [n for n in real if n not in ("builtins.object", "typing.Generic")]
    assert "engine.base.ImplBase" in found


def _line(root: Path, cls: type) -> int:
    """The line of the class that was defined last under that name."""
    path = root / Path(*cls.__module__.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    src = root / "src" / file.relative_to(root)
    lines = (file if file.exists() else src).read_text().split("\n")
    header = re.compile(rf"\s*class {cls.__name__}\b")
    return max(number for number, line in enumerate(lines, 1) if header.match(line))


# A base that only running the program would tell, and what the reason says.
UNKNOWN = {
    "parameter": ("class B(ImplBase): ...\ndef f(base):\n    class C(base): ...\n", "parameter"),
    "either of two": (
        "class A(ImplBase): ...\nclass B(ImplBase): ...\nimport os\n"
        "X = A if os.name else B\nclass C(X): ...\n",
        "os.name",
    ),
    "two branches": (
        "class A(ImplBase): ...\nimport os\nif os.name:\n    X = A\nelse:\n    X = ImplBase\n"
        "class C(X): ...\n",
        "os.name",
    ),
    "a class with work of its own": (
        "import os\nfrom engine.base import Impl\nif os.name:\n    X = Impl\nelse:\n"
        "    class X(Impl):\n        pass\nclass C(X, ImplBase): ...\n",
        "os.name",
    ),
    "type()": ("X = type('X', (ImplBase,), {})\nclass C(X, ImplBase): ...\n", "type()"),
    "a call": ("def f(): ...\nclass C(f(), ImplBase): ...\n", "f()"),
    "a look-up": ("R = {}\nclass C(R['x'], ImplBase): ...\n", "{}"),
    "a loop": ("for X in (ImplBase,): ...\nclass C(X, ImplBase): ...\n", "varies"),
    "unpacked": ("bases = ()\nclass C(*bases, ImplBase): ...\n", "*bases"),
    "self-reference": ("X = X\nclass C(X, ImplBase): ...\n", "itself"),
    "each other": ("X = Y\nY = X\nclass C(X, ImplBase): ...\n", "itself"),
    "each other in a function": (
        "def f():\n    X = Y\n    Y = X\n    class C(X, ImplBase): ...\n",
        "itself",
    ),
    "module __getattr__": ("from lazy import X\nclass C(X, ImplBase): ...\n", "__getattr__"),
    "globals()": ("from dynamic import X\nclass C(X, ImplBase): ...\n", "at run time"),
    "an unknown star": ("from somewhere import *\nclass C(X, ImplBase): ...\n", "somewhere"),
    "beyond the tree": ("from ...x import X\nclass C(X, ImplBase): ...\n", "beyond"),
    "a broken module": ("from broken import X\nclass C(X, ImplBase): ...\n", "cannot be parsed"),
    "an accessor": ("import e\nclass C(e.get_impl_cls(), ImplBase): ...\n", "run time"),
    "with": ("with open('x') as X: ...\nclass C(X, ImplBase): ...\n", "varies"),
    "not a class": ("X = 1\nclass C(X, ImplBase): ...\n", "not a class"),
    "a function": ("def X(): ...\nclass C(X, ImplBase): ...\n", "function"),
    "an attribute of a class": (
        "class N(ImplBase): ...\nclass C(N.missing, ImplBase): ...\n",
        "looked up on class N",
    ),
}
EXTRA = {
    "lazy.py": "def __getattr__(name): ...\n",
    "dynamic.py": "globals().update(X=int)\n",
    "broken.py": "class X(:\n",
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_bases_that_only_running_tells(case: str, tmp_path: Path) -> None:
    text, reason = UNKNOWN[case]
    made = tree(tmp_path, f"from engine.base import ImplBase\n{text}", EXTRA)
    name = "f.<locals>.C" if "    class C" in text else "C"
    obstacle = made.program.mro(made.find(name)).obstacle()
    assert obstacle is not None and reason in obstacle.reason
    assert made.program.abstract_methods(made.find(name)) is None


def test_what_a_package_of_the_program_lacks_has_vanished(tmp_path: Path) -> None:
    made = tree(
        tmp_path,
        "from engine.base import Impl, Gone\nimport engine.gone\nimport engine\n"
        "class A(Gone): ...\nclass B(engine.gone.X): ...\nclass C(engine.base.Gone): ...\n"
        "class D(Impl): ...\n",
    )
    absent = {
        str(symbol): [found.dotted for found, _ in made.program.absent_bases(symbol)]
        for symbol in (made.find(name) for name in "ABCD")
    }
    assert absent == {
        "A": ["engine.base.Gone"],
        "B": ["engine.gone"],
        "C": ["engine.base.Gone"],
        "D": [],
    } or absent["B"] == ["engine.gone.X"]


@pytest.fixture
def made(tmp_path: Path) -> Tree:
    return tree(
        tmp_path,
        "import engine.base\nimport json as j\nNO = False\ndef f(): ...\n",
        {
            "ns/deep/mod.py": "class K: ...\n",
            "pkg/__init__.py": "from .name import name\n",
            "pkg/name.py": "name = 1\nclass K: ...\n",
        },
    )


def test_absolute_names(made: Tree) -> None:
    linker = made.program.linker
    impl = linker.absolute("engine.base.Impl")
    assert isinstance(impl, ClassSymbol) and impl.dotted == "engine.base.Impl"
    assert isinstance(linker.absolute("engine.base"), Module)
    assert isinstance(linker.absolute("ns"), Module), "a namespace package is a module"
    assert isinstance(linker.absolute("ns.deep.mod.K"), ClassSymbol)
    assert linker.absolute("ns.deep.gone") == Vanished("ns.deep.gone")
    assert linker.absolute("os.path.join") == External("os.path.join")
    assert linker.absolute("plugin.NO") == Literal(False)
    assert linker.absolute("plugin.int") == Vanished("plugin.int"), "builtins are no attributes"
    assert linker.absolute("plugin.j.dumps") == External("json.dumps")


def test_a_name_that_a_package_binds_hides_the_submodule(made: Tree) -> None:
    assert made.program.linker.absolute("pkg.name") == Literal(1)
    assert isinstance(made.program.linker.absolute("pkg.name.K"), ClassSymbol)


def test_names_seen_from_a_module(made: Tree) -> None:
    linker = made.program.linker
    plugin = linker.absolute("plugin")
    assert isinstance(plugin, Module)
    assert linker.name(plugin, "int") == External("builtins.int")
    assert linker.name(plugin, "NO") == Literal(False)
    assert isinstance(linker.name(plugin, "engine.base.Impl"), ClassSymbol)
    assert isinstance(linker.name(plugin, "nothing"), Vanished)


def test_a_chain_of_aliases_without_end_is_no_crash(tmp_path: Path) -> None:
    count = 400
    files = {f"m{n}.py": f"from m{n - 1} import X\n" for n in range(1, count)}
    files["m0.py"] = "from engine.base import ImplBase as X\n"
    made = tree(tmp_path, f"from m{count - 1} import X\nclass C(X): ...\n", files)
    assert isinstance(made.program.linker.absolute("m20.X"), ClassSymbol)
    found = made.program.linker.absolute(f"m{count - 1}.X")
    assert isinstance(found, (Unknown, ClassSymbol))


def test_stars_in_a_ring_are_searched_once_each(tmp_path: Path) -> None:
    count = 25
    everyone = "".join(f"from m{n} import *\n" for n in range(count))
    files = {f"m{n}.py": everyone + f"K{n} = {n}\n" for n in range(count)}
    made = tree(tmp_path, "from engine.base import ImplBase\nclass C(ImplBase): ...\n", files)
    linker = made.program.linker
    assert linker.absolute("m3.K20") == Literal(20)
    assert isinstance(linker.absolute("m3.nothing"), Vanished)
    assert all(linker.absolute(f"m{n}.K{n}") == Literal(n) for n in range(count))


def test_stars_of_what_is_missing_end(tmp_path: Path) -> None:
    """Each star could provide the package that the other one needs."""
    files = {"a/__init__.py": "from b.sub import *\n", "b/__init__.py": "from a.sub import *\n"}
    made = tree(tmp_path, "import a\nclass C(a.X): ...\n", files)
    assert isinstance(made.program.linker.absolute("a.sub.X"), Unknown)


RING = {
    "a.py": "from b import *\nfrom engine.base import ImplBase as X\n",
    "b.py": "from a import *\n",
}


def test_what_a_lookup_met_on_the_way_is_not_remembered(tmp_path: Path) -> None:
    """While `a.X` is looked up `b` seems to have no `X`, because that leads back to `a`."""
    made = tree(tmp_path, "from a import X\nclass C(X): ...\n", RING)
    linker = made.program.linker
    for name in ("a.X", "b.X", "a.X"):
        assert isinstance(linker.absolute(name), ClassSymbol), name


def test_what_is_found_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {**RING, "c.py": "from b import X as Y\n", "d.py": "from c import Y as Z\n"}
    made = tree(tmp_path, "from d import Z\nclass C(Z): ...\n", files)
    linker = made.program.linker
    found = linker.absolute("d.Z")
    assert isinstance(found, ClassSymbol)

    def again(*_: object) -> None:
        raise AssertionError("looked up a second time")

    monkeypatch.setattr(type(linker), "_find_anew", again)
    assert linker.absolute("d.Z") is linker.absolute("c.Y") is found


def test_of_many_conditional_bindings(tmp_path: Path) -> None:
    branches = "".join(f"elif os.name == '{n}':\n    X = {n}\n" for n in range(800))
    made = tree(
        tmp_path,
        f"import os\nfrom engine.base import ImplBase\nif os.name == '':\n    X = None\n{branches}"
        "class C(ImplBase):\n    flag = X\n",
    )
    assert not made.resolve("C").known
