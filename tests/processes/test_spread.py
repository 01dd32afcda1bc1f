"""Work in several processes: the same outcome, whoever does it and whoever dies."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from dcplint import disk, processes
from dcplint.processes import spread, usable

splits = pytest.mark.skipif(usable() < 2, reason="one processor, or a system without fork")


@pytest.fixture(autouse=True)
def _several(monkeypatch: pytest.MonkeyPatch) -> None:
    if usable() > 1:
        monkeypatch.setattr(processes, "usable", lambda: 4)


def _square(number: int) -> tuple[int, int]:
    return number * number, os.getpid()


@pytest.mark.parametrize("jobs", [1, 2, 4, 50])
@pytest.mark.parametrize("count", [0, 1, 7, 255, 256])
def test_results_are_in_order_of_the_tasks(jobs: int, count: int) -> None:
    results = spread(_square, range(count), jobs)
    assert [result for result, _ in results] == [number * number for number in range(count)]


@splits
def test_children_work_and_are_gone_afterwards() -> None:
    parent = os.getpid()
    reading, writing = os.pipe()

    def work(_: int) -> int:
        if os.getpid() == parent:
            os.read(reading, 1)  # waits for a child to have done something
        else:
            os.write(writing, b"..")
        return os.getpid()

    assert set(spread(work, range(2), 2)) - {parent}
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


@splits
@pytest.mark.parametrize("how", ["killed", "raises", "exits"])
def test_what_a_child_leaves_undone_is_done_here(how: str) -> None:
    parent = os.getpid()

    def work(task: int) -> int:
        if os.getpid() != parent:
            if how == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            if how == "raises":
                raise KeyError(task)
            os._exit(3)
        return task + 1

    assert spread(work, range(40), 3) == list(range(1, 41))


@splits
def test_an_exception_here_ends_the_children() -> None:
    parent = os.getpid()

    def work(task: int) -> int:
        if os.getpid() == parent:
            raise KeyboardInterrupt
        signal.pause()
        return task

    with pytest.raises(KeyboardInterrupt):
        spread(work, range(10), 2)
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


@splits
def test_what_children_read_is_remembered_here(tmp_path: Path) -> None:
    paths = [tmp_path / str(number) for number in range(60)]
    for path in paths:
        path.write_bytes(path.name.encode())
    with disk.remembering() as seen:
        assert spread(disk.read, paths, 4) == [path.name.encode() for path in paths]
    assert set(seen.files) == {str(path) for path in paths}


@pytest.mark.parametrize("jobs", [1, 2, 4])
@pytest.mark.parametrize("count", [0, 1, 7, 40])
def test_tasks_apart_come_first(jobs: int, count: int) -> None:
    results = spread(_square, range(count), jobs, range(100, 105))
    numbers = [*range(100, 105), *range(count)]
    assert [result for result, _ in results] == [number * number for number in numbers]


@splits
def test_what_comes_after_tasks_apart_rests_on_what_was_done_meanwhile() -> None:
    """A child of the second round has what this process had worked out by then."""
    parent = os.getpid()
    (begin, begins), (read, write), (born, bears) = os.pipe(), os.pipe(), os.pipe()
    begun: list[int] = []

    def work(task: int) -> tuple[bool, list[int]]:
        if task == 0:
            os.write(bears, os.getpid().to_bytes(8, "big"))
            os.read(begin, 1)  # in the first child, which ends when this process has begun
        elif os.getpid() != parent:
            os.write(write, b"." * 30)  # as many as there are tasks
        elif begun:
            os.read(read, 1)  # waits for the second child to have done something
        else:
            begun.append(task)
            child = int.from_bytes(os.read(born, 8), "big")
            os.write(begins, b".")
            os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)  # and leaves it for others to see
        return os.getpid() == parent, list(begun)

    apart, first, *others = spread(work, range(1, 30), 2, range(1))
    assert apart == (False, [])
    assert first == (True, [1])
    assert all(seen == [1] for _, seen in others)
    assert not all(is_parent for is_parent, _ in others)


@splits
@pytest.mark.parametrize("how", ["killed", "raises"])
def test_tasks_apart_that_a_child_leaves_undone_are_done_here(how: str) -> None:
    parent = os.getpid()

    def work(task: int) -> int:
        if os.getpid() != parent:
            if how == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            raise KeyError(task)
        return task + 1

    assert spread(work, range(3, 9), 3, range(3)) == list(range(1, 10))
