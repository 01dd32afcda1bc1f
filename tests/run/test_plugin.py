"""An out-of-tree plugin: one tree, different and right answers against different releases."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from dcplint.contracts.model import Capability
from dcplint.data import data_dir
from dcplint.program.attributes import Resolution
from dcplint.program.program import Program
from dcplint.program.symbols import ClassSymbol
from tests.run.tree import Command, write, write_engine, write_plugin

AGAINST = {
    "vllm==0.25.1": [],  # no such capability yet, and the sparse base still exists
    "vllm==0.29.0": [
        ("DCP101", "dense", "DenseImpl"),
        ("DCP101", "latent", "LatentImpl"),
        ("DCP101", "latent", "SinkImpl"),
        ("DCP108", "sparse", "SparseImpl"),
    ],
    "vllm==0.30.0": [
        ("DCP104", "dense", "DenseImpl"),
        ("DCP104", "latent", "LatentImpl"),
        ("DCP108", "sparse", "SparseImpl"),
    ],
}


def findings(dcplint: Command, *args: str | Path) -> list[tuple[str, str, str]]:
    report = dcplint.json("check", *args)
    return [(f["code"], Path(f["path"]).stem, f["symbol"]) for f in report["findings"]]


@pytest.mark.parametrize("engine", AGAINST)
def test_the_answer_depends_on_the_release(dcplint: Command, engine: str, tmp_path: Path) -> None:
    plugin = write_plugin(tmp_path / "plugin")
    assert findings(dcplint, plugin, "--engine", engine) == AGAINST[engine]


def test_its_own_requirements_name_the_release(dcplint: Command, tmp_path: Path) -> None:
    plugin = write_plugin(tmp_path / "plugin")
    report = dcplint.json("check", plugin)
    assert (report["engine"]["release"], report["engine"]["source"]) == (
        "0.30.0",
        "the project's requirements",
    )
    assert [f["code"] for f in report["findings"]] == ["DCP104", "DCP104", "DCP108"]


def test_engine_source_is_read_where_it_is_given(dcplint: Command, tmp_path: Path) -> None:
    """What the engine's own source shows overrides the pack."""
    plugin = write(tmp_path / "plugin", {"src/mine/impl.py": OWN})
    for default, codes in [(True, ["DCP101"]), (False, ["DCP104"])]:
        engine = write_engine(tmp_path / f"engine-{default}", "0.30.0", default)
        report = dcplint.json("check", plugin, "--engine-path", engine)
        assert [f["code"] for f in report["findings"]] == codes
        origin = next(
            e
            for e in report["findings"][0]["evidence"]
            if "supports_dcp" in e["message"] and e["role"] == "origin"
        )
        assert origin["path"] == "vllm/v1/attention/backend.py"


OWN = """\
from vllm.v1.attention.backend import AttentionImpl


class OwnImpl(AttentionImpl):
    can_return_lse_for_decode = True

    def __init__(self, *args): ...

    def forward(self, *args):
        return self.need_to_return_lse_for_decode
"""


def test_a_gate_that_asks_about_some_models_refuses_nobody_for_certain(
    dcplint: Command, tmp_path: Path
) -> None:
    plugin = write(tmp_path / "plugin", {"src/mine/impl.py": OWN})
    pack = tmp_path / "vllm.yaml"
    text = (data_dir("rules") / "vllm.yaml").read_text()
    for scope, codes in [("", ["DCP104"]), ("        only-for: MLA layers\n", [])]:
        pack.write_text(text.replace("        argument: use_dcp\n", scope))
        found = findings(dcplint, plugin, "--engine", "vllm==0.30.0", "--pack", pack)
        assert [code for code, _, _ in found] == codes


def test_where_no_interleave_size_is_known_tokens_go_round_one_by_one(
    dcplint: Command, tmp_path: Path
) -> None:
    fixture = data_dir("fixtures") / "dcp308_mixed_index_space" / "bad_owner_token_by_token.py"
    plugin = write(tmp_path / "plugin", {"src/mine/slots.py": fixture.read_text()})
    pack = tmp_path / "vllm.yaml"
    text = (data_dir("rules") / "vllm.yaml").read_text()
    kind = text[text.index("  interleaves:") : text.index("  groups:")]
    for changed, codes in [(text, ["DCP308"] * 3), (text.replace(kind, ""), [])]:
        pack.write_text(changed)
        found = findings(dcplint, plugin, "--engine", "vllm==0.30.0", "--pack", pack)
        assert [code for code, _, _ in found] == codes


# Names decide nothing: each change leaves the plugin what it is.


def rename_classes(plugin: Path) -> None:
    for path in plugin.rglob("*.py"):
        text = path.read_text()
        for old, new in [("DenseImpl", "Zebra"), ("LatentImpl", "Okapi"), ("SparseImpl", "Gnu")]:
            text = re.sub(rf"\b{old}\b", new, text)
        path.write_text(text)


def rename_files(plugin: Path) -> None:
    package = plugin / "src" / "shardline"
    (package / "attention" / "dense.py").rename(package / "attention" / "a1.py")
    (package / "attention" / "latent.py").rename(package / "attention" / "a2.py")
    (package / "attention" / "sparse.py").rename(package / "attention" / "a3.py")
    (package / "attention").rename(package / "stuff")
    package.rename(plugin / "src" / "thing")
    for path in plugin.rglob("*.py"):
        path.write_text(
            path.read_text().replace("shardline.", "thing.").replace("from shardline", "from thing")
        )


