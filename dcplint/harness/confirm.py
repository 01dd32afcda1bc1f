"""From the linter's findings to confirmations. Imports neither torch nor triton."""

from __future__ import annotations

import importlib.util
import re
import shlex
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import dcplint
from dcplint.errors import UserError
from dcplint.findings.model import Finding, Tree
from dcplint.harness.job import Job
from dcplint.harness.model import Confirmation, Execution, Verdict
from dcplint.harness.pool import Pool, PoolError
from dcplint.harness.predict import FALLBACKS, PREDICTIONS, REBUILDS
from dcplint.harness.verify import Progress, Selection, Verifier

_ENGINE = "vllm"  # the one engine that has a driver here
_MOST_USERS = 8  # files to load in search of a backend that uses a helper


@dataclass(frozen=True, slots=True)
class Settled:
    """A finding and what the harness says about it."""

    finding: Finding
    confirmation: Confirmation


def require_harness() -> None:
    """Raises UserError, with the remedy, where what the harness runs on is not installed."""
    missing = [n for n in ("torch", "triton", "numpy") if importlib.util.find_spec(n) is None]
    if missing:
        raise UserError(
            f"`dcplint confirm` runs kernels and needs {' and '.join(missing)}: "
            f"{shlex.join([sys.executable, '-m', 'pip', 'install', _extra()])}"
        )


def _extra() -> str:
    """What pip takes for the harness's requirements: where dcplint is a checkout, its folder."""
    root = Path(dcplint.__file__).parent.parent
    place = str(root) if (root / "pyproject.toml").is_file() else "dcplint"
    return f"{place}[harness]"


def choose_device(device: str) -> str:
    """`auto` is the GPU where one is driven on this machine. Raises UserError for a missing one."""
    present = Path("/proc/driver/nvidia").exists() or Path("/dev/kfd").exists()
    if device == "cuda" and not present:
        raise UserError("--device cuda: there is no GPU on this machine")
    if device == "auto":
        return "cuda" if present else "cpu"
    return device


def find_engine(
    paths: Iterable[Path], engine_path: Path | None, judged: frozenset[str] | None
) -> Path | None:
    """The folder of the engine whose backends are to be run; None where there is none.

    `engine_path`, else the tree that `paths` lie in, else what is installed. judged: the engines
    that the paths were checked against, None where that is not known.
    """
    if judged is not None and _ENGINE not in judged:
        return None
    if engine_path is not None:
        return engine_path.absolute()
    for path in paths:
        for folder in (path.absolute(), *path.absolute().parents):
            if (folder / _ENGINE / "__init__.py").is_file():
                return folder
    spec = importlib.util.find_spec(_ENGINE)
    return Path(spec.origin).parent.parent if spec is not None and spec.origin else None


def settle(
    findings: tuple[Finding, ...],
    places: tuple[Path, ...],
    pool: Pool,
    template: Job,
    *,
    only: Selection | None = None,
    on_run: Progress = lambda run: None,
) -> Iterator[Settled]:
    """Confirm, refute or leave open each finding, in order.

    places: folders, one of which the findings' paths are relative to. only: which probes to run,
    by name; nothing is refuted then.
    """
    verifier = Verifier(pool, template, on_run)
    for finding in findings:
        yield Settled(finding, _confirm(finding, places, verifier, template, pool, only))


def _confirm(
    finding: Finding,
    places: tuple[Path, ...],
    verifier: Verifier,
    template: Job,
    pool: Pool,
    only: Selection | None,
) -> Confirmation:
    prediction, gap = PREDICTIONS.get(finding.code), FALLBACKS.get(finding.code)
    if prediction is None and gap is None:
        return not_run(template, pool, "its rule predicts nothing that can be run")
    if prediction is not None:
        prediction = prediction.about(finding.message)
        if prediction is None:
            return not_run(template, pool, "no probe exercises what it speaks of")
    if pool.engine is not None and finding.code in REBUILDS:
        rebuilt = _file(finding.location.path, places)
        if rebuilt is None:
            return not_run(template, pool, "its file was not found")
        return verifier.verify_rebuild(rebuilt, finding.symbol)
    if pool.engine is not None and gap is not None:
        return not_run(
            template, pool, "the engine's runner would have to be run, which takes a model"
        )
    at = finding.location
    path = _file(at.path, places)
    if path is None:
        return not_run(template, pool, "its file was not found")
    target, reason = _target(finding, path, places, verifier)
    if target is None:
        return not_run(template, pool, reason)
    if prediction is not None:
        return verifier.verify(target, prediction, site=(path, at.line), only=only)
    assert gap is not None
    return verifier.verify_fallback(target, path, at.line, at.column, gap)


def _target(
    finding: Finding, home: Path, places: tuple[Path, ...], verifier: Verifier
) -> tuple[str | None, str]:
    """A backend that runs what the finding is about, or why there is none.

    It is looked for where the finding lies (`home`), then where its evidence does: a gap in a
    runner shows in the builder that reads the field, a base's default in its heirs. Then in the
    files that name the finding's module: a run tells whether it comes to the helper.
    """
    reasons: list[str] = []
    sites = [_file(at, places) for at in _sites(finding)]
    for path in dict.fromkeys((*sites, *islice(_users(home, places), _MOST_USERS))):
        if path is None:
            reasons.append("its file was not found")
            continue
        try:
            targets, said = verifier.backends(path, home, finding.symbol)
        except PoolError as error:
            reasons.append(_why_unloaded(str(error)))
            continue
        if targets:
            return targets[0], ""
        reasons.append("; ".join(said) or "no driver runs what this file defines")
    return None, reasons[0] if reasons else "it lies in the engine, not in the checked tree"


def _sites(finding: Finding) -> dict[str, None]:
    """Files of the checked tree that may define a backend to run, the finding's own first."""
    places = (finding.location, *(e.location for e in finding.evidence))
    return dict.fromkeys(at.path for at in places if at.tree is Tree.PROJECT)


def _users(home: Path, places: tuple[Path, ...]) -> Iterator[Path]:
    """Files of the finding's folder and those above it, in its tree, that name its module."""
    named = re.compile(rf"\b{re.escape(home.stem)}\b")
    roots = [place.resolve() for place in places]
    folders = [f for f in home.parents if any(f.is_relative_to(root) for root in roots)]
    for folder in folders:
        for path in sorted(folder.glob("*.py")):
            text = path.read_text(encoding="utf-8", errors="replace")
            if path != home and "Backend" in text and named.search(text):
                yield path


def _file(relative: str, places: tuple[Path, ...]) -> Path | None:
    files = (place / relative for place in places)
    return next((f.resolve() for f in files if f.is_file()), None)


def _why_unloaded(error: str) -> str:
    """In one sentence; the usual reason, a missing package, in plain words."""
    missing = re.search(r"No module named '(\w+)", error)
    if missing is not None:
        return f"it needs {missing[1]}, which is not installed here"
    return f"the file could not be loaded: {error}"


def not_run(template: Job, pool: Pool, reason: str) -> Confirmation:
    """Inconclusive, because nothing was run."""
    seen = pool.environment
    return Confirmation(
        verdict=Verdict.INCONCLUSIVE,
        reason=reason,
        execution=Execution.NOT_RUN,
        ranks=template.mode,
        environment={name: str(seen[name]) for name in ("torch", "triton", "device")},
        signal=None,
        measured=None,
        tolerance=None,
        control="not run",
        seed=template.seed,
        repro="",
    )
