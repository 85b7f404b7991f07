# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C reaches every process of a terminal: workers end too, and only the parent speaks."""

import os
import signal
import subprocess
import sys
import time

import pytest

from segproof.errors import SegproofError
from segproof.files import REAL_FILES, Files
from segproof.processes import SECONDS_TO_CLEAN_UP, Meter, Sharing, Workers, processes_for

KILLED = """
import os, signal, time
from segproof.processes import Meter, Workers

reader, writer = os.pipe()

def work():
    os.write(writer, b"x")
    time.sleep(60)

if __name__ == "__main__":
    workers = Workers(4, Meter(None, 0))
    for _ in range(4):
        workers.submit(work)
    for _ in range(4):
        os.read(reader, 1)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(
    ("jobs", "tasks", "size_bytes", "expected"),
    [(4, 0, 0, 1), (4, 9, 1 << 20, 1), (4, 9, (1 << 20) + 1, 2), (4, 9, 9 << 20, 4),
     (4, 3, 9 << 20, 3), (1, 9, 9 << 20, 1)],
)  # fmt: skip
def test_little_is_done_in_this_process(
    jobs: int, tasks: int, size_bytes: int, expected: int
) -> None:
    """To verify a few kilobytes took most of its time to begin and to end processes."""
    assert expected == processes_for(jobs, tasks, size_bytes)


def test_a_worker_that_waits_ends_without_a_word(capfd: pytest.CaptureFixture[str]) -> None:
    """It once wrote a traceback for each process, in the middle of what the verb said."""
    with Workers(1, Meter(None, 0)) as workers:
        pid = workers.result(workers.submit(os.getpid))
        assert pid != os.getpid()
        os.kill(pid, signal.SIGINT)
    assert ("", "") == tuple(capfd.readouterr())


def test_work_that_is_interrupted_cleans_up(capfd: pytest.CaptureFixture[str]) -> None:
    """Its `finally` runs, so that no unfinished file stays; the parent gets the exit code."""
    reader, writer = os.pipe()
    with Workers(1, Meter(None, 0)) as workers:
        future = workers.submit(interrupted_work, writer)
        with pytest.raises(SystemExit) as raised:
            workers.result(future)
    assert 128 + signal.SIGINT == raised.value.code
    assert b"cleaned up" == os.read(reader, 100)
    os.close(reader)
    os.close(writer)
    assert ("", "") == tuple(capfd.readouterr())


def test_work_that_a_pool_has_handed_on_does_not_begin() -> None:
    """A pool hands on some work early, and can not take it back: `oracle run` went on with it."""
    with Workers(1, Meter(None, 0)) as workers:
        futures = [workers.submit(signal.raise_signal, signal.SIGINT)]
        futures += [workers.submit(time.sleep, 20) for _ in range(2)]
        started = time.monotonic()
        for future in futures:
            with pytest.raises(SystemExit):
                workers.result(future)
    assert time.monotonic() - started < 15


def test_a_process_that_is_ended_from_outside_is_told_with_the_task() -> None:
    """Each command told it by itself; the results of earlier tasks have come by then."""
    sharing = Sharing(
        2, REAL_FILES, Meter(None, 0), "search", lambda task: f"task {task}", "look elsewhere",
        "; others go on",
    )  # fmt: skip
    found: list[int] = []
    with (
        pytest.raises(SegproofError) as raised,
        sharing.results(doubled, [1, 2, 0, 4], ahead=1) as results,
    ):
        found.extend(results)
    assert [2, 4] == found
    told = str(raised.value)
    assert "a process of the search was ended from outside, perhaps for want of memory" in told
    assert ("task 0", "look elsewhere") == (raised.value.path, raised.value.hint)
    assert "; others go on" in told


def doubled(task: int, _: Files, meter: Meter) -> int:
    """Return twice the number; end the process where it is 0."""
    if not task:
        os.kill(os.getpid(), signal.SIGKILL)
    meter.add(1)
    return 2 * task


def interrupted_work(writer: int) -> None:
    """Be interrupted while at work, and clean up."""
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(30)
    finally:
        os.write(writer, b"cleaned up")


def test_workers_of_a_parent_that_was_killed_end_together() -> None:
    """Each once waited for a pipe that workers forked later held open, and ended after those."""
    parent = subprocess.Popen([sys.executable, "-c", KILLED], stdout=subprocess.PIPE)
    assert -signal.SIGKILL == parent.wait()
    started = time.monotonic()
    parent.communicate(timeout=30)  # the workers hold the other end
    assert time.monotonic() - started < 3 * SECONDS_TO_CLEAN_UP
