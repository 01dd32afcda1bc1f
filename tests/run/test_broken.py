"""Broken inputs: one clear sentence each, the documented status, the rest of the run intact."""

import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dcplint.checks.base import all_rules
from dcplint.data import data_dir
from dcplint.findings.model import Finding
from dcplint.flow.functions import Function
from dcplint.flow.graph import Node
from dcplint.units.backwards import Backwards
from tests.run.tree import SILENT, Command, write

ENGINE = ("--engine", "vllm==0.29.0")
INTACT = [("DCP101", "SilentImpl")]

HEAD = "from vllm.v1.attention.backend import AttentionImpl\n\n\n"
BODY = "    def __init__(self, *args): ...\n\n    def forward(self, *args): ...\n"

UNREADABLE: dict[str, tuple[bytes, str]] = {
    "syntax error": (
        f"{HEAD}class MyImpl(AttentionImpl)\n{BODY}".encode(),
        "broken.py:4:28: DCP001 broken.py has a syntax error: expected ':'",
    ),
    "NUL byte": (
        f"{HEAD}class MyImpl(AttentionImpl):\n{BODY}\0".encode(),
        "broken.py:8:1: DCP001 broken.py contains a NUL byte: not Python source",
    ),
    "undecodable": (
        f"{HEAD}# caf\xe9\nclass MyImpl(AttentionImpl):\n{BODY}".encode("latin-1"),
        "broken.py:4:1: DCP001 broken.py is not utf-8 text (byte 0xe9); "
        "declare its encoding in line 1 or convert it",
    ),
    "unknown encoding": (
        f"# coding: klingon\n{HEAD}class MyImpl(AttentionImpl):\n{BODY}".encode(),
        "broken.py:1:1: DCP001 broken.py names an unusable encoding: unknown encoding: klingon",
    ),
    "nested too deeply": (
        f"{HEAD}class MyImpl(AttentionImpl):\n    x = {'(' * 5000}0{')' * 5000}\n{BODY}".encode(),
        "DCP001 broken.py has a syntax error: too many nested parentheses",
    ),
}


IMPL = f"{HEAD}class MyImpl(AttentionImpl):\n{BODY}"
LENGTHS = """\
from vllm.v1.attention.backend import AttentionMetadataBuilder, CommonAttentionMetadata


class MyBuilder(AttentionMetadataBuilder):
    def build(self, common_prefix_len, common: CommonAttentionMetadata, fast_build=False):
        lens = common.dcp_local_seq_lens
        {0}
        return lens.max().item()
"""
HIDDEN = {
    # What is wrong hides what the file has to do with an engine.
    "no class that can be seen": (
        f"{HEAD}clas MyImpl(AttentionImpl):\n{BODY}",
        "broken.py:4:6: DCP001 broken.py has a syntax error: invalid syntax",
    ),
    "no colon": (
        f"{HEAD}class MyImpl(AttentionImpl)\n    supports_dcp = True\n",
        "broken.py:4:28: DCP001 broken.py has a syntax error: expected ':'",
    ),
    "tabs and spaces": (
        f"{HEAD}class MyImpl(AttentionImpl):\n    supports_dcp = True\n\treturn\n",
        "broken.py:6:1: DCP001 broken.py has a syntax error: "
        "inconsistent use of tabs and spaces in indentation",
    ),
    "a function that imports an engine": (
        "def f():\n    import vllm\n    return vllm.(\n",
        "broken.py:3:17: DCP001 broken.py has a syntax error: invalid syntax",
    ),
    # The outline of the file, function bodies left out, is valid.
    "a body that is asked about": (
        LENGTHS.format("lens = = 1"),
        "broken.py:7:16: DCP001 broken.py has a syntax error: invalid syntax",
    ),
}


@pytest.mark.parametrize("case", HIDDEN)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_broken_line_hides_nothing(dcplint: Command, case: str, end: str, tmp_path: Path) -> None:
    content, sentence = HIDDEN[case]
    write(tmp_path, {"broken.py": content.replace("\n", end).encode(), "good.py": SILENT})
    dcplint.check(tmp_path, *ENGINE)
    assert dcplint.lines[0].endswith(sentence)
    assert dcplint.verdicts == INTACT and len(dcplint.lines) == 2
    assert (dcplint.status, dcplint.err) == (1, "")
    dcplint.check(tmp_path / "broken.py", *ENGINE)
    assert [dcplint.lines[0].endswith(sentence), len(dcplint.lines)] == [True, 1]


