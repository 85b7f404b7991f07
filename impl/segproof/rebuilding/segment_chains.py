# SPDX-License-Identifier: Apache-2.0
"""Building the indexes of all segments, here or in several processes.

A segment whose producer snapshot is sound begins a chain: it needs nothing of the segments before.
The chains of a partition are built beside each other, the segments of one after each other.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from segproof.errors import SegproofError
from segproof.files import REAL_FILES, SharedFiles
from segproof.kernels.records import walk_batches
from segproof.processes import process_context, quiet_fork
from segproof.rebuilding.partition_files import Partition, Segment
from segproof.rebuilding.segment_build import BuiltSegment, Wanted, build_segment
from segproof.rebuilding.transactions import begun_before, state_of_snapshot

__all__ = ["Progress", "build"]

Progress = Callable[[int, int], None]
"""Called with the bytes read so far and the bytes that there are to read."""
USUAL_BATCH_BYTES = 4096
BATCHES_OF_A_UNIT = 8
"""So many headers are stepped over in one unit of a kernel's work."""
SECONDS_BETWEEN_LOOKS = 0.1


def build(
    partition: Partition,
    wanted: Wanted,
    files: SharedFiles,
    on_progress: Progress | None,
    jobs: int,
) -> list[BuiltSegment]:
    """Build the indexes of all segments beside their places; return them by base offset.

    Behind a broken log its chain ends. Raises: as `build_segment`.
    """
    chains: list[list[Segment]] = []
    for segment in partition.segments:
        if not chains or state_of_snapshot(segment, files) is not None:
            chains.append([])
        chains[-1].append(segment)
    total = sum(segment.status.size_bytes for segment in partition.segments)
    # Now, not when so many were read: what is compiled here every process has from its birth.
    walk_batches.announce(total // (USUAL_BATCH_BYTES * BATCHES_OF_A_UNIT))
    meter = _Meter(on_progress, total)
    if jobs > 1 and len(chains) > 1 and files is REAL_FILES:
        return _in_processes(partition, chains, wanted, meter, min(jobs, len(chains)))
    built = []
    for chain in chains:
        built += _build_chain(chain, partition, wanted, files, meter.add)
    return built


class _Meter:
    """Counts the bytes that were read, and tells the caller."""

    def __init__(self, on_progress: Progress | None, total: int) -> None:
        self.on_progress = on_progress
        self._total = total
        self._done = 0

    def add(self, count: int) -> None:
        """Count bytes that were read."""
        if self.on_progress is not None and count:
            self._done += count
            self.on_progress(self._done, self._total)

    def set(self, done: int) -> None:
        """Say how many bytes were read in all."""
        self.add(done - self._done)


def _build_chain(
    chain: Sequence[Segment],
    partition: Partition,
    wanted: Wanted,
    files: SharedFiles,
    on_bytes: Callable[[int], None],
) -> list[BuiltSegment]:
    producers = state_of_snapshot(chain[0], files)
    if producers is None:
        producers = begun_before(chain[0], partition.segments, files)
    built = []
    for segment in chain:
        built.append(build_segment(segment, wanted, producers, files, on_bytes))
        if built[-1].finding is not None:
            break
    return built


# --- processes

_counter: Any = None
"""In a worker: the shared number of bytes read."""


def _begin_worker(counter: Any) -> None:
    global _counter
    _counter = counter


def _count(count: int) -> None:
    with _counter.get_lock():
        _counter.value += count


def _run_chain(chain: list[Segment], partition: Partition, wanted: Wanted) -> list[BuiltSegment]:
    """Build the segments of one chain in a worker."""
    return _build_chain(chain, partition, wanted, REAL_FILES, _count)


def _in_processes(
    partition: Partition,
    chains: Sequence[list[Segment]],
    wanted: Wanted,
    meter: _Meter,
    jobs: int,
) -> list[BuiltSegment]:
    context = process_context()
    counter = context.Value("q", 0)
    pool = ProcessPoolExecutor(
        jobs, mp_context=context, initializer=_begin_worker, initargs=(counter,)
    )
    try:
        with quiet_fork():
            futures = [pool.submit(_run_chain, chain, partition, wanted) for chain in chains]
        return [one for future in futures for one in _result(future, counter, meter)]
    except BrokenProcessPool as error:
        raise SegproofError(
            "a process of the rebuild was ended from outside, perhaps for want of memory",
            path=partition.directory,
            hint="rebuild with jobs=1",
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _result(
    future: "Future[list[BuiltSegment]]", counter: Any, meter: _Meter
) -> list[BuiltSegment]:
    """Wait for one chain, showing progress."""
    while True:
        try:
            result = future.result(SECONDS_BETWEEN_LOOKS if meter.on_progress else None)
        except TimeoutError:
            meter.set(counter.value)
            continue
        meter.set(counter.value)
        return result
