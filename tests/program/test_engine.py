"""Which release a tree is judged against, and where the engine's source is."""

import sys
from pathlib import Path

import pytest
from packaging.version import Version

from dcplint.contracts.contract import Coverage
from dcplint.errors import UserError
from dcplint.program.engine import Engine, find_engine, release_in
from dcplint.run_options import EngineSpec
from dcplint.source.location import Tree as Place
from tests.program.tree import ENGINE, PACK, Tree, index_of, write

PLUGIN = {"plugin.py": "from engine.base import Impl\nclass C(Impl):\n    def forward(self): ...\n"}


def find(
    root: Path, spec: EngineSpec | None = None, engine_path: Path | None = None
) -> Engine | None:
    return find_engine(index_of(root), PACK, spec, engine_path)


def named(engine: Engine | None) -> tuple[str, str]:
    assert engine is not None
    return str(engine.contract.version), engine.how


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    return write(tmp_path / "plugin", PLUGIN)


@pytest.fixture
def release(tmp_path: Path) -> Path:
    return write(tmp_path / "release", {**ENGINE, "engine-1.5.dist-info/METADATA": ""})


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The engine as pip leaves it, on the path of the running Python."""
    metadata = "Metadata-Version: 2.1\nName: engine\nVersion: 1.7\n"
    site = write(tmp_path / "site", {**ENGINE, "engine-1.7.dist-info/METADATA": metadata})
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    return site


# In the tree itself


def test_the_tree_names_its_own_release(release: Path) -> None:
    engine = find(release)
    assert named(engine) == ("1.5", "the checked tree")
    assert engine is not None and engine.in_tree and engine.directory is None and engine.stated
    assert engine.contract.coverage is Coverage.BETWEEN


@pytest.mark.parametrize(
    ("name", "text", "version"),
    [
        ("_version.py", "__version__ = '1.2'\n", "1.2"),
        ("_version.py", '__version__ = version = "1.2.dev3+g1"\n', "1.2.dev3+g1"),
        ("_version.py", "__version__: str\nversion: str = '1.3'\n", "1.3"),
        ("version.py", "if True:\n    __version__: str = '1.4'\n", "1.4"),
        ("__init__.py", "import os\n__version__ = '1.5'\n", "1.5"),
        ("_version.py", "schema_version = '9.9'\n", None),
        ("_version.py", "__version__ = 'no version'\n", None),
        ("_version.py", "__version__ = get()\n", None),
    ],
)
def test_version_files(name: str, text: str, version: str | None, tmp_path: Path) -> None:
    write(tmp_path, {**ENGINE, f"engine/{name}": text})
    found = release_in(tmp_path, PACK, "engine/__init__.py")
    assert found == (Version(version) if version else None)


def test_metadata_comes_before_version_files(release: Path) -> None:
    write(release, {"engine/_version.py": "__version__ = '1.9'\n"})
    assert named(find(release))[0] == "1.5"


def test_a_build_under_another_name_is_known_by_its_files(tmp_path: Path) -> None:
    record = "engine/__init__.py,sha256=x,1\nengine/base.py,sha256=y,2\n"
    files = {
        **ENGINE,
        "engine_cpu-1.6.dist-info/RECORD": record,
        "engine_extras-8.0.dist-info/RECORD": "engine_extras/__init__.py,,\n",
    }
    assert release_in(write(tmp_path, files), PACK, "engine/__init__.py") == Version("1.6")


def test_a_neighbour_with_a_similar_name_says_nothing(tmp_path: Path) -> None:
    files = {**ENGINE, "engine_extras-8.0.dist-info/METADATA": "", "a-9.0.dist-info/RECORD": "x"}
    assert release_in(write(tmp_path, files), PACK, "engine/__init__.py") is None


def test_a_tree_without_release_is_judged_by_the_newest(tmp_path: Path) -> None:
    engine = find(write(tmp_path, ENGINE))
    assert engine is not None and engine.in_tree and not engine.stated
    (notice,) = engine.notices()
    assert "no engine release is named anywhere" in notice and "2.0" in notice


def test_a_source_layout_in_the_tree(tmp_path: Path) -> None:
    files = {f"src/{name}": text for name, text in ENGINE.items()}
    write(tmp_path, {**files, "src/engine/_version.py": "__version__ = '1.1'\n"})
    assert named(find(tmp_path)) == ("1.1", "the checked tree")


def test_the_command_line_overrides_what_the_tree_says(release: Path) -> None:
    engine = find(release, EngineSpec("engine", Version("2.0")))
    assert named(engine) == ("2.0", "named on the command line")
    assert engine is not None and engine.in_tree


# Outside the tree


def test_a_tree_that_has_nothing_to_do_with_the_engine(tmp_path: Path, installed: Path) -> None:
    write(tmp_path / "x", {"a.py": "from engine_extras import y\nimport enginex\n# engine\n"})
    assert find(tmp_path / "x") is None
    assert find(tmp_path / "x", EngineSpec("engine", Version("1.0"))) is None


@pytest.mark.parametrize(
    "text",
    [
        "import engine",
        "import os, engine.base as b",
        "def f():\n    from engine import base",
        "from engine.base import (\n    Impl,\n)",
        "from engine.base import \\\n    Impl",
        "import importlib\nb = importlib.import_module('engine.base')",
        "from\tengine.base\timport Impl",
    ],
)
def test_every_way_to_import_it_counts(text: str, tmp_path: Path) -> None:
    assert find(write(tmp_path, {"a.py": text + "\n"})) is not None


def test_engine_path(plugin: Path, release: Path, installed: Path) -> None:
    for given in (release, release / "engine"):
        engine = find(plugin, engine_path=given)
        assert named(engine) == ("1.5", f"--engine-path {given}")
        assert engine is not None and engine.directory == release and not engine.in_tree
    both = find(plugin, EngineSpec("engine", Version("2.0")), release)
    assert both is not None
    assert (str(both.contract.version), both.directory) == ("2.0", release)


def test_engine_path_of_a_source_layout(plugin: Path, tmp_path: Path) -> None:
    write(tmp_path / "x", {f"src/{name}": text for name, text in ENGINE.items()})
    engine = find(plugin, engine_path=tmp_path / "x")
    assert engine is not None and engine.directory == tmp_path / "x" / "src"
    assert not engine.stated


def test_engine_path_without_engine(plugin: Path, tmp_path: Path) -> None:
    (tmp_path / "empty" / "deep").mkdir(parents=True)
    with pytest.raises(UserError, match="no package `engine` there"):
        find(plugin, engine_path=tmp_path / "empty" / "deep")


def test_the_installed_distribution(plugin: Path, installed: Path) -> None:
    engine = find(plugin)
    assert named(engine) == ("1.7", "the installed distribution")
    assert engine is not None and engine.directory == installed
    assert "engine" not in sys.modules, "located, not imported"


def test_the_installed_source_is_only_read_for_its_own_release(
    plugin: Path, installed: Path
) -> None:
    same = find(plugin, EngineSpec("engine", Version("1.7")))
    other = find(plugin, EngineSpec("engine", Version("1.0")))
    assert same is not None and same.directory == installed
    assert other is not None and other.directory is None
    assert named(other) == ("1.0", "named on the command line")


@pytest.mark.parametrize("metadata", ["", "Name: engine\n", "Name: engine\nVersion: what\n"])
def test_an_installation_without_release_is_passed_over(
    metadata: str, plugin: Path, installed: Path
) -> None:
    (installed / "engine-1.7.dist-info" / "METADATA").write_text(metadata)
    assert named(find(plugin))[1] == "the newest known"


def test_another_engines_release_means_nothing_here(plugin: Path, installed: Path) -> None:
    assert named(find(plugin, EngineSpec("else", Version("1.0"))))[0] == "1.7"


REQUIREMENTS = {
    "pyproject": ("pyproject.toml", '[project]\ndependencies = ["x", "engine==1.0"]\n', "1.0"),
    "an extra": (
        "pyproject.toml",
        '[project.optional-dependencies]\ngpu = ["Engine[all]>=1.0,<2.0"]\n',
        "1.0",
    ),
    "a group": ("pyproject.toml", '[dependency-groups]\ndev = ["engine<2", {x = 1}]\n', "1.0"),
    "the newest that is allowed": ("requirements.txt", "engine>=1.0\n", "2.0"),
    "comments and options": (
        "requirements.txt",
        "# engine==9\n-r x.txt\nengine==1.0 --hash=sha256:x  # why\n",
        "1.0",
    ),
    "a folder of files": ("requirements/gpu.txt", "\ufeffengine ~= 1.0.0\n", "1.0"),
    "metadata": ("p-1.dist-info/METADATA", "Name: p\nRequires-Dist: engine (==1.0)\n", "1.0"),
    "a release the pack does not know": ("requirements.txt", "engine==3.1\n", "3.1"),
    "a range the pack does not know": ("requirements.txt", "engine==3.*\n", "3"),
    "a range before what the pack knows": ("requirements.txt", "engine>=0.5,<0.9\n", "0.5"),
    "only what is too new": ("requirements.txt", "engine<0.9\n", "0.9"),
    "nothing said": ("requirements.txt", "engine\n", None),
    "something else": ("requirements.txt", "engine-extras==1.0\n", None),
    "an address": ("requirements.txt", "engine @ git+https://example.invalid/x@v1\n", None),
    "broken toml": ("pyproject.toml", "[project\n", None),
    "tables of the wrong kind": (
        "pyproject.toml",
        'project = 1\ndependency-groups = ["x"]\n',
        None,
    ),
    "lists of the wrong kind": ("pyproject.toml", "[project]\ndependencies = 1\n", None),
    "no requirement": ("requirements.txt", "??\nengine==\n", None),
}


@pytest.mark.parametrize("case", REQUIREMENTS)
def test_the_projects_own_requirements(case: str, plugin: Path) -> None:
    name, text, version = REQUIREMENTS[case]
    write(plugin, {name: text})
    how = "the project's requirements" if version else "the newest known"
    assert named(find(plugin)) == (version or "2.0", how)


def test_what_is_nearer_wins(plugin: Path, release: Path, installed: Path) -> None:
    write(plugin, {"requirements.txt": "engine==1.0\n"})
    assert named(find(plugin))[1] == "the installed distribution"
    assert named(find(plugin, engine_path=release))[1] == f"--engine-path {release}"
    write(plugin, {**ENGINE, "engine/version.py": "version = '1.1'\n"})
    assert named(find(plugin, engine_path=release)) == ("1.1", "the checked tree")


@pytest.mark.parametrize(
    ("version", "words"), [("3.0", "newer than"), ("0.1", "older than"), ("1.0", "")]
)
def test_notices(version: str, words: str, plugin: Path) -> None:
    engine = find(plugin, EngineSpec("engine", Version(version)))
    assert engine is not None
    notices = list(engine.notices())
    assert bool(notices) is bool(words) and all(words in notice for notice in notices)


# The engine's source, read where it is


def test_source_outside_the_tree_is_looked_up_module_by_module(
    plugin: Path, tmp_path: Path
) -> None:
    elsewhere = write(
        tmp_path / "e",
        {**ENGINE, "engine/broken.py": "class (\n", "torch/nn.py": "class Module:\n    flag = 1\n"},
    )
    write(plugin, {"b.py": "import torch.nn\nfrom engine.base import Impl\n"
          "class D(torch.nn.Module, Impl): ...\n"})  # fmt: skip
    made = Tree(plugin, elsewhere)
    assert made.mro("C") == ["plugin.C", "engine.base.Impl", "engine.base.ImplBase", "abc.ABC"]
    assert made.resolve("C").place.module.tree is Place.ENGINE
    loaded = made.program.modules.loaded(Place.ENGINE)
    assert [module.facts.name for module in loaded] == ["engine.base"]
    assert made.program.modules.broken == [], "what nobody asks for is not even read"
    assert made.resolve("D").value is True, "a neutral package is not looked into"
