"""From runs to a verdict: confirmed, refuted, or inconclusive and why.

Confirmed: a predicted signal fails while the control passes the same probe. Refuted: every probe
of the core set and every predicted probe passes. Anything else is inconclusive. A failure of the
control speaks against the machine, so nothing is concluded from that probe.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from dcplint.harness.job import GQA_CONTROL, MLA_CONTROL, Job
from dcplint.harness.model import (
    Confirmation,
    Execution,
    Measurement,
    Outcome,
    Run,
    Signal,
    Verdict,
)
from dcplint.harness.pool import Pool, PoolError
from dcplint.harness.predict import Gap, Part, Prediction, select

ALONE = "single-rank"  # the probe of one rank
DRAFT = "draft"  # that of an unsharded layer
IN_FP8 = "fp8-cache-n"  # and, by their number of ranks, those with a cache of fp8
FIELD = "dcp_local_seq_lens"  # the one contract field of the harness contract

Progress = Callable[[Run], None]
Selection = Callable[[str], bool]

# Ways for a run to end that have nothing to do with DCP where a run of one rank ends so too: an
# engine's impl runs on stand-ins, and is offered one kind of cache.
_ENDED = frozenset({Signal.CRASH, Signal.HANG, Signal.ERROR, Signal.REFUSED, Signal.REFUSED_LATE})
_UNREACHED = "the statement in question is never executed"


class Verifier:
    """Runs probes in a pool, each next to its control. Control runs are kept and shared."""

    def __init__(self, pool: Pool, template: Job, on_run: Progress = lambda run: None) -> None:
        self._pool = pool
        self._template = template
        self._on_run = on_run
        self._controls: dict[str, Run] = {}

    def backends(
        self, path: Path, home: Path | None = None, symbol: str = ""
    ) -> tuple[list[str], list[str]]:
        """References to the backends of a file that run `symbol`, and why others do not.

        symbol: a dotted name (`PagedImpl.forward`) of the file `home`. Raises PoolError.
        """
        found = self._pool.backends(str(path), str(home or path), symbol)
        return found["targets"], found["said"]

    def verify_fallback(
        self, target: str, path: Path, line: int, column: int, gap: Gap, field: str = FIELD
    ) -> Confirmation:
        """Settle a finding about the condition at `line`, `column` on `field` being None."""
        base = replace(self._template, target=target, probe="fallback")
        branch = (line, column) if gap in _BRANCHES else None
        try:
            seen = self._pool.fallback(target, str(path), line, branch, field, base.world_size)
        except PoolError as error:
            return self._not_run(base, f"the builder could not be run: {error}")
        if "error" in seen:
            return self._not_run(base, seen["error"])
        if seen["reached"] is False:
            return self._not_run(base, f"{_UNREACHED} in {seen['builds']} builds")
        holds, reason = _HOLDS[gap](seen, field)
        counted = seen["taken"] if gap in _BRANCHES else seen["missing"]
        return Confirmation(
            verdict=Verdict.CONFIRMED if holds else Verdict.REFUTED,
            reason=reason,
            execution=Execution.BUILDER_ONLY,
            ranks=base.mode,
            environment=self._environment(),
            signal=Signal.BRANCH if gap in _BRANCHES else Signal.FIELD_MISSING,
            measured=float(counted),
            tolerance=0.0,
            control="not needed: no kernel runs",
            seed=base.seed,
            repro="",
        )

    def verify_rebuild(self, path: Path, symbol: str) -> Confirmation:
        """Settle a finding about a function of the engine that rebuilds batch metadata."""
        base = replace(self._template, target=f"{path}:{symbol}", probe="rebuild")
        try:
            seen = self._pool.rebuild(str(path), symbol, base.world_size)
        except PoolError as error:
            return self._not_run(base, f"`{symbol}` could not be driven: {error}")
        if "error" in seen:
            return self._not_run(base, f"`{symbol}` could not be driven: {seen['error']}")
        bad, calls = seen["missing"] + seen["stale"], seen["calls"]
        told = {
            "missing": f"{FIELD} is None in {seen['missing']} results of {calls} calls",
            "stale": f"{seen['stale']} rows of {calls} calls: {seen['example']}",
        }
        reasons = [text for kind, text in told.items() if seen[kind]]
        return Confirmation(
            verdict=Verdict.CONFIRMED if bad else Verdict.INCONCLUSIVE,
            reason="; ".join(reasons) or f"all {calls} calls keep the field; other ways in not run",
            execution=Execution.BUILDER_ONLY,
            ranks=base.mode,
            environment=self._environment(),
            signal=Signal.FIELD_MISSING if seen["missing"] else Signal.FIELD,
            measured=float(bad),
            tolerance=0.0,
            control="not needed: no kernel runs",
            seed=base.seed,
            repro="",
        )

    def verify(
        self,
        target: str,
        prediction: Prediction,
        *,
        site: tuple[Path, int] | None = None,
        kernels: str = "",
        only: Selection | None = None,
    ) -> Confirmation:
        """Settle a finding about `target`.

        site: file and line of what the finding is about; only runs that come there settle it.
        only: which probes, by name; nothing is refuted then.
        """
        at = "" if site is None else f"{site[0]}:{site[1]}"
        base = replace(self._template, target=target, kernels=kernels, site=at)
        if prediction.half and base.dtype == "float32":
            base = replace(base, dtype="float16")
        try:
            described = self._pool.describe(target, base.world_size)
        except PoolError as error:
            return self._not_run(base, f"the backend could not be loaded: {error}")
        if described["lacking"]:
            return self._not_run(base, described["lacking"])
        found = self._judge(base, prediction, described, only)
        holds = prediction.alone and found.verdict is Verdict.REFUTED
        if self._pool.engine and holds and described["claims"]["fp8"]:
            found = self._also_in_fp8(base, prediction, described, found)
        card = described["claims"]["card"]
        if found.execution is not Execution.NOT_RUN or not card:
            return found
        return replace(found, reason=f"{found.reason}; made for compute capability {card}")

    def _also_in_fp8(
        self,
        base: Job,
        prediction: Prediction,
        described: dict[str, Any],
        found: Confirmation,
    ) -> Confirmation:
        """A claim that holds, and what comes of it with a cache of fp8, where one can be run here.

        It is another configuration: what is missing for it leaves the verdict as it is.
        """
        control = MLA_CONTROL if described["claims"]["is_mla"] else GQA_CONTROL
        base = replace(base, dtype=found.runs[-1].dtype)
        probes = [name for name in described["probes"] if name.startswith(IN_FP8)]
        runs = list(self._run([replace(base, probe=name) for name in probes], control))
        alone, *sharded = sorted(runs, key=lambda run: run.probe != f"{IN_FP8}1")
        if alone.execution is Execution.NOT_RUN or alone.worst is not None:
            return found
        seen = (*found.runs, *runs)
        for run in sharded:
            fault = self._predicted_fault(run, prediction)
            if fault is not None:
                reason = f"{found.reason}; but with a cache of fp8: {fault.detail}"
                return self._conclude(Verdict.CONFIRMED, reason, run, fault, list(seen))
        if any(run.worst is not None or not self._control_passed(run) for run in sharded):
            return found
        return replace(found, reason=f"{found.reason}; so with a cache of fp8", runs=seen)

    def _judge(
        self,
        base: Job,
        prediction: Prediction,
        described: dict[str, Any],
        only: Selection | None,
    ) -> Confirmation:
        """See `verify`. described: what the backend claims, and its probes."""
        control = MLA_CONTROL if described["claims"]["is_mla"] else GQA_CONTROL
        base = self._in_its_dtype(base, described["claims"]["dtypes"], control)
        predicted = select(prediction, tuple(described["probes"]))
        if not predicted:
            wanted = ", ".join(prediction.probes)
            return self._not_run(base, f"the backend claims nothing that {wanted} would probe")
        runs: list[Run] = []
        for stage in (predicted, tuple(described["core"])):
            done = {run.probe for run in runs}
            names = [n for n in stage if n not in done and (only is None or only(n))]
            fault = None
            with closing(self._run([replace(base, probe=n) for n in names], control)) as coming:
                for run in coming:
                    runs.append(run)
                    fault = self._predicted_fault(run, prediction)
                    if fault is not None or runs[0].execution is Execution.NOT_RUN:
                        break
            if fault is not None and not (runs[-1].substituted and prediction.part is Part.KERNEL):
                return self._confirm(fault, runs, prediction, base, control)
            if prediction.may_refuse and stage is predicted:
                runs = [run for run in runs if not _is_refused(run)]
            if any(r.worst is not None or r.execution is Execution.NOT_RUN for r in runs):
                break  # not run, or wrong in another way than predicted: more settle nothing
        if not runs:
            return self._not_run(base, "no probe applies to it")
        if self._pool.engine and all(_is_refused(run) for run in runs):
            (alone,) = self._run([replace(base, probe=ALONE)], control)
            if alone.worst is not None and _is_refused(alone):
                return self._not_run(base, f"refuses what is offered here: {alone.worst.detail}")
        return self._settle(runs, prediction.part, restricted=only is not None)

    def _in_its_dtype(self, base: Job, listed: list[str], control: str) -> Job:
        """In single precision, which tells most, else in what an engine's backend lists."""
        if not self._pool.engine or base.dtype != "float32" or not listed or "float32" in listed:
            return base
        (alone,) = self._run([replace(base, probe=ALONE)], control)
        return base if alone.worst is None else replace(base, dtype=listed[0])

    def _confirm(
        self,
        fault: Measurement,
        runs: list[Run],
        prediction: Prediction,
        base: Job,
        control: str,
    ) -> Confirmation:
        """Confirmed by the last run's fault, unless that has nothing to do with DCP."""
        if self._pool.engine and (prediction.alone or fault.signal in _ENDED):
            (alone,) = self._run([replace(base, probe=ALONE)], control)
            if alone.execution is Execution.NOT_RUN:
                return self._not_run(base, "; ".join(alone.notes))
            if alone.worst is not None:
                detail = alone.worst.detail
                if alone.worst.signal in _ENDED:
                    return self._not_run(base, f"does not run here on one rank alone: {detail}")
                reason, seen = f"wrong on one rank alone too: {detail}", [*runs, alone]
                return self._conclude(Verdict.INCONCLUSIVE, reason, alone, alone.worst, seen)
        return self._conclude(Verdict.CONFIRMED, fault.detail, runs[-1], fault, runs)

    def _run(self, jobs: list[Job], control: str) -> Generator[Run, None, None]:
        """Runs of `jobs` in order, each once its control's is known."""
        checks = {job: replace(job, target=control, kernels="", site="") for job in jobs}
        queue: list[Job] = []
        for job, check in checks.items():
            queue.extend([job] if check.repro in self._controls else [check, job])
        waiting = deque(jobs)
        found: dict[Job, Run] = {}
        with closing(self._pool.run(queue)) as coming:
            for number, run in coming:
                self._on_run(run)
                found[queue[number]] = run
                if queue[number].target == control:
                    self._controls[run.repro] = run
                while (
                    waiting and waiting[0] in found and checks[waiting[0]].repro in self._controls
                ):
                    yield found[waiting.popleft()]

    def _control_of(self, run: Run) -> Run:
        suffix = ":".join(run.repro.split(":", 6)[:6])
        return next(c for key, c in self._controls.items() if key.startswith(suffix + ":"))

    def _control_passed(self, run: Run) -> bool:
        control = self._control_of(run)
        return control.execution is not Execution.NOT_RUN and control.worst is None

    def _predicted_fault(self, run: Run, prediction: Prediction) -> Measurement | None:
        """What in a run bears the finding out; nothing where it never came there."""
        faults = [
            m
            for m in run.measurements
            if m.outcome is Outcome.FAIL and m.signal in prediction.signals
        ]
        if run.reached is False or not self._control_passed(run):
            return None
        if run.probe == DRAFT and DRAFT not in prediction.probes:
            # A layer that is not sharded and takes itself for one: not what sharding comes to.
            faults = [m for m in faults if m.signal not in _ENDED]
        return min(faults, key=lambda m: (m.signal.order, m.rank), default=None)

    def _settle(self, runs: list[Run], part: Part, restricted: bool) -> Confirmation:
        """The verdict where nothing predicted has failed."""
        unrun = next((r for r in runs if r.execution is Execution.NOT_RUN), None)
        if unrun is not None:
            return self._conclude(Verdict.INCONCLUSIVE, "; ".join(unrun.notes), unrun, None, runs)
        replaced = next((r for r in runs if r.substituted), None)
        if replaced is not None and part is Part.KERNEL:
            reason = f"it is about the kernel, and {_reference(replaced)}"
            return self._conclude(Verdict.INCONCLUSIVE, reason, replaced, None, runs)
        faults = [r for r in runs if r.worst is not None]
        if faults:
            faulty = min(faults, key=lambda run: run.probe == DRAFT)  # what is sharded tells more
            worst = faulty.worst
            assert worst is not None
            reason = self._why_not(faulty, worst, len(runs) - len(faults))
            return self._conclude(Verdict.INCONCLUSIVE, reason, faulty, worst, runs)
        failed_control = next((r for r in runs if not self._control_passed(r)), None)
        if failed_control is not None:
            reason = "our own kernel fails the same probe here"
            return self._conclude(Verdict.INCONCLUSIVE, reason, failed_control, None, runs)
        if restricted:
            reason = "the probes asked for pass; the rest were not run"
            return self._conclude(Verdict.INCONCLUSIVE, reason, runs[-1], None, runs)
        reason = f"right in all {len(runs)} probes"
        if all(r.reached is False for r in runs):
            reason += f", but {_UNREACHED} in any of them"
            return self._conclude(Verdict.INCONCLUSIVE, reason, runs[-1], None, runs)
        if replaced is not None:
            reason += f", but {_reference(replaced)}"
            if part is Part.GIVEN:
                reason += " and need not heed all that the kernel is given"
                return self._conclude(Verdict.INCONCLUSIVE, reason, replaced, None, runs)
            return self._conclude(Verdict.REFUTED, reason, replaced, None, runs)
        return self._conclude(Verdict.REFUTED, reason, runs[-1], None, runs)

    def _why_not(self, run: Run, worst: Measurement, right: int) -> str:
        """right: how many probes pass."""
        if not self._control_passed(run):
            return "our own kernel fails the same probe here"
        if worst.outcome is Outcome.NEAR:
            return f"within five times the tolerance: {worst.detail}"
        if run.reached is False:
            return f"fails although {_UNREACHED} ({worst.signal.value}): {worst.detail}"
        if worst.signal is Signal.REFUSED:
            return f"it refuses to run under DCP: {worst.detail}"
        if run.probe == DRAFT:
            what = f"right in {right} probes, but not where a layer in the group is unsharded"
        else:
            what = f"fails {run.probe}, but not as the rule predicts"
        return f"{what} ({worst.signal.value}): {worst.detail}"

    def _conclude(
        self,
        verdict: Verdict,
        reason: str,
        run: Run,
        measurement: Measurement | None,
        runs: list[Run],
    ) -> Confirmation:
        control = self._control_of(run)
        return Confirmation(
            verdict=verdict,
            reason=reason,
            execution=run.execution,
            ranks=run.ranks,
            environment=self._environment(),
            signal=None if measurement is None else measurement.signal,
            measured=None if measurement is None else measurement.measured,
            tolerance=None if measurement is None else measurement.tolerance,
            control="passed" if self._control_passed(run) else _failure(control),
            seed=run.seed,
            repro=run.repro,
            substituted=tuple(dict.fromkeys(name for r in runs for name in r.substituted)),
            stubbed=tuple(dict.fromkeys(name for r in runs for name in r.stubbed)),
            runs=tuple(runs),
        )

    def _not_run(self, job: Job, reason: str) -> Confirmation:
        return Confirmation(
            verdict=Verdict.INCONCLUSIVE,
            reason=reason,
            execution=Execution.NOT_RUN,
            ranks=job.mode,
            environment=self._environment(),
            signal=None,
            measured=None,
            tolerance=None,
            control="not run",
            seed=job.seed,
            repro="",
        )

    def _environment(self) -> dict[str, str]:
        seen = self._pool.environment
        return {name: str(seen[name]) for name in ("torch", "triton", "device")}


