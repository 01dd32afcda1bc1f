"""Work spread over processes, where the system can split one in two.

A child begins as a copy of this process, so nothing has to be sent to it; only what it finds comes
back. Elsewhere (Windows, and macOS, whose own libraries do not survive a split) one process does it
all. The outcome is the same however many there are: results are put in the order of the tasks.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
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


def spread(work: Callable[[T], R], tasks: Sequence[T], jobs: int) -> list[R]:
    """`work` done on each of `tasks`, by up to `jobs` processes, results in order of the tasks.

    Tasks are taken in order by whoever is free. What a child was to do and did not, because it
    was killed, is done here. `work` returns what can be pickled, and handles its own exceptions.
    """
    children = min(jobs, usable(), len(tasks)) - 1
    if children < 1 or len(tasks) > _MOST:
        return [work(task) for task in tasks]
    taking, giving = os.pipe()
    os.write(giving, bytes(range(len(tasks))))
    os.close(giving)
    sys.stdout.flush()
    sys.stderr.flush()
    running = [_start(work, tasks, taking) for _ in range(children)]
    try:
        done = _work_off(work, tasks, taking)
        for _, reading in running:
            done |= _collected(reading)
    except BaseException:
        for pid, _ in running:
            os.kill(pid, signal.SIGKILL)
        raise
    finally:
        os.close(taking)
        for pid, reading in running:
            os.close(reading)
            os.waitpid(pid, 0)
    return [done[index] if index in done else work(task) for index, task in enumerate(tasks)]


def _work_off(work: Callable[[T], R], tasks: Sequence[T], taking: int) -> dict[int, R]:
    """What comes of the tasks that nobody else takes."""
    done = {}
    while taken := os.read(taking, 1):
        done[taken[0]] = work(tasks[taken[0]])
    return done


def _start(work: Callable[[T], R], tasks: Sequence[T], taking: int) -> tuple[int, int]:
    """Start a child; its number, and where to read what it has done."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    try:
        os.close(reading)
        with disk.remembering() as seen:
            done = _work_off(work, tasks, taking)
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
