"""Kept runs: found again, only while everything they read is as it was, whatever lies there."""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dcplint import cache, disk
from dcplint.cli.main import main
from tests.cli.shell import MAIN, dcplint
from tests.run.tree import ENGINE, PLUGIN

Outcome = tuple[object, str, str]


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache directory that is in use."""
    directory = tmp_path / "kept"
    monkeypatch.setenv(cache.DIRECTORY, str(directory))
    return directory


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plugin project with the engine it builds on beside it in one checkout."""
    root = tmp_path / "project"
    shutil.copytree(PLUGIN, root)
    for name, text in ENGINE.items():
        path = root / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("{default}", "True"), encoding="utf-8")
    _age(root)
    monkeypatch.chdir(root)
    return root


def _age(root: Path) -> None:
    """Make everything look an hour old: the very young is never trusted by its times."""
    for path in [root, *root.rglob("*")]:
        status = path.stat()
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns - 3_600_000_000_000))


@pytest.fixture
def check(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    def run(*args: str) -> Outcome:
        with pytest.raises(SystemExit) as exit_:
            main(["check", "--output-format", "concise", *args])
        shown = capsys.readouterr()
        return exit_.value.code, shown.out, shown.err

    return run


def _works_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_checks(_: object) -> None:
        raise AssertionError("worked out anew")

    monkeypatch.setattr("dcplint.run.run_checks", run_checks)


def test_a_run_is_found_again(
    tree: Path, kept: Path, check: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = check()
    assert "DCP101" in str(first[1])
    _works_no_more(monkeypatch)
    assert check() == first
    assert "worked out anew" in str(check("--no-cache")[2])
    assert "worked out anew" in str(check("--quiet")[2]), "another command line"
    monkeypatch.setenv("COLUMNS", "71")
    assert "worked out anew" in str(check()[2]), "another screen"


def test_an_answer_needs_no_click(tree: Path, kept: Path) -> None:
    loaded = "import atexit, sys; atexit.register(lambda: print(*sorted(sys.modules))); "
    first = dcplint("check", cwd=tree)
    second = dcplint("check", cwd=tree, code=loaded + MAIN)
    modules = set(second.stdout.decode().splitlines()[-1].split())
    assert second.stdout.startswith(first.stdout) and second.returncode == first.returncode
    assert not modules & {"click", "yaml", "libcst", "dataclasses", "pathlib", "dcplint.run"}


def test_a_fresh_checkout_is_known_by_its_content(
    tree: Path, kept: Path, check: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = check()
    away = tree.with_name("away")
    shutil.copytree(tree, away)
    shutil.rmtree(tree)
    shutil.copytree(away, tree, copy_function=shutil.copyfile)
    os.chdir(tree)
    _works_no_more(monkeypatch)
    assert check() == first


@pytest.mark.parametrize(
    ("change", "same"),
    [
        (lambda text: text.replace("return 1", "return 2\n\n\n# more"), True),
        (lambda text: text.replace("def size", "def weight"), True),
        (lambda text: text + "import vllm.attention\n", False),
        (lambda text: text + "\n\nclass More(AttentionImpl):\n    pass\n", False),
        (lambda text: text + "# supports_dcp\n", False),
        (lambda text: text + "\0", False),
        (lambda text: text.replace("return 1", "return '\udcff'"), False),
    ],
    ids=["body", "name", "import", "class", "word", "NUL", "encoding"],
)
def test_of_a_file_only_what_was_seen_counts(
    change: Callable[[str], str],
    same: bool,
    tree: Path,
    kept: Path,
    check: Callable[..., Outcome],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tree / "src" / "shardline" / "tables.py"
    path.write_text("import os\n\n\ndef size():\n    return 1\n")
    first = check()
    path.write_text(change(path.read_text()), errors="surrogateescape")
    fresh = check("--no-cache")
    if same:
        _works_no_more(monkeypatch)
        assert check() == first == fresh
    else:
        assert check() == fresh
        _works_no_more(monkeypatch)
        assert check() == fresh


def test_a_file_read_whole_counts_whole(tree: Path) -> None:
    path = tree / "pyproject.toml"
    with disk.remembering() as seen:
        disk.skim(path)
        disk.learned(path, ("size",), "large")
        with disk.remembering() as other:
            disk.skim(path)
            disk.learned(path, ("size",), "large")
            disk.learned(path, ("colour",), "blue")
        disk.remember(other)
        _age(tree)
        path.write_text("other")
        answers = {("size",): "large", ("colour",): "blue"}
        assert disk.holds(seen.plain(), lambda question, _: answers[question])
        assert not disk.holds(
            seen.plain(), lambda question, _: {**answers, ("size",): ""}[question]
        )
        assert not disk.holds(seen.plain(), lambda question, _: None)
        with disk.remembering() as third:
            disk.read(path)
        disk.remember(third)
        path.write_text("another")
        assert not disk.holds(seen.plain(), lambda question, _: answers[question])


def _edits(root: Path, dice: random.Random) -> Iterator[str]:
    """Change something, as people do. Yields what was done."""
    saved: dict[Path, bytes] = {}
    while True:
        files = sorted(root.rglob("*.py"))
        path = dice.choice(files)
        before = path.read_bytes()
        action = dice.choice(
            ("rename", "delete", "base", "default", "touch", "revert", "line", "body")
        )
        if action in ("rename", "delete", "base", "default", "line", "body"):
            saved[path] = before
        if action == "rename":
            path.rename(path.with_name(f"renamed_{dice.randrange(9)}_{path.name}"))
        elif action == "delete":
            path.unlink()
        elif action == "base":
            path.write_bytes(before + b"\n\nclass Added(AttentionImpl):\n    pass\n")
        elif action == "default":
            swapped = before.replace(b"True", b"\0").replace(b"False", b"True")
            path.write_bytes(swapped.replace(b"\0", b"False"))
        elif action == "line":
            path.write_bytes(b"# shifted\n" + before)
        elif action == "body":
            path.write_bytes(before.replace(b"return ", b"return 1 or ", 1))
        elif action == "touch":
            os.utime(path)
        elif saved:
            again = dice.choice(sorted(saved))
            again.parent.mkdir(parents=True, exist_ok=True)
            again.write_bytes(saved.pop(again))
        yield f"{action} {path.relative_to(root)}"


@pytest.mark.parametrize(
    ("seed", "steps"),
    [(1, 12), (2, 12), *(pytest.param(seed, 40, marks=pytest.mark.slow) for seed in range(3, 9))],
)
def test_kept_and_fresh_runs_agree_after_any_edits(
    seed: int, steps: int, tree: Path, kept: Path, check: Callable[..., Outcome]
) -> None:
    done = []
    check()
    for _, edit in zip(range(steps), _edits(tree, random.Random(seed)), strict=False):
        done.append(edit)
        if random.Random(seed + len(done)).random() < 0.5:
            _age(tree)
        fresh = check("--no-cache")
        assert check() == fresh, done
        assert check() == fresh, done


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / ".gitignore").write_text("src/shardline/attention/\n"),
        lambda root: (root / "src" / "dcplint.toml").write_text('ignore = ["DCP1"]\n'),
        lambda root: (root / "dcplint.toml").write_text('ignore = ["DCP1"]\n'),
        lambda root: (root / "src" / "shardline" / "pyvenv.cfg").write_text(""),
        lambda root: (root / "src" / "shardline" / "attention").rename(root / "src" / "moved"),
        lambda root: (root / "src" / "vllm" / "_version.py").write_text('__version__ = "0.30.0"\n'),
        lambda root: (root / "src" / "vllm-0.28.0.dist-info").mkdir(),
        lambda root: (root.parent / ".git").mkdir(),
    ],
    ids=["gitignore", "nested", "config", "venv", "moved", "version", "dist-info", "git"],
)
def test_what_steers_a_run_is_part_of_it(
    change: Callable[[Path], object], tree: Path, kept: Path, check: Callable[..., Outcome]
) -> None:
    check()
    change(tree)
    assert check() == check("--no-cache")


def test_a_baseline_is_part_of_a_run(tree: Path, kept: Path, check: Callable[..., Outcome]) -> None:
    (tree / "accepted").write_text('{"dcplint-baseline": 1}\n')
    first = check("--baseline", "accepted")
    assert first[0] == 1
    dcplint("baseline", "--baseline", "accepted", cwd=tree)
    assert check("--baseline", "accepted")[0] == 0


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[: len(data) // 2],
        lambda data: data[:-1] + b" ",
        lambda data: b"\x80\x04\x95" + data,
        lambda data: _sealed(b"null"),
        lambda data: _sealed(b'{"out": "fake", "err": "", "status": 0}'),
        lambda data: _sealed(b'{"out": "fake", "err": "", "status": 0, "seen": {}}'),
        lambda data: _sealed(b'{"out": "fake", "err": "", "status": 0, "seen": {"files": 1}}'),
        lambda data: _sealed(data.partition(b"\n")[2].replace(b'"folders":{', b'"folders":{"":1,')),
        lambda data: _sealed(data.partition(b"\n")[2].replace(b'"status":1', b'"status":true')),
        lambda data: _sealed(b"[" * 100_000),
    ],
)
def test_damaged_and_planted_entries_are_no_answer(
    damage: Callable[[bytes], bytes], tree: Path, kept: Path, check: Callable[..., Outcome]
) -> None:
    first = check()
    (entry,) = kept.iterdir()
    entry.write_bytes(damage(entry.read_bytes()))
    assert check() == first
    assert json.loads(entry.read_bytes().partition(b"\n")[2])["out"] == first[1], "kept anew"


