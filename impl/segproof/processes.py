# SPDX-License-Identifier: Apache-2.0
"""Processes that share the work of one command, and what tells how far they are."""

import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.context import BaseContext
from typing import Any, NoReturn, TypeVar

from segproof.closing import Closing

Result = TypeVar("Result")
Progress = Callable[[int, int], None]
"""Called with the bytes read so far and the bytes that there are to read."""
BYTES_OF_A_PROCESS = 1 << 20
"""Fewer are read in less time than a process takes to begin and to end."""
SECONDS_BETWEEN_LOOKS = 0.1
SECONDS_TO_CLEAN_UP = 2.0
_counter: Any = None
"""In a worker: the number of bytes that all of them have read."""
_is_leaving = False
"""In a worker: whether Ctrl-C has ended its work, so that it begins no other."""


def processes_for(jobs: int, tasks: int, size_bytes: int) -> int:
    """Return in how many processes some tasks are done that read so many bytes; 1: in this one."""
    return max(1, min(jobs, tasks, -(-size_bytes // BYTES_OF_A_PROCESS)))


def process_context() -> BaseContext:
    """Return how processes begin: by fork, which is 0.4 s faster, where no thread is in the way."""
    can_fork = "fork" in multiprocessing.get_all_start_methods()
    is_alone = threading.active_count() == 1
    return multiprocessing.get_context("fork" if can_fork and is_alone else "spawn")


@contextmanager
def quiet_fork() -> Iterator[None]:
    """Silence the warning of Python 3.12 about threads of libraries, which hold no lock of ours."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DeprecationWarning, message=".*fork.*")
        yield


class Meter:
    """Counts the bytes that were read, and tells the caller."""

    def __init__(self, on_progress: Progress | None, total: int) -> None:
        self.on_progress = on_progress
        self._total = total
        self.done = 0
        """How many so far; 0 where nobody is told."""

    def add(self, count: int) -> None:
        """Count bytes that were read."""
        if self.on_progress is not None and count:
            self.done += count
            self.on_progress(self.done, max(self._total, self.done))

    def set(self, done: int) -> None:
        """Say how many bytes were read in all."""
        self.add(done - self.done)


def end_quietly() -> None:
    """Let Ctrl-C end this worker without a traceback, once its work has cleaned up.

    It ends in the same way when its parent is gone: killed, a parent tells its workers nothing.
    """
    signal.signal(signal.SIGINT, _leave)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    # Not `parent.join()`: it waits for a pipe that workers forked later hold open, so each ended
    # only after those.
    while os.getppid() == parent.pid:
        time.sleep(SECONDS_BETWEEN_LOOKS)
    while True:  # the first signal ends the work, which the pool survives; the next ends the wait
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        time.sleep(SECONDS_TO_CLEAN_UP)


def _leave(number: int, _: object) -> NoReturn:
    global _is_leaving
    _is_leaving = True
    raise SystemExit(128 + number)


def unless_leaving(work: Callable[..., Result], *arguments: object) -> Result:
    """Do some work in a worker; none that a pool has handed on before Ctrl-C ended the worker."""
    if _is_leaving:
        raise SystemExit(128 + signal.SIGINT)
    return work(*arguments)


def _begin_worker(counter: Any) -> None:
    global _counter
    _counter = counter
    end_quietly()


def count_bytes(count: int) -> None:
    """Count bytes that this worker has read."""
    with _counter.get_lock():
        _counter.value += count


class Workers(Closing):
    """`jobs` processes. A context manager. A meter tells of the bytes that they count.

    What the meter has counted before stays counted.
    """

    def __init__(self, jobs: int, meter: Meter) -> None:
        context = process_context()
        self._others = set(multiprocessing.active_children())
        self._meter = meter
        self._before = meter.done
        self._counter = context.Value("q", 0)
        self._pool = ProcessPoolExecutor(
            jobs, mp_context=context, initializer=_begin_worker, initargs=(self._counter,)
        )

    def submit(self, work: Callable[..., Result], *arguments: object) -> "Future[Result]":
        """Let a process do some work. Raises: OSError where the system gives no process."""
        try:
            with quiet_fork():
                return self._pool.submit(unless_leaving, work, *arguments)
        except OSError:
            # A pool that could begin only some of its processes ends none, and its end waits.
            for child in multiprocessing.active_children():
                if child not in self._others:
                    child.terminate()
            raise

    def result(self, future: "Future[Result]") -> Result:
        """Wait for the result of some work, showing progress.

        Raises: what the work raises; BrokenProcessPool where a process was ended from outside.
        """
        while True:
            try:
                result = future.result(SECONDS_BETWEEN_LOOKS if self._meter.on_progress else None)
            except TimeoutError:
                self._meter.set(self._before + self._counter.value)
                continue
            self._meter.set(self._before + self._counter.value)
            return result

    def close(self) -> None:
        """End all, once they have done what they began."""
        self._pool.shutdown(wait=True, cancel_futures=True)
