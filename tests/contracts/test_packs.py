import subprocess
import sys
from pathlib import Path

import pytest

from dcplint.contracts import packs
from dcplint.contracts.document import PackError
from dcplint.contracts.packs import find_packs
from dcplint.data import data_dir
from tests.contracts.example import PACK, write_pack


def install(site: Path, distribution: str, module: str, code: str) -> None:
    """A distribution in `site` whose entry point is `pack` of a module with that code."""
    info = site / f"{distribution}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[dcplint.packs]\nit = {module}:pack\n")
    (site / f"{module}.py").write_text(code)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


def test_built_in_packs_are_found_by_the_name_of_their_engine() -> None:
    found = find_packs()
    assert {"vllm", "aphrodite"} <= set(found)
    assert len(found) == len(list(data_dir("rules").glob("*.yaml")))
    for engine, pack in found.items():
        assert (pack.engine, pack.path) == (engine, f"rules/{engine}.yaml")
        assert pack.file.is_file()
    assert "sglong" not in found
    with pytest.raises(KeyError):
        found["sglong"]


def test_a_pack_is_read_once_and_only_when_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken.yaml").write_text("engine: *other")
    write_pack(tmp_path)
    monkeypatch.setattr(packs, "data_dir", lambda name: tmp_path)
    found = find_packs()
    assert found["toy"] is found["toy"]
    with pytest.raises(PackError, match=r"^rules/broken.yaml:1: "):
        found["broken"]


def test_the_users_pack_wins_and_the_last_of_them(tmp_path: Path) -> None:
    first = write_pack(tmp_path, PACK.replace("engine: toy", "engine: vllm"), "a.yaml")
    second = write_pack(tmp_path, PACK.replace("engine: toy", "engine: vllm"), "b.yaml")
    found = find_packs([first, second])
    assert found["vllm"].file == second
    assert list(found).count("vllm") == 1


def test_a_users_pack_may_add_to_the_built_in_one(tmp_path: Path) -> None:
    path = write_pack(
        tmp_path,
        "engine: vllm\nextends: vllm\nclasses:\n"
        "  - {name: vllm.mine.Impl, role: impl, source: mine#1}\n",
        "mine.yaml",
    )
    pack = find_packs([path])["vllm"]
    assert {"vllm.mine.Impl", "vllm.v1.attention.backend.AttentionImpl"} <= {
        c.name for c in pack.classes
    }
    assert find_packs([path])["aphrodite"].files.keys() == {
        "rules/aphrodite.yaml",
        "rules/vllm.yaml",
        path.as_posix(),
    }


def test_circles_are_refused(tmp_path: Path) -> None:
    files = [
        write_pack(tmp_path, f"engine: {engine}\nextends: {parent}\n", f"{engine}.yaml")
        for engine, parent in (("a", "b"), ("b", "c"), ("c", "a"))
    ]
    with pytest.raises(PackError) as caught:
        find_packs(files)["a"]
    assert str(caught.value) == (
        f"{files[0].as_posix()}:2: the pack of 'a' extends itself, by way of the packs it extends; "
        "break the circle"
    )


def test_a_pack_that_extends_only_itself_is_refused(tmp_path: Path) -> None:
    path = write_pack(tmp_path, "engine: a\nextends: a\n", "a.yaml")
    with pytest.raises(PackError, match="there is no pack of that engine to extend"):
        find_packs([path])["a"]


@pytest.mark.parametrize("text", ["package: toy\n", "engine: [toy]\n", "engine: 7\n"])
def test_a_users_pack_without_an_engine_is_refused_at_once(tmp_path: Path, text: str) -> None:
    path = write_pack(tmp_path, text)
    with pytest.raises(PackError, match=f"^{path.as_posix()}:1: .*engine"):
        find_packs([path])


@pytest.mark.parametrize(
    "code",
    ["pack = {path!r}", "from pathlib import Path\ndef pack():\n    return Path({path!r})"],
    ids=["path", "callable"],
)
def test_an_installed_pack_is_found(site: Path, tmp_path: Path, code: str) -> None:
    path = write_pack(tmp_path)
    install(site, "toy-pack", f"toy_pack_{len(code)}", code.format(path=str(path)))
    assert find_packs()["toy"].file == path
    # and the user's own file takes its place
    own = write_pack(tmp_path, PACK, "own.yaml")
    assert find_packs([own])["toy"].file == own


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("raise RuntimeError('no\\nluck')", "RuntimeError: no luck"),
        ("def pack(): return None", "TypeError"),
        ("other = 1", "AttributeError"),
    ],
)
def test_an_entry_point_that_fails_names_its_distribution(site: Path, code: str, why: str) -> None:
    install(site, "bad-pack", f"bad_pack_{len(code)}", code)
    with pytest.raises(PackError) as caught:
        find_packs()
    message = str(caught.value)
    assert message.startswith("the pack of distribution 'bad-pack' cannot be loaded: ")
    assert why in message and "\n" not in message


def test_a_wrong_installed_pack_names_its_distribution(site: Path, tmp_path: Path) -> None:
    path = write_pack(tmp_path, "engine: toy\nknwon: [1.0.0]\n")
    install(site, "wrong-pack", "wrong_pack", f"pack = {str(path)!r}")
    with pytest.raises(PackError) as caught:
        find_packs()["toy"]
    assert str(caught.value) == (
        "the pack of distribution 'wrong-pack': toy.yaml:2: unknown key 'knwon'; "
        "did you mean 'known'?"
    )


def test_an_error_in_what_an_installed_pack_extends_is_not_its_own(
    site: Path, tmp_path: Path
) -> None:
    path = write_pack(tmp_path, "engine: heir\nextends: toy\n", "heir.yaml")
    install(site, "heir-pack", "heir_pack", f"pack = {str(path)!r}")
    wrong = write_pack(tmp_path, "engine: toy\nknwon: [1.0.0]\n")
    with pytest.raises(PackError, match=f"^{wrong.as_posix()}:2: unknown key"):
        find_packs([wrong])["heir"]


def test_two_installed_packs_of_one_engine_are_refused(site: Path, tmp_path: Path) -> None:
    path = write_pack(tmp_path)
    install(site, "one-pack", "one_pack", f"pack = {str(path)!r}")
    install(site, "two-pack", "two_pack", f"pack = {str(path)!r}")
    with pytest.raises(
        PackError, match="'one-pack' and 'two-pack' both bring a pack of engine 'toy'"
    ):
        find_packs()


def test_looking_for_packs_does_not_import_yaml_before_one_is_read() -> None:
    code = "import dcplint.contracts.packs, sys; sys.exit('yaml' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
