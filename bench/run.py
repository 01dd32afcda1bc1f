"""dcplint beside its peers, in turn in one run. See README.md."""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from corpus import ENGINES, engine, peer
from measure import Measurement, measure

HERE = Path(__file__).parent
DCPLINT = Path(sys.executable).parent / "dcplint"
Command = list[str | Path]


def main() -> None:
    """Parse the options and print the tables asked for."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--fixit", action="store_true", help="run Fixit too, once")
    options.add_argument("--growth", action="store_true", help="1/8 of an engine to four engines")
    options.add_argument("--profile", action="store_true", help="seconds by stage and by rule")
    chosen = options.parse_args()
    if not DCPLINT.exists():
        sys.exit(f"no dcplint beside {sys.executable}; install it there: pip install -e .")
    if chosen.growth:
        growth(chosen.rounds)
    elif chosen.profile:
        from profile_run import profile

        profile(engine(*ENGINES[0]))
    else:
        peers(chosen.rounds, chosen.fixit)


def peers(rounds: int, with_fixit: bool) -> None:
    """One table: median seconds, ratio to dcplint, peak memory."""
    tree = engine(*ENGINES[0])
    commands = dict(_commands(tree))
    results: dict[str, list[Measurement]] = {name: [] for name in commands}
    for number in range(rounds):
        for name, command in commands.items():
            results[name].append(measure(command, tree))
            print(f"round {number + 1}: {name} {results[name][-1].seconds:.2f} s", file=sys.stderr)
    if with_fixit:
        results["fixit, one rule"] = [measure(_fixit(tree), tree)]
    base = _median(results["dcplint, all rules"])
    print(f"{ENGINES[0][0]} {ENGINES[0][1]}, {rounds} rounds, medians")
    print(f"{'':28}{'seconds':>9}{'ratio':>8}{'peak MB':>9}")
    for name, runs in results.items():
        seconds = _median(runs)
        peak = max(run.megabytes for run in runs)
        print(f"{name:28}{seconds:9.2f}{seconds / base:8.2f}{peak:9.0f}")


def growth(rounds: int) -> None:
    """Seconds over growing parts of one engine, then over several engines side by side."""
    whole = engine(*ENGINES[0])
    files = sorted(whole.rglob("*.py"))
    with tempfile.TemporaryDirectory() as scratch:
        trees = [(f"1/{part}", _part(whole, files, part, Path(scratch))) for part in (8, 4, 2)]
        trees += [(f"{n} engine(s)", _side_by_side(n, Path(scratch))) for n in (1, 2, 4)]
        print(f"{'':14}{'seconds':>9}{'peak MB':>9}")
        for name, tree in trees:
            runs = [measure([DCPLINT, "check", tree, "--exit-zero"], tree) for _ in range(rounds)]
            print(f"{name:14}{_median(runs):9.2f}{max(r.megabytes for r in runs):9.0f}")


def _commands(tree: Path) -> Iterator[tuple[str, Command]]:
    yield "dcplint, all rules", [DCPLINT, "check", tree, "--exit-zero"]
    yield "dcplint, capability rules", [DCPLINT, "check", tree, "--select", "DCP1", "--exit-zero"]
    ruff = peer("ruff") / "ruff"
    yield "ruff F, no cache", [ruff, "check", "--select", "F", "--no-cache", "--exit-zero", tree]
    yield "ruff F, warm", [ruff, "check", "--select", "F", "--exit-zero", tree]
    semgrep = [peer("semgrep") / "semgrep", "scan", "--metrics=off", "--quiet"]
    semgrep += ["--disable-version-check", "--no-git-ignore"]
    yield "semgrep, one rule", [*semgrep, "--config", HERE / "peers" / "semgrep.yml", tree]
    rule = HERE / "peers" / "ast-grep.yml"
    yield "ast-grep, one rule", [peer("ast-grep") / "ast-grep", "scan", "--rule", rule, tree]
    yield "dcplint --version", [DCPLINT, "--version"]
    yield "python -c 'import click'", [sys.executable, "-c", "import click"]


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