def test_a_tree_of_broken_files_only(dcplint: Command, tmp_path: Path) -> None:
    """Which uses no engine, as far as can be seen."""
    write(tmp_path, {"broken.py": HIDDEN["no class that can be seen"][0]})
    dcplint.check(tmp_path, *ENGINE)
    assert (len(dcplint.lines), dcplint.status) == (1, 1)


def test_what_only_rules_ask_for_is_said_by_each_process(dcplint: Command, tmp_path: Path) -> None:
    many = {f"m{i}.py": SILENT.replace("SilentImpl", f"Impl{i}") for i in range(60)}
    write(tmp_path, {"broken.py": LENGTHS.format("lens = = 1"), **many})
    for jobs in ("1", "2"):
        dcplint.check(tmp_path, *ENGINE, "-j", jobs)
        assert "broken.py:7:16: DCP001" in dcplint.lines[0]
        assert len(dcplint.lines) == 61


def test_files_that_nobody_asks_for_may_be_broken(dcplint: Command, tmp_path: Path) -> None:
    write(tmp_path, {"template.py": "{{ name }} = = 1\n", "good.py": SILENT})
    assert dcplint.check(tmp_path, *ENGINE).lines[0].startswith("good.py")


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_line_ends_change_nothing(dcplint: Command, end: str, tmp_path: Path) -> None:
    # Where nothing else says that the tree has to do with an engine.
    write(tmp_path, {"a.py": SILENT, "dcplint.toml": ""})
    expected = dcplint.check(tmp_path, *ENGINE).out
    assert dcplint.verdicts == INTACT
    write(tmp_path, {"a.py": SILENT.replace("\n", end).encode()})
    assert dcplint.check(tmp_path, *ENGINE).out == expected


@pytest.mark.parametrize("case", UNREADABLE)
def test_unreadable_file(dcplint: Command, case: str, tmp_path: Path) -> None:
    content, sentence = UNREADABLE[case]
    write(tmp_path, {"broken.py": content, "good.py": SILENT})
    dcplint.check(tmp_path, *ENGINE)
    broken, *rest = dcplint.lines
    assert broken.endswith(sentence)
    assert dcplint.verdicts == INTACT and len(rest) == 1
    assert (dcplint.status, dcplint.err) == (1, "")


def test_other_encodings_are_no_fault(dcplint: Command, tmp_path: Path) -> None:
    text = f"# coding: latin-1\n{HEAD}# caf\xe9\nclass MyImpl(AttentionImpl):\n{BODY}"
    write(
        tmp_path,
        {
            "latin.py": text.encode("latin-1"),
            "bom.py": b"\xef\xbb\xbf" + SILENT.replace("SilentImpl", "BomImpl").encode(),
            "dos.py": SILENT.replace("SilentImpl", "DosImpl").replace("\n", "\r\n").encode(),
        },
    )
    assert dcplint.check(tmp_path, *ENGINE).verdicts == [
        ("DCP101", "BomImpl"),
        ("DCP101", "DosImpl"),
        ("DCP101", "MyImpl"),
    ]
    assert "latin.py:6:1:" in dcplint.out and "dos.py:4:1:" in dcplint.out


def test_an_import_behind_a_byte_order_mark_is_one(dcplint: Command, tmp_path: Path) -> None:
    """Where nothing else says that the tree has to do with an engine."""
    write(tmp_path, {"dcplint.toml": "", "a.py": b"\xef\xbb\xbf" + SILENT.encode()})
    found = dcplint.check(tmp_path, "--engine", "vllm==0.29.0")
    assert found.verdicts == [("DCP101", "SilentImpl")]


