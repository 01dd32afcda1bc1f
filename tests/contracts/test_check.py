# ruff: noqa: E501  a case of a table is one line

import re
from pathlib import Path

import pytest
from packaging.version import Version

from dcplint.contracts.check import disagreements
from dcplint.contracts.checking.comparison import Disagreement
from dcplint.contracts.load import load_pack
from tests.contracts.ast_engine import AstEngine
from tests.contracts.example import PACK, SOURCE, toy, write_pack, write_source

METHOD = """\
capabilities:
  - name: describe
    role: backend
    owner: toy.backend.Backend
    summary: describes itself
    opt-in: false
    encoding: method
    source: toy#3
    defaults: [{value: true, source: toy#3}]
"""


def compare(
    tmp_path: Path,
    release: str = "2.0.0",
    *,
    pack: tuple[str, str] | None = None,
    source: tuple[str, str, str] | None = None,
) -> list[Disagreement]:
    """What pack and source say differently after one replacement in either."""
    text = PACK
    if pack:
        assert pack[0] in PACK
        text = PACK.replace(*pack, 1)
    changes = {f"toy/{source[0]}.py": source[1:]} if source else {}
    root = write_source(tmp_path / "release", changes)
    return list(disagreements(toy(tmp_path, text).at(Version(release)), AstEngine(root)))


def test_agreement(tmp_path: Path) -> None:
    assert compare(tmp_path) == []


def test_a_disagreement_names_both_places(tmp_path: Path) -> None:
    (found,) = compare(tmp_path, source=("backend", "returns_lse = False", "returns_lse = True"))
    assert found.message == "toy.backend.Impl.returns_lse is True, where the pack says False"
    assert (found.source.pack, found.place and found.place.path) == ("toy.yaml", "toy/backend.py")
    assert PACK.splitlines()[found.source.line - 1] == (
        "      - {value: false, source: toy/backend.py:6@2.0.0}"
    )
    assert (
        found.place
        and SOURCE["toy/backend.py"].splitlines()[found.place.line - 1] == "class Impl(ABC):"
    )


@pytest.mark.parametrize(
    ("module", "old", "new", "message"),
    [
        ("backend", "class Mixin:\n    helper", "class Mixin:\n    supports_dcp", "base toy.backend.Mixin of toy.backend.MlaImpl has supports_dcp and no entry"),
        ("backend", "    helper = True", "    @abstractmethod\n    def more(self): ...", "base toy.backend.Mixin of toy.backend.MlaImpl has more and no entry"),
        ("backend", "MlaImpl(Impl, Mixin)", "MlaImpl(Mixin, Impl)", "toy.backend.MlaImpl has the bases toy.backend.Mixin, toy.backend.Impl, where the pack says toy.backend.Impl, toy.backend.Mixin"),
        ("backend", "    @abstractmethod\n    def prefill", "    def prefill", "toy.backend.Impl declares abstract forward, where the pack says forward, prefill"),
        ("backend", "    def forward(self):\n        return None", "    def run(self):\n        return None", "toy.backend.MlaImpl implements of its bases' abstract methods none, where the pack says forward"),
        ("backend", "    extra = 1", "    returns_lse = True", "toy.backend.MlaImpl.returns_lse is True, where the pack lists no override"),
        ("backend", "supports_dcp: bool = False", "supports_dcp: bool = True", "toy.backend.Impl.supports_dcp is True, where the pack says False"),
        ("backend", "supports_dcp: bool = False", "supports_dcp: bool", "toy.backend.Impl.supports_dcp has no literal value, where the pack says False"),
        ("backend", "cls.get_impl_cls().supports_dcp", "cls.impl.supports_dcp", "toy.backend.Backend.supports_dcp does not ask get_impl_cls()"),
        ("backend", "cls.get_impl_cls().supports_dcp", "cls.get_impl_cls().other", "toy.backend.Backend.supports_dcp is no reader: it never reads supports_dcp"),
        ("backend", "def get_impl_cls", "def get_impl", "toy.backend.Backend has no method get_impl_cls"),
        ("backend", "self.needs_lse = ", "self.needs = ", "toy.backend.Impl.__new__ does not mention needs_lse"),
        ("backend", "and self.returns_lse", "and True", "toy.backend.Impl.__new__ does not mention returns_lse"),
        ("backend", "# a comment", "class OldImpl: ...", "toy.backend.OldImpl exists, where the pack has it in <1 only"),
        ("fast", "    supports_dcp = True", "    supports_dcp = False", "toy.fast.FastImpl.supports_dcp is False, where the pack says True"),
        ("fast", "class FastImpl", "class QuickImpl", "toy.fast.FastImpl does not exist"),
        ("fast", "def merge", "def join", "toy.fast.merge does not exist"),
        ("select", "use_dcp=False):\n    if use_dcp", "dcp=False):\n    if dcp", "toy.select.choose has no parameter use_dcp"),
        ("select", "impl.needs_lse", "impl.returns_lse", "toy.select.choose does not read needs_lse"),
        ("select", "    choose(None, None)", "    pass", "toy.select.main is no caller: it never calls choose"),
        ("select", "def main", "def start", "toy.select.main does not exist"),
        ("select", "def choose", "def pick", "toy.select.choose does not exist"),
        ("select", "def group(): ...", "from toy.fast import merge as group", "toy.select.group is defined as toy.fast.merge"),
        ("__init__", "from .backend import MlaImpl", "MlaImpl = None", "toy.MlaImpl is not toy.backend.MlaImpl"),
    ],
)  # fmt: skip
def test_disagreements(tmp_path: Path, module: str, old: str, new: str, message: str) -> None:
    found = compare(tmp_path, source=(module, old, new))
    assert message in [d.message for d in found]
    assert all(d.source.pack == "toy.yaml" and d.source.line for d in found)


