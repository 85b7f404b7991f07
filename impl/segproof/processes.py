# SPDX-License-Identifier: Apache-2.0
"""Processes that share the work of one command, and what tells how far they are."""

import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from multiprocessing.context import BaseContext
from typing import Any, NoReturn, TypeVar

from segproof.closing import Closing
from segproof.errors import SegproofError
from segproof.files import REAL_FILES, Files

Task = TypeVar("Task")
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


class _WorkersMeter(Meter):
    """Counts the bytes that a worker reads; the parent's meter tells of those of all workers."""

    def add(self, count: int) -> None:
        """Count bytes that were read."""
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


def _in_worker(work: Callable[[Task, Files, Meter], Result], task: Task) -> Result:
    return work(task, REAL_FILES, _WorkersMeter(None, 0))


@dataclass(frozen=True, slots=True)
class Sharing:
    """How one command gives its tasks to processes, and what it says if one of them is killed.

    The calling process does all tasks itself if `processes` is 1, or if `files` are not the real
    ones.
    """

    processes: int
    files: Files
    meter: Meter
    command: str
    """The command that the error names, such as "rebuild"."""
    path: Callable[[Any], str]
    """Returns the path of a task. The error names that of the task whose result is missing."""
    hint: str = "run it again with jobs=1"
    consequence: str = ""
    """What the error says of the other tasks. It begins with "; ", or is empty."""

    @contextmanager
    def results(
        self,
        work: Callable[[Task, Any, Meter], Result],
        tasks: Iterable[Task],
        *,
        ahead: int | None = None,
        size_of: Callable[[Task], int] = lambda _: 0,
    ) -> Iterator[Iterator[Result]]:
        """Give an iterator of the result of `work` for each task, in the order of the tasks.

        `work` gets the task, the files and the meter; it can be pickled, as the tasks. At most
        `ahead` tasks are begun before the first result is taken, and one after each result; None
        begins all at once. Of the tasks that begin together the largest is the first.

        Raises, in its block: what the work raises; SegproofError if a process was ended from
        outside.
        """
        if self.processes <= 1 or self.files is not REAL_FILES:
            yield (work(task, self.files, self.meter) for task in tasks)
            return
        rest = iter(tasks)
        waiting: deque[Task] = deque()
        begun: dict[int, Future[Result]] = {}

        def begin(count: int | None) -> None:
            new = list(islice(rest, count))
            waiting.extend(new)
            for task in sorted(new, key=size_of, reverse=True):
                begun[id(task)] = workers.submit(_in_worker, work, task)

        def in_order() -> Iterator[Result]:
            begin(ahead)
            while waiting:
                result = workers.result(begun.pop(id(waiting[0])))
                waiting.popleft()
                begin(1)
                yield result

        try:
            with Workers(self.processes, self.meter) as workers:
                yield in_order()
        except BrokenProcessPool as error:
            raise SegproofError(
                f"a process of the {self.command} was ended from outside, perhaps for want of"
                f" memory{self.consequence}",
                path=self.path(waiting[0]),
                hint=self.hint,
            ) from error