def test_twenty_megabytes(dcplint: Command, tmp_path: Path) -> None:
    row = f'    "{"x" * 70}",\n'
    rows = 20 * 2**20 // len(row)
    table = f"TABLE = [\n{row * rows}]\n\n\n"
    write(
        tmp_path,
        {"big.py": f"{HEAD}{table}class BigImpl(AttentionImpl):\n{BODY}", "good.py": SILENT},
    )
    dcplint.check(tmp_path, *ENGINE)
    assert dcplint.verdicts == [("DCP101", "BigImpl"), *INTACT]
    assert dcplint.lines[0].startswith(f"big.py:{rows + 8}:1:")


DEEP = {
    "a long chain of branches": "if x == 0: pass\n"
    + "".join(f"        elif x == {n}: pass\n" for n in range(1, 600)),
    "a long sum": f"x = x{' + x' * 900}\n",
    "a long chain of attributes": f"x = x{'.a' * 900}\n",
    "a long chain of calls": f"x = x{'.a()' * 450}\n",
    "calls in calls": f"x = {'f(' * 190}x{')' * 190}\n",
    "lambdas in lambdas": f"x = {'lambda: ' * 600}x\n",
    "signs of signs": f"x = {'-' * 180}x\n",
    "choices in choices": f"x = {'1 if x else ' * 600}x\n",
}


@pytest.mark.parametrize("case", DEEP)
def test_what_nests_too_deeply_is_said_and_left_out(
    dcplint: Command, case: str, tmp_path: Path
) -> None:
    deep = f"    def deep(self, x):\n        {DEEP[case]}        return self.supports_dcp\n"
    asked = LENGTHS.format(DEEP[case])
    write(tmp_path, {"kept.py": f"{SILENT}\n{deep}", "asked.py": asked, "good.py": SILENT})
    dcplint.check(tmp_path, *ENGINE)
    assert (dcplint.status, dcplint.err) == (1, "")
    assert dcplint.verdicts == [*INTACT, *INTACT], "the class and the other file are whole"
    said = [line for line in dcplint.lines if "DCP001" in line]
    assert [line.partition(" ")[0] for line in said] == ["asked.py:5:5:", "kept.py:9:5:"]
    assert all(
        "nests more than 150 levels deep here; nothing of it is checked" in line for line in said
    )


@pytest.mark.parametrize("case", DEEP)
def test_what_nests_deeply_outside_of_functions(
    dcplint: Command, case: str, tmp_path: Path
) -> None:
    text = "x = 1\n" + DEEP[case].replace("\n        ", "\n") + SILENT
    write(tmp_path, {"a.py": text, "good.py": SILENT})
    dcplint.check(tmp_path, *ENGINE)
    assert (dcplint.verdicts, len(dcplint.lines)) == ([*INTACT, *INTACT], 2)


def test_what_nests_less_deeply_is_followed(dcplint: Command, tmp_path: Path) -> None:
    """By every rule, however many calls it makes for a level."""
    branches = "if x == 0: pass\n" + "".join(
        f"        elif x == {n}: pass\n" for n in range(1, 140)
    )
    statements = [
        branches,
        f"x = x{' + x' * 140}\n",
        f"x = x{'.a' * 140}\n",
        f"x = x{'.a()' * 70}\n",
        f"x = {'f(' * 140}x{')' * 140}\n",
        f"x = {'lambda: ' * 140}x\n",
        f"x = {'1 if x else ' * 140}x\n",
    ]
    files = {f"m{i}.py": LENGTHS.format(s.replace("x", "lens")) for i, s in enumerate(statements)}
    write(tmp_path, {**files, "good.py": SILENT})
    dcplint.check(tmp_path, *ENGINE, "--extend-select", "DCP")
    assert (dcplint.verdicts, dcplint.err, dcplint.status) == (INTACT, "", 1)


