"""The parent's side of the zygote: submit jobs, get runs. Imports neither torch nor triton."""

from __future__ import annotations

import itertools
import json
import os
import select
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from dcplint.harness.job import Job, failed, make_run, measurement_from_json
from dcplint.harness.model import Execution, Measurement, Outcome, Run, Signal

_MEMORY = 4 << 30  # bytes a probe may take on top of what the zygote has
_SLACK = 30.0  # seconds beyond a job's own time-out before the zygote itself is given up


class PoolError(Exception):
    """The zygote could not start or has died."""


class Pool:
    """A zygote and the jobs it runs. Use as a context manager.

    engine: the folder of an engine whose backends are to be run, loaded once. drivers: references
    to further drivers, which are asked first.
    """

    def __init__(
        self,
        device: str = "cpu",
        *,
        jobs: int = 2,
        timeout: float = 120.0,
        memory: int = _MEMORY,
        engine: Path | None = None,
        drivers: tuple[str, ...] = (),
    ) -> None:
        self.device = device
        self.engine = engine
        self.drivers = drivers
        self.jobs = jobs
        self.timeout = timeout
        # CUDA reserves address space by the hundred gigabyte; a bound would stop it at once.
        self.memory = memory if device == "cpu" else 0
        self.environment: dict[str, Any] = {}
        self._ids = itertools.count()
        self._buffer = b""

    def __enter__(self) -> Pool:
        self._said = tempfile.TemporaryFile("w+")
        request_end, self._requests = os.pipe()
        self._events, event_end = os.pipe()
        command = [sys.executable, "-m", "dcplint.harness.zygote"]
        self._process = subprocess.Popen(
            [
                *(*command, str(request_end), str(event_end), self.device),
                *(str(self.engine or ""), *self.drivers),
            ],
            pass_fds=(request_end, event_end),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._said,
        )
        os.close(request_end)
        os.close(event_end)
        try:
            self.environment = self._next_event(300.0)["environment"]
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    def _close(self) -> None:
        os.close(self._requests)
        os.close(self._events)
        try:
            self._process.wait(5.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._said.close()

    def run(self, jobs: Iterable[Job]) -> Generator[tuple[int, Run], None, None]:
        """Run jobs, as many processes at a time as allowed.

        Yields each job's index and run, in order of completion. Close it to stop the others; until
        then nothing else may be asked.
        """
        running: dict[int, tuple[int, Job]] = {}
        try:
            yield from self._run(deque(enumerate(jobs)), running)
        except GeneratorExit:
            self._stop(set(running))
            raise

    def _run(
        self, waiting: deque[tuple[int, Job]], running: dict[int, tuple[int, Job]]
    ) -> Iterator[tuple[int, Run]]:
        while waiting or running:
            busy = sum(job.processes for _, job in running.values())
            while waiting and (not running or busy + waiting[0][1].processes <= self.jobs):
                index, job = waiting.popleft()
                unhealthy = self._unhealthy(job)
                if unhealthy:
                    yield index, make_run(job, (), Execution.NOT_RUN, 0.0, (unhealthy,))
                    continue
                request = {"kind": "probe", "job": job.to_json(), "processes": job.processes}
                running[self._send(request)] = (index, job)
                busy += job.processes
            if running:
                event = self._next_event(self.timeout + _SLACK)
                index, job = running.pop(event["id"])
                yield index, _to_run(job, event)

    def _stop(self, numbers: set[int]) -> None:
        for number in numbers:
            self._write({"kind": "stop", "id": number})
        while numbers:
            numbers.discard(self._next_event(_SLACK)["id"])

    def describe(self, target: str, world_size: int) -> dict[str, Any]:
        """See `worker.describe`. Raises PoolError with what went wrong."""
        return self._ask({"kind": "describe", "target": target, "world_size": world_size})

    def backends(self, path: str, home: str, symbol: str) -> dict[str, Any]:
        """See `worker.backends`. Raises PoolError with what went wrong."""
        return self._ask({"kind": "backends", "path": path, "home": home, "symbol": symbol})

    def fallback(
        self,
        target: str,
        path: str,
        line: int,
        branch: tuple[int, int] | None,
        field: str,
        world_size: int,
    ) -> dict[str, Any]:
        """See `worker.fallback`. Raises PoolError with what went wrong."""
        return self._ask(
            {
                "kind": "fallback",
                "target": target,
                "path": path,
                "line": line,
                "branch": branch,
                "field": field,
                "world_size": world_size,
            }
        )

    def rebuild(self, path: str, symbol: str, world_size: int) -> dict[str, Any]:
        """See `worker.rebuild`. Raises PoolError with what went wrong."""
        request = {"kind": "rebuild", "path": path, "symbol": symbol, "world_size": world_size}
        return self._ask(request)

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        self._send({**request, "processes": 1})
        (outcome,) = self._next_event(self.timeout + _SLACK)["ranks"]
        if "answer" not in outcome:
            said = outcome.get("output", "").strip().splitlines()
            # A Python exception has that status, and its own words for it.
            raised = said and outcome["status"] == "exited with status 1"
            raise PoolError(": ".join([*([] if raised else [outcome["status"]]), *said[-1:]]))
        answer: dict[str, Any] = outcome["answer"]
        return answer

    def _unhealthy(self, job: Job) -> str:
        if self.device != "cpu" or job.dtype in self.environment["healthy"]:
            return ""
        said = f"{job.dtype} arithmetic is wrong in this interpreter, so nothing is said in it"
        unrepaired = self.environment["unrepaired"] if job.dtype == "bfloat16" else ""
        return f"{said}: {unrepaired}" if unrepaired else said

    def _send(self, request: dict[str, Any]) -> int:
        number = next(self._ids)
        self._write({**request, "id": number, "timeout": self.timeout, "memory": self.memory})
        return number

    def _write(self, message: dict[str, Any]) -> None:
        try:
            os.write(self._requests, (json.dumps(message) + "\n").encode())
        except BrokenPipeError:
            raise PoolError(self._last_words()) from None

    def _next_event(self, patience: float) -> dict[str, Any]:
        while b"\n" not in self._buffer:
            readable, _, _ = select.select([self._events], [], [], patience)
            chunk = os.read(self._events, 1 << 16) if readable else b""
            if not chunk:
                raise PoolError(self._last_words())
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        event: dict[str, Any] = json.loads(line)
        return event

    def _last_words(self) -> str:
        self._process.kill()
        self._said.seek(0)
        said = self._said.read().strip()
        return f"the harness process died: {said.splitlines()[-1] if said else 'no message'}"


def _to_run(job: Job, event: dict[str, Any]) -> Run:
    measurements: list[Measurement] = []
    executions: list[Execution] = []
    lacking: dict[str, None] = {}
    used: dict[str, dict[str, None]] = {"substituted": {}, "stubbed": {}}
    reached: list[bool] = []
    for outcome in event["ranks"]:
        if "answer" in outcome:
            answer = outcome["answer"]
            measurements.extend(measurement_from_json(m) for m in answer["measurements"])
            executions.append(Execution(answer["execution"]))
            lacking.update(dict.fromkeys([answer["lacking"]] if answer["lacking"] else []))
            reached.extend([answer["reached"]] if answer["reached"] is not None else [])
            for kind, names in used.items():
                names.update(dict.fromkeys(answer[kind]))
        elif outcome["status"] != "orphaned":
            measurements.append(_lost(job, outcome))
    if lacking:
        return make_run(job, (), Execution.NOT_RUN, event["seconds"], tuple(lacking))
    found = _without_consequences(measurements)
    labels = [e for e in executions if e is not Execution.NATIVE_CPU] or executions
    execution = labels[0] if labels else _assumed_execution(job)
    run = make_run(job, tuple(found), execution, event["seconds"])
    return replace(
        run,
        substituted=tuple(used["substituted"]),
        stubbed=tuple(used["stubbed"]),
        reached=any(reached) if reached else None,
    )


def _lost(job: Job, outcome: dict[str, Any]) -> Measurement:
    said = outcome.get("output", "").strip().splitlines()
    last = f"; its last words: {said[-1][:120]}" if said else ""
    if outcome["status"] == "timeout":
        return failed(Signal.HANG, outcome["rank"], f"no answer in time{last}")
    if outcome["status"] == "exited with status 0":
        detail = f"exited with status 0 before it was done{last}"
        return failed(Signal.CRASH, outcome["rank"], detail)
    return failed(Signal.CRASH, outcome["rank"], outcome["status"] + last)


# A rank that ended in one of these ways never reaches the collectives its peers wait in.
_ENDINGS = frozenset(
    {
        Signal.REFUSED,
        Signal.REFUSED_LATE,
        Signal.CRASH,
        Signal.ERROR,
        Signal.READ_WILD,
        Signal.LSE_MISSING,
        Signal.SHAPE,
    }
)


def _without_consequences(measurements: list[Measurement]) -> list[Measurement]:
    """Drop the hang of ranks whose peer ended early: it says nothing of its own."""
    if any(m.signal in _ENDINGS and m.outcome is Outcome.FAIL for m in measurements):
        return [m for m in measurements if m.signal is not Signal.HANG]
    return measurements


def _assumed_execution(job: Job) -> Execution:
    return Execution.NATIVE_CUDA if job.device.startswith("cuda") else Execution.INTERPRETED