def hide_the_base_twice_more(plugin: Path) -> None:
    package = plugin / "src" / "shardline"
    (package / "one.py").write_text("from .api import ComputeBase as X, LatentBase as Y\n")
    (package / "two.py").write_text("import shardline.one as o\n\nP, Q = o.X, o.Y\n")
    dense = package / "attention" / "dense.py"
    dense.write_text(
        dense.read_text()
        .replace("from shardline import api\n", "from shardline import api, two\n")
        .replace("(api.ComputeBase)", "(two.P)")
    )
    latent = package / "attention" / "latent.py"
    latent.write_text(
        latent.read_text().replace(
            "shardline.api import LatentBase", "shardline.two import Q as LatentBase"
        )
    )


def add_a_namesake(plugin: Path) -> None:
    (plugin / "src" / "shardline" / "video.py").write_text(
        "class AttentionImplBase:\n    supports_dcp = True\n\n\n"
        "class AttentionImpl(AttentionImplBase):\n    def forward(self): ...\n\n\n"
        "class MLACommonImpl(AttentionImpl):\n    def forward_mqa(self): ...\n"
    )


def load_the_base_late(plugin: Path) -> None:
    package = plugin / "src" / "shardline"
    (package / "late.py").write_text(
        "def __getattr__(name):\n    if name == 'ComputeBase':\n"
        "        from shardline.api import ComputeBase\n\n        return ComputeBase\n"
        "    raise AttributeError(name)\n"
    )
    dense = package / "attention" / "dense.py"
    dense.write_text(
        dense.read_text()
        .replace("from shardline import api\n", "from shardline import api, late\n")
        .replace("(api.ComputeBase)", "(late.ComputeBase)")
    )


def register_and_mix(plugin: Path) -> None:
    package = plugin / "src" / "shardline"
    (package / "mixed.py").write_text(
        "from typing import Protocol\n\nKNOWN = {}\n\n\n"
        "class HasScale(Protocol):\n    scale: float\n\n\n"
        "class Registered:\n    def __init_subclass__(cls, **kwargs):\n"
        "        super().__init_subclass__(**kwargs)\n        KNOWN[cls.__name__] = cls\n\n\n"
        "def register(name):\n    def keep(cls):\n        KNOWN[name] = cls\n        return cls\n\n"
        "    return keep\n"
    )
    for name in ("dense", "latent"):
        path = package / "attention" / f"{name}.py"
        text = re.sub(
            r"class (\w+Impl)\((.*)\):",
            r'@mixed.register("\1")\nclass \1(mixed.Registered, mixed.HasScale, \2):',
            path.read_text(),
        )
        path.write_text(
            text.replace("from shardline", "from shardline import mixed\nfrom shardline", 1)
        )


def import_by_release(plugin: Path) -> None:
    compute = plugin / "src" / "shardline" / "api" / "compute.py"
    compute.write_text(
        "import sys\n\nif sys.version_info >= (3, 10):\n    from ..engine import EngineImpl\n"
        "else:\n    from ..engine import EngineImpl\ntry:\n    ComputeBase = EngineImpl\n"
        "except NameError:\n    ComputeBase = object\n"
    )


def put_it_under_another_name(plugin: Path) -> None:
    (plugin / "src").rename(plugin / "lib")


@pytest.mark.parametrize("engine", ["vllm==0.29.0", "vllm==0.30.0"])
@pytest.mark.parametrize(
    "change",
    [
        rename_classes,
        rename_files,
        hide_the_base_twice_more,
        add_a_namesake,
        load_the_base_late,
        register_and_mix,
        import_by_release,
        put_it_under_another_name,
    ],
)
def test_names_decide_nothing(
    dcplint: Command, change: Callable[[Path], None], engine: str, tmp_path: Path
) -> None:
    plugin = write_plugin(tmp_path / "plugin")
    change(plugin)
    codes = [code for code, _, _ in findings(dcplint, plugin, "--engine", engine)]
    assert sorted(codes) == [code for code, _, _ in AGAINST[engine]]


def test_a_helper_is_known_through_the_module_that_renames_it(
    dcplint: Command, tmp_path: Path
) -> None:
    """That module defines no class, and nothing else leads to it."""
    write(
        tmp_path,
        {
            "mine/talk.py": "from vllm.distributed.parallel_state import get_dcp_group as peers\n",
            "mine/impl.py": """\
from vllm.v1.attention.backend import AttentionImpl

from mine.talk import peers as others


class OwnImpl(AttentionImpl):
    def __init__(self, *args): ...

    def forward(self, query):
        return others().all_gather(query, dim=1)
""",
        },
    )
    found = findings(dcplint, tmp_path, "--engine", "vllm==0.30.0")
    assert found == [("DCP104", "impl", "OwnImpl")]


def test_twice_as_many_silent_classes_ask_twice_as_much(
    dcplint: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    promise = Program.promise

    def counted(program: Program, symbol: ClassSymbol, capability: Capability) -> Resolution:
        asked.append(capability.name)
        return promise(program, symbol, capability)

    monkeypatch.setattr(Program, "promise", counted)
    counts = []
    for number in (20, 40):
        files = {
            f"m{n}.py": OWN.replace("True", "False").replace("Own", f"Own{n}")
            for n in range(number)
        }
        asked.clear()
        tree = write(tmp_path / str(number), files)
        found = findings(dcplint, tree, "--engine", "vllm==0.29.0", "--no-cache", "-j1")
        assert len(found) == number
        counts.append(len(asked))
    assert counts[1] <= 2.2 * counts[0]