def test_a_rule_that_fails_says_where_if_asked(
    dcplint: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(context: object) -> Iterator[Finding]:
        raise RuntimeError("oh")
        yield

    write(tmp_path, {"good.py": SILENT})
    rules = [replace(r, check=fails) if r.rule.code == "DCP303" else r for r in all_rules()]
    monkeypatch.setattr("dcplint.run.all_rules", lambda: rules)
    dcplint.check(tmp_path, *ENGINE)
    assert dcplint.verdicts == INTACT and dcplint.status == 2
    assert dcplint.err.startswith("error: DCP303 failed on") and dcplint.err.count("\n") == 1
    monkeypatch.setattr("dcplint.harness.confirm.require_harness", lambda: None)
    for command in (
        ("check", tmp_path),
        ("diff", tmp_path, tmp_path),
        ("confirm", tmp_path, "--select", "DCP303"),
    ):
        dcplint(*command, *ENGINE)
        assert dcplint.status == 2
        assert "error: DCP303 failed on" in dcplint.err and "Traceback" not in dcplint.err
        dcplint(*command, *ENGINE, "-v")
        assert dcplint.err.count("Traceback") == 1 and "in fails" in dcplint.err


UNKNOWABLE = {
    "cyclic inheritance": {
        "a.py": f"{HEAD}class A(B, AttentionImpl):\n{BODY}\n\nclass B(A):\n{BODY}"
    },
    "its own base": {"a.py": f"{HEAD}class A(A, AttentionImpl):\n{BODY}"},
    "a name defined by itself": {
        "a.py": f"{HEAD}Base = Base\n\n\nclass A(Base, AttentionImpl):\n{BODY}"
    },
    "a cycle of files": {
        "a.py": f"from b import B\n{HEAD}class A(B, AttentionImpl):\n{BODY}",
        "b.py": f"from a import A\n\n\nclass B(A):\n{BODY}",
    },
    "a cyclic import": {
        "a.py": f"from b import Base\n{HEAD}class A(Base, AttentionImpl):\n{BODY}",
        "b.py": "from a import Base\n",
    },
}


@pytest.mark.parametrize("case", UNKNOWABLE)
def test_what_cannot_be_resolved_is_unknown(dcplint: Command, case: str, tmp_path: Path) -> None:
    write(tmp_path, {**UNKNOWABLE[case], "good.py": SILENT})
    dcplint.check(tmp_path, *ENGINE)
    assert (dcplint.verdicts, dcplint.status, dcplint.err) == (INTACT, 1, "")
    shown = dcplint.json("capabilities", tmp_path, *ENGINE)
    rows = {row["class"]: row for matrix in shown["matrices"] for row in matrix["classes"]}
    said = rows["A"]["capabilities"]["supports_dcp"]
    assert said["origin"] == "unknown" and said["reason"], said


def test_a_cyclic_import_of_names_that_exist_is_no_obstacle(
    dcplint: Command, tmp_path: Path
) -> None:
    write(
        tmp_path,
        {
            "a.py": f"import b\n{HEAD}class Base(AttentionImpl):\n{BODY}",
            "b.py": f"import a\n\n\nclass Heir(a.Base):\n{BODY}",
        },
    )
    assert dcplint.check(tmp_path, *ENGINE).verdicts == [("DCP101", "Base"), ("DCP101", "Heir")]


def _refusing(real: Any) -> Any:
    def scandir(path: Any) -> Iterator[os.DirEntry[str]]:
        if Path(path).name == "locked":
            raise PermissionError(13, "Permission denied", str(path))
        found: Iterator[os.DirEntry[str]] = real(path)
        return found

    return scandir


def test_a_directory_that_cannot_be_read(
    dcplint: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"locked/a.py": SILENT, "good.py": SILENT})
    # Permissions do not bind root, as whom containers run tests.
    monkeypatch.setattr(os, "scandir", _refusing(os.scandir))
    dcplint.check(tmp_path, *ENGINE)
    assert "locked:1:1: DCP001 locked cannot be read: Permission denied" in dcplint.lines
    assert (dcplint.verdicts, dcplint.status) == (INTACT, 1)


@pytest.mark.skipif(
    sys.platform == "win32" or getattr(os, "geteuid", lambda: 0)() == 0,
    reason="permissions do not bind root",
)
def test_a_directory_without_permission(dcplint: Command, tmp_path: Path) -> None:
    write(tmp_path, {"locked/a.py": SILENT, "good.py": SILENT})
    (tmp_path / "locked").chmod(0)
    try:
        dcplint.check(tmp_path, *ENGINE)
    finally:
        (tmp_path / "locked").chmod(0o755)
    assert "locked:1:1: DCP001 locked cannot be read: Permission denied" in dcplint.lines


