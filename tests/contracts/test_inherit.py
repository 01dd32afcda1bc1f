# ruff: noqa: E501  a case of a table is one line

from pathlib import Path

import pytest
from packaging.version import Version

from dcplint.contracts.contract import Pack
from dcplint.contracts.document import PackError
from dcplint.contracts.load import load_pack
from tests.contracts.example import PACK, toy, write_pack

HEAD = """\
engine: fork
extends: toy
package: fork
distribution: fork-engine
known: [5.0.0, 6.0.0]
based-on: {">=5,<6": 1.1.0, ">=6": 2.0.0}
rewrite: {toy.: fork., MlaImpl: LatentImpl, supports_dcp: does_dcp}
"""


def fork(tmp_path: Path, text: str = HEAD) -> Pack:
    parent = toy(tmp_path)
    return load_pack(
        write_pack(tmp_path, text, "fork.yaml"), shown="fork.yaml", find_parent={"toy": parent}.get
    )


def refused(tmp_path: Path, text: str) -> str:
    with pytest.raises(PackError) as caught:
        fork(tmp_path, text)
    return str(caught.value)


def test_names_are_rewritten_wherever_they_stand(tmp_path: Path) -> None:
    pack = fork(tmp_path)
    assert {c.name for c in pack.classes} == {
        "fork.backend.Impl",
        "fork.backend.LatentImpl",
        "fork.backend.Backend",
    }
    latent = next(c for c in pack.classes if c.name == "fork.backend.LatentImpl")
    assert latent.bases == ("fork.backend.Impl", "fork.backend.Mixin")
    assert latent.aliases == ("fork.LatentImpl",)
    assert {c.name for c in pack.implementations} == {"fork.fast.FastImpl"}
    dcp = pack.capabilities[0]
    assert (dcp.name, dcp.owner) == ("does_dcp", "fork.backend.Impl")
    assert dcp.overrides[0].owner == "fork.fast.FastImpl"
    assert dcp.readers[0].function == "fork.backend.Backend.does_dcp"
    gate = pack.gates[0]
    assert (gate.function, gate.capability, gate.reads) == (
        "fork.select.choose",
        "does_dcp",
        "does_dcp",
    )
    assert gate.callers[0].function == "fork.select.main"
    assert pack.derived[0].function == "fork.backend.Impl.__new__"
    assert pack.accessors[0].owner == "fork.backend.Backend"
    assert (pack.moved[0].name, pack.moved[0].successor) == ("fork.old", "fork.backend")
    assert pack.vocabulary.groups == ("fork.select.group",)
    assert pack.vocabulary.neutral == ("torch", "abc")


def test_the_beginning_of_a_name_is_whole_components(tmp_path: Path) -> None:
    pack = fork(tmp_path, HEAD.replace("toy.: fork.", "toy.back.: fork."))
    assert "toy.backend.Impl" in {c.name for c in pack.classes}


def test_a_rewritten_package_is_rewritten_itself(tmp_path: Path) -> None:
    pack = fork(tmp_path, HEAD.replace("toy.: fork.", "toy.old.: fork.older."))
    assert pack.moved[0].name == "fork.older"


@pytest.mark.parametrize(
    ("release", "value", "abstract"),
    [("5.0.0", True, ("forward",)), ("6.0.0", False, ("forward", "prefill"))],
)
def test_facts_are_dated_by_what_a_release_is_based_on(
    tmp_path: Path, release: str, value: bool, abstract: tuple[str, ...]
) -> None:
    contract = fork(tmp_path).at(Version(release))
    capability = contract.capability("impl", "does_dcp")
    assert capability is not None
    default = capability.default_at(contract.effective)
    assert default is not None and default.value is value
    impl = next(c for c in contract.classes if c.name == "fork.backend.Impl")
    assert impl.abstract == abstract
    assert bool(contract.implementations) is (release == "6.0.0")


def test_sources_still_point_at_the_parent(tmp_path: Path) -> None:
    pack = fork(tmp_path)
    assert {c.source.pack for c in pack.classes} == {"toy.yaml"}
    assert pack.files == {"fork.yaml": tmp_path / "fork.yaml", "toy.yaml": tmp_path / "toy.yaml"}