def test_a_name_that_went_must_not_exist_and_one_that_did_not_must(tmp_path: Path) -> None:
    (write_source(tmp_path / "release") / "toy/old.py").touch()
    assert [d.message for d in compare(tmp_path)] == [
        "toy.old exists, where the pack has it in <1.1 only"
    ]
    (tmp_path / "release/toy/old.py").unlink()
    assert "toy.old does not exist" in [d.message for d in compare(tmp_path, "1.0.0")]


def test_a_successor_must_exist(tmp_path: Path) -> None:
    found = compare(tmp_path, pack=("successor: toy.backend\n", "successor: toy.front\n"))
    assert [d.message for d in found] == [
        "toy.front, the successor of toy.old, does not exist",
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        # What the source has must not be dated away.
        ('releases: ">=2"\n    source: toy/fast.py:4', 'releases: "<2"\n    source: toy/fast.py:4', "toy.fast.FastImpl exists, where the pack has it in <2 only"),
        ('releases: ">=2", source: toy/fast.py:14', 'releases: "<2", source: toy/fast.py:14', "toy.fast.merge exists, where the pack has it in <2 only"),
        ('releases: ">=1.1", source: toy/select', 'releases: "<2", source: toy/select', "toy.select.main calls choose, where the pack says in <2 only"),
        ("{function: toy.backend.Backend.supports_dcp,", '{function: toy.backend.Backend.supports_dcp, releases: "<2",', "toy.backend.Backend.supports_dcp reads supports_dcp, where the pack says in <2 only"),
        ("        outcome: an assertion fails\n", '        outcome: an assertion fails\n        releases: "<2"\n', "toy.select.choose reads needs_lse, where the pack has it in <2 only"),
        # What the pack names must exist.
        ("    owner: toy.backend.Impl\n    summary: computes", "    owner: toy.backend.Nope\n    summary: computes", "toy.backend.Nope does not exist"),
        ("{owner: toy.fast.FastImpl,", "{owner: toy.fast.Nope,", "toy.fast.Nope does not exist"),
        ("    function: toy.backend.Impl.__new__", "    function: toy.backend.Impl.__nope__", "toy.backend.Impl.__nope__ does not exist"),
        ("    owner: toy.backend.Backend\n    returns", "    owner: toy.backend.Nope\n    returns", "toy.backend.Nope does not exist"),
        ("    methods: [forward]", "    methods: [backward]", "no class of role impl has a method backward"),
        # What the pack says of its sources must be so.
        ("source: toy/fast.py:4@", "source: toy/fast.py:3@", "line 3 of toy/fast.py does not mention FastImpl"),
        ("source: toy/fast.py:4@", "source: toy/fast.py:400@", "source toy/fast.py:400 is not in the release"),
        ("source: toy/fast.py:4@", "source: toy/slow.py@", "source toy/slow.py: is not in the release"),
    ],
)  # fmt: skip
def test_disagreements_of_the_packs_making(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert message in [d.message for d in compare(tmp_path, pack=(old, new))]


def test_a_method_must_be_one(tmp_path: Path) -> None:
    (found,) = compare(
        tmp_path,
        pack=("capabilities:\n", METHOD),
    )
    assert found.message == "toy.backend.Backend.describe is no method"


def test_a_capability_that_is_dated_away_must_not_exist(tmp_path: Path) -> None:
    dated = PACK.replace(
        "    encoding: attribute\n", '    encoding: attribute\n    releases: "<2"\n', 1
    ).replace(
        "{value: false, source: toy/backend.py:6@2.0.0}",
        '{value: false, releases: "<2", source: toy/backend.py:6@2.0.0}',
    )
    root = write_source(tmp_path / "release")
    found = disagreements(toy(tmp_path, dated).at(Version("2.0.0")), AstEngine(root))
    assert "toy.backend.Impl.returns_lse exists, where the pack has it in <2 only" in [
        d.message for d in found
    ]


def test_what_is_dated_away_may_be_absent(tmp_path: Path) -> None:
    readers = "    readers:\n      - {function: toy.backend.Backend.supports_dcp,"
    gone = """\
    readers:
      - {function: toy.gone.read, releases: "<2", source: toy#4}
      - {function: toy.fast.merge, releases: "<2", source: toy#5}
      - {function: toy.backend.Backend.supports_dcp,"""
    assert compare(tmp_path, pack=(readers, gone)) == []
    overrides = "    overrides:\n"
    stated = '      - {owner: toy.backend.MlaImpl, value: true, releases: "<2", source: toy#6}\n'
    assert compare(tmp_path, pack=(overrides, overrides + stated)) == []
    renamed = ("fast", "class FastImpl", "class QuickImpl")
    assert not [d for d in compare(tmp_path, "1.1.0", source=renamed) if "Fast" in d.message]
    dated = METHOD.replace("source: toy#3\n", 'releases: "<2"\n    source: toy#3\n').replace(
        "value: true", 'value: true, releases: "<2"'
    )
    assert compare(tmp_path, pack=("capabilities:\n", dated)) == []


@pytest.mark.parametrize("place", sorted(set(re.findall(r"toy/\w+\.py:\d+@2\.0\.0", PACK))))
def test_every_source_is_compared(tmp_path: Path, place: str) -> None:
    wrong = re.sub(r":\d+@", ":999@", place)
    text = PACK
    for _ in range(PACK.count(place)):
        head, _, tail = text.partition(place)
        text = head + wrong + tail
        found = compare(tmp_path, pack=(PACK, text))
        assert [d.message for d in found] == [
            f"source {wrong.partition('@')[0]} is not in the release"
        ]
        text = head + "toy#99" + tail


def test_an_engine_with_a_base_that_cannot_be_found(tmp_path: Path) -> None:
    found = compare(tmp_path, source=("backend", "(Impl, Mixin)", "(Impl, toy.ghost.Ghost)"))
    assert [d.message for d in found] == [
        "toy.backend.MlaImpl has the bases toy.backend.Impl, toy.ghost.Ghost, where the pack says "
        "toy.backend.Impl, toy.backend.Mixin"
    ]


def test_abstract_methods_come_from_every_ancestor(tmp_path: Path) -> None:
    deeper = ("fast", "import Impl", "import MlaImpl as Impl")
    assert [d.message for d in compare(tmp_path, source=deeper)] == [
        "toy.fast.FastImpl has the bases toy.backend.MlaImpl, where the pack says toy.backend.Impl"
    ]


def test_names_that_went_and_names_to_come(tmp_path: Path) -> None:
    (write_source(tmp_path / "release") / "toy/old.py").touch()
    assert not [d for d in compare(tmp_path, "1.0.0") if "toy.old" in d.message]
    to_come = """\
moved:
  - {name: toy.late, successor: toy.nowhere, releases: "==1.1.0", source: toy#9}
"""
    late = ("moved:\n", to_come)
    assert not [d for d in compare(tmp_path, "1.0.0", pack=late) if "nowhere" in d.message]
    assert [d for d in compare(tmp_path, pack=late) if "nowhere" in d.message]


@pytest.mark.parametrize(
    ("releases", "expected"),
    [("", []), ('releases: "<2"', ["toy.backend.Backend.get_impl_cls exists, where the pack has it in <2 only"])],
)  # fmt: skip
def test_a_method_with_a_default(tmp_path: Path, releases: str, expected: list[str]) -> None:
    method = METHOD.replace("describe\n", "get_impl_cls\n", 1)
    if releases:
        method = method.replace("source: toy#3\n", f"{releases}\n    source: toy#3\n")
        method = method.replace("value: true", f"value: true, {releases}")
    found = compare(tmp_path, pack=("capabilities:\n", method))
    assert [d.message for d in found] == expected


def test_one_function_may_read_one_name_of_two_roles(tmp_path: Path) -> None:
    readers = "    readers:\n"
    earlier = '      - {function: toy.select.choose, releases: "<2", source: toy#4}\n'
    assert compare(tmp_path, pack=(readers, readers + earlier)) == []


def test_words_that_are_dated_away(tmp_path: Path) -> None:
    renamed = ("fast", "def merge", "def join")
    assert not [d for d in compare(tmp_path, "1.1.0", source=renamed) if "merge" in d.message]


def test_a_source_may_be_a_whole_module(tmp_path: Path) -> None:
    whole = ("source: toy/fast.py:4@2.0.0", "source: toy/fast.py@2.0.0")
    assert compare(tmp_path, pack=whole) == []


def test_the_source_of_a_name_that_went_is_compared(tmp_path: Path) -> None:
    found = compare(tmp_path, pack=("source: toy#7", "source: toy/backend.py:999@2.0.0"))
    assert [d.message for d in found] == ["source toy/backend.py:999 is not in the release"]


def test_a_fork_that_lacks_a_capability(tmp_path: Path) -> None:
    parent = toy(tmp_path)
    text = """\
engine: fork
extends: toy
known: [2.0.0]
based-on: {">=2": 2.0.0}
lacks:
  - {role: impl, capability: returns_lse, source: toy/backend.py:4@2.0.0}
"""
    path = write_pack(tmp_path, text, "fork.yaml")
    contract = load_pack(path, shown="fork.yaml", find_parent={"toy": parent}.get).at(
        Version("2.0.0")
    )
    engine = AstEngine(write_source(tmp_path / "release"))
    assert [d.message for d in disagreements(contract, engine) if d.source.pack == "fork.yaml"] == [
        "toy.backend.Impl.returns_lse exists, where the pack has it in no release only"
    ]


def test_a_release_older_than_the_pack_has_no_values_to_compare(tmp_path: Path) -> None:
    assert not [d for d in compare(tmp_path, "0.5") if "the pack says True" in d.message]


def test_sources_read_in_another_release_are_not_compared(tmp_path: Path) -> None:
    assert compare(tmp_path, pack=("toy/fast.py:4@2.0.0", "toy/fast.py:400@1.1.0")) == []


def test_disagreements_come_in_the_order_of_the_pack(tmp_path: Path) -> None:
    found = compare(tmp_path, "1.0.0")
    lines = [d.source.line for d in found]
    assert len(lines) > 3 and lines == sorted(lines)


@pytest.mark.parametrize("constructor", ["__init__", "build"])
def test_what_a_constructor_sets_is_a_field(tmp_path: Path, constructor: str) -> None:
    made = f"def {constructor}(self):\n        self.seq_lens = []"
    found = compare(tmp_path, source=("backend", "seq_lens: list", made))
    missing = ["toy.backend.Batch has no field seq_lens"]
    assert [f.message for f in found] == ([] if constructor == "__init__" else missing)
