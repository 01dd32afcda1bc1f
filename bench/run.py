"""dcplint beside its peers, in turn in one run. See README.md."""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from corpus import ENGINES, engine, peer
from measure import Measurement, measure
from plot import plot

HERE = Path(__file__).parent
DCPLINT = Path(sys.executable).parent / "dcplint"
Command = list[str | Path]


GOALS = (
    ("dcplint, cold", "semgrep, one rule", 0.6),
    ("dcplint, nothing changed", "ruff F, warm", 0.9),
    ("dcplint --version", "python -c 'import click'", 2.0),
)

SHORT = 0.5  # seconds; what takes less is run again as often as this, each round
AGAIN = 8
SETTLED = 3  # seconds; dcplint never trusts the times of files that were younger when it read them

# A base class, a model runner and a leaf; and code that has nothing to do with attention.
EDITED = {
    "three files changed": (
        "v1/attention/backend",
        "v1/worker/gpu_model_runner",
        "v1/attention/backends/flashinfer",
    ),
    "three others changed": ("sampling_params", "tokenizers/mistral", "entrypoints/cli/main"),
}


def main() -> None:
    """Parse the options and print the tables asked for."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--fixit", action="store_true", help="run Fixit too, once")
    options.add_argument("--growth", action="store_true", help="1/8 of an engine to four engines")
    options.add_argument("--profile", action="store_true", help="seconds by stage and by rule")
    options.add_argument("--plot", type=Path, metavar="FILE", help="write the medians as SVG")
    chosen = options.parse_args()
    if not DCPLINT.exists():
        sys.exit(f"no dcplint beside {sys.executable}; install it there: pip install -e .")
    if chosen.growth:
        growth(chosen.rounds)
    elif chosen.profile:
        from profile_run import profile

        profile(engine(*ENGINES[0]))
    else:
        with tempfile.TemporaryDirectory() as scratch:
            peers(chosen.rounds, chosen.fixit, Path(scratch), chosen.plot)


def peers(rounds: int, with_fixit: bool, scratch: Path, picture: Path | None) -> None:
    """One table: median seconds, processor seconds, ratio to dcplint, peak memory."""
    tree = scratch / "tree"
    shutil.copytree(engine(*ENGINES[0]), tree)
    time.sleep(SETTLED)
    commands = dict(_commands(tree, scratch))
    kept = {"DCPLINT_CACHE_DIR": str(scratch / "kept")}
    for name in ("dcplint, nothing changed", "ruff F, warm"):
        measure(commands[name], tree, kept)
    results: dict[str, list[Measurement]] = {name: [] for name in commands}
    for number in range(rounds):
        for name, command in commands.items():
            for edited, files in EDITED.items():
                if name.endswith(edited):
                    _change(tree, files, number)
            runs = [measure(command, tree, kept)]
            if runs[0].seconds < SHORT and not name.endswith(tuple(EDITED)):
                runs += [measure(command, tree, kept) for _ in range(AGAIN)]
            results[name] += runs
            print(f"round {number + 1}: {name} {_median(runs):.3f} s", file=sys.stderr)
    if with_fixit:
        results["fixit, one rule"] = [measure(_fixit(tree), tree)]
    base = _median(results["dcplint, cold"])
    print(f"{ENGINES[0][0]} {ENGINES[0][1]}, {rounds} rounds, medians")
    print(f"{'':32}{'seconds':>9}{'ratio':>8}{'cpu':>8}{'peak MB':>9}")
    for name, runs in results.items():
        seconds = _median(runs)
        peak = max(run.megabytes for run in runs)
        cpu = statistics.median(run.cpu for run in runs)
        print(f"{name:32}{seconds:9.3f}{seconds / base:8.3f}{cpu:8.2f}{peak:9.0f}")
    for ours, theirs, goal in GOALS:
        ratio = _median(results[ours]) / _median(results[theirs])
        print(f"{ours} / {theirs}: {ratio:.2f}, goal {goal}")
    if picture is not None:
        shown = [(n, _median(runs)) for n, runs in results.items() if "version" not in n]
        shown = [(name, seconds) for name, seconds in shown if "import" not in name]
        plot(shown, f"{ENGINES[0][0]} {ENGINES[0][1]}: seconds, medians of {rounds} runs", picture)


def growth(rounds: int) -> None:
    """Seconds over growing parts of one engine, then over several engines side by side."""
    whole = engine(*ENGINES[0])
    files = sorted(whole.rglob("*.py"))
    with tempfile.TemporaryDirectory() as scratch:
        trees = [(f"1/{part}", _part(whole, files, part, Path(scratch))) for part in (8, 4, 2)]
        trees += [(f"{n} engine(s)", _side_by_side(n, Path(scratch))) for n in (1, 2, 4)]
        print(f"{'':14}{'seconds':>9}{'cpu':>8}{'peak MB':>9}")
        for name, tree in trees:
            command = [DCPLINT, "check", tree, "--no-cache", "--exit-zero"]
            runs = [measure(command, tree) for _ in range(rounds)]
            cpu = statistics.median(run.cpu for run in runs)
            peak = max(run.megabytes for run in runs)
            print(f"{name:14}{_median(runs):9.2f}{cpu:8.2f}{peak:9.0f}")


def _commands(tree: Path, scratch: Path) -> Iterator[tuple[str, Command]]:
    check: Command = [DCPLINT, "check", tree, "--exit-zero"]
    yield "dcplint, cold", [*check, "--no-cache"]
    yield "dcplint, cold, one process", [*check, "--no-cache", "-j", "1"]
    yield "dcplint, cold, capability rules", [*check, "--no-cache", "--select", "DCP1"]
    yield "dcplint, nothing changed", check
    ruff: Command = [peer("ruff") / "ruff", "check", "--select", "F", "--exit-zero"]
    yield "ruff F, cold", [*ruff, "--no-cache", tree]
    yield "ruff F, warm", [*ruff, "--cache-dir", scratch / "ruff", tree]
    semgrep: Command = [peer("semgrep") / "semgrep", "scan", "--metrics=off", "--quiet"]
    semgrep += ["--disable-version-check", "--no-git-ignore"]
    yield "semgrep, one rule", [*semgrep, "--config", HERE / "peers" / "semgrep.yml", tree]
    rule = HERE / "peers" / "ast-grep.yml"
    yield "ast-grep, one rule", [peer("ast-grep") / "ast-grep", "scan", "--rule", rule, tree]
    yield "dcplint --version", [DCPLINT, "--version"]
    yield "python -c 'import click'", [sys.executable, "-c", "import click"]
    # Last: they change the tree for what follows.
    yield from ((f"dcplint, {edited}", check) for edited in EDITED)


def _change(tree: Path, files: Sequence[str], number: int) -> None:
    """Add a line to some files."""
    for name in files:
        path = tree / "vllm" / f"{name}.py"
        path.write_text(f"# {number}\n" + path.read_text(encoding="utf-8"), encoding="utf-8")


def _fixit(tree: Path) -> Command:
    rule = HERE / "peers" / "fixit_rule.py"
    local = tree / "dcplint_fixit_rule.py"
    shutil.copy(rule, local)
    return [peer("fixit") / "fixit", "--rules", ".dcplint_fixit_rule", "lint", tree]


def _part(whole: Path, files: list[Path], part: int, scratch: Path) -> Path:
    """Every `part`-th file of a tree, and what makes its folders packages."""
    target = scratch / f"part-{part}"
    for number, file in enumerate(files):
        if number % part == 0 or file.name == "__init__.py":
            copy = target / file.relative_to(whole)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, copy)
    return target


def _side_by_side(count: int, scratch: Path) -> Path:
    target = scratch / f"engines-{count}"
    for name, release in ENGINES[:count]:
        tree = engine(name, release)
        shutil.copytree(tree, target / tree.name)
    return target


def _median(runs: list[Measurement]) -> float:
    return statistics.median(run.seconds for run in runs)


if __name__ == "__main__":
    main()
