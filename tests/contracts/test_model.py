from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from dcplint.contracts.contract import Coverage, Pack
from dcplint.contracts.model import Releases
from dcplint.contracts.packs import find_packs
from tests.contracts.example import toy

FORK = find_packs()["aphrodite"]


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Pack:
    return toy(tmp_path_factory.mktemp("toy"))


@pytest.mark.parametrize(
    ("version", "effective", "coverage"),
    [
        ("1.0.0", "1.0.0", Coverage.EXACT),
        ("1.0", "1.0", Coverage.EXACT),
        ("2.0.0+cu128", "2.0.0", Coverage.EXACT),
        ("2.0.0rc1", "2.0.0", Coverage.EXACT),
        ("1.1.0.post1", "1.1.0.post1", Coverage.BETWEEN),
        ("1.5", "1.5", Coverage.BETWEEN),
        ("2.0.1", "2.0.0", Coverage.NEWER),
        ("3.0a1", "2.0.0", Coverage.NEWER),
        ("0.1.dev1+gabc", "2.0.0", Coverage.NEWER),
        ("1.1.0.dev3", "1.1.0", Coverage.NEWER),
        ("1.1.1.dev3+gabc", "2.0.0", Coverage.NEWER),
        ("2.1.dev1", "2.0.0", Coverage.NEWER),
        ("0.9", "1.0.0", Coverage.OLDER),
        ("1.0.0rc1", "1.0.0", Coverage.EXACT),
    ],
)
def test_the_facts_that_stand_in(
    pack: Pack, version: str, effective: str, coverage: Coverage
) -> None:
    contract = pack.at(Version(version))
    assert (str(contract.effective), contract.coverage) == (effective, coverage)
    assert str(contract.version) == version


def test_facts_hold_in_their_releases_only(pack: Pack) -> None:
    old, new = pack.at(Version("1.1.0")), pack.at(Version("2.0.0"))
    assert not old.implementations
    assert [c.name for c in new.implementations] == ["toy.fast.FastImpl"]
    for contract, value, override in ((old, True, None), (new, False, True)):
        dcp = contract.capability("impl", "supports_dcp")
        assert dcp is not None
        default = dcp.default_at(contract.effective)
        assert default is not None and default.value is value
        stated = dcp.override_at("toy.fast.FastImpl", contract.effective)
        assert (stated and stated.value) is override
        assert dcp.override_at("toy.backend.Impl", contract.effective) is None
    asked = new.capability("backend", "supports_dcp")
    assert asked is not None and asked.default_at(new.effective) is None
    assert [s.function for s in asked.readers_at(new.effective)] == ["toy.select.choose"]
    assert new.capability("layer", "supports_dcp") is None


def test_an_older_release_keeps_the_names_and_loses_the_values(pack: Pack) -> None:
    contract = pack.at(Version("0.5"))
    dcp = contract.capability("impl", "supports_dcp")
    assert dcp is not None
    assert (dcp.defaults, dcp.overrides) == ((), ())
    assert contract.classes
    # It still had what went later.
    assert contract.missing("toy.backend.OldImpl") is None


def test_missing_names(pack: Pack) -> None:
    now = pack.at(Version("2.0.0"))
    for name, entry, successor in (
        ("toy.old", "toy.old", "toy.backend"),
        ("toy.old.Impl", "toy.old", "toy.backend.Impl"),
        # The successor of the module lacks this one too, and says where it went.
        ("toy.old.OldImpl", "toy.old", "toy.backend.Impl"),
        ("toy.backend.OldImpl", "toy.backend.OldImpl", "toy.backend.Impl"),
    ):
        found = now.missing(name)
        assert found is not None
        assert (found[0].name, found[1]) == (entry, successor)
    gone = now.missing("toy.gone.Impl")
    assert gone is not None and gone[1] is None
    for name in ("toy.older", "toy.backend.OldImpl.method", "toy.backend.Impl", "toy"):
        assert now.missing(name) is None
    assert pack.at(Version("1.0.0")).missing("toy.old") is None


def test_names_that_came_later_are_not_missing() -> None:
    vllm = find_packs()["vllm"]
    name = "vllm.v1.worker.gpu.cp_utils.maybe_prepare_dcp_local_seq_lens"
    answers = [vllm.at(Version(v)).missing(name) for v in ("0.29.0", "0.30.0", "0.31.0")]
    assert answers[:2] == [None, None]
    assert answers[2] is not None
    assert answers[2][1] == "vllm.v1.worker.gpu.cp_utils.prepare_dcp_local_seq_lens"


def test_the_flip_of_the_default() -> None:
    vllm = find_packs()["vllm"]
    values = {}
    for version in vllm.known:
        dcp = vllm.at(version).capability("impl", "supports_dcp")
        default = dcp and dcp.default_at(version)
        values[str(version)] = default and default.value
    assert values["0.25.1"] is None
    assert [values[v] for v in ("0.26.0", "0.27.1", "0.28.0", "0.29.0")] == [True] * 4
    assert [values[v] for v in ("0.30.0", "0.31.0", "0.32.0", "0.33.0")] == [False] * 4


def test_a_fork_has_what_it_was_made_from() -> None:
    contract = find_packs()["aphrodite"].at(Version("0.24.1"))
    assert contract.capability("impl", "supports_dcp") is None
    assert contract.capability("impl", "can_return_lse_for_decode") is not None
    assert {(g.stage, g.capability) for g in contract.gates} == {
        ("selection", "supports_pcp"),
        ("load", "supports_pcp"),
        ("load", "can_return_lse_for_decode"),
        ("load", "supports_mtp_with_cp_non_trivial_interleave_size"),
    }
    assert all(c.name.startswith("aphrodite.") for c in contract.classes)


def test_no_releases_and_every_release() -> None:
    assert Version("1") in Releases() and str(Releases()) == "every release"
    assert Version("1") not in Releases(()) and str(Releases(())) == "no release"


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=4),
    st.integers(0, 40),
    st.booleans(),
)
def test_a_list_of_ranges_is_their_union(starts: list[int], minor: int, candidate: bool) -> None:
    version = Version(f"0.{minor}{'rc1' if candidate else ''}")
    specs = [SpecifierSet(f">=0.{start}rc0,<0.{start + 3}") for start in starts]
    held = version in Releases(tuple(specs))
    assert held == any(start <= minor < start + 3 for start in starts) or candidate


@given(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5))
def test_facts_are_never_from_beyond_what_is_known(major: int, minor: int, patch: int) -> None:
    pack = FORK
    asked = Version(f"{major}.{minor}.{patch}")
    contract = pack.at(asked)
    assert pack.known[0] <= contract.effective <= pack.known[-1]
    expected = (
        Coverage.EXACT
        if asked in pack.known
        else Coverage.OLDER
        if asked < pack.known[0]
        else Coverage.NEWER
    )
    assert contract.coverage is expected


def test_files_of_a_pack(tmp_path: Path) -> None:
    assert toy(tmp_path).file == tmp_path / "toy.yaml"
