"""The process that imports torch once and forks a child per probe and rank.

It reads requests, one JSON line each, and writes events. A child is in a session of its own, with
its output in a file, its memory bounded and a deadline; whatever it does, its whole process group
is gone when its event is written. When the pool's end of the pipe closes, everything dies.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import resource
import select
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

_PR_SET_PDEATHSIG = 1
_TAIL = 400  # characters of a child's output worth reporting
_GRACE = 2.0  # seconds that peers of a dead rank get to fail by themselves


@dataclass(slots=True)
class _Child:
    request: int
    rank: int
    deadline: float
    folder: Path
    timed_out: bool = False
    orphaned: bool = False


@dataclass(slots=True)
class _Request:
    """A request whose children are not all gone."""

    folder: tempfile.TemporaryDirectory[str]
    started: float
    waiting: int
    ranks: list[dict[str, Any]] = field(default_factory=list)


class Zygote:
    """Forks, watches, kills and reports."""

    def __init__(self, requests: int, events: int) -> None:
        self._requests = requests
        self._events = events
        self._children: dict[int, _Child] = {}
        self._open: dict[int, _Request] = {}
        self._buffer = b""

    def serve(self) -> None:
        """Work until the pool hangs up."""
        try:
            while True:
                readable, _, _ = select.select([self._requests], [], [], 0.01)
                if readable and not self._read():
                    return
                self._reap()
                self._enforce()
        finally:
            for pid in self._children:
                _kill_group(pid)

    def emit(self, event: dict[str, Any]) -> None:
        """Tell the pool."""
        os.write(self._events, (json.dumps(event) + "\n").encode())

    def _read(self) -> bool:
        chunk = os.read(self._requests, 1 << 16)
        if not chunk:
            return False
        *lines, self._buffer = (self._buffer + chunk).split(b"\n")
        for request in map(json.loads, lines):
            if request["kind"] == "stop":
                self._stop(request["id"])
            else:
                self._start(request)
        return True

    def _stop(self, request: int) -> None:
        """Nobody waits for it any more; its event says that it is gone."""
        for child in self._children.values():
            if child.request == request:
                child.deadline = 0.0

    def _start(self, request: dict[str, Any]) -> None:
        folder = tempfile.TemporaryDirectory(prefix="dcplint-")
        count = request["processes"]
        now = time.monotonic()
        self._open[request["id"]] = _Request(folder, now, count)
        for rank in range(count):
            path = Path(folder.name)
            pid = os.fork()
            if pid == 0:
                os.close(self._requests)
                os.close(self._events)
                _child_main(request, rank, path)
            child = _Child(request["id"], rank, now + request["timeout"], path)
            self._children[pid] = child

    def _reap(self) -> None:
        for pid in list(self._children):
            try:
                done, status = os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                done, status = pid, 0
            if done:
                _kill_group(pid)
                self._finish(self._children.pop(pid), status)

    def _finish(self, child: _Child, status: int) -> None:
        answer = child.folder / f"answer-{child.rank}.json"
        outcome: dict[str, Any] = {"rank": child.rank, "status": _describe(child, status)}
        if answer.exists():
            outcome["answer"] = json.loads(answer.read_text())
        output = child.folder / f"output-{child.rank}.txt"
        if output.exists():
            text = output.read_bytes()[-_TAIL * 4 :].decode(errors="replace")
            outcome["output"] = text[-_TAIL:]
        request = self._open[child.request]
        request.ranks.append(outcome)
        request.waiting -= 1
        if "answer" not in outcome:
            self._hasten_peers(child.request)
        if not request.waiting:
            del self._open[child.request]
            request.folder.cleanup()
            seconds = time.monotonic() - request.started
            ranks = sorted(request.ranks, key=lambda r: int(r["rank"]))
            self.emit({"id": child.request, "ranks": ranks, "seconds": seconds})

    def _hasten_peers(self, request: int) -> None:
        """A rank is gone: its peers would wait for it until their own time-out."""
        for child in self._children.values():
            if child.request == request and not child.orphaned:
                child.orphaned = True
                child.deadline = min(child.deadline, time.monotonic() + _GRACE)

    def _enforce(self) -> None:
        now = time.monotonic()
        for pid, child in self._children.items():
            if now > child.deadline and not child.timed_out:
                child.timed_out = True
                _kill_group(pid)


def _describe(child: _Child, status: int) -> str:
    if child.timed_out:
        return "orphaned" if child.orphaned else "timeout"
    if os.WIFSIGNALED(status):
        return f"killed by {signal.Signals(os.WTERMSIG(status)).name}"
    return f"exited with status {os.WEXITSTATUS(status)}"


def _kill_group(pid: int) -> None:
    # The child may not have become a group leader yet, so it is also killed by itself.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _child_main(request: dict[str, Any], rank: int, folder: Path) -> NoReturn:
    status = 1
    try:
        os.setsid()
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        output = os.open(folder / f"output-{rank}.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for descriptor in (1, 2):
            os.dup2(output, descriptor)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        _limit(request["memory"])
        answer = _answer(request, rank, folder)
        part = folder / f"part-{rank}.json"
        part.write_text(json.dumps(answer))
        part.rename(folder / f"answer-{rank}.json")
        status = 0
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(status)


def _answer(request: dict[str, Any], rank: int, folder: Path) -> dict[str, Any]:
    from dcplint.harness import worker
    from dcplint.harness.job import Job

    if request["kind"] == "backends":
        return worker.backends(request["path"], request["home"], request["symbol"])
    if request["kind"] == "describe":
        return worker.describe(request["target"], request["world_size"])
    if request["kind"] == "rebuild":
        return worker.rebuild(request)
    if request["kind"] == "fallback":
        return worker.fallback(request)
    return worker.execute(Job(**request["job"]), rank, str(folder / "rendezvous"))


def _limit(memory: int) -> None:
    """Bound the address space (bytes more than now) and the size of any file written."""
    if memory:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        bound = pages * resource.getpagesize() + memory
        resource.setrlimit(resource.RLIMIT_AS, (bound, bound))
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 20, 64 << 20))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> None:
    """Serve on the two descriptors given as arguments; then device, engine and drivers."""
    requests, events = int(sys.argv[1]), int(sys.argv[2])
    device, engine, *drivers = sys.argv[3:]
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    from dcplint.harness import worker

    zygote = Zygote(requests, events)
    environment = worker.prepare(device, engine, drivers)
    gc.freeze()  # children that collect garbage would copy every page they look at
    zygote.emit({"environment": environment})
    zygote.serve()


if __name__ == "__main__":
    main()
