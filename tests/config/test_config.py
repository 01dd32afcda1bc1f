import os
import re
from pathlib import Path

import pytest
from packaging.version import Version

from dcplint.config import Config, HarnessConfig, find_config, policy
from dcplint.contracts.spec import EngineSpec
from dcplint.errors import UserError
from dcplint.findings.model import Severity
from tests.findings.rules import CATALOGUE, EVERY_CODE


def write(folder: Path, text: str, name: str = "dcplint.toml") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def found(*paths: Path) -> Config:
    return find_config(paths, CATALOGUE)


def refused(folder: Path, text: str, name: str = "dcplint.toml") -> str:
    write(folder, text, name)
    with pytest.raises(UserError) as refusal:
        found(folder)
    return str(refusal.value)


EVERY_KEY = """
select = ["DCP1", "open-coded-length"]
extend-select = ["DCP003"]
ignore = ["DCP002"]
exclude = ["third_party/"]
min-severity = "warning"
engine = "vllm==0.29.0"
engine-path = "../engine"
packs = ["packs/mine.yaml"]
baseline = "accepted.jsonl"
output-format = "concise"
[per-file-ignores]
"tests/*" = ["DCP1"]
[severity]
DCP101 = "error"
[harness]
drivers = ["mine.driver:Driver", "lint/driver.py:Driver"]
"""


def test_every_key_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, EVERY_KEY)
    assert found(tmp_path) == Config(
        path=path,
        select=("DCP1", "open-coded-length"),
        extend_select=("DCP003",),
        ignore=("DCP002",),
        exclude=("third_party/",),
        per_file_ignores=(("tests/*", ("DCP1",)),),
        severity=(("DCP101", Severity.ERROR),),
        min_severity=Severity.WARNING,
        engine=EngineSpec("vllm", Version("0.29.0")),
        baseline=tmp_path / "accepted.jsonl",
        engine_path=tmp_path / "../engine",
        packs=(tmp_path / "packs/mine.yaml",),
        output_format="concise",
        harness=HarnessConfig(("mine.driver:Driver", f"{tmp_path}/lint/driver.py:Driver")),
    )


def test_pyproject_says_the_same(tmp_path: Path) -> None:
    text = re.sub(r"^\[", "[tool.dcplint.", EVERY_KEY, flags=re.MULTILINE)
    write(tmp_path, f"[tool.dcplint]\n{text}", "pyproject.toml")
    one = found(tmp_path)
    write(tmp_path, EVERY_KEY)
    two = found(tmp_path)  # the file of our own goes first
    assert one.path and two.path and (one.path.name, two.path.name) != ("", "pyproject.toml")
    assert [getattr(one, key) for key in Config.__slots__[1:]] == [
        getattr(two, key) for key in Config.__slots__[1:]
    ]


def test_an_empty_table_is_a_configuration(tmp_path: Path) -> None:
    path = write(tmp_path, "[tool.dcplint]\n", "pyproject.toml")
    assert found(tmp_path) == Config(path=path)


def test_the_nearest_file_wins(tmp_path: Path) -> None:
    write(tmp_path, "")
    inner = write(tmp_path / "a", "")
    write(tmp_path / "a/b", "[tool.other]\nx = 1\n", "pyproject.toml")
    (tmp_path / "a/b/x.py").touch()
    assert found(tmp_path / "a/b/x.py").path == inner
    assert found(tmp_path / "a/b/not-there.py").path == inner
    assert found(tmp_path / "a/b", tmp_path / "a/c.py").path == inner
    assert found(tmp_path / "a/b", tmp_path / "d").path == tmp_path / "dcplint.toml"


def test_relative_paths_are_looked_up_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, "")
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path / "a")
    assert found(Path()).path == path
    assert found(Path("..")).path == path


def test_none_is_fine(tmp_path: Path) -> None:
    assert found(tmp_path) == Config()