def _reference(run: Run) -> str:
    return f"a reference stood in for {', '.join(run.substituted)}"


def _is_refused(run: Run) -> bool:
    return run.worst is not None and run.worst.signal is Signal.REFUSED


def _never_met(seen: dict[str, Any], field: str) -> tuple[bool, str]:
    if seen["taken"]:
        return False, f"taken in {seen['taken']} of {seen['builds']} builds"
    # A branch that fails where the field is None makes nothing up.
    holds, told = _silent(seen, field)
    return holds, f"never taken in {seen['builds']} builds; {told}"


def _hidden(seen: dict[str, Any], field: str) -> tuple[bool, str]:
    if not seen["taken"]:
        return False, f"never taken in {seen['builds']} builds"
    return True, f"taken in {seen['taken']} of {seen['builds']} builds; {_told(seen, field)}"


def _missing(seen: dict[str, Any], field: str) -> tuple[bool, str]:
    if not seen["missing"]:
        return False, f"{field} is there in all {seen['builds']} builds"
    told = f"{field} is None in {seen['missing']} of {seen['builds']} builds"
    return True, f"{told}; {_told(seen, field)}"


def _silent(seen: dict[str, Any], field: str) -> tuple[bool, str]:
    told = {
        "same": f"with {field} left out the metadata is the same: a gap goes unnoticed",
        "changed": f"with {field} left out the metadata changes silently",
    }.get(seen["without"])
    if told is None:
        return False, f"with {field} left out the build fails with {seen['without']}"
    return True, told


def _told(seen: dict[str, Any], field: str) -> str:
    """What comes of a gap that is really there."""
    if seen["failed"]:
        return f"the build fails with {seen['failed']}"
    return {
        "same": "the builder makes what was owed, so the gap goes unnoticed",
        "changed": f"with {field} filled in the metadata differs",
    }.get(seen["filled"], f"with {field} filled in the build fails with {seen['filled']}")


_BRANCHES = frozenset({Gap.NEVER_MET, Gap.HIDDEN})
_HOLDS = {
    Gap.NEVER_MET: _never_met,
    Gap.HIDDEN: _hidden,
    Gap.MISSING: _missing,
    Gap.SILENT: _silent,
}


def _failure(control: Run) -> str:
    if control.execution is Execution.NOT_RUN:
        return "; ".join(control.notes)
    worst = control.worst
    return "passed" if worst is None else f"failed: {worst.detail}"