def test_nothing_to_read(dcplint: Command, tmp_path: Path) -> None:
    dcplint.check(tmp_path)
    assert (dcplint.status, dcplint.out) == (2, "")
    assert dcplint.err == f"error: no Python files found in {tmp_path}\n"


def test_a_path_that_does_not_exist(dcplint: Command, tmp_path: Path) -> None:
    write(tmp_path, {"good.py": SILENT})
    dcplint.check(tmp_path / "good.py", tmp_path / "godo.py")
    assert (dcplint.status, dcplint.out) == (2, "")
    assert dcplint.err == f"error: {tmp_path / 'godo.py'}: no such file or directory\n"


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ('selct = ["DCP1"]\n', "selct"),
        ('select = ["DCP1O1"]\n', "no rule is called 'DCP1O1'; did you mean 'DCP101'?"),
        ("select = 7\n", "select"),
        ("select = [\n", "dcplint.toml"),
        (f"select = {'[' * 100_000}\n", "not valid TOML"),
        (b'select = ["\xff"]\n', "line 1: not UTF-8"),
        ('exclude = ["good", "["]\n', "in `exclude`: '[' matches nothing"),
        ('exclude = ["**["]\n', "in `exclude`: '**[' matches nothing"),
        ('exclude = ["[z-a]"]\n', "in `exclude`: '[z-a]' matches nothing"),
        ('exclude = [""]\n', "in `exclude`: '' matches nothing"),
        ('per-file-ignores = {"a[" = ["DCP1"]}\n', "in `per-file-ignores`: 'a[' matches nothing"),
        ('per-file-ignores = {"!" = ["DCP1"]}\n', "in `per-file-ignores`: '!' matches nothing"),
    ],
)
def test_a_mistake_in_the_configuration(
    dcplint: Command, config: str | bytes, sentence: str, tmp_path: Path
) -> None:
    write(tmp_path, {"good.py": SILENT, "dcplint.toml": config})
    dcplint.check(tmp_path)
    assert (dcplint.status, dcplint.out) == (2, "")
    assert dcplint.err.startswith(f"error: {tmp_path / 'dcplint.toml'}")
    assert sentence in dcplint.err and dcplint.err.count("\n") == 1


@pytest.mark.parametrize(
    ("pack", "sentence"),
    [
        ("engine: vllm\npackage: vllm\ndistribution: vllm\nknown: 0.29.0\n", "known"),
        ("engine: [vllm\n", "mine.yaml"),
        ("engine: mine\npackage: mine\ndistribution: mine\nknwon: [1.0]\n", "knwon"),
    ],
)
def test_a_mistake_in_a_pack(dcplint: Command, pack: str, sentence: str, tmp_path: Path) -> None:
    write(tmp_path, {"good.py": SILENT, "mine.yaml": pack})
    dcplint.check(tmp_path, "--pack", tmp_path / "mine.yaml")
    assert (dcplint.status, dcplint.out) == (2, "")
    assert "mine.yaml:" in dcplint.err and sentence in dcplint.err
    assert dcplint.err.count("\n") == 1


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ("tool = 1  # dcplint\n", "`tool.dcplint` must be a table"),
        ("[tool]\ndcplint = 3\n", "`tool.dcplint` must be a table"),
        (b'[tool.dcplint]\nselect = ["\xff"]\n', "line 2: not UTF-8"),
        (f"[tool.dcplint]\nselect = {'[' * 100_000}\n", "not valid TOML: nested too deeply"),
        ("[tool.dcplint\n", "not valid TOML"),
    ],
)
def test_a_mistake_in_our_part_of_the_project_file(
    dcplint: Command, config: str | bytes, sentence: str, tmp_path: Path
) -> None:
    write(tmp_path, {"good.py": SILENT, "pyproject.toml": config})
    dcplint.check(tmp_path)
    assert (dcplint.status, dcplint.out) == (2, "")
    assert dcplint.err.startswith(f"error: {tmp_path / 'pyproject.toml'}")
    assert sentence in dcplint.err and dcplint.err.count("\n") == 1