def test_other_peoples_broken_files_are_not_our_business(tmp_path: Path) -> None:
    write(tmp_path, "[tool.ruff\n", "pyproject.toml")
    assert found(tmp_path) == Config()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.dcplint]\nselect = []", "keys stand here without the prefix `tool.dcplint`"),
        ("selct = []", "line 1: unknown key 'selct'; did you mean 'select'?"),
        ("\n\nper_file_ignores = {}", "line 3: unknown key 'per_file_ignores'; did you mean"),
        ("basline = 'x'", "unknown key 'basline'"),
        ("path = 'x'", "unknown key 'path'"),
        ("min-severity = []", "must be one of error, warning, note, not []"),
        ("select = 'DCP1'", "line 1: `select` must be a list of strings"),
        ("ignore = [1]", "`ignore` must be a list of strings"),
        ("engine-path = 3", "`engine-path` must be a string"),
        ("packs = 'a'", "`packs` must be a list of strings"),
        ("severity = 'error'", "`severity` must be a table"),
        ("per-file-ignores = []", "`per-file-ignores` must be a table"),
        ("[per-file-ignores]\na = 'DCP1'", "line 2: `a` must be a list of strings"),
        ("[per-file-ignores]\na = ['DCP9']", "line 2: in `a`: no rule is called 'DCP9'"),
        ("[severity]\nDCP101 = 'warn'", "must be one of error, warning, note, not 'warn'"),
        ("[severity]\nDCP101 = 'warn'", "did you mean 'warning'?"),
        ("[severity]\nDCP101 = 1", "must be one of error, warning, note, not 1"),
        ("[severity]\nDCP110 = 'note'", "in `severity`: no rule is called 'DCP110'; did you mean"),
        ("min-severity = 'errors'", "did you mean 'error'?"),
        ("output-format = 'jsno'", "did you mean 'json'?"),
        ("select = ['DCP110']", "in `select`: no rule is called 'DCP110'; did you mean 'DCP101'?"),
        ("engine = 'vllm'", "`engine`: 'vllm' is no engine release"),
        ("engine = '==0.29.0'", "`engine`: '==0.29.0' is no engine release"),
        ("engine = 'vllm==x'", "`engine`: 'vllm==x' is no engine release"),
        ("[harness]\ndriver = ['a:B']", "unknown key 'driver' in `harness`; did you mean"),
        ("[harness]\ndrivers = 'a:B'", "line 2: `drivers` must be a list of strings"),
        ("[harness]\ndrivers = ['a.B']", "line 2: in `drivers`: 'a.B' is not `module:Class`"),
        ("harness = []", "`harness` must be a table"),
        ("select = [", "not valid TOML: "),
        ("x = 'é'\n# \udcff", "line 2: not UTF-8, as TOML has to be"),
    ],
)
def test_mistakes_are_explained(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "dcplint.toml"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(UserError) as refusal:
        found(tmp_path)
    assert message in str(refusal.value)
    assert str(refusal.value).startswith(str(path))
    assert "\n" not in str(refusal.value)


def test_the_line_is_that_of_our_table(tmp_path: Path) -> None:
    text = "[tool.ruff]\nselct = []\n[tool.dcplint]\nignore = []\nselct = []\n"
    assert "line 5: unknown key 'selct'" in refused(tmp_path, text, "pyproject.toml")
    text = "[tool.ruff.harnes]\n[tool.dcplint.harnes]\nx = 1\n"
    assert "line 2: unknown key 'harnes'" in refused(tmp_path, text, "pyproject.toml")
    text = "[tool]\ndcplint.selct = []\n"  # too far from the usual to look for
    assert "pyproject.toml: unknown key 'selct'" in refused(tmp_path, text, "pyproject.toml")


@pytest.mark.parametrize("text", ["tool = 'dcplint'", "[tool]\ndcplint = 3"])
def test_a_table_is_wanted(tmp_path: Path, text: str) -> None:
    assert "`tool.dcplint` must be a table" in refused(tmp_path, text, "pyproject.toml")


def test_a_file_below_here_is_named_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert refused(tmp_path / "sub", "x = 1").startswith("sub/dcplint.toml, line 1: ")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable(tmp_path: Path) -> None:
    write(tmp_path, "").chmod(0)
    with pytest.raises(UserError, match="cannot be read: Permission denied"):
        found(tmp_path)


def test_a_directory_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "dcplint.toml").mkdir()
    with pytest.raises(UserError, match=r"dcplint.toml: cannot be read: Is a directory"):
        found(tmp_path)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32", "latin-1"])
def test_a_configuration_in_another_encoding_is_not_passed_over(
    tmp_path: Path, encoding: str
) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_bytes("# é\n[tool.dcplint]\nignore = []\n".encode(encoding))
    with pytest.raises(UserError, match="line 1: not UTF-8"):
        found(tmp_path)
    path.write_bytes("# é\n[tool.ruff]\n".encode(encoding))
    assert found(tmp_path) == Config()


def test_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "dcplint.toml").write_bytes(b"\xef\xbb\xbfignore = ['DCP1']\n")
    assert found(tmp_path).ignore == ("DCP1",)


CONFIG = Config(select=("DCP1",), extend_select=("DCP303",), ignore=("DCP002",))


def test_command_line_adds_to_the_configuration() -> None:
    assert policy(CONFIG, CATALOGUE).codes == {"DCP101", "DCP303"}
    assert policy(CONFIG, CATALOGUE, ignore=["DCP303"]).codes == {"DCP101"}
    both = policy(CONFIG, CATALOGUE, extend_select=["DCP002"]).codes
    assert both == {"DCP101", "DCP303", "DCP002"}
    without = Config(ignore=("DCP101", "DCP002"))
    assert policy(without, CATALOGUE, ignore=["DCP303"]).codes == {"DCP004", "DCP005"}
    assert policy(without, CATALOGUE, extend_select=["DCP101"]).codes >= {"DCP101", "DCP303"}


def test_select_on_the_command_line_replaces_the_choice() -> None:
    assert policy(CONFIG, CATALOGUE, select=["DCP002"]).codes == {"DCP002"}


def test_defaults() -> None:
    decided = policy(Config(), CATALOGUE)
    assert decided.codes == EVERY_CODE - {"DCP003"}
    assert decided.min_severity is Severity.NOTE


def test_the_rest_of_the_policy() -> None:
    config = Config(
        per_file_ignores=(("tests/", ("DCP1", "open-coded-length")),),
        severity=(
            ("DCP101", Severity.NOTE),
            ("DCP1", Severity.ERROR),
            ("open-coded-length", Severity.WARNING),
        ),
        min_severity=Severity.WARNING,
    )
    decided = policy(config, CATALOGUE)
    assert decided.ignored_in("tests/a.py") == {"DCP101", "DCP303"}
    assert decided.severities == {"DCP101": Severity.NOTE, "DCP303": Severity.WARNING}
    assert decided.min_severity is Severity.WARNING
    assert policy(config, CATALOGUE, min_severity=Severity.NOTE).min_severity is Severity.NOTE
