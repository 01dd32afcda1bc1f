"""Work spread over processes, where the system can split one in two.

A child begins as a copy of this process, so nothing has to be sent to it; only what it finds comes
back. Elsewhere (Windows, and macOS, whose own libraries do not survive a split) one process does it
all. The outcome is the same however many there are: results are put in the order of the tasks.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from dcplint import disk

T = TypeVar("T")
R = TypeVar("R")

_MOST = 255  # tasks: one byte each


def usable() -> int:
    """How many processes can run at a time."""
    if sys.platform != "linux":
        return 1
    return len(os.sched_getaffinity(0))


def spread(
    work: Callable[[T], R], tasks: Sequence[T], jobs: int, apart: Sequence[T] = ()
) -> list[R]:
    """`work` done on each of `tasks`, by up to `jobs` processes, results in order of the tasks.

    Whoever is free takes the next task: every other process from the end, so that tasks beside
    each other, which may need much the same, are done by one. What a child was to do and did not,
    because it was killed, is done here. `work` returns what can be pickled, and handles its own
    exceptions.

    apart: tasks that need nothing of what the others do, with results before theirs. Children
    begin with those and this process with the others; once those are done, new children begin as
    copies of this process, with all that it has worked out by then.
    """
    children = min(jobs, usable(), len(tasks) + len(apart)) - 1
    if children < 1 or max(len(tasks), len(apart)) > _MOST:
        return [work(task) for task in (*apart, *tasks)]
    sys.stdout.flush()
    sys.stderr.flush()
    first, begun = _shared(work, apart, children, tasks) if apart else ([], [])
    rest = tasks[len(begun) :]
    last, _ = _shared(work, rest, min(children, len(rest) - 1), ()) if rest else ([], [])
    return [*first, *begun, *last]


def _shared(
    work: Callable[[T], R], tasks: Sequence[T], children: int, own: Sequence[T]
) -> tuple[list[R], list[R]]:
    """What comes of `tasks`, and of those of `own` that this process did while children worked."""
    order = bytes(range(len(tasks)))
    queue = _Queue(_pipe(order), (_pipe(order), _pipe(order[::-1])))
    running = [_start(work, tasks, queue, (child + 1) % 2) for child in range(children)]
    begun: list[R] = []
    try:
        while len(begun) < len(own) and not all(_is_done(reading) for _, reading in running):
            begun.append(work(own[len(begun)]))
        done = _work_off(work, tasks, queue, 0)
        for _, reading in running:
            done |= _collected(reading)
    except BaseException:
        for pid, _ in running:
            os.kill(pid, signal.SIGKILL)
        raise
    finally:
        queue.close()
        for pid, reading in running:
            os.close(reading)
            os.waitpid(pid, 0)
    return [done[i] if i in done else work(task) for i, task in enumerate(tasks)], begun


def _is_done(reading: int) -> bool:
    """Whether a child has come to an end: it writes what it has done all at once."""
    return bool(select.select([reading], [], [], 0)[0])


@dataclass(frozen=True, slots=True)
class _Queue:
    """Tasks by number, for several processes to take from either end.

    Pipes to read a byte from: one for each task that is left, and the numbers from each end on.
    """

    left: int
    ends: tuple[int, int]

    def take(self, end: int) -> int | None:
        """The next task from one of the ends; None where none is left."""
        return os.read(self.ends[end], 1)[0] if os.read(self.left, 1) else None

    def close(self) -> None:
        """Close the pipes in this process."""
        for pipe in (self.left, *self.ends):
            os.close(pipe)


def _pipe(content: bytes) -> int:
    """Where to read `content` from, by several processes."""
    reading, writing = os.pipe()
    os.write(writing, content)
    os.close(writing)
    return reading


def _work_off(work: Callable[[T], R], tasks: Sequence[T], queue: _Queue, end: int) -> dict[int, R]:
    """What comes of the tasks that nobody else takes."""
    done = {}
    while (number := queue.take(end)) is not None:
        done[number] = work(tasks[number])
    return done


def _start(work: Callable[[T], R], tasks: Sequence[T], queue: _Queue, end: int) -> tuple[int, int]:
    """Start a child; its number, and where to read what it has done."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    try:
        os.close(reading)
        with disk.remembering(disk.is_remembering()) as seen:
            done = _work_off(work, tasks, queue, end)
        with os.fdopen(writing, "wb") as file:
            pickle.dump((done, seen), file, pickle.HIGHEST_PROTOCOL)
    except BaseException:  # whatever it is, the parent does what is missing
        os._exit(1)
    os._exit(0)


def _collected(reading: int) -> dict[int, R]:
    """What a child has done; nothing of a child that was killed."""
    with os.fdopen(reading, "rb", closefd=False) as file:
        data = file.read()
    with suppress(EOFError, pickle.UnpicklingError):
        # From our own child, over a pipe of our own.
        found: tuple[dict[int, R], disk.Seen] = pickle.loads(data)
        done, seen = found
        disk.remember(seen)
        return done
    return {}
