# SPDX-License-Identifier: Apache-2.0
"""Verify all that lies at or below a path: find it, then check it, here or in several processes.

The findings and their order are the same in one process and in many.
"""

import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from segproof.errors import SegproofError
from segproof.files import REAL_FILES, Files
from segproof.findings import Finding
from segproof.kafka.batch_table import RECORDS_OF_A_UNIT
from segproof.kernels.records import summarise_batches
from segproof.processes import Meter, Progress, Workers, count_bytes
from segproof.reading.store_paths import Place, find_places
from segproof.verifying.directory_checks import Partition, find_partitions, sized
from segproof.verifying.partition_verification import PartitionCheck
from segproof.verifying.reporting import Reporter, Wanted
from segproof.verifying.rocketmq.store_verification import check_place, size_of
from segproof.verifying.segment_carry import LogCarry
from segproof.verifying.segment_files import Segment
from segproof.verifying.segment_verification import SteadyCheck

Work = Partition | Place
"""What is checked as a whole: a partition of Kafka, or a place of RocketMQ."""

USUAL_RECORD_BYTES = 128
NOTHING_HERE = "DISK-20"
"""The law that a path breaks at which there is nothing of Kafka's."""
TASKS_AHEAD = 4
"""Segments that are handed to each process before the first one's findings are wanted."""


class Result(NamedTuple):
    """What checking one segment in another process brought."""

    findings: list[Finding]
    carry: LogCarry


def run(
    path: str, wanted: Wanted, files: Files, on_progress: Progress | None, jobs: int
) -> Iterator[Finding]:
    """Yield the findings of everything at or below `path`.

    Raises: OSError, before the first finding, where `path` itself can't be read.
    """
    works, findings = plan(path, wanted, files)
    meter = Meter(on_progress, _announced(works, wanted))
    yield from findings
    partitions = [one for one in works if isinstance(one, Partition)]
    count = sum(len(one.segments) for one in partitions)
    if jobs > 1 and count > 1 and files is REAL_FILES:
        yield from _in_processes(partitions, wanted, meter, min(jobs, count))
        works = [one for one in works if isinstance(one, Place)]
    yield from _one_by_one(works, wanted, files, meter)


def plan(path: str, wanted: Wanted, files: Files) -> tuple[list[Work], list[Finding]]:
    """Return what lies at or below `path`, and the findings of names and directories.

    Raises: OSError where `path` itself can't be read.
    """
    findings: list[Finding] = []
    return list(walk(path, wanted, files, findings)), findings


def walk(path: str, wanted: Wanted, files: Files, findings: list[Finding]) -> Iterator[Work]:
    """Yield what lies at or below `path`. At the end `findings` has those of names and directories.

    Raises: OSError where `path` itself can't be read.
    """
    places = [replace(one, size_bytes=size_of(one, files)) for one in find_places(path, files)]
    if [one.path for one in places] == [path]:
        yield from places
        return
    reporter = Reporter(wanted)
    waiting: list[Partition] = []
    is_kafkas = not places
    for partition in find_partitions(path, files, reporter):
        is_kafkas = is_kafkas or bool(partition.segments)
        waiting.append(_sized(partition, files))
        # Beside a store, directories without a segment count only where there are some with one.
        if is_kafkas:
            yield from waiting
            waiting.clear()
    if is_kafkas:
        found = reporter.finish()
        findings += [one for one in found if not places or one.law != NOTHING_HERE]
    yield from places


def check(works: Sequence[Work], wanted: Wanted, files: Files) -> Iterator[Finding]:
    """Yield the findings of what `plan` found, here or on another machine."""
    again = [_sized(one, files) if isinstance(one, Partition) else one for one in works]
    yield from _one_by_one(again, wanted, files, Meter(None, _announced(again, wanted)))


def _announced(works: Sequence[Work], wanted: Wanted) -> int:
    """Return the bytes that will be read; compile first what pays for so many."""
    total = sum(one.size_bytes for one in works)
    if wanted.deep and any(isinstance(one, Partition) for one in works):
        # Now, not when so many were read: what is compiled here every process has from its birth.
        summarise_batches.announce(total // (USUAL_RECORD_BYTES * RECORDS_OF_A_UNIT))
    return total


def _one_by_one(
    works: Sequence[Work], wanted: Wanted, files: Files, meter: Meter
) -> Iterator[Finding]:
    """Check the segments and places in this process."""
    for partition in works:
        if isinstance(partition, Place):
            yield from check_place(partition, wanted, files, meter.add)
            continue
        carried = PartitionCheck(partition, wanted, files)
        for segment in partition.segments:
            steady = SteadyCheck(segment, wanted, files)
            for done in steady.run():
                meter.add(done)
            yield from steady.findings
            carried.add(segment, steady.carry)
        yield from carried.finish()


def _sized(partition: Partition, files: Files) -> Partition:
    """Return the partition with the bytes that its segments will take to read."""
    segments = tuple(sized(segment, files) for segment in partition.segments)
    return replace(partition, segments=segments)


# --- processes


def _run_segment(segment: Segment, wanted: Wanted) -> Result:
    """Check one segment in a worker."""
    check = SteadyCheck(segment, wanted, REAL_FILES)
    for done in check.run():
        count_bytes(done)
    return Result(check.findings, check.carry)


def _in_processes(
    partitions: list[Partition], wanted: Wanted, meter: Meter, jobs: int
) -> Iterator[Finding]:
    """Check the segments in `jobs` processes; findings come in the same order as without."""
    todo = ((one, segment) for one in partitions for segment in one.segments)
    waiting: deque[tuple[Partition, Segment, Future[Result]]] = deque()
    carried: PartitionCheck | None = None
    current: Partition | None = None
    with Workers(jobs, meter) as workers:

        def begin(count: int) -> None:
            for partition, segment in islice(todo, count):
                future = workers.submit(_run_segment, segment, wanted)
                waiting.append((partition, segment, future))

        begin(TASKS_AHEAD * jobs)
        while waiting:
            partition, segment, future = waiting.popleft()
            if partition is not current:
                if carried is not None:
                    yield from carried.finish()
                carried, current = PartitionCheck(partition, wanted, REAL_FILES), partition
            try:
                result = workers.result(future)
            except BrokenProcessPool as error:
                raise SegproofError(
                    "a process of the verifier was ended from outside, perhaps for want of memory",
                    path=segment.path(".log"),
                    hint=f"verify with jobs=1 (this process is {os.getpid()})",
                ) from error
            begin(1)
            yield from result.findings
            assert carried is not None
            carried.add(segment, result.carry)
        if carried is not None:
            yield from carried.finish()