def test_the_heir_has_the_last_word(tmp_path: Path) -> None:
    pack = fork(
        tmp_path,
        HEAD
        + """\
classes:
  - {name: fork.backend.Impl, role: impl, abstract: [run], source: fork/backend.py:1@5.0.0}
capabilities:
  - name: returns_lse
    role: impl
    owner: fork.backend.Impl
    summary: says so
    opt-in: false
    source: fork/backend.py:2@5.0.0
    defaults: [{value: true, source: fork/backend.py:2@5.0.0}]
""",
    )
    assert [c.abstract for c in pack.classes if c.name == "fork.backend.Impl"] == [("run",)]
    lse = [c for c in pack.capabilities if c.name == "returns_lse"]
    assert [(c.opt_in, c.source.pack) for c in lse] == [(False, "fork.yaml")]
    assert {c.name for c in pack.classes} > {"fork.backend.LatentImpl"}


def test_a_fork_may_lack_a_capability(tmp_path: Path) -> None:
    without = """\
rewrite: {toy.: fork.}
lacks:
  - {role: impl, capability: returns_lse, source: fork/backend.py:4@5.0.0}
"""
    text = HEAD[: HEAD.index("rewrite")] + without
    # What asks for it must go with it, or be restated: the parent's claim would be left hanging.
    pack = fork(tmp_path, text)
    contract = pack.at(Version("6.0.0"))
    assert contract.capability("impl", "returns_lse") is None
    (lacking,) = (c for c in pack.capabilities if c.name == "returns_lse")
    assert (str(lacking.releases), lacking.source.pack) == ("no release", "fork.yaml")
    assert refused(tmp_path, text.replace("returns_lse", "returns_lsd")) == (
        "fork.yaml:9: 'capability: returns_lsd' names no capability of role impl; add or correct it"
    )


def test_names_that_were_gone_before_the_fork_stay_gone(tmp_path: Path) -> None:
    contract = fork(tmp_path).at(Version("5.0.0"))
    missing = contract.missing("fork.old.thing")
    assert missing is not None and missing[1] == "fork.backend.thing"


def test_names_that_came_after_the_fork_are_not_gone(tmp_path: Path) -> None:
    text = HEAD.replace(">=6", ">=7").replace(", 6.0.0", "").replace(', ">=7": 2.0.0', "")
    late = PACK.replace('releases: "<1.1"', 'releases: ">=2"', 1)
    parent = toy(tmp_path, late)
    pack = load_pack(write_pack(tmp_path, text, "fork.yaml"), find_parent={"toy": parent}.get)
    assert [m.name for m in pack.moved] == ["fork.backend.OldImpl", "fork.gone"]


def test_everything_is_inherited_where_releases_count_alike(tmp_path: Path) -> None:
    pack = fork(tmp_path, "engine: fork\nextends: toy\n")
    parent = toy(tmp_path)
    assert (pack.known, pack.package, pack.distribution) == (
        parent.known,
        parent.package,
        parent.distribution,
    )
    assert pack.capabilities == parent.capabilities
    assert pack.moved == parent.moved


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("1.1.0", "1.0.5", "fork.yaml:6: based-on names 1.0.5, which toy.yaml does not know; its releases are 1.0.0 to 2.0.0"),
        ('">=6": 2.0.0', '">=7": 2.0.0', "fork.yaml:6: based-on must say which release of toy 6.0.0 is made from"),
        ('{">=5,<6"', '{"5.*"', "fork.yaml:6: based-on must map a range of releases such as >=0.26,<0.30, got '5.*'"),
        ("1.1.0", "1.1", "fork.yaml:6: based-on[>=5,<6] must be a release, got 1.1 (a number); put it in quotes"),
        ("toy.: fork.", "toy.: fork", "fork.yaml:7: rewrite must end both of 'toy.: fork' in a dot, or neither"),
        ("{toy.: fork.", "{toy-x: fork", "fork.yaml:7: rewrite must map a name to rewrite such as vllm., got 'toy-x'"),
        ("extends: toy", "extends: tot", "fork.yaml:2: extends names 'tot', and there is no pack of that engine to extend"),
    ],
)  # fmt: skip
def test_refuses_in_one_sentence(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in HEAD
    assert refused(tmp_path, HEAD.replace(old, new, 1)) == message
