# SPDX-License-Identifier: Apache-2.0
"""Verify all that lies at or below a path: find it, then check it, here or in several processes.

The findings and their order are the same in one process and in many.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import NamedTuple

from segproof.files import REAL_FILES, Files
from segproof.findings import Finding, Severity
from segproof.hints import reads
from segproof.inventory.partitions import Partition
from segproof.inventory.segment_listing import Listings, sized
from segproof.inventory.segments import Segment
from segproof.inventory.stores import find_places, size_of
from segproof.kafka.batch_table import RECORDS_OF_A_UNIT
from segproof.kernels.records import summarise_batches
from segproof.processes import Meter, Progress, Sharing, processes_for
from segproof.reading.log_rows import Surroundings
from segproof.reading.packed_segments import with_unpacked
from segproof.reading.store_paths import Place, config_place_of, has_partition
from segproof.verifying.changed_files import Since
from segproof.verifying.directory_checks import find_partitions
from segproof.verifying.log_directories import KnownDirectory, places_below
from segproof.verifying.loss_count import CountLost
from segproof.verifying.partition_verification import PartitionCheck
from segproof.verifying.rocketmq.layout_checks import report_unread_place
from segproof.verifying.rocketmq.store_verification import check_place
from segproof.verifying.rocketmq.stores_twice import (
    KnownStores,
    StorePlace,
    as_store_places,
    report_twice,
    store_places,
)
from segproof.verifying.rocketmq.unread_parts import report_file_of_store
from segproof.verifying.segment_carry import LogCarry
from segproof.verifying.segment_verification import SteadyCheck
from segproof.verifying.summarising import MET_AGAIN, NOTHING_HERE, OnSummary, Tallies, Work
from segproof.wording.reporting import Reporter, Wanted

USUAL_RECORD_BYTES = 128
TASKS_AHEAD = 4
"""Tasks that are handed to each process before the first one's findings are wanted."""
SEGMENTS_TOGETHER = 32
BYTES_TOGETHER = 1 << 20
"""Segments are one task up to so many, or until they have so many bytes."""


KnownPlace = KnownDirectory | StorePlace
"""What lies at or below another path of a call, and is compared with what is verified."""


class KnownPlaces(list[KnownPlace]):
    """The same of all paths of a call; what is found out of their stores is kept for each path."""

    def __init__(self, places: Iterable[KnownPlace] = ()) -> None:
        super().__init__(places)
        self._stores: KnownStores | None = None

    def stores(self, files: Files) -> KnownStores:
        """Return what is known of the stores."""
        if self._stores is None or self._stores.files is not files:
            self._stores = KnownStores(_stores_of(self), files)
        return self._stores


class Result(NamedTuple):
    """What checking one segment in another process brought."""

    findings: list[Finding]
    carry: LogCarry


def run(
    path: str,
    wanted: Wanted,
    files: Files,
    on_progress: Progress | None,
    jobs: int,
    on_summary: OnSummary | None = None,
    since: Since | None = None,
    beside: Sequence[KnownPlace] = (),
    count_lost: CountLost = lambda *_: None,
) -> Iterator[Finding]:
    """Yield the findings of everything at or below `path`, each partition's before its summary.

    What has not changed `since` is left out. Of a partition with a damaged log, `count_lost` counts
    the lost offsets.

    Raises: OSError, before the first finding, where `path` itself can't be read.
    """
    works, findings = plan(path, wanted, files, beside)
    tallies = Tallies(path, findings, works, on_summary, count_lost)
    if since is not None:
        works = since.changed(works, with_unpacked(files))
    meter = Meter(on_progress, _announced(works, wanted))
    yield from tallies.outside(with_unpacked(files))
    partitions = [one for one in works if isinstance(one, Partition)]
    count = sum(len(one.segments) for one in partitions)
    processes = processes_for(jobs, count, sum(one.size_bytes for one in partitions))
    if processes > 1 and files is REAL_FILES:
        yield from _in_processes(partitions, wanted, meter, processes, tallies)
        works = [one for one in works if isinstance(one, Place)]
    yield from _one_by_one(works, wanted, files, meter, tallies)


def _beside_stores(findings: Iterable[Finding], places: Sequence[Place]) -> Iterator[Finding]:
    """Yield the findings of a walk that looked for Kafka's files, as far as they hold for stores.

    Those are folders that were met again, and files outside of the stores that were not read.
    """
    stores = tuple(os.path.join(os.path.abspath(store.path), "") for store in places)
    for one in findings:
        if one.law == MET_AGAIN:
            yield one
        elif one.is_not_looked_into:
            path = os.path.join(os.path.abspath(one.path), "")
            if not path.startswith(stores):
                yield replace(one, severity=Severity.NOTE)


def known_places(path: str, files: Files) -> list[KnownPlace]:
    """Return what lies at or below a path, for `beside` of the other paths of a call."""
    return [*places_below(path, files), *store_places(path, files)]


def _stores_of(places: Iterable[KnownPlace]) -> list[StorePlace]:
    return [one for one in places if isinstance(one, StorePlace)]


def plan(
    path: str, wanted: Wanted, files: Files, beside: Sequence[KnownPlace] = ()
) -> tuple[list[Work], list[Finding]]:
    """Return what lies at or below `path`, and the findings of names and directories.

    `beside` are the partitions and stores of other paths of the same call.
    Raises: OSError where `path` itself can't be read.
    """
    findings: list[Finding] = []
    return list(walk(path, wanted, files, findings, beside)), findings


