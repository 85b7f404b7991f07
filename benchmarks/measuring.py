# SPDX-License-Identifier: Apache-2.0
"""What every group of rows shares: the folder, the sizes, and one measurement of all sides."""

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.contestants import Contestant, Java, NotRunError, Passes, alternate
from benchmarks.table import Cell, Figure, NotRun

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Bench:
    """One run of the benchmarks."""

    folder: Path
    """Where files are made; emptied at the end."""
    java: Java
    quick: bool

    @property
    def passes(self) -> int:
        """Timed passes of each side."""
        return 3 if self.quick else 7


def say(words: str) -> None:
    """Tell on stderr how far it is."""
    print(words, file=sys.stderr, flush=True)


def wait_until_quiet(seconds: float = 60) -> None:
    """Return when other programs use less than a tenth of a core, or after so many seconds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and _busy_cores(1.0) > 0.1:
        pass


def _busy_cores(seconds: float) -> float:
    """Return how many cores were in use while waiting; 0 where the system does not say."""
    before = _idle_ticks()
    time.sleep(seconds)
    after = _idle_ticks()
    if before is None or after is None:
        return 0.0
    return (os.cpu_count() or 1) - (after - before) / os.sysconf("SC_CLK_TCK") / seconds


def _idle_ticks() -> int | None:
    try:
        total = Path("/proc/stat").read_text().splitlines()[0].split()
    except OSError:
        return None
    return int(total[4])


Start = Callable[[], Contestant]


def race(
    starts: dict[str, Start], passes: int, same_answers: bool = True, wait: bool = True
) -> dict[str, Passes | NotRun]:
    """Let contestants make passes in turn; return those of each, or why it did not run.

    Raises: RuntimeError if their answers differ and `same_answers` says that they should not.
    """
    if wait:
        wait_until_quiet()
    running: dict[str, Contestant] = {}
    results: dict[str, Passes | NotRun] = {}
    for name, start in starts.items():
        try:
            running[name] = start()
        except NotRunError as error:
            results[name] = NotRun(str(error))
    alternate(list(running.values()), passes)
    results |= {name: contestant.passes for name, contestant in running.items()}
    answers = {contestant.passes.checksum for contestant in running.values()}
    if same_answers and len(answers) > 1:
        raise RuntimeError(f"the sides give different answers: {answers}")
    return results


def seconds_each(result: Passes | NotRun, count: int, scale: float) -> Cell:
    """Return the time of one of `count` things of a pass, in seconds divided by `scale`."""
    if isinstance(result, NotRun):
        return result
    return Figure(result.median / count / scale, result.best / count / scale)


def rate(result: Passes | NotRun, size_bytes: int, scale: float = 1e9) -> Cell:
    """Return bytes a second, divided by `scale` (default: GB/s)."""
    if isinstance(result, NotRun):
        return result
    return Figure(size_bytes / result.median / scale, size_bytes / result.best / scale)


def memory(result: Passes | NotRun) -> Cell:
    """Return the most memory, in MiB, that a contestant had at once."""
    if isinstance(result, NotRun):
        return result
    if not result.peak_memory_bytes:
        return NotRun("this system does not say how much memory a process had")
    mebibytes = result.peak_memory_bytes / MIB
    return Figure(mebibytes, mebibytes)