def _sealed(body: bytes) -> bytes:
    return disk.digest(body).encode() + b"\n" + body


@pytest.mark.skipif(sys.platform == "win32", reason="no pipes by name, no owners")
def test_an_entry_that_is_no_plain_file_is_no_answer(
    tree: Path, kept: Path, check: Callable[..., Outcome]
) -> None:
    first = check()
    (entry,) = kept.iterdir()
    entry.unlink()
    os.mkfifo(entry)
    assert check() == first
    entry.unlink()
    entry.mkdir()
    assert check() == first


def test_somebody_elses_entry_is_not_read(
    tree: Path, kept: Path, check: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    check()
    _works_no_more(monkeypatch)
    monkeypatch.setattr(os, "getuid", lambda: 12345, raising=False)
    assert "worked out anew" in str(check()[2])


@pytest.mark.parametrize("step", ["open", "write", "replace"])
def test_a_full_disk_costs_the_answer_only(
    step: str,
    tree: Path,
    kept: Path,
    check: Callable[..., Outcome],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        if step == "open":
            patch.setattr(cache, "_write", full)
        else:
            patch.setattr(os, "fdopen" if step == "write" else "replace", full)
        first = check()
    assert first[0] == 1
    assert not kept.exists() or not list(kept.iterdir()), "nothing is left behind"
    assert check() == first


def test_a_cache_that_cannot_be_made_costs_the_answer_only(
    tree: Path, check: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(cache.DIRECTORY, str(tmp_path / "file" / "kept"))
    assert check() == check("--no-cache")


def test_runs_at_the_same_time_do_not_meet(tree: Path, kept: Path) -> None:
    import subprocess

    command = [sys.executable, "-c", MAIN, "check"]
    running = [
        subprocess.Popen(command, cwd=tree, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(6)
    ]
    shown = {process.communicate()[0] for process in running}
    assert len(shown) == 1
    assert len(list(kept.iterdir())) == 1
    assert dcplint("check", cwd=tree).stdout in shown


def test_only_so_much_is_kept(
    tree: Path, kept: Path, check: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    check()
    (oldest,) = kept.iterdir()
    monkeypatch.setattr(cache, "_MOST_BYTES", oldest.stat().st_size * 5 // 2)
    os.utime(oldest, (0, 0))
    check("--quiet")
    check("--exit-zero")
    assert len(list(kept.iterdir())) == 2
    assert not oldest.exists()


def test_the_directory_can_be_named(
    tree: Path, kept: Path, check: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    check("--cache-dir", "here")
    assert list(Path("here").iterdir()) and not kept.exists()
    Path("dcplint.toml").write_text('cache-dir = ".configured"\n')
    first = check()
    assert list(Path(".configured").iterdir()) and not kept.exists()
    _works_no_more(monkeypatch)
    assert check() == first


def test_what_is_said_elsewhere_is_not_kept(
    tree: Path, kept: Path, check: Callable[..., Outcome]
) -> None:
    check("--output-file", "report.txt")
    check("-v")
    assert not kept.exists()
    assert Path("report.txt").read_text()


def test_clean(tree: Path, kept: Path, check: Callable[..., Outcome]) -> None:
    check()
    check("--quiet")
    (kept / "something.else").write_text("not ours")
    result = dcplint("cache", "clean", cwd=tree)
    assert result.stdout.decode() == f"removed 2 kept runs from {kept}\n"
    assert [path.name for path in kept.iterdir()] == ["something.else"]
    assert dcplint("cache", "clean", cwd=tree).stdout.startswith(b"removed 0 kept runs")


def test_nothing_is_read_behind_its_back(tree: Path, tmp_path: Path) -> None:
    """Every file and folder that a run opens is one that it has remembered.

    Its own files are part of the key, and installed packages of what it remembers.
    """
    code = """
import os, sys
opened = set()
watching = False
def hook(event, args):
    if watching and event in ("open", "os.scandir", "os.listdir") and isinstance(args[0], str):
        opened.add(os.path.abspath(args[0]))
sys.addaudithook(hook)
from dcplint import disk
from dcplint.cli.main import main
import dcplint.run, dcplint.cli.check
real = dcplint.run.run_checks
kept = []
def run_checks(options):
    global watching
    kept.append(disk._seen)
    watching = True
    try:
        return real(options)
    finally:
        watching = False
dcplint.run.run_checks = run_checks
try:
    main(["check", "--quiet"])
finally:
    seen = kept[0].plain()
    known = {*seen["files"], *(path.partition("\\0")[0] for path in seen["folders"])}
    ours = os.path.dirname(disk.__file__)
    places = (ours, os.path.join(os.path.dirname(ours), "rules"), sys.prefix, sys.base_prefix)
    places += tuple(path for path in sys.path if path.endswith("site-packages"))
    print("behind:", sorted(
        path for path in opened - known if not (path.startswith(places) or path in sys.path)
    ))
"""
    result = dcplint(cwd=tree, code=code)
    assert result.stdout.decode().splitlines()[-1] == "behind: []", result.stderr.decode()