def walk(
    path: str,
    wanted: Wanted,
    files: Files,
    findings: list[Finding],
    beside: Sequence[KnownPlace] = (),
) -> Iterator[Work]:
    """Yield what lies at or below `path`. At the end `findings` has those of names and directories.

    Raises: OSError where `path` itself can't be read.
    """
    places = [replace(one, size_bytes=size_of(one, files)) for one in find_places(path, files)]
    stores = _stores_of(beside) if places else []
    directories = [one for one in beside if not isinstance(one, StorePlace)]
    if len(places) + len(stores) > 1 and places:
        twice, own = Reporter(wanted), as_store_places(places, files)
        known = beside.stores(files) if isinstance(beside, KnownPlaces) else None
        if known is None or not known.has(own):
            known = KnownStores((*stores, *own), files)
        report_twice(own, known, twice)
        findings += twice.finish()
    if [one.path for one in places] == [path] and not has_partition(path, files):
        yield from places
        return
    reporter = Reporter(wanted)
    if not places and (alone := config_place_of(path, files)) is not None:
        yield replace(alone, size_bytes=size_of(alone, files))
        return
    if not places and (
        report_unread_place(path, files, reporter) or report_file_of_store(path, files, reporter)
    ):
        findings += reporter.finish()
        return
    waiting: list[Partition] = []
    is_kafkas = not places
    for partition in find_partitions(path, with_unpacked(files), reporter, directories):
        is_kafkas = is_kafkas or bool(partition.segments)
        waiting.append(_sized(partition, files))
        # Beside a store, directories without a segment count only where there are some with one.
        if is_kafkas:
            yield from waiting
            waiting.clear()
    if is_kafkas:
        found = reporter.finish()
        findings += [one for one in found if not places or one.law != NOTHING_HERE]
    elif places:
        findings += _beside_stores(reporter.finish(), places)
    yield from places


def check(works: Sequence[Work], wanted: Wanted, files: Files) -> Iterator[Finding]:
    """Yield the findings of what `plan` found, here or on another machine."""
    again = [_sized(one, files) if isinstance(one, Partition) else one for one in works]
    meter = Meter(None, _announced(again, wanted))
    yield from _one_by_one(again, wanted, files, meter, Tallies("", (), again, None))


def _announced(works: Sequence[Work], wanted: Wanted) -> int:
    """Return the bytes that will be read; compile first what pays for so many."""
    total = sum(one.size_bytes for one in works)
    if wanted.deep and any(isinstance(one, Partition) for one in works):
        # Now, not when so many were read: what is compiled here every process has from its birth.
        summarise_batches.announce(total // (USUAL_RECORD_BYTES * RECORDS_OF_A_UNIT))
    return total


def _one_by_one(
    works: Sequence[Work], wanted: Wanted, files: Files, meter: Meter, tallies: Tallies
) -> Iterator[Finding]:
    """Check the segments and places in this process."""
    seen = with_unpacked(files)
    listings, around = Listings(seen), Surroundings(files)
    for partition in works:
        tally = tallies.of(partition, files)
        yield from tally.begin()
        if isinstance(partition, Place):
            found = check_place(partition, wanted, files, meter.add, tally.checked, around)
            yield from tally.count(found)
            tally.end()
            continue
        carried = PartitionCheck(partition, wanted, seen)
        for segment in partition.segments:
            steady = SteadyCheck(segment, wanted, seen, listings=listings)
            for done in steady.run():
                meter.add(done)
            yield from tally.count(steady.findings)
            carried.add(segment, steady.carry)
            tally.add(segment, steady.carry)
        yield from tally.count(carried.finish())
        tally.end()


def _sized(partition: Partition, files: Files) -> Partition:
    """Return the partition with the bytes that its segments will take to read."""
    seen = with_unpacked(files)
    segments = tuple(sized(segment, seen) for segment in partition.segments)
    return replace(partition, segments=segments)


# --- processes


def _run_segments(
    segments: tuple[Segment, ...], files: Files, meter: Meter, wanted: Wanted
) -> list[Result]:
    """Check some segments in a worker."""
    results: list[Result] = []
    seen = with_unpacked(files)
    listings = Listings(seen)
    for segment in segments:
        check = SteadyCheck(segment, wanted, seen, listings=listings)
        for done in check.run():
            meter.add(done)
        results.append(Result(check.findings, check.carry))
    return results


def _tasks(partitions: Iterable[Partition]) -> Iterator[tuple[Segment, ...]]:
    """Yield all segments in order; small ones together, since handing over a task costs more."""
    task: list[Segment] = []
    for segment in (segment for one in partitions for segment in one.segments):
        task.append(segment)
        if len(task) == SEGMENTS_TOGETHER or sum(one.size_bytes for one in task) >= BYTES_TOGETHER:
            yield tuple(task)
            task.clear()
    if task:
        yield tuple(task)


def _in_processes(
    partitions: list[Partition], wanted: Wanted, meter: Meter, jobs: int, tallies: Tallies
) -> Iterator[Finding]:
    """Check the segments in `jobs` processes; findings come in the same order as without."""
    sharing = Sharing(
        jobs, REAL_FILES, meter, "verifier", lambda task: task[0].path(".log"),
        reads(f"verify with jobs=1 (this process is {os.getpid()})"),
    )  # fmt: skip
    work = partial(_run_segments, wanted=wanted)
    with sharing.results(work, _tasks(partitions), ahead=TASKS_AHEAD * jobs) as checked:
        following = chain.from_iterable(checked)
        for partition in partitions:
            tally = tallies.of(partition, REAL_FILES)
            carried = PartitionCheck(partition, wanted, REAL_FILES)
            yield from tally.begin()
            for segment in partition.segments:
                result = next(following)
                yield from tally.count(result.findings)
                carried.add(segment, result.carry)
                tally.add(segment, result.carry)
            yield from tally.count(carried.finish())
            tally.end()