OTHERS = {
    "not text": b"\xff\xfe",
    "no TOML": "[[[",
    "nested too deeply": f"x = {'[' * 100_000}",
    "no table": "tool = 1\nproject = 1\n",
    "no requirements": "[project]\nname = 1\ndependencies = 3\nentry-points = [1]\n",
    "malformed requirements": '[project]\ndependencies = [1, "vllm==", " @@"]\n'
    "[project.entry-points]\nx = 1\n",
    "malformed groups": "[dependency-groups]\na = 1\nb = [[1]]\n",
}


@pytest.mark.parametrize("case", OTHERS)
def test_what_is_wrong_in_what_is_not_ours_stops_nothing(
    dcplint: Command, case: str, tmp_path: Path
) -> None:
    config = OTHERS[case]
    write(tmp_path, {"good.py": SILENT, ".git/HEAD": "", "pyproject.toml": config})
    assert dcplint.check(tmp_path, *ENGINE).verdicts == INTACT
    assert (dcplint.status, dcplint.err) == (1, "")
    dcplint.check(tmp_path, "--engine", "auto")
    assert "Error" not in dcplint.err


@pytest.mark.parametrize(
    "line", ["[" * 100_000, '{"a":' * 100_000, "{}", "[]", "1", "null", '"x"', "{", "\0"]
)
def test_a_mistake_in_a_baseline(dcplint: Command, line: str, tmp_path: Path) -> None:
    write(tmp_path, {"good.py": SILENT, "accepted": line})
    dcplint.check(tmp_path, *ENGINE, "--baseline", tmp_path / "accepted")
    assert (dcplint.status, dcplint.out) == (2, "")
    assert dcplint.err == (
        f"error: {tmp_path / 'accepted'}, line 1: not a line of a baseline; "
        "`dcplint baseline` writes one\n"
    )


@pytest.mark.parametrize("pack", ["[" * 100_000, "engine: " + "[" * 100_000, "a: " * 5_000])
def test_a_pack_that_nests_too_deeply(dcplint: Command, pack: str, tmp_path: Path) -> None:
    write(tmp_path, {"good.py": SILENT, "mine.yaml": pack})
    dcplint.check(tmp_path, "--pack", tmp_path / "mine.yaml")
    assert (dcplint.status, dcplint.out) == (2, "")
    assert "mine.yaml:" in dcplint.err and "Error" not in dcplint.err
    assert dcplint.err.count("\n") == 1


def test_a_pack_that_is_not_there(dcplint: Command, tmp_path: Path) -> None:
    write(tmp_path, {"good.py": SILENT})
    dcplint.check(tmp_path, "--pack", tmp_path / "mine.yaml")
    assert (dcplint.status, dcplint.out) == (2, "")
    assert "mine.yaml" in dcplint.err and dcplint.err.count("\n") == 1


def test_a_file_that_cannot_be_read_was_looked_at(dcplint: Command, tmp_path: Path) -> None:
    write(tmp_path, {"broken.py": UNREADABLE["undecodable"][0], "good.py": SILENT})
    assert "Found 2 errors in 2 files" in dcplint("check", tmp_path, *ENGINE).out


def test_lengths_that_change_again_and_again(
    dcplint: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a length is then depends on every change before it: too much work is given up."""
    steps: dict[Function, int] = {}

    def counted(self: Backwards, function: Function, node: Node) -> list[Node]:
        steps[function] = steps.get(function, 0) + 1
        return real(self, function, node)

    real = Backwards.before
    monkeypatch.setattr(Backwards, "before", counted)
    monkeypatch.setattr("dcplint.units.effort._STEPS", 1_000)
    fixture = data_dir("fixtures") / "dcp306_host_sync" / "bad_longest_of_the_shard.py"
    head, line, rest = fixture.read_text().partition("            total = share.sum().item()")
    assert line
    changed = "common.dcp_local_seq_lens + {0} if common.q{0} else lens"
    changes = [f"if common.n{i}: lens = {changed.format(i)}" for i in range(150)]
    code = ["lens = common.dcp_local_seq_lens", *changes, "peak = lens.max().item()"]
    added = "".join(f"            {statement}\n" for statement in code)
    write(tmp_path, {"a.py": head + added + line + rest})
    dcplint.check(tmp_path, *ENGINE, "-j", "1")
    assert {line.split()[1] for line in dcplint.lines} == {"DCP306"} and dcplint.err == ""
    assert 1_000 < max(steps.values()) < 2_000
